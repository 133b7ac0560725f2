"""Phases timed by a device: a pair of its events each, written once both are complete."""

from collections import deque
from time import monotonic_ns

from . import _ring

# Events tell their distance as a 32-bit float of milliseconds: after 5 s it is good to half a microsecond,
# and the clocks of host and device have hardly drifted apart.
RENEW_NS = 5_000_000_000
MOST_PENDING = 4096


class Clock:
    """A thread's device events and where they lie on the monotonic clock."""

    __slots__ = ("events", "anchor", "at", "open", "pending")

    def __init__(self, events):
        self.events = events
        self.anchor = None
        self.at = 0
        self.open = 0
        self.pending = deque()

    def begin(self):
        # Phases in each other share an anchor, or they would not fit into each other.
        if self.anchor is None or (self.open == 0 and monotonic_ns() - self.at > RENEW_NS):
            self._renew()
        event = self._record()
        self.open += 1
        return event

    def end(self, ring, index, begin):
        self.open -= 1
        end = self._record()
        if len(self.pending) >= MOST_PENDING:
            ring.lose()
        else:
            self.pending.append((self.anchor, self.at, index, begin, end))
        self.resolve(ring)

    def resolve(self, ring, wait=False):
        """Writes what is complete; waits for the device only where it is told to."""
        pending = self.pending
        while pending:
            anchor, at, index, begin, end = pending[0]
            try:
                if wait:
                    end.synchronize()
                elif not end.query():
                    return
                first = at + int(anchor.elapsed_time(begin) * 1e6)
                last = at + int(anchor.elapsed_time(end) * 1e6)
            except Exception as error:
                _ring.complain("a device event cannot be read, its phase is lost: %s" % error)
                first = None
            pending.popleft()
            if first is None or first < 0 or last < 0:
                ring.lose()
            else:
                ring.record(_ring.pack_whole, _ring.PHASE | index, first, last)

    def _renew(self):
        # The device is idle after the first, so that the second happens when it is recorded.
        self._record().synchronize()
        before = monotonic_ns()
        anchor = self._record()
        anchor.synchronize()
        self.anchor, self.at = anchor, (before + monotonic_ns()) // 2

    def _record(self):
        event = self.events(enable_timing=True)
        event.record()
        return event


class EventPhase:
    """A phase of work that is queued on a device; never blocks for it."""

    __slots__ = ("index", "events", "local", "begun")

    def __init__(self, index, events, local):
        self.index = index
        self.events = events
        self.local = local
        self.begun = []

    def __enter__(self):
        ring = self.local.ring
        begin = None
        try:
            if ring.device is None or ring.device.events is not self.events:
                if ring.device is not None:
                    ring.device.resolve(ring, wait=True)
                ring.device = Clock(self.events)
            begin = (ring.device, ring.device.begin())
        except Exception as error:
            _ring.complain("device events do not work, phases are lost: %s" % error)
            ring.lose()
        self.begun.append(begin)
        return self

    def __exit__(self, kind, error, trace):
        ring = self.local.ring
        begin = self.begun.pop()
        if begin is None:
            return
        clock, event = begin
        if clock is not ring.device:
            # Begun in another thread, before a fork, or with other events around it.
            ring.lose()
            return
        try:
            clock.end(ring, self.index, event)
        except Exception as trouble:
            _ring.complain("device events do not work, phases are lost: %s" % trouble)
            ring.lose()
