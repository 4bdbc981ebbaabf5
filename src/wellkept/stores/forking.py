"""Open stores and ``fork``.

A forked child inherits the memory of its parent, but not the threads that were using it, and SQLite keeps in memory
which file locks its process holds: the parent, or any other process, could take itself for the last user of the file
and delete the write-ahead log that the child writes to. So every open store is notified before a fork, waits for its
running transactions and closes its connections; and is notified again in both processes afterwards.
"""

import os
import threading
import weakref
from functools import cache
from typing import Protocol


class Forkable(Protocol):
    """A store that holds connections."""

    def before_fork(self) -> None:
        """Wait for running transactions, close all connections, and start nothing until ``after_fork``."""

    def after_fork(self, *, in_child: bool) -> None:
        """Resume; in the child without the state of the parent's threads."""


class Forks:
    """Notifies all open stores of each fork of the process."""

    def __init__(self) -> None:
        self._members: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._waiting: list[Forkable] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
            )

    def tell(self, member: Forkable) -> None:
        """Notify a store of forks, as long as it lives."""
        self._members.add(member)

    def _before(self) -> None:
        self._lock.acquire()
        for member in list(self._members):
            member.before_fork()
            self._waiting.append(member)

    def _after_in_parent(self) -> None:
        while self._waiting:
            self._waiting.pop().after_fork(in_child=False)
        self._lock.release()

    def _after_in_child(self) -> None:
        while self._waiting:
            self._waiting.pop().after_fork(in_child=True)
        self._lock = threading.Lock()


@cache
def forks() -> Forks:
    """The registry of this process, made when the first store is opened: ``register_at_fork`` cannot be undone."""
    return Forks()
