"""Open stores and fork.

A forked child inherits what a store holds, but not the threads that were using it. SQLite, besides, keeps in memory
which locks its process holds: the parent, or any other process, could take itself for the last user of the file and
delete the write-ahead log that the child writes to. So every open store is told before a fork, lets its threads come
to an end and closes what must not cross; and is told again on both sides.
"""

import os
import threading
import weakref
from functools import cache
from typing import Protocol


class Forkable(Protocol):
    """Something that holds connections."""

    def before_fork(self) -> None:
        """Wait for what is going on, close all connections, and let nothing begin."""

    def after_fork(self, *, in_child: bool) -> None:
        """Go on; in a child without what belongs to the threads of its parent."""


class Forks:
    """Tells all open stores of each fork of the process."""

    def __init__(self) -> None:
        self._members: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self._waiting: list[Forkable] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before, after_in_parent=self._after_in_parent, after_in_child=self._after_in_child
            )

    def tell(self, member: Forkable) -> None:
        """Tell this one of forks, as long as it lives."""
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
    """The one of this process, made when the first store is opened: forks are told per process and cannot be untold."""
    return Forks()
