"""The synchronous event bus: handlers of events and watchers of operations."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from wellkept import logs
from wellkept.errors import InvalidInput
from wellkept.events.event_types import Event
from wellkept.types import OperationCompleted

E = TypeVar("E", bound=Event)
Handler = Callable[[Any], None]
Watcher = Callable[[OperationCompleted], None]


def _check(kind: object, handler: object) -> None:
    """Refuse a wrong registration now: it would fail at every event."""
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
    """Calls event handlers in registration order, in the thread of the caller.

    An exception in a handler is logged to ``wellkept.events`` and counted; it affects neither the write nor other
    handlers. Watchers are called after every operation, including reads and failures; see ``Memories.watch``.

    >>> from wellkept.events import Event, MemoryStored
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
        # Copy-on-write: emit needs no lock.
        self.handlers: tuple[tuple[type[Event], Handler], ...] = ()
        self.watchers: tuple[Watcher, ...] = ()
        self.failures = 0

    def on(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call ``handler`` for each event of ``kind`` or a subclass; returns a function that unsubscribes."""
        _check(kind, handler)
        entry = (kind, handler)
        with self._lock:
            self.handlers = (*self.handlers, entry)

        def stop() -> None:
            with self._lock:
                self.handlers = tuple(kept for kept in self.handlers if kept is not entry)

        return stop

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each operation, once even if registered twice; returns an unsubscribe function."""
        _check_watcher(watcher)
        with self._lock:
            self.watchers = (*(kept for kept in self.watchers if kept != watcher), watcher)

        def stop() -> None:
            with self._lock:
                self.watchers = tuple(kept for kept in self.watchers if kept != watcher)

        return stop

    def wants(self, kind: type[Event]) -> bool:
        """Whether there is a handler for this kind of event. Checked before an event is built."""
        return bool(self.handlers) and any(issubclass(kind, wanted) for wanted, _ in self.handlers)

    def emit(self, event: Event) -> None:
        """Call all handlers of this kind of event."""
        for wanted, handler in self.handlers:
            if isinstance(event, wanted):
                self._call(handler, event)

    def report(self, done: OperationCompleted) -> None:
        """Call all watchers with the outcome of an operation."""
        for watcher in self.watchers:
            self._call(watcher, done)

    def _call(self, handler: Handler, event: Event | OperationCompleted) -> None:
        try:
            handler(event)
        except Exception as error:  # noqa: BLE001  # reason: a handler must never fail the write
            self.failed(event, error)

    def failed(self, event: Event | OperationCompleted, error: Exception) -> None:
        """Count and log an exception of a handler."""
        with self._lock:
            self.failures += 1
        logs.handler_failed(type(event).__name__, error)
