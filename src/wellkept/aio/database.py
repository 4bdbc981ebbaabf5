"""Opening a database for async code."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from wellkept import validation
from wellkept.aio import coroutines
from wellkept.aio.agent import AgentMemory
from wellkept.aio.api_keys import ApiKeys
from wellkept.aio.changes import Feed
from wellkept.aio.coroutines import AsyncEmbedder, AsyncReranker, Handlers
from wellkept.aio.encryption import Encryption
from wellkept.aio.facade import Facade, Opened, at_once, facing, hop
from wellkept.aio.privacy import AuditTrail, Privacy
from wellkept.aio.upkeep import Upkeep
from wellkept.aio.views import View
from wellkept.aio.workers import Workers
from wellkept.entitlements import Plan
from wellkept.events import Event
from wellkept.memories import database as sync
from wellkept.ports import Clock, Embedder, Index, Keyring, Reranker, Store
from wellkept.settings import RetryPolicy, Settings
from wellkept.types import DurabilityName, EncryptName

WORKERS = 16
_WORKERS_MAX = 1_000

E = TypeVar("E", bound=Event)


def open(
    url: str | Path | None = None,
    *,
    store: Store | None = None,
    embedder: Embedder | AsyncEmbedder | str | None = "default",
    reranker: Reranker | AsyncReranker | None = None,
    clock: Clock | None = None,
    durability: DurabilityName | None = None,
    plan: Plan | str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    retry: RetryPolicy | None = None,
    keyring: Keyring | str | Path | None = None,
    encrypt: EncryptName | None = None,
    index: Index | None = None,
    workers: int = WORKERS,
) -> Opening:
    """Open a database as :func:`wellkept.open` does: ``async with aio.open(...)``, or ``await aio.open(...)``.

    The engine runs in up to ``workers`` threads of its own. An embedder or reranker that is ``async`` is awaited.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:") as memories:
    ...         return (await memories.view(user="ada").add("Likes tea")).content
    >>> asyncio.run(main())
    'Likes tea'
    """

    async def opened() -> Memories:
        pool = Workers(validation.integer("workers", workers, 1, _WORKERS_MAX), asyncio.get_running_loop())
        opening = asyncio.ensure_future(
            pool.run(
                sync.open,
                url,
                store=store,
                embedder=coroutines.embedder(embedder, pool),
                reranker=coroutines.reranker(reranker, pool),
                clock=clock,
                durability=durability,
                plan=plan,
                settings=settings,
                config=config,
                retry=retry,
                keyring=keyring,
                encrypt=encrypt,
                index=index,
            )
        )
        try:
            return Memories(await asyncio.shield(opening), pool)
        except BaseException:  # reason: failed or cancelled, nobody will close what was opened
            opening.add_done_callback(partial(_abandon, pool))
            raise

    return Opening(opened)


def _abandon(pool: Workers, opening: asyncio.Future[sync.Memories]) -> None:
    """Let the threads go, and close the database if it was opened after all."""
    is_open = not opening.cancelled() and opening.exception() is None
    pool.begin_closing(opening.result().close if is_open else lambda: None)


class Opening:
    """A database that will be open once this is awaited or entered; it is closed when the block ends.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     memories = await wellkept.aio.open("ram:")
    ...     await memories.close()
    >>> asyncio.run(main())
    """

    def __init__(self, opened: Callable[[], Coroutine[Any, Any, Memories]]) -> None:
        self._opened = opened
        self._memories: Memories | None = None

    def __await__(self) -> Generator[Any, None, Memories]:
        return self._opened().__await__()

    async def __aenter__(self) -> Memories:
        self._memories = await self
        return self._memories

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._memories is not None:
            await self._memories.close()


class Memories(Facade[sync.Memories]):
    """The open database. Use ``open`` as an async context manager, or await ``close``.

    A cancelled call that has not begun is dropped; one that has begun comes to its end in its thread, so that a write
    is there as a whole or not at all. Closing waits for all of them. Several event loops may share one database.

    >>> import asyncio, wellkept.aio
    >>> async def main():
    ...     async with wellkept.aio.open("ram:") as memories:
    ...         return (await memories.health()).status.value
    >>> asyncio.run(main())
    'healthy'
    """

    view = facing(sync.Memories.view, View)
    agent = facing(sync.Memories.agent, AgentMemory)
    watch = at_once(sync.Memories.watch)
    owners = hop(sync.Memories.owners)
    sizes = hop(sync.Memories.sizes)
    health = hop(sync.Memories.health)
    settings = hop(sync.Memories.settings)
    configure = hop(sync.Memories.configure)
    doctor = hop(sync.Memories.doctor)
    rebuild = hop(sync.Memories.rebuild)
    scrub = hop(sync.Memories.scrub)

    def __init__(self, memories: sync.Memories, workers: Workers) -> None:
        bus = memories._engine.bus
        super().__init__(memories, Opened(workers, Feed(bus)))
        self._handlers = Handlers(bus)

    @property
    def plan(self) -> Plan | None:
        """The plan that the database was opened with; without one, everything is allowed."""
        return self._sync.plan

    @property
    def encryption(self) -> Encryption:
        """Keys, and what they encrypt."""
        return Encryption(self._sync.encryption, self._opened)

    @property
    def privacy(self) -> Privacy:
        """Erasure with a receipt, and the export of a person: for those who run the database."""
        return Privacy(self._sync.privacy, self._opened)

    @property
    def audit(self) -> AuditTrail:
        """Who did what to which memories, if the setting ``audit.file`` asks for a log of it."""
        return AuditTrail(self._sync.audit, self._opened)

    @property
    def upkeep(self) -> Upkeep:
        """Retention, holds and their schedule: for those who run the database."""
        return Upkeep(self._sync.upkeep, self._opened)

    @property
    def keys(self) -> ApiKeys:
        """API keys: grants that are handed out as tokens. For those who run the database."""
        return ApiKeys(self._sync.keys, self._opened)

    @property
    def sync(self) -> sync.Memories:
        """The database as synchronous code sees it: for ``telemetry.instrument``, and for threads of your own."""
        return self._sync

    def agents(self) -> tuple[AgentMemory, ...]:
        """The handles of agents that are in use in this process."""
        return tuple(AgentMemory(agent, self._opened) for agent in self._sync.agents())

    def on(
        self, kind: type[E], handler: Callable[[E], None] | Callable[[E], Coroutine[Any, Any, None]]
    ) -> Callable[[], None]:
        """Call ``handler`` after each event of a kind; the returned function ends it.

        A handler runs in the thread that made the event. One that is ``async`` is started on the loop that runs now,
        and nothing waits for it but ``close``. A handler that fails is reported to the log ``wellkept.events``.
        """
        if not inspect.iscoroutinefunction(handler):
            return self._sync.on(kind, cast(Callable[[E], None], handler))
        return self._sync.on(kind, self._handlers.started(handler, asyncio.get_running_loop()))

    async def reembed(
        self,
        embedder: Embedder | AsyncEmbedder | str | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Give every memory a vector of the embedder, as :meth:`wellkept.Memories.reembed` does.

        An embedder that is ``async`` is awaited; ``progress`` is called in a thread. If it is cancelled, it ends after
        the batch at hand when the embedder is ``async``, and goes on to the end when it is not.
        """
        workers = self._opened.workers
        return await workers.run(self._sync.reembed, coroutines.embedder(embedder, workers), progress=progress)

    async def close(self) -> None:
        """Wait for what was asked for, write what is pending and release the store. Closing twice is allowed.

        What is asked for from now on fails with ``StoreClosed``, and ``changes`` that are followed come to their end.
        """
        self._opened.feed.end()
        await self._opened.workers.close(self._sync.close)
        await self._handlers.finished()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
