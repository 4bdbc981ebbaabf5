"""Opening a database, and what is not one identity's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wellkept import authorization, entitlements, layers, logs, open_files, plugins, validation
from wellkept.engine import embedding, moves
from wellkept.engine.core import BEHIND, Audited, Engine, Live, operation
from wellkept.engine.journal import ADMINISTRATOR, Caller, Shared
from wellkept.engine.ledger import ERASING
from wellkept.engine.memory_cipher import KEYRING, MemoryCipher
from wellkept.engine.scope import Scope
from wellkept.entitlements import Plan
from wellkept.errors import ConfigurationError, WellkeptError
from wellkept.events.bus import Watcher
from wellkept.ids import StampClock
from wellkept.memories import parts
from wellkept.memories.agent_registry import AgentRegistry
from wellkept.memories.maintenance import Maintenance
from wellkept.memories.upkeep import Upkeep
from wellkept.memories.view import View
from wellkept.ports import Clock, Embedder, Index, Keyring, Reranker, Store, is_set
from wellkept.privacy import ledger_file
from wellkept.sessions.limits import SessionLimits
from wellkept.settings import RetryPolicy, Settings
from wellkept.settings import load as load_settings
from wellkept.types import DurabilityName, EncryptName, Grant, Identity, Need
from wellkept.upkeep.policies import AUTOMATIC
from wellkept.upkeep.schedule import quietly

if TYPE_CHECKING:
    from wellkept.events import Event
    from wellkept.memories.agent import AgentMemory
    from wellkept.memories.api_keys import ApiKeys
    from wellkept.memories.audit import AuditTrail
    from wellkept.memories.encryption import Encryption
    from wellkept.memories.privacy import Privacy
    from wellkept.text.tokens import TokenCounter
    from wellkept.working import Limits


E = TypeVar("E", bound="Event")


_now: Clock = partial(datetime.now, UTC)


def open(
    url: str | Path | None = None,
    *,
    store: Store | None = None,
    embedder: Embedder | str | None = "default",
    reranker: Reranker | None = None,
    clock: Clock | None = None,
    durability: DurabilityName | None = None,
    plan: Plan | str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    retry: RetryPolicy | None = None,
    keyring: Keyring | str | Path | None = None,
    encrypt: EncryptName | None = None,
    index: Index | None = None,
) -> Memories:
    """Open a database: a path, a URL such as ``ram:``, or a store of your own. It is made if it is not there.

    Without a URL the environment variable ``WELLKEPT_DB`` names it. ``embedder`` gives memories their vectors: the one
    that the database was filled with, or the built-in one for a new database; another one by name, such as ``"bge"``;
    one of your own; or ``None`` to go by words alone. A ``reranker`` looks at the best hits of a search again.
    ``durability="relaxed"`` trades the writes of the last moments at a power loss for speed; it is kept in the file.
    A ``plan``, by name or as a :class:`Plan`, says what is allowed and how much; without one, everything is.
    Whatever else is configurable is in ``settings``, such as ``{"limits": {"entries": 500}}``. What the arguments
    leave out is read from the environment, then from the file ``config``, such as ``wellkept.toml``. ``retry`` says
    how calls of the store and the embedder are repeated that failed; without it, the settings do. With a ``keyring``,
    by its path or as a ``wellkept.ports.Keyring``, sensitive memories are encrypted; with ``encrypt="all"`` all are.
    An ``index`` is searched in the place of the store's own; it serves this database alone, and is closed with it.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     memories.view(user="ada").add("Likes tea").content
    'Likes tea'
    """
    try:
        parts.check_parts(store, embedder, reranker, keyring, index)
        configured = load_settings(settings, config=config, stores=plugins.STORES)
        if retry is not None:
            configured = replace(configured, retry=parts.checked_retry(retry))
        if encrypt is not None:
            configured = replace(configured, encryption=parts.encrypting(configured.encryption, encrypt))
        detectors = plugins.detectors(configured.encryption)
        allowed = entitlements.named(configured.plan.name if plan is None else plan)
        if store is not None and (url is not None or durability is not None):
            raise ConfigurationError(
                "a store was given together with a url or a durability",
                details={"field": "store"},
                hint="pass either a store that is open already, or what to open",
            )
        with open_files.told():
            opened = plugins.configured_store(configured.database, url, durability) if store is None else store
        with _closing_if_it_fails(opened.close):
            wanted = plugins.configured_embedder(configured.embedder, embedder)
            chosen = parts.chosen_embedder(opened, wanted)
            ring = parts.chosen_keyring(opened, keyring, configured.encryption)
            kept = opened.journal.settings()
            lexicon = plugins.lexicon_of(chosen)
            if named := plugins.lexicon_to_keep(lexicon, chosen, kept):
                opened.journal.set_settings(named)
            everything = configured.encryption.encrypt == "all"
            engine = Engine(
                caller=ADMINISTRATOR,
                store=opened,
                shared=Shared(
                    journal=opened.journal,
                    records=opened.records,
                    cipher=MemoryCipher(ring, everything=everything, needed=is_set(kept, KEYRING)),
                    clock=clock or _now,
                    retry=configured.retry,
                ),
                stamps=StampClock(kept["origin"]),
                live=Live(embedder=chosen, lexicon=lexicon),
                session_limits=SessionLimits(),
                reranker=reranker,
                plan=allowed,
                settings=configured,
                detectors=detectors,
            )
            memories = Memories(engine)
            if index is not None:
                index.serve(f"{kept['origin']} {kept['epoch']}")
                engine.live.chosen_index = index
            with _closing_if_it_fails(memories.close):
                _begin(memories, kept)
    except WellkeptError as error:
        error.operation = error.operation or "open"
        raise
    return memories


@contextmanager
def _closing_if_it_fails(close: Callable[[], None]) -> Iterator[None]:
    """Nobody else can close what was opened for a database that does not open."""
    try:
        yield
    except BaseException:  # reason: an interruption must leave nothing open either
        with suppress(WellkeptError):  # why it does not open is the error to tell
            close()
        raise


def _begin(memories: Memories, kept: Mapping[str, str]) -> None:
    """What was left to be done by the settings that a database keeps is done."""
    engine = memories._engine
    if is_set(kept, BEHIND):
        engine.embeddings.behind = True
        engine.embeddings.breaker.suspected()
    if engine.embedder is not None and not embedding.is_slow(engine.embedder):
        engine.embeddings.lost = engine.store.lost_vectors(engine.embedder.name)
    if logs.wanted():
        engine.bus.watch(logs.operation)
    moves.finish(engine)
    engine.live.audit = parts.audit(engine)
    if is_set(kept, ERASING) or ledger_file.is_ahead(engine):
        memories.privacy.resume()
    if is_set(kept, AUTOMATIC):
        quietly(memories.upkeep.run_due)


class Memories(Maintenance):
    """The open database. Use it as a context manager, or call ``close``.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     memories.health().status.value
    'healthy'
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._agents = AgentRegistry()
        self._upkeep = Upkeep(engine, self.agents)

    def __repr__(self) -> str:
        store = self._engine.store
        return f"<Memories {store.name}:{store.place}>"

    @property
    def plan(self) -> Plan | None:
        """The plan that the database was opened with; without one, everything is allowed.

        >>> import wellkept
        >>> with wellkept.open("ram:", plan="teams") as memories:
        ...     memories.plan.limit_bytes
        1073741824
        """
        return self._engine.plan

    @property
    def upkeep(self) -> Upkeep:
        """Retention, holds and their schedule: for those who run the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.retention() is None
        True
        """
        return self._upkeep

    @property
    def privacy(self) -> Privacy:
        """Erasure with a receipt, and the export of a person: for those who run the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.privacy.erase(user="bob").counts.memories
        0
        """
        with open_files.told():
            from wellkept.memories.privacy import Privacy  # lazy: few processes erase

        return Privacy(self._engine, self.agents)

    @property
    def audit(self) -> AuditTrail:
        """Who did what to which memories, if the setting ``audit.file`` asks for a log of it.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None, settings={"audit": {"file": "audit.jsonl"}}) as memories:
        ...     memories.audit.verify().valid
        True
        """
        with open_files.told():
            from wellkept.memories.audit import AuditTrail  # lazy: few processes read the log

        return AuditTrail(self._engine)

    @property
    def encryption(self) -> Encryption:
        """Keys, and what they encrypt: for those who run the database.

        >>> import wellkept
        >>> from wellkept.keyrings.ram import RamKeyring
        >>> with wellkept.open("ram:", embedder=None, keyring=RamKeyring()) as memories:
        ...     memories.encryption.check().keys
        0
        """
        with open_files.told():
            from wellkept.memories.encryption import Encryption  # lazy: few processes ask for keys

        return Encryption(self._engine)

    @property
    def keys(self) -> ApiKeys:
        """API keys: grants that are handed out as tokens. For those who run the database.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.keys.create("ci", owners=None).token[:3]
        'wk_'
        """
        with open_files.told():
            from wellkept.memories.api_keys import ApiKeys  # lazy: few processes ask for keys

        return ApiKeys(self._engine)

    @operation(Need.READ, audited=Audited.NEVER)
    def view(
        self,
        *,
        agent: str | None = None,
        user: str | None = None,
        session: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        company: str | None = None,
        grant: Grant | None = None,
    ) -> View:
        """The memories that an identity may see. An agent without a user belongs to the user ``default``; no caller may
        name that user. With a ``grant``, the view can do no more than that says; ``Unauthorized`` if it does not cover
        the owners that are named.

        >>> import wellkept
        >>> with wellkept.open("ram:") as memories:
        ...     [layer.value for layer in memories.view(user="ada", session="monday", team="core").layers]
        ['user', 'session', 'team']
        """
        identity = Identity(
            agent=agent, user=user, session=session, project=project, team=team, org=org, company=company
        )
        return self._view(layers.named(identity), grant)

    def _view(self, identity: Identity, grant: Grant | None = None) -> View:
        """The view of an identity whose user may be the default one."""
        settled = layers.settle(validation.identity(identity))
        held = Grant() if grant is None else authorization.checked(grant)
        owners = authorization.covered_owners(held, settled)
        narrowed = None if owners == layers.owners_of(settled) else owners
        return View(self._engine.acting(Caller(held, settled)), settled, scope=Scope(settled, narrowed))

    @operation(Need.READ, audited=Audited.NEVER)
    def agent(
        self,
        agent: str,
        *,
        user: str | None = None,
        session: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        company: str | None = None,
        grant: Grant | None = None,
        context_tokens: int | None = None,
        counter: TokenCounter | None = None,
        limits: Limits | None = None,
    ) -> AgentMemory:
        """The handle of an agent: working memory, long-term memory and context.

        An agent without a user belongs to the user ``default``. ``context_tokens`` is what its context may hold, as
        ``counter`` counts them: characters divided by four, unless a counter is given. ``limits`` says how much its
        working memory may hold. Without them, the settings ``limits`` decide.

        Handles of one agent and user share their working memory and its limits. Close a handle, or use it as a context
        manager: its context is freed, and working memory with the last handle. A ``grant`` must allow writing, because
        working memory is shared.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     me = memories.agent("debugger", user="ada")
        ...     me.working.set("step", 3)
        ...     me.working.get("step"), me.long_term.count(), me.context.tokens_used
        (3, 0, 0)
        """
        from wellkept.memories.agent import AgentMemory  # lazy: windows and working memory take 25 ms
        from wellkept.text.tokens import by_characters  # lazy: as above

        validation.line("agent", agent, validation.ID_CHARACTERS)
        view = self.view(
            agent=agent, user=user, session=session, project=project, team=team, org=org, company=company, grant=grant
        )
        return AgentMemory(
            view._engine,
            view,
            self._agents,
            context_tokens=context_tokens,
            counter=by_characters if counter is None else counter,
            limits=limits,
        )

    def on(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call ``handler`` after each event of a kind; the returned function ends it.

        A handler that fails is reported to the log ``wellkept.events``; the write it was told of stands.

        >>> import wellkept
        >>> from wellkept.events import MemoryStored
        >>> with wellkept.open("ram:") as memories:
        ...     stop = memories.on(MemoryStored, lambda event: print(event.type.value))
        ...     _ = memories.view(user="ada").add("Likes tea", type="preference")
        preference
        """
        return self._engine.bus.on(kind, handler)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each operation with how it went; the returned function ends it.

        It hears of reads and failures too, and of working memory and contexts of agents that are made from now on. It
        is told neither content nor keys nor queries. ``wellkept.telemetry`` and ``wellkept.logs`` have watchers
        ready. One that fails is reported to the log ``wellkept.events``; the operation stands.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     ada = memories.view(user="ada")
        ...     stop = memories.watch(lambda done: print(done.operation, done.code, done.count))
        ...     _ = ada.search("tea")
        search None 0
        """
        return self._engine.bus.watch(watcher)

    def agents(self) -> tuple[AgentMemory, ...]:
        """The handles of agents that are in use in this process, and a new one for each agent of which only the working
        memory or the context is held.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     me = memories.agent("debugger")
        ...     [one.agent_id for one in memories.agents()]
        ['debugger']
        """
        held, alone = self._agents.handles(), self._agents.unattended()
        if not alone:
            return held
        from wellkept.memories.agent import AgentMemory  # lazy: as in ``agent``

        views = (self._view(Identity(agent=agent, user=user)) for agent, user in alone)
        return (*held, *(AgentMemory(self._engine, view, self._agents) for view in views))

    def close(self) -> None:
        """Write what is pending and release the store, and the index that was passed. Closing twice is allowed.

        >>> import wellkept
        >>> memories = wellkept.open("ram:")
        >>> memories.close()
        """
        self._upkeep.stop()
        self._engine.accesses.close()
        if self._engine.audit is not None:
            self._engine.audit.close()
            self._engine.live.audit = None
        live = self._engine.live
        index, live.chosen_index = live.chosen_index, None  # from now on, it may serve another database
        try:
            if index is not None:
                index.close()
        finally:
            self._engine.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
