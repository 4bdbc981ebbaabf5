"""How calls that are done come back to the event loop that waits for them.

``loop.call_soon_threadsafe`` writes to a socket that the loop then reads until there is nothing left, for each call
anew. Linux has something lighter: a counter that the loop watches as a file.
"""

import asyncio
import os
import sys
from collections import deque
from contextlib import suppress
from typing import Protocol


class Done(Protocol):
    """A call that is over."""

    def settle(self) -> None:
        """On the loop: let whoever waits for it go on."""


class Mailbox:
    """Where threads leave what is done, and where one loop looks when it is woken: once for all that came meanwhile.

    Made on the loop that it is for. Whatever the order in which threads and the loop take their steps, what was posted
    is settled: a thread posts before it looks whether the loop is woken already, and the loop notes that it is awake
    before it empties the box.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._posted: deque[Done] = deque()
        self._woken = False
        self._counter = _new_counter()
        self._watched = False
        if self._counter is not None:
            with suppress(NotImplementedError):  # loops of other makers need not watch files
                loop.add_reader(self._counter, self._read)
                self._watched = True

    def post(self, done: Done) -> None:
        """From any thread: have a call settled on the loop, if that still runs."""
        self._posted.append(done)
        if not self._woken:
            self._woken = True
            if self._watched and self._counter is not None:
                os.eventfd_write(self._counter, 1)
            else:
                with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._empty)

    def leave(self) -> None:
        """On the loop: have it watch no more. What is still posted, or will be, takes the common way."""
        if self._watched and self._counter is not None:
            self._watched = False
            self._loop.remove_reader(self._counter)
            self._empty()

    def _read(self) -> None:
        if self._counter is not None:
            os.eventfd_read(self._counter)
            self._empty()

    def _empty(self) -> None:
        self._woken = False
        while self._posted:
            self._posted.popleft().settle()

    def __del__(self) -> None:
        # Not before: a thread that holds the mailbox may be about to write, and the number could be another file's.
        if self._counter is not None:
            os.close(self._counter)


def _new_counter() -> int | None:
    """A file that can be read once it was written to, where the system has such."""
    if sys.platform == "linux":
        with suppress(OSError):  # no room for another file
            return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    return None
