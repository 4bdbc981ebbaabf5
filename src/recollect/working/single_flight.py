"""Factories that are running: for each key one, whoever asks, and nobody waits in a circle."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import InvalidInput

if TYPE_CHECKING:
    from asyncio import Future


class Flight:
    """A factory that runs now, and the thread that it runs in."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = threading.get_ident()


_MAKING: ContextVar[tuple[Flight, ...]] = ContextVar("making", default=())
"""The factories that the running code is a part of. Tasks and threads that a factory starts inherit it."""


@contextmanager
def making(flight: Flight) -> Iterator[None]:
    """Run a factory as that of a flight."""
    token = _MAKING.set((*_MAKING.get(), flight))
    try:
        yield
    finally:
        with suppress(ValueError):  # a coroutine that is thrown away ends in a context that is not its own
            _MAKING.reset(token)


class Waiter:
    """Somebody who waits for a flight. One that ``blocks`` keeps its whole thread from going on."""

    blocks: bool

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.part_of = _MAKING.get()

    def wake(self) -> None:
        """The flight has landed."""
        raise NotImplementedError

    def holds_up(self, flight: Flight) -> bool:
        """Whether that flight cannot land before this waiter goes on."""
        return flight in self.part_of or (self.blocks and flight.thread == self.thread)


class ThreadWaiter(Waiter):
    """A thread that waits."""

    blocks = True

    def __init__(self) -> None:
        super().__init__()
        self._landed = threading.Event()

    def wake(self) -> None:
        """The flight has landed."""
        self._landed.set()

    def wait(self) -> None:
        """Until it has. Never called with the lock held."""
        self._landed.wait()


class TaskWaiter(Waiter):
    """A task that waits; its event loop goes on."""

    blocks = False

    def __init__(self) -> None:
        from asyncio import get_running_loop  # lazy: whoever runs a task has loaded it, and others need not

        super().__init__()
        self._loop = get_running_loop()
        self.landed: Future[None] = self._loop.create_future()

    def wake(self) -> None:
        """Told to the loop from whichever thread ran the factory; one that is closed has nobody waiting."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self.landed.done():
            self.landed.set_result(None)


W = TypeVar("W", bound=Waiter)


class Flights:
    """Who makes what, and who waits for whom. Every method is called with the agent's lock held.

    >>> flights = Flights()
    >>> isinstance(flights.board("plan", "plan", ThreadWaiter), Flight)
    True
    >>> flights.land("plan")
    """

    def __init__(self) -> None:
        self._flying: dict[Hashable, Flight] = {}
        self._waiting: dict[Waiter, Flight] = {}

    def board(self, what: Hashable, key: str, waiting: Callable[[], W]) -> Flight | W:
        """A flight if the caller is to make it, or somebody who waits for the one under way.

        Two factories that each need what the other one makes would wait forever; the second to ask is refused. So is a
        thread that would wait for a task of its own event loop.
        """
        flight = self._flying.get(what)
        if flight is None:
            return self._flying.setdefault(what, Flight())
        waiter = waiting()
        if self._in_a_circle(waiter, flight):
            raise InvalidInput(
                f"the factory for {key!r} waits for its own result",
                details={"field": "factory", "key": key},
                hint="a factory must not get_or_set a key whose factory needs this one, and code that runs in an event "
                "loop awaits aget_or_set",
            )
        self._waiting[waiter] = flight
        return waiter

    def _in_a_circle(self, waiter: Waiter, flight: Flight) -> bool:
        """Whether the flight, or one that it waits for in turn, cannot land before the waiter goes on."""
        ahead, seen = [flight], {flight}
        while ahead:
            one = ahead.pop()
            if waiter.holds_up(one):
                return True
            for other, awaited in self._waiting.items():
                if awaited not in seen and other.holds_up(one):
                    seen.add(awaited)
                    ahead.append(awaited)
        return False

    def land(self, what: Hashable) -> None:
        """The factory is done; who waited looks again."""
        landed = self._flying.pop(what)
        for waiter in [waiter for waiter, flight in self._waiting.items() if flight is landed]:
            self.leave(waiter)
            waiter.wake()

    def leave(self, waiter: Waiter) -> None:
        """It waits no more."""
        self._waiting.pop(waiter, None)
