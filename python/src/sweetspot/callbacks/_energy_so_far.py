"""The energy of a running measurement, without waiting for it.

The driver shows its samples 0.2 to 0.4 s late, and the end of a short epoch cannot wait for them. So the energy so far is asked for
now and then while the epoch runs, and the time since the newest answer counts with the power between the last two.
"""

from __future__ import annotations

import json
from time import monotonic

from .._http import Answer, CounterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._measure import Measurement

# The energy is asked for after this time, and then whenever the epoch has become longer by this share.
_SHORTEST_INTERVAL_S = 0.5
_INTERVAL_SHARE = 0.05
# A longer rest of the epoch is not estimated from what was before.
_LONGEST_REST_SHARE = 0.5


class EnergySoFar:
    """Reads the energy of a measurement while it runs."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._pending: Answer | None = None
        self._asked_s = 0.0
        # The last two answers: time since the start, and energy until then.
        self._earlier = self._newest = (0.0, 0.0)
        self._begun = monotonic()

    def poll(self) -> None:
        """Takes an answer that has arrived, or asks for the energy if it is time to. It never waits."""
        passed = monotonic() - self._begun
        if self._pending is not None:
            if self._pending.has_arrived():
                self._take()
        elif passed - self._asked_s >= max(_SHORTEST_INTERVAL_S, _INTERVAL_SHARE * passed):
            self._asked_s = passed
            self._pending = self._measurement.ask_energy()

    def estimate(self, passed: float) -> float | None:
        """The energy of the whole time that has passed; None if too much of it is unknown."""
        if self._pending is not None and self._pending.has_arrived():
            self._take()
        self.end()
        (earlier_s, earlier_j), (newest_s, newest_j) = self._earlier, self._newest
        if newest_s <= earlier_s or passed - newest_s > _LONGEST_REST_SHARE * passed:
            return None
        power = (newest_j - earlier_j) / (newest_s - earlier_s)
        return newest_j + power * max(0.0, passed - newest_s)

    def end(self) -> None:
        """Drops an answer that has not arrived."""
        if self._pending is not None:
            self._pending.forget()
            self._pending = None

    def _take(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            document = json.loads(pending.body())
            time_s, energy_j = document["time_s"], document["energy_j"]
        except (CounterError, OSError, ValueError, KeyError):
            return
        if time_s > self._newest[0]:
            self._earlier, self._newest = self._newest, (time_s, energy_j)
