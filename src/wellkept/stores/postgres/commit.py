"""Group commit: what the threads of this process write to the same owners goes into one transaction.

A thread that wants to write queues its job under the locks that the job needs. If nobody leads that queue, it becomes
the leader: it takes everything queued, settles it in one transaction, and hands the lead to the first thread that
queued meanwhile. Queues of other owners go on beside it, each on a connection of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from wellkept.errors import StoreError, WellkeptError

GROUP = 256


class Job(Protocol):
    """Something to write. Settling it sets either ``error`` or its result."""

    error: BaseException | None


J = TypeVar("J", bound=Job)


class _Waiting(Generic[J]):
    """A job in a queue, and the bell of its thread."""

    __slots__ = ("bell", "job", "leads")

    def __init__(self, job: J) -> None:
        self.job = job
        self.leads = False
        self.bell = threading.Event()


class GroupCommit(Generic[J]):
    """Queues of jobs, by the locks that they need."""

    def __init__(self, settle: Callable[[Sequence[J]], None]) -> None:
        self._settle = settle
        self._mutex = threading.Lock()
        self._queues: dict[tuple[int, ...], list[_Waiting[J]]] = {}  # has a queue while somebody leads it

    def run(self, locks: tuple[int, ...], job: J) -> None:
        """Settle the job, alone or with others; raises its error."""
        own = _Waiting(job)
        with self._mutex:
            own.leads = locks not in self._queues
            self._queues.setdefault(locks, []).append(own)
        if not own.leads:
            self._wait(locks, own)
        if own.leads:
            self._lead(locks, own)
        if job.error is not None:
            raise job.error

    def _wait(self, locks: tuple[int, ...], own: _Waiting[J]) -> None:
        try:
            own.bell.wait()
        except BaseException:  # reason: an interrupted thread must not leave the queue to nobody
            with self._mutex:
                queue = self._queues.get(locks, [])
                if own in queue:
                    queue.remove(own)
                if own.leads:
                    self._hand_over(locks)
            raise

    def _lead(self, locks: tuple[int, ...], own: _Waiting[J]) -> None:
        with self._mutex:
            queue = self._queues[locks]
            group, self._queues[locks] = queue[:GROUP], queue[GROUP:]
        try:
            self._try([one.job for one in group])
        except BaseException:  # reason: an interrupt of the leader must not leave the others waiting
            for one in group:
                one.job.error = StoreError("the write was interrupted; it may have been kept", hint="try again")
            raise
        finally:
            for one in group:
                if one is not own:
                    one.bell.set()
            with self._mutex:
                self._hand_over(locks)

    def _hand_over(self, locks: tuple[int, ...]) -> None:
        queue = self._queues[locks]
        if queue:
            queue[0].leads = True
            queue[0].bell.set()
        else:
            del self._queues[locks]

    def _try(self, jobs: Sequence[J]) -> None:
        try:
            self._settle(jobs)
        except WellkeptError as error:
            if len(jobs) == 1 or error.retryable:  # the server is away for all of them
                for job in jobs:
                    job.error = error
                return
            # One bad job must not fail its neighbours: alone, each gets the answer that is its own.
            for job in jobs:
                self._try([job])

    def forget(self) -> None:
        """After a fork: the threads that wait are the parent's."""
        self._mutex = threading.Lock()
        self._queues = {}
