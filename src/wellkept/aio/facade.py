"""One line per method: how the async classes are made of the synchronous ones.

Signatures, types and documentation are those of the synchronous methods, for type checkers and editors too. There is no
second list of parameters that could drift away from the first.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from wellkept.aio.changes import Feed
from wellkept.aio.workers import Workers

F = TypeVar("F")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Object_co = TypeVar("Object_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Opened:
    """What the async classes of one open database share."""

    workers: Workers
    feed: Feed


class Facade(Generic[Object_co]):
    """An async class: a synchronous object, and the threads that it runs on."""

    def __init__(self, sync: Object_co, opened: Opened) -> None:
        self._sync = sync
        self._opened = opened

    def __repr__(self) -> str:
        return f"<aio {repr(self._sync).removeprefix('<')}"


def hop(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Facade[S], P], Coroutine[Any, Any, R]]:
    """The method, awaited: it runs in a thread, since it may wait for a disk, a network or a model."""

    @wraps(method)
    async def hopping(self: Facade[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._opened.workers.run(method, self._sync, *args, **kwargs)

    return hopping


def at_once(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Facade[S], P], R]:
    """The method as it is: it touches the memory of this process alone, and a hop would cost more than the call."""

    @wraps(method)
    def calling(self: Facade[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(self._sync, *args, **kwargs)

    return calling


def facing(
    method: Callable[Concatenate[S, P], R], facade: Callable[[R, Opened], F]
) -> Callable[Concatenate[Facade[S], P], F]:
    """The method as it is, with an async class around what it returns."""

    @wraps(method)
    def calling(self: Facade[S], /, *args: P.args, **kwargs: P.kwargs) -> F:
        return facade(method(self._sync, *args, **kwargs), self._opened)

    return calling


def hop_facing(
    method: Callable[Concatenate[S, P], R], facade: Callable[[R, Opened], F]
) -> Callable[Concatenate[Facade[S], P], Coroutine[Any, Any, F]]:
    """The method, awaited, with an async class around what it returns."""

    @wraps(method)
    async def hopping(self: Facade[S], /, *args: P.args, **kwargs: P.kwargs) -> F:
        return facade(await self._opened.workers.run(method, self._sync, *args, **kwargs), self._opened)

    return hopping
