"""Factories that are running: for each key one, and nobody waits in a circle."""

import threading
from collections.abc import Hashable

from recollect.errors import InvalidInput


class Flight:
    """A factory that runs now, and the thread that runs it."""

    __slots__ = ("landed", "owner")

    def __init__(self) -> None:
        self.owner = threading.get_ident()
        self.landed = threading.Event()


class Flights:
    """Who makes what, and who waits for whom. Every method but ``wait`` is called with the agent's lock held.

    >>> flights = Flights()
    >>> flights.board("plan") is None
    True
    >>> flights.land("plan")
    """

    def __init__(self) -> None:
        self._flying: dict[Hashable, Flight] = {}
        self._waiting: dict[int, Flight] = {}

    def board(self, what: Hashable, key: str = "") -> Flight | None:
        """``None`` if the caller is to make it, or the flight to wait for.

        Two factories that each need what the other one makes would wait forever; the second to ask is refused.
        """
        flight = self._flying.get(what)
        if flight is None:
            self._flying[what] = Flight()
            return None
        me = threading.get_ident()
        ahead: Flight | None = flight
        while ahead is not None and not ahead.landed.is_set():
            if ahead.owner == me:
                raise InvalidInput(
                    f"the factory for {key!r} waits for its own result",
                    details={"field": "factory", "key": key},
                    hint="a factory must not get_or_set a key whose factory needs this one",
                )
            ahead = self._waiting.get(ahead.owner)
        self._waiting[me] = flight
        return flight

    def wait(self, flight: Flight) -> None:
        """Until that factory returned or raised. Never called with the lock held."""
        try:
            flight.landed.wait()
        finally:
            # A single removal by the thread that it is about: safe without the lock.
            self._waiting.pop(threading.get_ident(), None)

    def land(self, what: Hashable) -> None:
        """The factory is done; who waited looks again."""
        self._flying.pop(what).landed.set()
