"""The threads that the synchronous engine runs on, and the way back to the caller's coroutines."""

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from wellkept.errors import ConfigurationError

_NAME = "wellkept-aio"

_LOOK_S = 0.5
"""How often a thread that waits for a coroutine checks that the loop still exists."""

_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("wellkept_inside_awaited_part", default=False)
"""Whether this code runs in a coroutine that a thread of the pool waits for."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Closing = concurrent.futures.Future[BaseException | None]
"""A close under way; its result is the error that it met."""


class _Call:
    """One call: the loop that it came from, and the caller's coroutine that its thread waits for."""

    __slots__ = ("_part", "cancelled", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.cancelled = False
        self._part: concurrent.futures.Future[Any] | None = None

    def cancel(self) -> None:
        """On the loop: stop the coroutine that the thread waits for. Other work continues to its end."""
        self.cancelled = True
        if self._part is not None:
            self._part.cancel()

    def result(self, part: concurrent.futures.Future[T]) -> T:
        """In the thread: wait for a coroutine on the loop. If the call is cancelled, so is the coroutine."""
        self._part = part
        if self.cancelled:
            part.cancel()
        try:
            return _result(part, self.loop)
        finally:
            self._part = None
            if self.cancelled:
                # Not an Exception: the engine must not take it for a failure of the part and write without it.
                raise asyncio.CancelledError


class _Here(threading.local):
    """The call that this thread works on, if it is one of the pool's."""

    call: _Call | None = None


class Workers:
    """A thread pool for one open database. Any number of event loops may use it at once.

    After ``close`` each call has a thread of its own: it meets a closed store, and fails as the synchronous call does.
    """

    def __init__(self, size: int, home: asyncio.AbstractEventLoop) -> None:
        self._home = home
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=_NAME)
        self._lock = threading.Lock()
        self._closing: Closing | None = None
        self._here = _Here()

    async def run(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do it in one of the threads, in the context of the caller."""
        call = _Call(asyncio.get_running_loop())
        job = partial(contextvars.copy_context().run, self._do, call, partial(work, *args, **kwargs))
        if self._closing is not None and not _INSIDE.get():
            await asyncio.shield(asyncio.wrap_future(self._closing))
        try:
            return await asyncio.wrap_future(self._submit(job))
        except asyncio.CancelledError:
            call.cancel()
            raise

    def _submit(self, job: Callable[[], R]) -> concurrent.futures.Future[R]:
        with self._lock:
            # A thread waits for what runs inside: if that waited for a thread of the pool, both could wait forever.
            if self._closing is None and not _INSIDE.get():
                return self._pool.submit(job)
        single = ThreadPoolExecutor(1, thread_name_prefix=_NAME)
        try:
            return single.submit(job)
        finally:
            single.shutdown(wait=False)

    def _do(self, call: _Call, work: Callable[[], R]) -> R:
        self._here.call = call
        try:
            return work()
        except StopIteration as error:  # no future takes it
            raise RuntimeError("a call raised StopIteration") from error
        finally:
            self._here.call = None

    # -- the way back: coroutines that the engine calls --------------------------------------------------------

    def awaited(self, function: Callable[P, Awaitable[R]]) -> Callable[P, R]:
        """A coroutine function as the engine can call it: it runs on the caller's loop, and the thread waits for it."""

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            call = self._here.call
            if call is not None and call.cancelled:
                raise asyncio.CancelledError
            _check_no_loop_here()
            loop = self._home if call is None else call.loop
            coroutine = _inside(function, *args, **kwargs)
            try:
                part = asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError:  # the loop is closed
                coroutine.close()
                raise
            return _result(part, loop) if call is None else call.result(part)

        return called

    def synchronous(self, function: Callable[P, R] | Callable[P, Awaitable[R]]) -> Callable[P, R]:
        """A function of the caller's as the engine can call it, whether it is a coroutine function or not."""
        if inspect.iscoroutinefunction(function):
            return self.awaited(cast(Callable[P, Awaitable[R]], function))
        return cast(Callable[P, R], function)

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self, last: Callable[[], None]) -> None:
        """Let all calls finish, call ``last``, and end the threads.

        Calls made meanwhile wait, and run after ``last``. A ``close`` that is cancelled continues by itself.
        """
        error = await asyncio.shield(asyncio.wrap_future(self.begin_closing(last)))
        if error is not None:
            raise error

    def begin_closing(self, last: Callable[[], None]) -> Closing:
        """Start closing, for callers that cannot wait; a second call joins the first."""
        with self._lock:
            if (closing := self._closing) is None:
                closing = self._closing = concurrent.futures.Future()
                threading.Thread(target=self._close, args=(last, closing), name=f"{_NAME}-close").start()
            return closing

    def _close(self, last: Callable[[], None], closing: Closing) -> None:
        self._pool.shutdown()
        try:
            last()
        except BaseException as error:  # noqa: BLE001  # reason: whatever it was, it is the caller's
            closing.set_result(error)
        else:
            closing.set_result(None)


def _result(part: concurrent.futures.Future[T], loop: asyncio.AbstractEventLoop) -> T:
    """Wait for a coroutine on a loop, as long as that loop exists."""
    while not concurrent.futures.wait([part], _LOOK_S).done:
        if loop.is_closed():
            part.cancel()
            raise RuntimeError("the event loop ended while a thread waited for a coroutine on it")
    try:
        return part.result()
    except concurrent.futures.CancelledError:  # not by this call, which is therefore not cancelled itself
        raise RuntimeError("the coroutine that a thread waited for was cancelled") from None


async def _inside(function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    _INSIDE.set(True)  # in the context of this task alone
    return await function(*args, **kwargs)


def _check_no_loop_here() -> None:
    """A thread that runs an event loop must not wait: the coroutine might be waiting for that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "an async embedder, reranker or summariser was called in the thread of an event loop",
        hint="call the database by the methods of wellkept.aio",
    )
