"""The calls of a program whose link is on."""

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
    """One for each name; holds nothing of any thread or process. Ring.record, written out for speed.

    No call lies between taking a number and writing its record: after a call a signal such as Ctrl-C may
    raise, and the record would never come.
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
            number = ring.room()
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
            number = ring.room()
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
            # After an error the device may only repeat it and hide where it came from.
            if kind is None:
                self.sync()
        finally:
            self.phase.__exit__(kind, error, trace)


class _Phases(dict):
    def __missing__(self, name):
        index = _ring.name_index(name)
        if index < 0:
            _local.ring.refuse()
            return _Phase(0)
        phase = self[name] = _Phase(index)
        return phase


_phases = _Phases()


def phase(name, sync=None, events=None):
    """A part of the program, for `with`. GPU work is asynchronous: `sync=torch.cuda.synchronize` waits for it
    at both ends, `events=torch.cuda.Event` lets the GPU take the times and waits for nothing."""
    if sync is None and events is None:
        return _phases[name]
    if events is not None:
        return EventPhase(_phases[name].index, events, _local)
    return _SyncPhase(_phases[name], sync)


def begin(name):
    """A phase begins; for where `with` does not fit."""
    _phases[name].__enter__()


def end(name):
    """The innermost phase of this name ends."""
    _phases[name].__exit__(None, None, None)


def progress(items=1):
    """So many more items (images, tokens) are done."""
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
    """A value such as an accuracy or a latency."""
    try:
        real = float(value)
    except Exception as error:
        return _ring.complain("a value is a number: %s" % error)
    ring = _local.ring
    ring.record(_ring.pack_real, _ring.VALUE | _phases[name].index, now(), real)
    if ring.device is not None:
        ring.device.resolve(ring)


def batch(items, seconds, latency=None):
    """A batch is done: so many items, in so many seconds; the latency of its slowest request, in seconds, where
    requests wait for their batch."""
    value("batch_s", seconds)
    if latency is not None:
        value("latency_s", latency)
    progress(items)


def latency(seconds):
    """From a request's arrival to its answer: for each request, or for the slowest of a batch."""
    value("latency_s", seconds)


def queue(length, arrivals_per_second=None):
    """So many requests wait, and so many come each second."""
    value("queue_length", length)
    if arrivals_per_second is not None:
        value("arrivals_per_s", arrivals_per_second)


def out_of_memory(batch):
    """There is no memory for a batch of this size: the next one asked for is smaller."""
    try:
        _ring.too_large(int(batch))
    except Exception:
        pass
    value("out_of_memory", batch)


def _word(number):
    words = _ring._control or _ring.control()
    return 0 if words is None else words[8 + number]


def batch_size(default=None):
    """The batch size that the tool wants next, or the default. Ask before each batch."""
    words = _ring._control or _ring.control()
    size = 0 if words is None else words[8]
    if size:
        # A size that did not fit is not given again, even before the tool has heard of it.
        if size >= _ring.fits_below:
            size = max(1, _ring.fits_below // 2)
        ring = _local.ring
        # The tool hears that the program asks, once for each size.
        if size != ring.asked:
            ring.asked = size
            value("batch_size", size)
        return size
    return default


def tuning():
    """What the tool does to the settings: "off", "exploring" or "settled"."""
    phase = _word(1)
    return _TUNING[phase] if phase < len(_TUNING) else "off"


def enabled():
    """Whether a tool listens."""
    return _ring.control() is not None


os.register_at_fork(after_in_child=_ring.after_fork)
atexit.register(_ring.close_all)
