"""The functions of a program without a link: they do nothing. Their documentation is that of the link's functions too."""

from __future__ import annotations

from ._phase import NoPhase, Phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, SupportsFloat, SupportsInt, overload
else:

    def overload(function):
        return function

_no_phase = NoPhase()


def phase(name: object, sync: Callable[[], object] | None = None, events: Callable[..., Any] | None = None) -> Phase:
    """Marks a part of the program, so that `sweetspot measure` shows its time and energy.

        with sweetspot.phase("forward", sync=torch.cuda.synchronize): ...

        @sweetspot.phase("load")
        def load(): ...

    A call on a GPU returns when its work is queued, not when it is done. `sync=torch.cuda.synchronize` waits for the work
    at both ends of the phase; `events=torch.cuda.Event` lets the GPU measure the times and never waits. Phases may be
    nested: the innermost one counts. A phase can also be a decorator, or be used with start() and stop(): see `Phase`.
    """
    return _no_phase


def begin(name: object) -> None:
    """Marks the beginning of a phase, where `with` cannot be used. `start` is the same."""


def end(name: object) -> None:
    """Marks the end of the innermost phase of this name. `stop` is the same."""


def progress(items: SupportsInt | str = 1) -> None:
    """Reports that this many more items (images, tokens, requests) are done, so that there is an energy per item."""


def value(name: object, value: SupportsFloat | str) -> None:
    """Reports a value, such as an accuracy: the last one of each name is stored with the run."""


def batch(items: SupportsInt, seconds: float, latency: float | None = None) -> None:
    """Reports a finished batch: its number of items, its time in seconds and, where requests wait for their batch, the
    latency of the slowest request in seconds."""


def latency(seconds: float) -> None:
    """Reports the seconds from a request's arrival to its answer: of each request, or of the slowest of a batch."""


def queue(length: float, arrivals_per_second: float | None = None) -> None:
    """Reports the number of waiting requests, and the number that arrive per second."""


def out_of_memory(batch: SupportsInt) -> None:
    """Reports that a batch of this size does not fit into memory: the next batch size is smaller."""


@overload
def batch_size(default: int) -> int: ...
@overload
def batch_size(default: None = None) -> int | None: ...
def batch_size(default: int | None = None) -> int | None:
    """Returns the batch size that the tool wants next, or the default. Call it before each batch."""
    return default


def tuning() -> str:
    """Returns what the tool does with the settings: "off", "exploring" or "settled"."""
    return "off"


def enabled() -> bool:
    """Returns whether a tool reads what this program reports."""
    return False
