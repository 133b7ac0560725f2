"""The energy of an epoch at its end, without waiting for it.

The driver shows its samples 0.2 to 0.4 s late, and the end of a short epoch cannot wait for them. So the energy so far is asked for
now and then while the epoch runs. The time since the newest answer is the rest of the epoch. Its energy is that of an equally long
rest at the end of the last epoch whose energy is known exactly: an epoch often ends with work that draws less power, such as a
validation. In the first epoch it counts with the power before it. The uncertainty of the rest is part of what is logged.
"""

from __future__ import annotations

import json
from collections import deque
from time import monotonic

from .._http import Answer, CounterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._measure import Measurement

# The energy is asked for after this time, or after this share of the epoch if that is longer.
_SHORTEST_INTERVAL_S = 0.25
_INTERVAL_SHARE = 0.01
# Without an earlier epoch, a longer rest is not estimated from what was before.
_LONGEST_REST_SHARE = 0.5
# The power between answers that are closer to each other is too uncertain.
_SHORTEST_PIECE_S = 0.2


class EnergySoFar:
    """Reads the energy of a measurement while it runs, and when its exact value arrives after the end."""

    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement
        self._pending: deque[Answer] = deque()
        self._asked_s = 0.0
        # Times since the start, and the energies until then.
        self._points = [(0.0, 0.0)]
        # Half the 95 % interval of the newest answer: the uncertainty of the sensor.
        self.sensor_error_j = 0.0
        # Whether the last point is the exact energy of the whole epoch.
        self.is_exact = False
        self._begun = monotonic()

    @property
    def newest(self) -> tuple[float, float]:
        """The time of the newest answer since the start, and the energy until then."""
        return self._points[-1]

    def poll(self) -> None:
        """Takes the answers that have arrived, and asks for the energy if it is time to. It never waits."""
        self.take_arrived()
        passed = monotonic() - self._begun
        if passed - self._asked_s >= max(_SHORTEST_INTERVAL_S, _INTERVAL_SHARE * passed):
            self.ask()

    def ask(self) -> None:
        """Asks for the energy at this moment, at which the power may change."""
        self._asked_s = monotonic() - self._begun
        answer = self._measurement.ask_energy()
        if answer is not None:
            self._pending.append(answer)

    def complete(self) -> bool:
        """Takes the exact energy of an epoch that has ended, if it is known; False if its answer has not arrived yet."""
        self.take_arrived()
        if not self._measurement.has_result():
            return False
        energy, time_s, interval = self._measurement.energy_j, self._measurement.time_s, self._measurement.interval95_j
        self._forget_pending()
        self.is_exact = energy is not None and bool(time_s)
        if interval is not None:
            self.sensor_error_j = (interval[1] - interval[0]) / 2
        if energy is not None and time_s:
            self._points = [point for point in self._points if point[0] < time_s] + [(time_s, energy)]
        return True

    def drop(self) -> None:
        """Drops all that has not arrived."""
        self._forget_pending()
        self._measurement.discard()

    def powers(self) -> list[float]:
        """The mean powers between the answers."""
        powers, (begin_s, begin_j) = [], self._points[0]
        for time_s, energy_j in self._points[1:]:
            if time_s - begin_s >= _SHORTEST_PIECE_S:
                powers.append((energy_j - begin_j) / (time_s - begin_s))
                begin_s, begin_j = time_s, energy_j
        if powers or self.newest[0] == 0:
            return powers
        return [self.newest[1] / self.newest[0]]

    def energy_of_last(self, seconds: float) -> float:
        """The energy of the last seconds of an epoch that is complete; a longer time has the mean power of the epoch."""
        end_s, end_j = self.newest
        if seconds >= end_s:
            return seconds * end_j / end_s
        begin_s = end_s - seconds
        for (before_s, before_j), (after_s, after_j) in zip(self._points, self._points[1:]):
            if after_s >= begin_s:
                share = (begin_s - before_s) / (after_s - before_s)
                return end_j - before_j - share * (after_j - before_j)
        return 0.0

    def take_arrived(self) -> None:
        """Takes the answers that have arrived."""
        while self._pending and self._pending[0].has_arrived():
            try:
                document = json.loads(self._pending.popleft().body())
                time_s, energy_j = float(document["time_s"]), float(document["energy_j"])
                low, high = document.get("interval95_j") or (energy_j, energy_j)
            except (CounterError, OSError, ValueError, KeyError, TypeError):
                continue
            if time_s > self.newest[0]:
                self._points.append((time_s, energy_j))
                self.sensor_error_j = (high - low) / 2

    def _forget_pending(self) -> None:
        for answer in self._pending:
            answer.forget()
        self._pending.clear()


class EpochEstimates:
    """Estimates energies of epochs at their ends, and learns from the exact ones that arrive later."""

    def __init__(self) -> None:
        self._incomplete: deque[EnergySoFar] = deque()
        self._complete: EnergySoFar | None = None
        self._lowest_w = self._highest_w = 0.0
        # The uncertainty of the sensor in the last complete epoch, as a share of its energy.
        self._sensor_error = 0.0

    def estimate(self, so_far: EnergySoFar, passed: float) -> tuple[float, float] | None:
        """The energy of an epoch that took this time, and how far it may be off; None if too much of it is unknown."""
        so_far.take_arrived()
        self.learn()
        newest_s, newest_j = so_far.newest
        rest = max(0.0, passed - newest_s)
        powers = so_far.powers()
        highest = max([self._highest_w, *powers])
        if self._complete is not None:
            rest_j = self._complete.energy_of_last(rest)
            lowest = min([self._lowest_w, *powers])
        elif powers and rest <= _LONGEST_REST_SHARE * passed:
            rest_j = powers[-1] * rest
            # Nothing is known yet about the power at the end of an epoch.
            lowest = 0.0
        else:
            return None
        energy = newest_j + rest_j
        error = max(rest_j - lowest * rest, highest * rest - rest_j, 0.0)
        return energy, error + max(so_far.sensor_error_j, self._sensor_error * energy)

    def await_exact(self, so_far: EnergySoFar) -> None:
        """Keeps an epoch that has ended until its exact energy arrives."""
        self._incomplete.append(so_far)
        if len(self._incomplete) > 16:
            self._incomplete.popleft().drop()

    def learn(self) -> None:
        """Takes the exact energies that have arrived. It never waits."""
        while self._incomplete and self._incomplete[0].complete():
            self.add_exact(self._incomplete.popleft())

    def add_exact(self, epoch: EnergySoFar) -> None:
        """Learns from an epoch whose exact energy is known."""
        powers = epoch.powers()
        if not powers or not epoch.is_exact:
            return
        first = self._complete is None
        self._lowest_w = min(powers) if first else min(self._lowest_w, *powers)
        self._highest_w = max(self._highest_w, *powers)
        self._sensor_error = epoch.sensor_error_j / epoch.newest[1] if epoch.newest[1] > 0 else 0.0
        self._complete = epoch

    def drop_all(self) -> None:
        """Drops what has not arrived."""
        for epoch in self._incomplete:
            epoch.drop()
        self._incomplete.clear()
