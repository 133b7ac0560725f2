"""A phase, and functions that are one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


class Phase:
    """A part of a program, as `phase()` returns it. There are three ways to use it:

        with sweetspot.phase("forward"): ...

        @sweetspot.phase("forward")
        def forward(images): ...

        forward = sweetspot.phase("forward")
        forward.start(); ...; forward.stop()

    As a decorator it covers what `with` around the body of the function would cover. A coroutine (`async def`) counts from
    its first step to its end, waits included. A generator, also an asynchronous one, counts only while it computes a value,
    not while its consumer uses the value.
    """

    __slots__ = ()

    def __enter__(self) -> Phase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, function: Function) -> Function:
        # Few programs need it, and its modules take time to import.
        from ._decorate import decorate

        return decorate(self, function)

    def start(self) -> None:
        """Marks the beginning of the phase, where `with` does not fit."""
        self.__enter__()

    def stop(self) -> None:
        """Marks the end of the phase."""
        self.__exit__(None, None, None)

    def for_one_call(self) -> Phase:
        """The phase for one call of a decorated function, with the state of that call alone."""
        return self


class NoPhase(Phase):
    """A phase of a program without a link: it does nothing, and a decorated function stays as it is."""

    __slots__ = ()

    def __call__(self, function: Function) -> Function:
        return function
