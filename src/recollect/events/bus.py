"""The synchronous bus: who asked to be told of what, and telling them."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from recollect import logs
from recollect.errors import InvalidInput
from recollect.events.event_types import Event
from recollect.types import OperationCompleted

E = TypeVar("E", bound=Event)
Handler = Callable[[Any], None]
Watcher = Callable[[OperationCompleted], None]


def _check(kind: object, handler: object) -> None:
    """Refuse here what would fail every write later."""
    known = isinstance(kind, type) and issubclass(kind, Event)
    if not known or not callable(handler):
        raise InvalidInput(
            "a handler must be callable" if known else "kind must be Event or a class below it",
            operation="on",
            details={"field": "handler" if known else "kind"},
            hint="call on(MemoryStored, handler)",
        )


def _check_watcher(watcher: object) -> None:
    if not callable(watcher):
        raise InvalidInput(
            "a watcher must be callable",
            operation="watch",
            details={"field": "watcher"},
            hint="pass a function of one argument, an OperationCompleted",
        )


class EventBus:
    """Calls the handlers of an event, in the order they asked, in the thread of the caller.

    A handler that raises is reported to the log ``recollect.events`` and counted; it fails neither the write that
    it was told of nor the other handlers. Watchers are told of operations, reads and failures too; see
    :mod:`recollect.instrument`.

    >>> from recollect.events import Event, MemoryStored
    >>> bus = EventBus()
    >>> stop = bus.on(Event, print)
    >>> bus.wants(MemoryStored)
    True
    >>> stop()
    >>> bus.wants(MemoryStored)
    False
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole on every change, so that emitting needs no lock.
        self.handlers: tuple[tuple[type[Event], Handler], ...] = ()
        self.watchers: tuple[Watcher, ...] = ()
        self.failures = 0

    def on(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call ``handler`` for each event of that kind; the returned function ends it."""
        _check(kind, handler)
        entry = (kind, handler)
        with self._lock:
            self.handlers = (*self.handlers, entry)

        def stop() -> None:
            with self._lock:
                self.handlers = tuple(kept for kept in self.handlers if kept is not entry)

        return stop

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each operation, once however often it asks; the returned function ends it."""
        _check_watcher(watcher)
        with self._lock:
            self.watchers = (*(kept for kept in self.watchers if kept != watcher), watcher)

        def stop() -> None:
            with self._lock:
                self.watchers = tuple(kept for kept in self.watchers if kept != watcher)

        return stop

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody listens, so that an event need not be built for nobody."""
        return bool(self.handlers) and any(issubclass(kind, wanted) for wanted, _ in self.handlers)

    def emit(self, event: Event) -> None:
        """Tell everybody who asked for this kind of event."""
        for wanted, handler in self.handlers:
            if isinstance(event, wanted):
                self._tell(handler, event)

    def report(self, done: OperationCompleted) -> None:
        """Tell all watchers how an operation went."""
        for watcher in self.watchers:
            self._tell(watcher, done)

    def _tell(self, handler: Handler, told: Event | OperationCompleted) -> None:
        try:
            handler(told)
        except Exception as error:  # noqa: BLE001  # reason: a listener must never fail the write it is told of
            self.failed(told, error)

    def failed(self, told: Event | OperationCompleted, error: Exception) -> None:
        """Count and report an error that a handler raised over something it was told."""
        with self._lock:
            self.failures += 1
        logs.handler_failed(type(told).__name__, error)
