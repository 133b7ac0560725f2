"""The functions of a program with a link."""

import atexit
import os
from time import monotonic_ns as now

from . import _ring
from ._device import EventPhase

_local = _ring.Local()
_pack = _ring.pack_whole
_BASE = _ring._BASE
_TUNING = ("off", "exploring", "settled")


class _Phase:
    """A phase, one for each name, without state of a thread or process. It repeats Ring.record for speed.

    No call happens between taking a number and writing its record: after a call a signal such as Ctrl-C may
    raise, and the record would be missing forever.
    """

    __slots__ = ("index", "begins", "ends")

    def __init__(self, index):
        self.index = index
        self.begins = _ring.BEGIN | index
        self.ends = _ring.END | index

    def __enter__(self):
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

    def __exit__(self, kind, error, trace):
        at = now()
        ring = _local.ring
        number = ring.next
        if number >= ring.limit:
            number = ring.next_number()
            if number < 0:
                return
        ring.next = number + 1
        _pack(ring.map, _BASE + (number & ring.mask) * 32, at, 0, self.ends, ring.lost, number + 1)


class _SyncPhase:
    __slots__ = ("phase", "sync")

    def __init__(self, phase, sync):
        self.phase = phase
        self.sync = sync

    def __enter__(self):
        self.sync()
        self.phase.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        try:
            # After an error, the device may repeat the error and hide its origin.
            if kind is None:
                self.sync()
        finally:
            self.phase.__exit__(kind, error, trace)


class _Phases(dict):
    def __missing__(self, name):
        index = _ring.name_index(name)
        if index < 0:
            _local.ring.count_refused()
            return _Phase(0)
        phase = self[name] = _Phase(index)
        return phase


_phases = _Phases()


def phase(name, sync=None, events=None):
    """Marks a part of the program, for use with `with`. GPU work is asynchronous: `sync=torch.cuda.synchronize`
    waits for it at both ends; `events=torch.cuda.Event` lets the GPU measure the times and never waits."""
    if sync is None and events is None:
        return _phases[name]
    if events is not None:
        return EventPhase(_phases[name].index, events, _local)
    return _SyncPhase(_phases[name], sync)


def begin(name):
    """Marks the beginning of a phase, where `with` cannot be used."""
    _phases[name].__enter__()


def end(name):
    """Marks the end of the innermost phase of this name."""
    _phases[name].__exit__(None, None, None)


def progress(items=1):
    """Reports that this many more items (images, tokens) are done."""
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


def value(name, value):
    """Reports a value such as an accuracy or a latency."""
    try:
        real = float(value)
    except Exception as error:
        return _ring.complain("value takes a number: %s" % error)
    ring = _local.ring
    ring.record(_ring.pack_real, _ring.VALUE | _phases[name].index, now(), real)
    if ring.device is not None:
        ring.device.resolve(ring)


def batch(items, seconds, latency=None):
    """Reports a finished batch: its number of items, its time in seconds and, where requests wait for their batch,
    the latency of the slowest request in seconds."""
    value("batch_s", seconds)
    if latency is not None:
        value("latency_s", latency)
    progress(items)


def latency(seconds):
    """Reports the seconds from a request's arrival to its answer: of each request, or of the slowest of a batch."""
    value("latency_s", seconds)


def queue(length, arrivals_per_second=None):
    """Reports the number of waiting requests, and the number that arrive per second."""
    value("queue_length", length)
    if arrivals_per_second is not None:
        value("arrivals_per_s", arrivals_per_second)


def out_of_memory(batch):
    """Reports that a batch of this size does not fit into memory: the next batch size is smaller."""
    try:
        _ring.too_large(int(batch))
    except Exception:
        pass
    value("out_of_memory", batch)


def _word(number):
    words = _ring._control or _ring.control()
    return 0 if words is None else words[8 + number]


def batch_size(default=None):
    """Returns the batch size that the tool wants next, or the default. Call it before each batch."""
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


def tuning():
    """Returns what the tool does with the settings: "off", "exploring" or "settled"."""
    phase = _word(1)
    return _TUNING[phase] if phase < len(_TUNING) else "off"


def enabled():
    """Returns whether a tool reads the link."""
    return _ring.control() is not None


os.register_at_fork(after_in_child=_ring.after_fork)
atexit.register(_ring.close_all)
