"""The functions of a program with a link."""

from __future__ import annotations

import atexit
import os
from time import monotonic_ns as now

from . import _off, _ring
from ._device import EventPhase
from ._phase import Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, SupportsFloat, SupportsInt, overload
else:

    def overload(function):
        return function

_local = _ring.Local()
_pack = _ring.pack_whole
_BASE = _ring._BASE
_TUNING = ("off", "exploring", "settled")


class _Phase(Phase):
    """A phase, one for each name, without state of a thread or process. It repeats Ring.record for speed.

    No call happens between taking a number and writing its record: after a call a signal such as Ctrl-C may
    raise, and the record would be missing forever.
    """

    __slots__ = ("index", "begins", "ends")

    def __init__(self, index: int) -> None:
        self.index = index
        self.begins = _ring.BEGIN | index
        self.ends = _ring.END | index

    def __enter__(self) -> Phase:
        at = now()
        ring = _local.ring
        number = ring.next
        if number >= ring.limit:
            number = ring.next_number()
            if number < 0:
                return self
        ring.next = number + 1
        _pack(ring.map, _BASE + (number & ring.mask) * 32, at, 0, self.begins, ring.lost, number + 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        at = now()
        ring = _local.ring
        number = ring.next
        if number >= ring.limit:
            number = ring.next_number()
            if number < 0:
                return
        ring.next = number + 1
        _pack(ring.map, _BASE + (number & ring.mask) * 32, at, 0, self.ends, ring.lost, number + 1)


class _SyncPhase(Phase):
    __slots__ = ("phase", "sync")

    def __init__(self, phase: _Phase, sync: Callable[[], object]) -> None:
        self.phase = phase
        self.sync = sync

    def __enter__(self) -> Phase:
        self.sync()
        self.phase.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # After an error, the device may repeat the error and hide its origin.
            if kind is None:
                self.sync()
        finally:
            self.phase.__exit__(kind, error, trace)


class _Phases(dict[object, _Phase]):
    def __missing__(self, name: object) -> _Phase:
        index = _ring.name_index(name)
        if index < 0:
            _local.ring.count_refused()
            return _Phase(0)
        phase = self[name] = _Phase(index)
        return phase


_phases = _Phases()


def phase(name: object, sync: Callable[[], object] | None = None, events: Callable[..., Any] | None = None) -> Phase:
    if events is not None:
        return EventPhase(_phases[name].index, events, _local)
    if sync is None:
        return _phases[name]
    return _SyncPhase(_phases[name], sync)


def begin(name: object) -> None:
    _phases[name].__enter__()


def end(name: object) -> None:
    _phases[name].__exit__(None, None, None)


def progress(items: SupportsInt | str = 1) -> None:
    try:
        count = int(items)
    except Exception as error:
        return _ring.complain("progress takes a number of items: %s" % error)
    if not 0 <= count < 1 << 64:
        return _ring.complain("progress takes a number of items, not %d" % count)
    ring = _local.ring
    ring.record(_pack, _ring.ITEMS, now(), count)
    if ring.device is not None:
        ring.device.resolve(ring)


def value(name: object, value: SupportsFloat | str) -> None:
    try:
        real = float(value)
    except Exception as error:
        return _ring.complain("value takes a number: %s" % error)
    ring = _local.ring
    ring.record(_ring.pack_real, _ring.VALUE | _phases[name].index, now(), real)
    if ring.device is not None:
        ring.device.resolve(ring)


def batch(items: SupportsInt, seconds: float, latency: float | None = None) -> None:
    value("batch_s", seconds)
    if latency is not None:
        value("latency_s", latency)
    progress(items)


def latency(seconds: float) -> None:
    value("latency_s", seconds)


def queue(length: float, arrivals_per_second: float | None = None) -> None:
    value("queue_length", length)
    if arrivals_per_second is not None:
        value("arrivals_per_s", arrivals_per_second)


def out_of_memory(batch: SupportsInt) -> None:
    try:
        size = int(batch)
    except Exception as error:
        return _ring.complain("out_of_memory takes a batch size: %s" % error)
    _ring.too_large(size)
    value("out_of_memory", size)


def _word(number: int) -> int:
    words = _ring._control or _ring.control()
    return 0 if words is None else words[8 + number]


@overload
def batch_size(default: int) -> int: ...
@overload
def batch_size(default: None = None) -> int | None: ...
def batch_size(default: int | None = None) -> int | None:
    words = _ring._control or _ring.control()
    size = 0 if words is None else words[8]
    if size:
        # A size that did not fit is not returned again, even before the tool knows of it.
        if size >= _ring.fits_below:
            size = max(1, _ring.fits_below // 2)
        ring = _local.ring
        # The tool is told once for each size that the program asked.
        if size != ring.reported_size:
            ring.reported_size = size
            value("batch_size", size)
        return size
    return default


def tuning() -> str:
    phase = _word(1)
    return _TUNING[phase] if phase < len(_TUNING) else "off"


def enabled() -> bool:
    return _ring.control() is not None


# The documentation is written once.
for _function in (phase, begin, end, progress, value, batch, latency, queue, out_of_memory, batch_size, tuning, enabled):
    _function.__doc__ = getattr(_off, _function.__name__).__doc__

os.register_at_fork(after_in_child=_ring.after_fork)
atexit.register(_ring.close_all)
