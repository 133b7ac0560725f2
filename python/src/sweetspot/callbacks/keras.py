"""The callback for Keras, on any of its backends.

    from sweetspot.callbacks.keras import Sweetspot
    model.fit(images, labels, batch_size=64, callbacks=[Sweetspot(items=64)])
"""

from __future__ import annotations

from typing import Any, Iterable

from keras.callbacks import Callback

from ._training import Training, report_accuracy

__all__ = ["Sweetspot"]


class Sweetspot(Callback):
    """Adds the energy of each epoch to the logs of `fit` and its History as `energy_j`, `energy_error_j` (how far it
    may be off) and `average_power_w`, and reports the training.

    Callbacks that write logs, such as CSVLogger, belong after this one in the list. The energy is that of the GPUs that this
    process can see, validation within the epoch included. The tool gets the phases `epoch`, `step` and `validation`, and the
    accuracy where the model has that metric.

    `devices` are the GPUs to measure; `items` is the number of items in a batch, which Keras does not tell its callbacks
    (a batch counts as one item without it); `measure=False` only reports.
    """

    def __init__(self, devices: Iterable[int | str] | None = None, items: int = 1, measure: bool = True) -> None:
        super().__init__()
        self._training = Training(devices, items, measure)
        self._items = items

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._training.begin_epoch()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._training.begin("step")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._training.end_step(self._items)

    def on_test_begin(self, logs: Any = None) -> None:
        self._training.begin_validation()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._training.watch_energy()

    def on_test_end(self, logs: Any = None) -> None:
        self._training.end_validation()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logged = self._training.end_epoch()
        if logs is not None:
            report_accuracy(logs)
            logs.update(logged)

    def on_train_end(self, logs: Any = None) -> None:
        self._training.end_all()
