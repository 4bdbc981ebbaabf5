"""The change feed, awaited page by page or followed as it grows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

from wellkept.errors import InvalidInput, StoreClosed
from wellkept.events import (
    EventBus,
    MemoryForgotten,
    MemoryRestored,
    MemoryStored,
    MemoryUpdated,
)
from wellkept.types import Changes as Page
from wellkept.types import Version

POLL_S = 1.0
"""How often a follower looks for what other processes wrote."""

_WRITES = (MemoryStored, MemoryUpdated, MemoryForgotten, MemoryRestored)


class Feed:
    """Tells followers that something was written here, or that the database is closing."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._followers: dict[object, Callable[[], None]] = {}
        self.ended = False

    def follow(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake``, from whatever thread, after each write; the returned function ends it."""
        stops = [self._bus.on(kind, lambda _: wake()) for kind in _WRITES]
        token = object()
        self._followers[token] = wake

        def stop() -> None:
            self._followers.pop(token, None)
            for one in stops:
                one()

        return stop

    def end(self) -> None:
        """Let all followers come to their end."""
        self.ended = True
        for wake in tuple(self._followers.values()):
            wake()


class Changes:
    """What was written behind a position: ``await`` it for one page, or go through it with ``async for``.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:") as memories:
    ...         view = memories.view(user="ada")
    ...         await view.add_many(["Likes tea", "Likes cake"])
    ...         first = await view.changes(limit=1)
    ...         async for version in view.changes(after=first.next):
    ...             print(version.memory.content)
    >>> asyncio.run(main())
    Likes cake
    """

    def __init__(
        self,
        read: Callable[[str | None], Awaitable[Page]],
        feed: Feed,
        *,
        after: str | None,
        follow: bool,
        poll_s: float,
    ) -> None:
        self._read = read
        self._feed = feed
        self._after = after
        self._follow = follow
        self._poll_s = _checked(poll_s)

    def __await__(self) -> Generator[Any, None, Page]:
        if self._follow:
            raise _wrong("follow", "a feed that goes on has no end", "use `async for`, or leave follow out")
        return self._read(self._after).__await__()

    async def __aiter__(self) -> AsyncIterator[Version]:
        loop, written, after = asyncio.get_running_loop(), asyncio.Event(), self._after

        def wake() -> None:
            # Where it is set already, the follower has yet to read, and will find this write as well.
            if not written.is_set():
                with suppress(RuntimeError):  # the loop was closed, and nobody follows any more
                    loop.call_soon_threadsafe(written.set)

        stop = self._feed.follow(wake) if self._follow else None
        try:
            page: Page | None = await self._read(after)
            while page is not None:
                for version in page:
                    yield version
                after = page.next
                if not page.more:
                    if not self._follow or self._feed.ended:
                        return
                    await self._pause(written)
                written.clear()
                page = await self._more(after)
        finally:
            if stop is not None:
                stop()

    async def _more(self, after: str | None) -> Page | None:
        """The next versions; none at all if the database was closed meanwhile."""
        try:
            return await self._read(after)
        except StoreClosed:
            if self._follow and self._feed.ended:
                return None
            raise

    async def _pause(self, written: asyncio.Event) -> None:
        """Until something is written here, or it is time to look for what others wrote."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await written.wait()


def _checked(poll_s: object) -> float:
    if isinstance(poll_s, bool) or not isinstance(poll_s, int | float) or not 0 < poll_s < float("inf"):
        raise _wrong("poll_s", "poll_s must be a number of seconds above 0", "leave it out, or pass for example 0.5")
    return float(poll_s)


def _wrong(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(what, operation="changes", details={"field": field}, hint=hint)
