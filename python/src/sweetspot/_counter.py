"""Named counters of the service: the energy of GPUs between two moments."""

from __future__ import annotations

import json
from urllib.parse import quote

from ._http import CounterError, ask_service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Iterable

__all__ = ["Counter", "CounterError"]


def counter_path(name: str) -> str:
    """The path of a counter."""
    return "/counters/" + quote(name, safe="")


def start_path(name: str, devices: Iterable[str]) -> str:
    """The path that starts a counter of these GPUs; all if there are none."""
    gpus = ",".join(devices)
    return counter_path(name) + "/start" + ("?gpus=" + quote(gpus) if gpus else "")


class Counter:
    """A named counter of the service.

        with sweetspot.Counter("epoch") as counter: ...
        print(counter.energy_j, counter.average_power_w)

    `devices` are indices or UUIDs of GPUs, all if it is empty. A counter belongs to the user of the process, and a
    process of the same user can stop or read it by its name. After `stop()` or `read()` the attribute `result` has the
    document `sweetspot.counter/1`. Where the service may not run, use `sweetspot.measure()`.
    """

    def __init__(self, name: str, devices: Iterable[int | str] = ()) -> None:
        self.name = name
        self.devices = [str(device) for device in devices]
        self.result: dict[str, Any] | None = None

    def start(self) -> Counter:
        """Starts the counter."""
        self.result = _ask("POST", start_path(self.name, self.devices))
        return self

    def stop(self) -> float | None:
        """Stops the counter, and returns its energy in joules."""
        self.result = _ask("POST", counter_path(self.name) + "/stop")
        return self.energy_j

    def read(self) -> float | None:
        """Returns the energy so far in joules."""
        self.result = _ask("GET", counter_path(self.name))
        return self.energy_j

    def samples_csv(self) -> str:
        """Returns the power samples as CSV."""
        return ask_service("GET", counter_path(self.name) + "/samples").body()

    def delete(self) -> None:
        """Deletes the counter."""
        ask_service("DELETE", counter_path(self.name)).body()

    @property
    def energy_j(self) -> float | None:
        """The energy in joules as of the last `stop()` or `read()`; None if unknown."""
        return (self.result or {}).get("energy_j")

    @property
    def average_power_w(self) -> float | None:
        """The mean power in watts as of the last `stop()` or `read()`; None if unknown."""
        return (self.result or {}).get("average_power_w")

    def __enter__(self) -> Counter:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _ask(method: str, target: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ask_service(method, target).body())
    return document
