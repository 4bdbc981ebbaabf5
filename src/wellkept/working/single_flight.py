"""Single-flight per key, with deadlock detection: one caller runs the factory, the others wait for its result."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from wellkept.errors import InvalidInput

if TYPE_CHECKING:
    from asyncio import Future


class Call:
    """A factory call in progress, and the thread that runs it."""

    __slots__ = ("thread",)

    def __init__(self) -> None:
        self.thread = threading.get_ident()


_RUNNING: ContextVar[tuple[Call, ...]] = ContextVar("running", default=())
"""The factory calls that the current code runs in. Tasks and threads started by a factory inherit the context."""


@contextmanager
def running(call: Call) -> Iterator[None]:
    """Mark the code within as part of a factory call."""
    token = _RUNNING.set((*_RUNNING.get(), call))
    try:
        yield
    finally:
        with suppress(ValueError):  # a discarded coroutine is closed in a different context
            _RUNNING.reset(token)


class Waiter:
    """A caller waiting for a call to finish. If ``blocks_thread``, its whole thread is blocked meanwhile."""

    blocks_thread: bool

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.within = _RUNNING.get()

    def wake(self) -> None:
        """The call has finished."""
        raise NotImplementedError

    def delays(self, call: Call) -> bool:
        """Whether the call cannot finish before this waiter resumes."""
        return call in self.within or (self.blocks_thread and call.thread == self.thread)


class ThreadWaiter(Waiter):
    """A waiting thread."""

    blocks_thread = True

    def __init__(self) -> None:
        super().__init__()
        self._finished = threading.Event()

    def wake(self) -> None:
        """The call has finished."""
        self._finished.set()

    def wait(self) -> None:
        """Block until the call has finished. Never called with the lock held."""
        self._finished.wait()


class TaskWaiter(Waiter):
    """A waiting task; its event loop keeps running."""

    blocks_thread = False

    def __init__(self) -> None:
        from asyncio import get_running_loop  # lazy: a caller with a task has it loaded, others do not need it

        super().__init__()
        self._loop = get_running_loop()
        self.finished: Future[None] = self._loop.create_future()

    def wake(self) -> None:
        """Resolve the future from any thread. A closed loop has no tasks left to wake."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)


W = TypeVar("W", bound=Waiter)


class SingleFlight:
    """The factory calls in progress and the callers waiting for them. Every method needs the agent's lock held.

    >>> single_flight = SingleFlight()
    >>> isinstance(single_flight.join("plan", "plan", ThreadWaiter), Call)
    True
    >>> single_flight.finish("plan")
    """

    def __init__(self) -> None:
        self._calls: dict[Hashable, Call] = {}
        self._waiting: dict[Waiter, Call] = {}

    def join(self, identity: Hashable, key: str, new_waiter: Callable[[], W]) -> Call | W:
        """A new call for the caller to run, or a waiter on the call in progress.

        Raises ``InvalidInput`` if waiting would deadlock: two factories that need each other's result, or a thread
        that would wait for a task of its own event loop.
        """
        call = self._calls.get(identity)
        if call is None:
            return self._calls.setdefault(identity, Call())
        waiter = new_waiter()
        if self._would_deadlock(waiter, call):
            raise InvalidInput(
                f"the factory for {key!r} waits for its own result",
                details={"field": "factory", "key": key},
                hint="a factory must not get_or_set a key whose factory needs this one, and code that runs in an event "
                "loop awaits aget_or_set",
            )
        self._waiting[waiter] = call
        return waiter

    def _would_deadlock(self, waiter: Waiter, call: Call) -> bool:
        """Whether the call, or one that it transitively waits for, cannot finish before the waiter resumes."""
        pending, seen = [call], {call}
        while pending:
            current = pending.pop()
            if waiter.delays(current):
                return True
            for other, awaited in self._waiting.items():
                if awaited not in seen and other.delays(current):
                    seen.add(awaited)
                    pending.append(awaited)
        return False

    def finish(self, identity: Hashable) -> None:
        """End a call and wake its waiters, which look the key up again."""
        finished = self._calls.pop(identity)
        for waiter in [waiter for waiter, call in self._waiting.items() if call is finished]:
            self.withdraw(waiter)
            waiter.wake()

    def withdraw(self, waiter: Waiter) -> None:
        """Remove a waiter."""
        self._waiting.pop(waiter, None)
