"""Group commit: the writes of many threads in one transaction, paid for with one fsync.

A thread that wants to write queues its job. If there is no leader, it becomes one: it takes everything queued, runs it
in one transaction, commits, and hands the lead to the first thread that queued meanwhile. A job is acknowledged
only after the commit that holds it.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Generic, Protocol, TypeVar

import apsw

from wellkept.errors import StoreClosed, StoreError, WellkeptError

GROUP = 256
_LOOK_S = 0.5

T = TypeVar("T")


class Transacted(Protocol):
    """What jobs work on while a transaction is open."""

    def finish(self) -> None:
        """Write what is still to be written, before the commit."""


W = TypeVar("W", bound=Transacted)


class Job(Generic[T]):
    """Something to do inside a transaction. It checks before it writes: if it raises, it has written nothing."""

    __slots__ = ("_bell", "error", "leads", "neighbour", "result", "settled", "work")

    def __init__(self, work: Callable[[Any], T]) -> None:
        self.work = work
        self.result: T | None = None
        self.error: BaseException | None = None
        self.leads = False
        self.settled = False
        self.neighbour: Job[Any] | None = None
        self._bell = threading.Lock()
        self._bell.acquire()

    def wait(self) -> None:
        """Sleep until the job is settled or becomes the leader, then wake the neighbour.

        Threads are woken one by one, each by the one before it: a hundred at once would fight for the interpreter's
        lock and take three times as long. A thread whose neighbour was interrupted wakes by its timeout.
        """
        while not (self.settled or self.leads):
            self._bell.acquire(timeout=_LOOK_S)
        if self.neighbour is not None:
            self.neighbour.wake()

    def wake(self) -> None:
        """Ring; more than once does no harm."""
        with suppress(RuntimeError):
            self._bell.release()


class GroupCommit(Generic[W]):
    """Serialises jobs into transactions. ``begin`` gives what they work on; ``committed`` hears of each success."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        begin: Callable[[apsw.Connection, Sequence[Callable[[W], Any]]], W],
        committed: Callable[[W], None],
    ) -> None:
        self._connect = connect
        self._begin = begin
        self._committed = committed
        self._connection: apsw.Connection | None = None
        self._mutex = threading.Lock()
        self._led_no_more = threading.Condition(self._mutex)
        self._queue: list[Job[Any]] = []
        self._led = False
        self._forking = False
        self._closed = False
        self.groups = 0

    def run(self, work: Callable[[W], Any]) -> Any:
        """Do the work in some transaction and return when it is committed."""
        job: Job[Any] = Job(work)
        with self._mutex:
            if self._closed:
                raise StoreClosed("the store is closed", hint="open it again")
            self._queue.append(job)
            job.leads = not (self._led or self._forking)
            self._led = self._led or job.leads
        try:
            if not job.leads:
                job.wait()
        except BaseException:  # reason: an interrupt must not leave the queue waiting for a thread that is gone
            self._abandon(job)
            raise
        if not job.settled:
            self._lead(job)
        if job.error is not None:
            raise job.error
        return job.result

    def _lead(self, own: Job[Any]) -> None:
        with self._mutex:
            group, self._queue = self._queue[:GROUP], self._queue[GROUP:]
        try:
            self._settle(group)
        finally:
            others = [job for job in group if job is not own]
            for job, neighbour in zip_longest(others, others[1:]):
                job.neighbour, job.settled = neighbour, True
            if others:
                others[0].wake()
            with self._mutex:
                self._led = False
                if self._forking:
                    self._led_no_more.notify()
                else:
                    self._hand_over()

    def _abandon(self, job: Job[Any]) -> None:
        with self._mutex:
            if job in self._queue:
                self._queue.remove(job)
                if job.leads:
                    self._led = False
                    self._hand_over()

    def _hand_over(self) -> None:
        """Give the lead to the first in the queue; the last one closes the door."""
        if self._queue:
            self._led = self._queue[0].leads = True
            self._queue[0].wake()
        elif self._closed:
            self._disconnect()

    def _settle(self, group: list[Job[Any]]) -> None:
        try:
            self._transaction(group)
        except apsw.BusyError as error:
            # Another process holds the lock of the file: alone, each job would wait for it once more.
            for job in group:
                job.error = error
        except Exception as error:  # noqa: BLE001  # reason: every job of the group must hear of whatever ended it
            if len(group) == 1:
                group[0].error = error
                return
            # One bad job must not fail its neighbours: alone, each gets the answer that is its own.
            for job in group:
                self._settle([job])
        except BaseException:  # reason: an interrupt in the leader must not leave the others waiting
            for job in group:
                job.error = StoreError("the write was interrupted; nothing of it was kept", hint="try again")
            raise

    def _transaction(self, group: list[Job[Any]]) -> None:
        connection = self.connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            transaction = self._begin(connection, [job.work for job in group])
            for job in group:
                job.error = None
                try:
                    job.result = job.work(transaction)
                except WellkeptError as error:
                    job.error = error
            transaction.finish()
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        self.groups += 1
        self._committed(transaction)

    def connection(self) -> apsw.Connection:
        """The one connection that writes; only the leader may use it."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def close(self) -> None:
        """Take no more jobs. What is queued is still done; the last leader closes the connection."""
        with self._mutex:
            self._closed = True
            if not self._led:
                self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def before_fork(self) -> None:
        """Wait for the transaction that is going on, close the connection, and let no other one begin."""
        self._mutex.acquire()
        self._forking = True
        while self._led:
            self._led_no_more.wait()
        self._disconnect()

    def after_fork(self, *, in_child: bool) -> None:
        """Resume the queue; a child starts with an empty one, since the queued threads are the parent's."""
        self._forking = False
        if in_child:
            self._mutex, self._queue = threading.Lock(), []
            self._led_no_more = threading.Condition(self._mutex)
        else:
            self._hand_over()
            self._mutex.release()
