"""What one identity can do, awaited: its memories, and the sessions of its user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from wellkept.aio.changes import POLL_S, Changes
from wellkept.aio.facade import Facade, Opened, hop, hop_facing
from wellkept.engine.messages import Extract
from wellkept.memories import facts as sync_facts
from wellkept.memories import session as sync_session
from wellkept.memories import sessions as sync_sessions
from wellkept.memories import view as sync_view
from wellkept.types import Changes as Page
from wellkept.types import Conversation, Identity, Layer, LayerName, Layers, Memory, NewMemory, Owner, SessionConfig


class View(Facade[sync_view.View]):
    """The memories seen by one identity; ``Memories.view`` makes it. Every method does what that of
    :class:`wellkept.View` does.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:") as memories:
    ...         ada, bob = memories.view(user="ada"), memories.view(user="bob")
    ...         memory = await ada.add("Prefers tea")
    ...         return (await ada.get(memory.id)).content, await bob.get(memory.id)
    >>> asyncio.run(main())
    ('Prefers tea', None)
    """

    add = hop(sync_view.View.add)
    add_many = hop(sync_view.View.add_many)
    put = hop(sync_view.View.put)
    lineage = hop(sync_view.View.lineage)
    get = hop(sync_view.View.get)
    get_many = hop(sync_view.View.get_many)
    list = hop(sync_view.View.list)
    count = hop(sync_view.View.count)
    stats = hop(sync_view.View.stats)
    history = hop(sync_view.View.history)
    position = hop(sync_view.View.position)
    search = hop(sync_view.View.search)
    update = hop(sync_view.View.update)
    forget = hop(sync_view.View.forget)
    forget_many = hop(sync_view.View.forget_many)
    restore = hop(sync_view.View.restore)
    point_to = hop(sync_view.View.point_to)
    refresh = hop(sync_view.View.refresh)
    undoable = hop(sync_view.View.undoable)
    undo = hop(sync_view.View.undo)
    move = hop(sync_view.View.move)
    plan_quarantine = hop(sync_view.View.plan_quarantine)
    quarantine = hop(sync_view.View.quarantine)
    release = hop(sync_view.View.release)
    erase_quarantined = hop(sync_view.View.erase_quarantined)

    async def add_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        extract: Extract | Callable[[Sequence[Memory]], Awaitable[Iterable[str | NewMemory]]] | None = None,
        layer: Layer | LayerName | None = None,
    ) -> Conversation:
        """Remember the turns of a conversation, and what is worth keeping of them. An ``extract`` that is ``async`` is
        awaited, any other one runs in a thread.
        """
        called: Extract | None = None if extract is None else self._opened.workers.synchronous(extract)
        return await self._opened.workers.run(self._sync.add_messages, messages, extract=called, layer=layer)

    @property
    def identity(self) -> Identity:
        """The ids that the view was made for."""
        return self._sync.identity

    @property
    def facts(self) -> Facts:
        """What the view knows as facts."""
        return Facts(self._sync.facts, self._opened)

    @property
    def sessions(self) -> Sessions:
        """The sessions of the user; ``MissingIdentifier`` if the identity names none."""
        return Sessions(self._sync.sessions, self._opened)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that the identity has ids for, the most specific first."""
        return self._sync.layers

    def changes(
        self,
        *,
        after: str | None = None,
        limit: int = 1_000,
        layers: Layers | None = None,
        follow: bool = False,
        poll_s: float = POLL_S,
    ) -> Changes:
        """What was written behind a position, the oldest first: a page if awaited, all of it with ``async for``.

        ``async for`` reads ``limit`` versions at a time. With ``follow`` it goes on until the database is closed: what
        is written through this database comes at once, what other processes write within ``poll_s`` seconds. Remember
        the ``position`` of the last version you handled, and pass it as ``after`` to go on another time.

        >>> import asyncio, wellkept.aio
        >>> async def main():
        ...     async with wellkept.aio.open("ram:") as memories:
        ...         view = memories.view(user="ada")
        ...         await view.add("Likes tea")
        ...         async for version in view.changes(follow=True):
        ...             return version.memory.content
        >>> asyncio.run(main())
        'Likes tea'
        """
        wanted = layers if layers is None or isinstance(layers, str) else tuple(layers)

        def read(behind: str | None) -> Coroutine[Any, Any, Page]:
            return self._opened.workers.run(self._sync.changes, after=behind, limit=limit, layers=wanted)

        return Changes(read, self._opened.feed, after=after, follow=follow, poll_s=poll_s)


