"""Time and energy of a block of this program."""

from __future__ import annotations

import itertools
import json
import os
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Iterable

from ._counter import counter_path, start_path
from ._http import TIMEOUT_S, Answer, CounterError
from ._meter import FIRST_TIMEOUT_S, Service, forget_meter, meter_for, service_devices, use_own_process
from ._program import ProgramError

if TYPE_CHECKING:
    from types import TracebackType

    from ._meter import Meter

_numbers = itertools.count()


@dataclass(frozen=True)
class DeviceEnergy:
    """The energy of one GPU in a measured block."""

    index: int
    uuid: str
    energy_j: float | None
    interval95_j: tuple[float, float] | None
    method: str | None


class Measurement:
    """Measures time, energy per GPU and mean power of a block of this program. `sweetspot.measure()` creates it.

        with sweetspot.measure() as m: ...
        m = sweetspot.measure().start(); ...; m.stop()

    Energies are those of the whole GPUs, with what other programs do on them. The results are there after the block; the
    first one that is read waits about 0.2 s, because the driver shows its samples late. A measurement never raises an error
    in the measured program: without a GPU or a driver the energy is None, and `reason` says why.
    """

    def __init__(self, devices: Iterable[int | str] | None = None) -> None:
        self.devices = None if devices is None else tuple(str(device) for device in devices)
        self._name = ""
        self._meter: Meter | None = None
        self._begun: float | None = None
        self._passed: float | None = None
        self._started: Answer | None = None
        self._stopped: Answer | None = None
        self._result: dict[str, Any] = {}
        self._reason: str | None = None

    def start(self) -> Measurement:
        """Begins the measurement. The first one of a program waits until the GPUs have been read."""
        for unread in (self._started, self._stopped):
            if unread is not None:
                unread.forget()
        # A late request about an earlier block must not concern this one.
        self._name = f"python-{os.getpid()}-{next(_numbers)}-{os.urandom(4).hex()}"
        self._begun = self._passed = self._started = self._stopped = self._reason = None
        self._result = {}
        try:
            self._meter, path = self._ready_meter()
            self._started = self._meter.ask("POST", path)
        except (CounterError, ProgramError, OSError) as problem:
            self._fail(problem)
        self._begun = monotonic()
        return self

    def stop(self) -> Measurement:
        """Ends the measurement; it does not wait for the result."""
        if self._begun is None or self._passed is not None:
            return self
        self._passed = monotonic() - self._begun
        if self._meter is not None and self._reason is None:
            try:
                self._stopped = self._meter.ask("POST", counter_path(self._name) + "/stop")
            except (CounterError, OSError) as problem:
                self._fail(problem)
        return self

    def ask_energy(self) -> Answer | None:
        """Asks for the energy so far, while the block runs; None if nothing can be asked."""
        if self._meter is None or self._reason is not None:
            return None
        try:
            return self._meter.ask("GET", counter_path(self._name))
        except (CounterError, OSError):
            return None

    def has_result(self) -> bool:
        """Whether reading the result of a measurement that has ended waits for nothing."""
        return self._stopped is None or self._stopped.has_arrived()

    def discard(self) -> None:
        """Drops the result of a measurement that has ended."""
        for unread in (self._started, self._stopped):
            if unread is not None:
                unread.forget()
        self._started = self._stopped = None
        if self._meter is not None and self._reason is None:
            try:
                self._meter.ask("DELETE", counter_path(self._name)).forget()
            except (CounterError, OSError):
                pass

    @property
    def passed_s(self) -> float | None:
        """The time of the block by this program's clock, which is known at once; None until it has ended."""
        return self._passed

    @property
    def time_s(self) -> float | None:
        """The time of the block in seconds; None until it has ended."""
        measured = self._document().get("time_s")
        return self._passed if measured is None else float(measured)

    @property
    def energy_j(self) -> float | None:
        """The energy of all measured GPUs in joules; None if it is unknown, and then `reason` says why."""
        return self._document().get("energy_j")

    @property
    def interval95_j(self) -> tuple[float, float] | None:
        """The 95 % interval of the energy: the uncertainty of the board's sensors and of the two ends of the block."""
        return _interval(self._document())

    @property
    def average_power_w(self) -> float | None:
        """The mean power of all measured GPUs in watts."""
        return self._document().get("average_power_w")

    @property
    def by_device(self) -> dict[str, DeviceEnergy]:
        """The energy of each GPU, by its UUID."""
        devices = self._document().get("devices", [])
        all_devices = (
            DeviceEnergy(one["index"], one["uuid"], one.get("energy_j"), _interval(one), one.get("method"))
            for one in devices
        )
        return {device.uuid: device for device in all_devices}

    @property
    def method(self) -> str | None:
        """How the energy was measured, such as `counter+buffer`; docs/reference/measure.md explains the methods."""
        methods = {device.method for device in self.by_device.values() if device.method is not None}
        return ", ".join(sorted(methods)) or None

    @property
    def source(self) -> str | None:
        """Who measured: `service`, or `process` for a measuring process of this program's own; None if nobody did."""
        return self._meter.name if self._meter is not None and self.energy_j is not None else None

    @property
    def reason(self) -> str | None:
        """Why the energy is unknown; None if it is known."""
        if self._passed is None and self._reason is None:
            return "the block has not ended" if self._begun is not None else "the measurement was not started"
        self._document()
        return self._reason

    @property
    def notes(self) -> list[str]:
        """Remarks about the reliability of the values, such as times without readings."""
        return list(self._document().get("notes", []))

    def __enter__(self) -> Measurement:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        if self._passed is None:
            return f"<sweetspot.Measurement: {self.reason}>"
        if self.energy_j is None:
            return f"<sweetspot.Measurement: {self.time_s:.3f} s, energy unknown: {self.reason}>"
        return f"<sweetspot.Measurement: {self.energy_j:.1f} J in {self.time_s:.3f} s, {self.method}>"

    def _ready_meter(self) -> tuple[Meter, str]:
        """A meter that reads the GPUs, and the path that starts the counter of this measurement there."""
        meter, is_first = meter_for(self.devices)
        if isinstance(meter, Service):
            named = service_devices(self.devices)
            try:
                if is_first:
                    _try_out(meter, self._name, named)
                return meter, start_path(self._name, named)
            except CounterError:
                # The service does not know GPUs by every name that CUDA knows.
                meter, is_first = use_own_process(self.devices), True
        if is_first:
            _try_out(meter, self._name, ())
        return meter, start_path(self._name, ())

    def _document(self) -> dict[str, Any]:
        """The document of the counter, once the block has ended."""
        stopped, self._stopped = self._stopped, None
        if stopped is not None and self._meter is not None:
            try:
                started, self._started = self._started, None
                if started is not None:
                    started.body(TIMEOUT_S)
                self._result = json.loads(stopped.body())
                self._meter.ask("DELETE", counter_path(self._name)).forget()
            except (CounterError, OSError, ValueError) as problem:
                stopped.forget()
                self._fail(problem)
        return self._result

    def _fail(self, problem: Exception) -> None:
        """Keeps the reason. What a measuring process of our own reported when it ended says more than a closed socket."""
        reported = forget_meter(self.devices)
        self._reason = reported or str(problem)


def measure(devices: Iterable[int | str] | None = None) -> Measurement:
    """Measures the time and the energy of a block of this program, without the tool around it.

        with sweetspot.measure() as m:
            train()
        print(m.energy_j, m.time_s, m.average_power_w, m.by_device, m.method, m.interval95_j)

    `devices` are indices or UUIDs of GPUs; without them, those in CUDA_VISIBLE_DEVICES, or else all. The service measures
    where it runs; otherwise the program `sweetspot` is started as a measuring process, with the estimator of `sweetspot
    measure`. Also usable as `m = sweetspot.measure().start()` and `m.stop()`.
    """
    return Measurement(devices)


def _try_out(meter: Meter, name: str, devices: tuple[str, ...]) -> None:
    """Waits until a new meter has read the GPUs, with a counter that ends at once."""
    meter.ask("POST", start_path(name + "-first", devices)).body(FIRST_TIMEOUT_S)
    meter.ask("DELETE", counter_path(name + "-first")).forget()


def _interval(document: dict[str, Any]) -> tuple[float, float] | None:
    interval = document.get("interval95_j")
    return None if interval is None else (float(interval[0]), float(interval[1]))
