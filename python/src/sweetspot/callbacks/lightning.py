"""The callback for PyTorch Lightning (`lightning` or `pytorch_lightning`).

    from sweetspot.callbacks.lightning import Sweetspot
    trainer = Trainer(callbacks=[Sweetspot()])
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

from ._training import Items, Training, cuda_events, report_accuracy

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

__all__ = ["Sweetspot"]


class Sweetspot(Callback):
    """Logs the energy of each training epoch with `self.log` as `energy_j`, `energy_error_j` (how far it may be off) and
    `average_power_w`, and reports the training.

    The energy is that of the GPUs that the process of rank 0 can see, validation within the epoch included. The tool gets
    the phases `epoch`, `step` and `validation`, the items of each batch, and the accuracy where the module logs one.

    `devices` are the GPUs to measure; `items` is the number of items in a batch, or a function of the batch that returns it
    (the first dimension of its first array without it); `measure=False` only reports.
    """

    def __init__(
        self, devices: Iterable[int | str] | None = None, items: Items = None, measure: bool = True
    ) -> None:
        super().__init__()
        self._training = Training(devices, items, measure)
        self._events: Callable[..., Any] | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._events = cuda_events()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._training.begin_epoch(measured=trainer.is_global_zero)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._training.begin("step", self._events)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._training.end_step(self._training.count(batch))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        # The trial before the training is no part of it.
        if not trainer.sanity_checking:
            self._training.begin_validation()

    def on_validation_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self._training.watch_energy()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end_validation()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        for name, value in self._training.end_epoch().items():
            pl_module.log(name, value, on_step=False, on_epoch=True, rank_zero_only=True)
        report_accuracy(trainer.callback_metrics)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._training.end_all()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._training.end_all()
