"""The sessions of a user, awaited."""

from collections.abc import Coroutine
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from recollect.aio.facade import Facade, Opened, hop, hop_facing
from recollect.aio.view import View
from recollect.memories import session as sync
from recollect.memories import sessions as sync_sessions
from recollect.types import Owner, SessionConfig


class SessionPreferences(Facade[sync.SessionPreferences]):
    """The preferences of a session, as they are in the store now; ``session.preferences`` gives them.

    >>> import asyncio, recollect.aio
    >>> async def main():
    ...     async with recollect.aio.open("ram:", embedder=None) as memories:
    ...         session = await memories.view(user="ada").sessions.create()
    ...         await session.preferences.set("language", "de")
    ...         return await session.preferences.language
    >>> asyncio.run(main())
    'de'
    """

    all = hop(sync.SessionPreferences.all)
    get = hop(sync.SessionPreferences.get)
    set = hop(sync.SessionPreferences.set)
    merge = hop(sync.SessionPreferences.merge)
    remove = hop(sync.SessionPreferences.remove)

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


class Session(Facade[sync.Session]):
    """One session of a user; ``view.sessions`` makes and loads it. What it tells is read from the store: await it.

    >>> import asyncio, recollect.aio
    >>> async def main():
    ...     async with recollect.aio.open("ram:", embedder=None) as memories:
    ...         async with await memories.view(user="ada").sessions.create("monday") as session:
    ...             await session.view.add("Use OAuth", type="decision")
    ...         return (await session.stats()).entries, await session.closed_at is None
    >>> asyncio.run(main())
    (1, False)
    """

    configure = hop(sync.Session.configure)
    stats = hop(sync.Session.stats)
    close = hop(sync.Session.close)
    reopen = hop(sync.Session.reopen)
    forget = hop(sync.Session.forget)
    compact = hop(sync.Session.compact)
    export = hop(sync.Session.export)

    def __init__(self, session: sync.Session, opened: Opened) -> None:
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

    >>> import asyncio, recollect.aio
    >>> async def main():
    ...     async with recollect.aio.open("ram:", embedder=None) as memories:
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
    close = hop(sync_sessions.Sessions.close)
    compact = hop(sync_sessions.Sessions.compact)
    delete = hop(sync_sessions.Sessions.delete)
    search = hop(sync_sessions.Sessions.search)
    list_memories = hop(sync_sessions.Sessions.list_memories)
    topics = hop(sync_sessions.Sessions.topics)
    sessions_about = hop(sync_sessions.Sessions.sessions_about)