class Facts(Facade[sync_facts.Facts]):
    """The facts of a view; ``view.facts`` gives them.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         view = memories.view(user="ada")
    ...         await view.facts.add("Ada", "lives in", "Rome")
    ...         return [one.fact.object for one in await view.facts.find(subject="Ada")]
    >>> asyncio.run(main())
    ['Rome']
    """

    add = hop(sync_facts.Facts.add)
    find = hop(sync_facts.Facts.find)


class SessionPreferences(Facade[sync_session.SessionPreferences]):
    """The preferences of a session, as they are in the store now; ``session.preferences`` gives them.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         session = await memories.view(user="ada").sessions.create()
    ...         await session.preferences.set("language", "de")
    ...         return await session.preferences.language
    >>> asyncio.run(main())
    'de'
    """

    all = hop(sync_session.SessionPreferences.all)
    get = hop(sync_session.SessionPreferences.get)
    set = hop(sync_session.SessionPreferences.set)
    merge = hop(sync_session.SessionPreferences.merge)
    remove = hop(sync_session.SessionPreferences.remove)

    @property
    def language(self) -> Coroutine[Any, Any, str | None]:
        """The language, if it is set."""
        return self._opened.workers.run(lambda: self._sync.language)

    @property
    def verbosity(self) -> Coroutine[Any, Any, str | None]:
        """How much to say, if it is set."""
        return self._opened.workers.run(lambda: self._sync.verbosity)

    @property
    def custom(self) -> Coroutine[Any, Any, dict[str, Any]]:
        """All others, by name."""
        return self._opened.workers.run(lambda: self._sync.custom)


class Session(Facade[sync_session.Session]):
    """One session of a user; ``view.sessions`` makes and loads it. What it tells is read from the store: await it.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         async with await memories.view(user="ada").sessions.create("monday") as session:
    ...             await session.view.add("Use OAuth", type="decision")
    ...         return (await session.stats()).entries, await session.closed_at is None
    >>> asyncio.run(main())
    (1, False)
    """

    configure = hop(sync_session.Session.configure)
    stats = hop(sync_session.Session.stats)
    close = hop(sync_session.Session.close)
    reopen = hop(sync_session.Session.reopen)
    forget = hop(sync_session.Session.forget)
    compact = hop(sync_session.Session.compact)
    export = hop(sync_session.Session.export)

    def __init__(self, session: sync_session.Session, opened: Opened) -> None:
        super().__init__(session, opened)
        self.id: str = session.id
        self.owner: Owner = session.owner

    @property
    def view(self) -> View:
        """The memories of this session and no others: what is added goes to the session layer."""
        return View(self._sync.view, self._opened)

    @property
    def preferences(self) -> SessionPreferences:
        """What the user prefers in this session."""
        return SessionPreferences(self._sync.preferences, self._opened)

    @property
    def config(self) -> Coroutine[Any, Any, SessionConfig]:
        """How the session is configured; ``configure`` changes it."""
        return self._opened.workers.run(lambda: self._sync.config)

    @property
    def metadata(self) -> Coroutine[Any, Any, dict[str, Any]]:
        """What the session was created with."""
        return self._opened.workers.run(lambda: self._sync.metadata)

    @property
    def closed_at(self) -> Coroutine[Any, Any, datetime | None]:
        """When it was closed; ``None`` while it is open."""
        return self._opened.workers.run(lambda: self._sync.closed_at)

    async def __aenter__(self) -> Self:
        await self._opened.workers.run(self._sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._opened.workers.run(self._sync.__exit__, kind, error, traceback)


class Sessions(Facade[sync_sessions.Sessions]):
    """The sessions of one user; ``view.sessions`` gives them.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:", embedder=None) as memories:
    ...         sessions = memories.view(user="ada").sessions
    ...         await sessions.create("monday")
    ...         return [one.id for one in await sessions.list()]
    >>> asyncio.run(main())
    ['monday']
    """

    create = hop_facing(sync_sessions.Sessions.create, Session)
    load = hop_facing(sync_sessions.Sessions.load, Session)
    restore = hop_facing(sync_sessions.Sessions.restore, Session)
    list = hop(sync_sessions.Sessions.list)
    import_session = hop(sync_sessions.Sessions.import_session)
    close = hop(sync_sessions.Sessions.close)
    compact = hop(sync_sessions.Sessions.compact)
    delete = hop(sync_sessions.Sessions.delete)
    search = hop(sync_sessions.Sessions.search)
    list_memories = hop(sync_sessions.Sessions.list_memories)
    topics = hop(sync_sessions.Sessions.topics)
    sessions_about = hop(sync_sessions.Sessions.sessions_about)
