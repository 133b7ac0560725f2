"""Phases timed by device events: each is a pair of events, recorded once both are complete."""

from __future__ import annotations

from collections import deque
from time import monotonic_ns

from . import _ring
from ._phase import Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable

# The time between two events is a 32-bit float of milliseconds: after 5 s it is accurate to half a microsecond,
# and the clocks of host and device have hardly drifted apart.
ANCHOR_LIFETIME_NS = 5_000_000_000
MAX_PENDING = 4096


class Clock:
    """A thread's device events, and an anchor event that places them on the monotonic clock."""

    __slots__ = ("events", "anchor", "at", "open", "pending")

    def __init__(self, events: Callable[..., Any]) -> None:
        self.events = events
        self.anchor: Any = None
        self.at = 0
        self.open = 0
        self.pending: deque[tuple[Any, int, int, Any, Any]] = deque()

    def begin(self) -> Any:
        # Nested phases share an anchor, because otherwise their times would not nest.
        if self.anchor is None or (self.open == 0 and monotonic_ns() - self.at > ANCHOR_LIFETIME_NS):
            self._set_anchor()
        event = self._record()
        self.open += 1
        return event

    def end(self, ring: _ring.Ring, index: int, begin: Any) -> None:
        self.open -= 1
        end = self._record()
        if len(self.pending) >= MAX_PENDING:
            ring.count_lost()
        else:
            self.pending.append((self.anchor, self.at, index, begin, end))
        self.resolve(ring)

    def resolve(self, ring: _ring.Ring, wait: bool = False) -> None:
        """Records the complete phases; waits for the device only if `wait` is set."""
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
                _ring.complain("cannot read a device event, its phase is lost: %s" % error)
                first = None
            pending.popleft()
            if first is None or first < 0 or last < 0:
                ring.count_lost()
            else:
                ring.record(_ring.pack_whole, _ring.PHASE | index, first, last)

    def _set_anchor(self) -> None:
        # The device is idle after the first event, so the second completes when it is recorded.
        self._record().synchronize()
        before = monotonic_ns()
        anchor = self._record()
        anchor.synchronize()
        self.anchor, self.at = anchor, (before + monotonic_ns()) // 2

    def _record(self) -> Any:
        event = self.events(enable_timing=True)
        event.record()
        return event


class EventPhase(Phase):
    """A phase of work that is queued on a device; it never waits for the device."""

    __slots__ = ("index", "events", "local", "begins")

    def __init__(self, index: int, events: Callable[..., Any], local: _ring.Local) -> None:
        self.index = index
        self.events = events
        self.local = local
        self.begins: list[tuple[Clock, Any] | None] = []

    def for_one_call(self) -> Phase:
        return EventPhase(self.index, self.events, self.local)

    def __enter__(self) -> Phase:
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
            ring.count_lost()
        self.begins.append(begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ring = self.local.ring
        begin = self.begins.pop()
        if begin is None:
            return
        clock, event = begin
        if clock is not ring.device:
            # It began in another thread, before a fork, or with another kind of events.
            ring.count_lost()
            return
        try:
            clock.end(ring, self.index, event)
        except Exception as problem:
            _ring.complain("device events do not work, phases are lost: %s" % problem)
            ring.count_lost()
