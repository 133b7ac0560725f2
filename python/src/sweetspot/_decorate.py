"""Functions of every kind, with a phase around them."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Generator, TypeVar, cast

if TYPE_CHECKING:
    from ._phase import Phase

Function = TypeVar("Function", bound=Callable[..., Any])


def decorate(phase: Phase, function: Function) -> Function:
    """The function with the phase around it, of the same kind and with the same name and documentation."""
    if not callable(function):
        raise TypeError(f"a phase decorates a function, not {function!r}")
    if inspect.isasyncgenfunction(function):
        around = _around_asynchronous_generator
    elif inspect.iscoroutinefunction(function):
        around = _around_coroutine
    elif inspect.isgeneratorfunction(function):
        around = _around_generator
    else:
        around = _around_function
    return cast(Function, functools.wraps(function)(around(phase, function)))


def _around_function(phase: Phase, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with phase.for_one_call():
            return function(*args, **kwargs)

    return call


def _around_coroutine(phase: Phase, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with phase.for_one_call():
            return await function(*args, **kwargs)

    return call


def _around_generator(phase: Phase, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        own = phase.for_one_call()
        generator = function(*args, **kwargs)
        step, argument = generator.send, None
        while True:
            with own:
                try:
                    value = step(argument)
                except StopIteration as end:
                    return end.value
            try:
                step, argument = generator.send, (yield value)
            except GeneratorExit:
                with own:
                    generator.close()
                raise
            except BaseException as error:
                step, argument = generator.throw, error

    return call


def _around_asynchronous_generator(phase: Phase, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        own = phase.for_one_call()
        generator = function(*args, **kwargs)
        step, argument = generator.asend, None
        while True:
            with own:
                try:
                    value = await step(argument)
                except StopAsyncIteration:
                    return
            try:
                step, argument = generator.asend, (yield value)
            except GeneratorExit:
                with own:
                    await generator.aclose()
                raise
            except BaseException as error:
                step, argument = generator.athrow, error

    return call
