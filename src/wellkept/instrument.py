"""Instrumentation of operations: no overhead without watchers.

Metrics and logs are watchers. A watcher is called after every operation, including reads and failures; an event
handler only after changes.
"""

import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from wellkept.errors import WellkeptError
from wellkept.events import EventBus
from wellkept.types import Layer, OperationCompleted

P = ParamSpec("P")
R = TypeVar("R")

_WATCHES = "_watches"


@dataclass(slots=True)
class Noted:
    """Details of a running operation, filled in by the operation itself."""

    layer: Layer | None = None
    count: int | None = None
    agent_id: str | None = None
    session_id: str | None = None


@contextmanager
def timing(bus: EventBus, component: str, operation: str) -> Iterator[Noted]:
    """Time the block and report it to the watchers, whether it succeeds or raises.

    >>> bus = EventBus()
    >>> stop = bus.watch(lambda done: print(done.component, done.operation, done.count, done.code))
    >>> with timing(bus, "View", "add_many") as noted:
    ...     noted.count = 2
    View add_many 2 None
    """
    noted, code, passed_on, started = Noted(), None, False, time.perf_counter()
    try:
        yield noted
    except BaseException as error:  # reason: every failure is reported, and raised again
        code = type(error).__name__
        if isinstance(error, WellkeptError):
            code, passed_on = error.code, bool(error.operation)  # the first operation that it leaves names itself
        raise
    finally:
        bus.report(
            OperationCompleted(
                component=component,
                operation=operation,
                duration_ms=(time.perf_counter() - started) * 1000,
                code=code,
                passed_on=passed_on,
                layer=noted.layer,
                count=noted.count,
                agent_id=noted.agent_id,
                session_id=noted.session_id,
            )
        )


def named(method: Callable[P, R]) -> Callable[P, R]:
    """Let errors that leave a method carry its name, unless they name an operation already.

    >>> class Lamp:
    ...     @named
    ...     def switch(self): raise WellkeptError("it is broken")
    >>> try:
    ...     Lamp().switch()
    ... except WellkeptError as error:
    ...     error.operation
    'switch'
    """
    name = method.__name__

    @wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except WellkeptError as error:
            error.operation = error.operation or name
            raise

    return wrapped


def anamed(method: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
    """``named`` for a method that is awaited."""
    name = method.__name__

    @wraps(method)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await method(*args, **kwargs)
        except WellkeptError as error:
            error.operation = error.operation or name
            raise

    return wrapped


def watch_over(subject: object, bus: EventBus, agent_id: str) -> None:
    """Wrap every public method of one object to report to the watchers. Other instances keep their plain methods.

    >>> class Lamp:
    ...     def switch(self): return "on"
    >>> bus, lamp = EventBus(), Lamp()
    >>> stop = bus.watch(lambda done: print(done.component, done.operation, done.agent_id))
    >>> watch_over(lamp, bus, "debugger")
    >>> lamp.switch()
    Lamp switch debugger
    'on'
    """
    kind = type(subject)
    for name in dir(kind):
        if not name.startswith("_") and inspect.isfunction(getattr(kind, name)):
            setattr(subject, name, _watched(getattr(subject, name), bus, kind.__name__, agent_id))


def unwatch(subject: object) -> None:
    """Undo ``watch_over``.

    >>> class Lamp:
    ...     def switch(self): return "on"
    >>> lamp = Lamp()
    >>> watch_over(lamp, EventBus(), "debugger")
    >>> unwatch(lamp)
    >>> vars(lamp)
    {}
    """
    for name, method in list(vars(subject).items()):
        if inspect.isfunction(method) and method.__dict__.get(_WATCHES) is True:
            delattr(subject, name)


def _watched(method: Callable[..., Any], bus: EventBus, component: str, agent_id: str) -> Callable[..., Any]:
    name = method.__name__

    @wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with timing(bus, component, name) as noted:
            noted.agent_id = agent_id
            return method(*args, **kwargs)

    @wraps(method)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        with timing(bus, component, name) as noted:
            noted.agent_id = agent_id
            found: Awaitable[Any] = method(*args, **kwargs)
            return await found

    chosen = awaited if inspect.iscoroutinefunction(method) else wrapped
    setattr(chosen, _WATCHES, True)
    return chosen
