"""The memories that one identity may see, awaited."""

from __future__ import annotations

import builtins
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from recollect.aio.facade import Facade, hop
from recollect.aio.following import POLL_S, Changes
from recollect.memories import view as sync
from recollect.types import Identity, Layer, Layers, Version

if TYPE_CHECKING:
    from recollect.aio.sessions import Sessions


class View(Facade[sync.View]):
    """The memories seen by one identity; ``Memories.view`` makes it. Every method does what that of
    :class:`recollect.View` does.

    >>> import asyncio, recollect.aio
    >>> async def main():
    ...     async with recollect.aio.open("ram:") as memories:
    ...         ada, bob = memories.view(user="ada"), memories.view(user="bob")
    ...         memory = await ada.add("Prefers tea")
    ...         return (await ada.get(memory.id)).content, await bob.get(memory.id)
    >>> asyncio.run(main())
    ('Prefers tea', None)
    """

    add = hop(sync.View.add)
    add_many = hop(sync.View.add_many)
    get = hop(sync.View.get)
    get_many = hop(sync.View.get_many)
    list = hop(sync.View.list)
    count = hop(sync.View.count)
    stats = hop(sync.View.stats)
    history = hop(sync.View.history)
    search = hop(sync.View.search)
    update = hop(sync.View.update)
    forget = hop(sync.View.forget)
    forget_many = hop(sync.View.forget_many)
    restore = hop(sync.View.restore)

    @property
    def identity(self) -> Identity:
        """The ids that the view was made for."""
        return self._sync.identity

    @property
    def sessions(self) -> Sessions:
        """The sessions of the user; ``MissingIdentifier`` if the identity names none."""
        from recollect.aio.sessions import Sessions  # lazy: builds on views

        return Sessions(self._sync.sessions, self._opened)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that the identity has ids for, the most specific first."""
        return self._sync.layers

    def changes(
        self,
        *,
        after: int = 0,
        limit: int = 1_000,
        layers: Layers | None = None,
        follow: bool = False,
        poll_s: float = POLL_S,
    ) -> Changes:
        """What was written behind a sequence, the oldest first: a list if awaited, all of it with ``async for``.

        ``async for`` reads ``limit`` versions at a time. With ``follow`` it goes on until the database is closed: what
        is written through this database comes at once, what other processes write within ``poll_s`` seconds. Remember
        the ``sequence`` of the last version you handled, and pass it as ``after`` to go on another time.

        >>> import asyncio, recollect.aio
        >>> async def main():
        ...     async with recollect.aio.open("ram:") as memories:
        ...         view = memories.view(user="ada")
        ...         await view.add("Likes tea")
        ...         async for version in view.changes(follow=True):
        ...             return version.memory.content
        >>> asyncio.run(main())
        'Likes tea'
        """
        wanted = layers if layers is None or isinstance(layers, str) else tuple(layers)

        def read(behind: int) -> Coroutine[Any, Any, builtins.list[Version]]:
            return self._opened.workers.run(self._sync.changes, after=behind, limit=limit, layers=wanted)

        return Changes(read, self._opened.feed, after=after, limit=limit, follow=follow, poll_s=poll_s)
