"""What the callbacks of all frameworks have in common."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from .. import batch as report_batch
from .. import phase, value
from .._measure import Measurement
from .._phase import Phase
from ._energy_so_far import EnergySoFar, EpochEstimates

Items = Optional[Union[int, Callable[[Any], int]]]

# How long the end of an epoch may wait for its energy, as a share of the epoch, and how long it has to wait. The steps of a
# training cost up to 0.2 % more, and all of it together must stay below 0.5 %.
_WAITING_SHARE = 0.0025
_WAIT_S = 0.35

_complained = False


class Training:
    """Reports a training, and measures its epochs."""

    def __init__(self, devices: Iterable[int | str] | None, items: Items, measures: bool) -> None:
        self.devices = devices if devices is None else list(devices)
        self.items = items
        self.measures = measures
        self._measurement: Measurement | None = None
        self._so_far: EnergySoFar | None = None
        self._estimates = EpochEstimates()
        self._open: dict[str, Phase] = {}
        self._begun = 0.0

    def begin(self, name: str, events: Callable[..., Any] | None = None) -> None:
        """Begins a phase; one of the same name that is open ends first."""
        self.end(name)
        one = self._open[name] = phase(name, events=events)
        one.start()
        self._begun = monotonic()

    def end(self, name: str) -> None:
        """Ends a phase if it is open."""
        one = self._open.pop(name, None)
        if one is not None:
            one.stop()

    def begin_epoch(self, measured: bool = True) -> None:
        """Begins an epoch, and the measurement of its energy."""
        if self.measures and measured:
            self._measurement = Measurement(self.devices).start()
            self._so_far = EnergySoFar(self._measurement)
        self.begin("epoch")

    def end_epoch(self) -> dict[str, float]:
        """Ends an epoch, and returns what belongs into the trainer's log: nothing where the energy is unknown."""
        self.end("epoch")
        measurement, self._measurement = self._measurement, None
        so_far, self._so_far = self._so_far, None
        if measurement is None or so_far is None:
            return {}
        measurement.stop()
        passed = measurement.passed_s
        if passed and passed * _WAITING_SHARE < _WAIT_S:
            estimate = self._estimates.estimate(so_far, passed)
            if estimate is not None:
                self._estimates.await_exact(so_far)
                return _logged(estimate[0], passed, estimate[1])
        energy, interval, seconds = measurement.energy_j, measurement.interval95_j, measurement.time_s
        if energy is None or interval is None or not seconds:
            _complain(f"the energy of epochs is not logged: {measurement.reason}")
            return {}
        if so_far.complete():
            self._estimates.add_exact(so_far)
        return _logged(energy, seconds, max(energy - interval[0], interval[1] - energy))

    def end_step(self, items: int) -> None:
        """Ends a training step that has processed these items."""
        seconds = monotonic() - self._begun
        self.end("step")
        report_batch(items=items, seconds=seconds)
        self.watch_energy()

    def watch_energy(self) -> None:
        """Notes the energy of the epoch so far. It takes microseconds, and is to be called after each batch."""
        if self._so_far is not None:
            self._so_far.poll()
            self._estimates.learn()

    def begin_validation(self) -> None:
        """Begins a validation, where the power may change."""
        self.begin("validation")
        self._ask_energy()

    def end_validation(self) -> None:
        """Ends a validation."""
        self._ask_energy()
        self.end("validation")

    def end_all(self) -> None:
        """Ends what an interrupted training has left open."""
        for name in reversed(list(self._open)):
            self.end(name)
        self._estimates.drop_all()
        if self._so_far is not None and self._measurement is not None:
            self._measurement.stop()
            self._so_far.drop()
        self._so_far = self._measurement = None

    def count(self, batch: Any) -> int:
        """The items of a batch."""
        if callable(self.items):
            return self.items(batch)
        return count_items(batch) if self.items is None else self.items

    def _ask_energy(self) -> None:
        if self._so_far is not None:
            self._so_far.ask()


def _logged(energy_j: float, seconds: float, error_j: float) -> dict[str, float]:
    return {"energy_j": energy_j, "energy_error_j": error_j, "average_power_w": energy_j / seconds}


def count_items(batch: Any) -> int:
    """The items of a batch: the first dimension of its first array."""
    for _ in range(8):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        if isinstance(batch, Mapping):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (list, tuple)) and batch:
            if isinstance(batch[0], (int, float, str)):
                return len(batch)
            batch = batch[0]
        else:
            break
    return 1


def report_accuracy(logs: Mapping[str, Any]) -> None:
    """Reports the accuracy that the trainer has logged; that of a validation comes first."""
    found = [name for name in logs if name.lower().replace("/", "_").split("_")[-1] in ("accuracy", "acc")]
    validated = [name for name in found if name.lower().startswith(("val", "eval", "test"))]
    for name in (validated or found)[:1]:
        try:
            value("accuracy", float(logs[name]))
        except (TypeError, ValueError):
            pass


def cuda_events() -> Callable[..., Any] | None:
    """The events of PyTorch's GPU, which time its work without waiting for it; None if this program uses no GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    events: Callable[..., Any] = torch.cuda.Event
    return events


def _complain(what: str) -> None:
    """Prints one message: a training must never fail because of its measurement."""
    global _complained
    if not _complained:
        _complained = True
        print(f"sweetspot: {what}", file=sys.stderr, flush=True)
