"""The threads that the synchronous engine runs on, and the way there and back.

The engine's calls are short, so the way is what counts: a thread that is free is handed its job directly, the one that
was busy last first, and leaves what came of it in the mailbox of the loop. It is a third of what
``loop.run_in_executor`` costs.
"""

import asyncio
import atexit
import concurrent.futures
import contextvars
import inspect
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar, cast

from recollect.aio.mailbox import Mailbox
from recollect.errors import ConfigurationError

_IDLE_S = 30.0
"""A thread that had nothing to do for so long ends."""

_LOOK_S = 0.5
"""How often a thread that waits for a coroutine looks whether its loop is still there."""

_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("recollect_inside_awaited_part", default=False)
"""Whether this code runs on behalf of a thread that waits for it."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Job(Generic[R]):
    """A call on its way: what to do, in whose context, and the future that a coroutine waits on.

    The future says only that it is over; the job itself holds what came of it. So an error that nobody waits for any
    more is dropped silently, as the caller wished when cancelling.
    """

    __slots__ = ("_mailbox", "_part", "cancelled", "context", "error", "future", "loop", "result", "work")

    def __init__(self, work: Callable[[], R], loop: asyncio.AbstractEventLoop, mailbox: Mailbox) -> None:
        self.work = work
        self.loop = loop
        self._mailbox = mailbox
        self.future: asyncio.Future[None] = loop.create_future()
        self.context = contextvars.copy_context()
        self.result: R | None = None
        self.error: BaseException | None = None
        self.cancelled = False
        self._part: concurrent.futures.Future[Any] | None = None

    def do(self) -> None:
        """In a thread: the work, unless it was cancelled before it began."""
        if self.cancelled:
            return
        try:
            self.result = self.context.run(self.work)
        except BaseException as error:  # noqa: BLE001  # reason: whatever it was, it is the caller's
            self.error = error

    def deliver(self) -> None:
        """From a thread: wake the coroutine that waits."""
        if not self.cancelled:
            self._mailbox.post(self)

    def settle(self) -> None:
        """On the loop: the coroutine goes on, if it was not cancelled meanwhile."""
        if not self.future.done():
            self.future.set_result(None)

    def cancel(self) -> None:
        """Drop it if it has not begun, or stop the coroutine that it waits for; otherwise it goes on to its end."""
        self.cancelled = True
        if self._part is not None:
            self._part.cancel()

    def wait_for(self, part: concurrent.futures.Future[T], pause: Callable[[], None]) -> T:
        """In its thread: wait for a coroutine on the loop. If the job is cancelled, so is the coroutine."""
        self._part = part
        if self.cancelled:
            part.cancel()
        _wait_for(part, pause)
        self._part = None
        if self.cancelled:
            # Not an Exception: nothing in the engine takes it for the part's failure and goes on without it.
            raise asyncio.CancelledError
        return part.result()


class _Seat:
    """Where a thread waits for its next job, and what it is doing."""

    __slots__ = ("bell", "job")

    def __init__(self, job: "Job[Any] | None" = None) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.job = job


class _Here(threading.local):
    """The seat of this thread, if it is one of ours."""

    seat: _Seat | None = None


class Workers:
    """Up to so many threads, started when they are needed. Any number of event loops may use them at once.

    After ``close`` it goes on to work, with threads that end at once: calls then meet a closed store and fail as the
    synchronous ones do.
    """

    def __init__(self, size: int, home: asyncio.AbstractEventLoop) -> None:
        self._size = size
        self._home = home
        self._lock = threading.Lock()
        self._quiet = threading.Condition(self._lock)
        self._idle: list[_Seat] = []
        self._backlog: deque[Job[Any]] = deque()
        self._threads = 0
        self._unfinished = 0
        self._held: list[Job[Any]] | None = None
        self._closing: concurrent.futures.Future[None] | None = None
        self._ending = False
        self._here = _Here()
        self._mailboxes: dict[asyncio.AbstractEventLoop, Mailbox] = {}
        self._at_exit = partial(_finish, weakref.ref(self))
        atexit.register(self._at_exit)

    async def run(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Do it in one of the threads, in the context of the caller."""
        loop = asyncio.get_running_loop()
        job: Job[R] = Job(partial(work, *args, **kwargs), loop, self._mailboxes.get(loop) or self._mailbox(loop))
        self._submit(job)
        try:
            await job.future
        except asyncio.CancelledError:
            job.cancel()
            raise
        error, job.error = job.error, None
        if error is None:
            return job.result  # type: ignore[return-value]  # there is one, since there was no error
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, which held it

    def _mailbox(self, loop: asyncio.AbstractEventLoop) -> Mailbox:
        """A mailbox for a loop that is new here; loops that have ended are forgotten meanwhile."""
        with self._lock:
            self._mailboxes = {one: box for one, box in self._mailboxes.items() if not one.is_closed()}
            mailbox = Mailbox(loop)
            if self._closing is None:
                self._mailboxes[loop] = mailbox
            else:
                mailbox.leave()
            return mailbox

    def _submit(self, job: Job[Any]) -> None:
        seat = None
        with self._lock:
            if self._held is not None:
                self._held.append(job)
                return
            self._unfinished += 1
            if self._idle:
                seat = self._idle.pop()
            # Who is waited for by a thread must not wait for that thread.
            elif self._threads < self._size or _INSIDE.get():
                self._threads += 1
            else:
                self._backlog.append(job)
                return
        if seat is not None:
            seat.job = job
            seat.bell.release()
        else:
            self._start(job)

    def _start(self, job: Job[Any]) -> None:
        # A daemon, since an idle thread must not keep the process; `_finish` waits for those that are not idle.
        try:
            threading.Thread(target=self._work, args=(job,), name="recollect-aio", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                self._unfinished -= 1
            raise

    def _work(self, first: Job[Any]) -> None:
        """What a thread does: one job after the other until there is nothing left to wait for."""
        seat, job = _Seat(first), first
        self._here.seat = seat
        while True:
            job.do()
            following, stays = self._next(seat)
            job.deliver()  # as a free thread: what the caller asks next comes to this one, which is still awake
            if following is None:
                following = self._sit(seat) if stays else None
            if following is None:
                return
            job = following

    def _next(self, seat: _Seat) -> tuple[Job[Any] | None, bool]:
        """The next job if one waits, and otherwise whether the thread is to wait for one."""
        with self._lock:
            self._unfinished -= 1
            if not self._unfinished and (self._closing is not None or self._ending):
                self._quiet.notify_all()
            if self._backlog:
                seat.job = self._backlog.popleft()
                return seat.job, True
            seat.job = None
            stays = self._closing is None and self._threads <= self._size
            if stays:
                self._idle.append(seat)
            else:
                self._threads -= 1
            return None, stays

    def _sit(self, seat: _Seat) -> Job[Any] | None:
        """Wait for a job; none if there was none for long, or there will be none."""
        if not seat.bell.acquire(timeout=_IDLE_S):
            with self._lock:
                if seat in self._idle:
                    self._idle.remove(seat)
                    self._threads -= 1
                    return None
            seat.bell.acquire()  # somebody chose this seat just now
        return seat.job

    # -- the way back: coroutines that the engine calls --------------------------------------------------------

    def awaited(self, function: Callable[P, Awaitable[R]]) -> Callable[P, R]:
        """A coroutine function as the engine can call it: it runs on the caller's loop, and the thread waits for it."""

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            job = None if self._here.seat is None else self._here.seat.job
            loop = self._home if job is None else job.loop
            if job is not None and job.cancelled:
                raise asyncio.CancelledError
            _check_elsewhere()
            coroutine = _inside(function, *args, **kwargs)
            try:
                part = asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError:  # the loop is closed
                coroutine.close()
                raise
            pause = partial(self._check_loop, loop, part)
            if job is not None:
                return job.wait_for(part, pause)
            _wait_for(part, pause)
            return part.result()

        return called

    def _check_loop(self, loop: asyncio.AbstractEventLoop, part: concurrent.futures.Future[Any]) -> None:
        if loop.is_closed() or self._ending:
            part.cancel()
            raise RuntimeError("the event loop ended while a thread waited for a coroutine on it")

    def synchronous(self, function: Callable[P, R] | Callable[P, Awaitable[R]]) -> Callable[P, R]:
        """A function of the caller's as the engine can call it, whichever kind it is."""
        if inspect.iscoroutinefunction(function):
            return self.awaited(cast(Callable[P, Awaitable[R]], function))
        return cast(Callable[P, R], function)

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self, last: Callable[[], None]) -> None:
        """Let everything that was asked for finish, do the last thing, and let the threads go.

        What is asked for meanwhile waits, and comes after the last thing. A cancelled ``close`` goes on by itself.
        """
        await asyncio.shield(asyncio.wrap_future(self.begin_closing(last)))

    def begin_closing(self, last: Callable[[], None]) -> concurrent.futures.Future[None]:
        """``close`` for whoever cannot wait."""
        with self._lock:
            if (closing := self._closing) is None:
                closing = self._closing = concurrent.futures.Future()
                self._held = []
                # Not a daemon: once begun, a database is closed properly.
                threading.Thread(target=self._close, args=(last, closing), name="recollect-aio-close").start()
            return closing

    def _close(self, last: Callable[[], None], closing: concurrent.futures.Future[None]) -> None:
        with self._lock:
            self._quiet.wait_for(lambda: not self._unfinished)
        error: BaseException | None = None
        try:
            last()
        except BaseException as caught:  # noqa: BLE001  # reason: whatever it was, it is the caller's
            error = caught
        with self._lock:
            held, self._held = self._held or [], None
            idle, self._idle = self._idle, []
            self._threads -= len(idle)
            mailboxes, self._mailboxes = self._mailboxes, {}
        for seat in idle:
            seat.bell.release()
        for job in held:
            self._submit(job)
        for loop, mailbox in mailboxes.items():
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(mailbox.leave)
        atexit.unregister(self._at_exit)
        if error is None:
            closing.set_result(None)
        else:
            closing.set_exception(error)

    def finish(self) -> None:
        """At the end of the process: let what has begun come to its end, and begin nothing more."""
        with self._lock:
            self._ending = True
            self._unfinished -= len(self._backlog)
            self._backlog.clear()
            self._quiet.wait_for(lambda: not self._unfinished)


def _finish(workers: "weakref.ref[Workers]") -> None:
    if (found := workers()) is not None:
        found.finish()


def _wait_for(part: concurrent.futures.Future[Any], pause: Callable[[], None]) -> None:
    while not concurrent.futures.wait([part], _LOOK_S).done:
        pause()


async def _inside(function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    _INSIDE.set(True)  # in the context of this task alone
    return await function(*args, **kwargs)


def _check_elsewhere() -> None:
    """A thread that runs an event loop must not wait: the coroutine might be waiting for that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "an async embedder, reranker or summariser was called in the thread of an event loop",
        hint="call the database by the methods of recollect.aio",
    )
