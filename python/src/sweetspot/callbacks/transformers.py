"""The callback for the Trainer of Hugging Face.

    from sweetspot.callbacks.transformers import Sweetspot
    trainer = Trainer(..., callbacks=[Sweetspot()])
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

from transformers import TrainerCallback

from ._training import Items, Training, cuda_events, report_accuracy

__all__ = ["Sweetspot"]


class Sweetspot(TrainerCallback):
    """Adds the energy of each epoch to the Trainer's log as `energy_j`, `energy_error_j` (how far it may be off)
    and `average_power_w`, and reports the training.

    The Trainer logs at the end of each epoch, whatever its logging strategy. The energy is in `trainer.state.log_history`
    and in what callbacks after this one get; those that the Trainer made itself for `report_to` come before it unless
    `Sweetspot().add_to(trainer)` puts it in front of them. It is that of the GPUs that the process of rank 0 can see.

    The tool gets the phases `epoch` and `step`, the items of each optimizer step (samples of this process), and the accuracy
    where an evaluation has one. `devices` are the GPUs to measure; `items` is the number of items in an optimizer step;
    `measure=False` only reports.
    """

    def __init__(
        self, devices: Iterable[int | str] | None = None, items: int | None = None, measure: bool = True
    ) -> None:
        self._training = Training(devices, items, measure)
        self._events: Callable[..., Any] | None = None
        self._logged: dict[str, float] = {}
        self._left: int | None = None

    def add_to(self, trainer: Any) -> Sweetspot:
        """Puts this callback before all others of a Trainer, so that all of them log the energy."""
        trainer.callback_handler.callbacks.insert(0, self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._events = cuda_events()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._left = _samples_in_epoch(args, kwargs.get("train_dataloader"))
        self._training.begin_epoch(measured=state.is_world_process_zero)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._training.begin("step", self._events)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        items = self._training.items
        if not isinstance(items, int):
            items = args.train_batch_size * args.gradient_accumulation_steps
            if self._left is not None:
                # The last batches of an epoch may be smaller.
                items = min(items, self._left)
                self._left -= items
        self._training.end_step(items)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._logged = self._training.end_epoch()
        control.should_log = bool(self._logged) or control.should_log

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        logged, self._logged = self._logged, {}
        if logged and logs is not None:
            logs.update(logged)
            if state.log_history:
                state.log_history[-1].update(logged)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        report_accuracy(metrics or {})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._training.end_all()


def _samples_in_epoch(args: Any, loader: Any) -> int | None:
    """The samples that this process takes in an epoch; None if the data set has no length."""
    try:
        samples = len(loader.dataset)
    except (AttributeError, TypeError):
        return None
    world = max(1, int(getattr(args, "world_size", 1)))
    return -(-samples // world)
