"""Opening a database, and what is not one identity's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from recollect import entitlements, layers, logs, open_files, plugins, types, validation
from recollect.engine import health as engine_health
from recollect.engine import reembedding
from recollect.engine.core import BEHIND, GIVEN, AccessBuffer, Engine, operation
from recollect.entitlements import Plan
from recollect.errors import ConfigurationError, EmbedderMismatch, RecollectError
from recollect.events.bus import Watcher
from recollect.filters import Where
from recollect.ids import StampClock
from recollect.memories.agent_registry import AgentRegistry
from recollect.memories.view import View
from recollect.ports import Clock, Embedder, Reranker, Store
from recollect.sessions.limits import SessionLimits
from recollect.settings import RetryPolicy, Settings
from recollect.settings import load as load_settings
from recollect.types import DurabilityName, Identity, Layer, Owner

if TYPE_CHECKING:
    from recollect.events import Event
    from recollect.memories.agent import AgentMemory
    from recollect.text.tokens import TokenCounter
    from recollect.working import Limits

_INTERNAL = frozenset({"origin", "epoch"})

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
) -> Memories:
    """Open a database: a path, a URL such as ``ram:``, or a store of your own. It is made if it is not there.

    Without a URL the environment variable ``RECOLLECT_DB`` names it. ``embedder`` gives memories their vectors: the one
    that the database was filled with, or the built-in one for a new database; another one by name, such as ``"bge"``;
    one of your own; or ``None`` to go by words alone. A ``reranker`` looks at the best hits of a search again.
    ``durability="relaxed"`` trades the writes of the last moments at a power loss for speed; it is kept in the file.
    A ``plan``, by name or as a :class:`Plan`, says what is allowed and how much; without one, everything is.
    Whatever else is configurable is in ``settings``, such as ``{"limits": {"entries": 500}}``. What the arguments
    leave out is read from the environment, then from the file ``config``, such as ``recollect.toml``. ``retry`` says
    how calls of the store and the embedder are repeated that failed; without it, the settings do.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     memories.view(user="ada").add("Likes tea").content
    'Likes tea'
    """
    try:
        _check_parts(store, embedder, reranker)
        configured = load_settings(settings, config=config)
        if retry is not None:
            configured = replace(configured, retry=_checked_retry(retry))
        allowed = entitlements.named(configured.plan.name if plan is None else plan)
        if store is not None and (url is not None or durability is not None):
            raise ConfigurationError(
                "a store was given together with a url or a durability",
                details={"field": "store"},
                hint="pass either a store that is open already, or what to open",
            )
        with open_files.told():
            opened = plugins.configured_store(configured.database, url, durability) if store is None else store
    except RecollectError as error:
        error.operation = error.operation or "open"
        raise
    try:
        chosen = _embedder(opened, plugins.configured_embedder(configured.embedder, embedder))
    except RecollectError as error:
        error.operation = error.operation or "open"
        opened.close()
        raise
    kept = opened.journal.settings()
    engine = Engine(
        store=opened,
        stamps=StampClock(kept["origin"]),
        accesses=AccessBuffer(opened.journal),
        session_limits=SessionLimits(),
        clock=clock or _now,
        embedder=chosen,
        reranker=reranker,
        lexicon=plugins.lexicon_of(chosen),
        plan=allowed,
        settings=configured,
    )
    if kept.get(BEHIND):
        engine.embeddings.behind = True
        engine.embeddings.breaker.suspected()
    _log_if_asked(engine)
    return Memories(engine)


def _log_if_asked(engine: Engine) -> None:
    """Have operations logged if the application's logging is set to DEBUG."""
    if logs.wanted():
        engine.bus.watch(logs.operation)


def _embedder(store: Store, wanted: Embedder | str | None) -> Embedder | None:
    """The embedder to work with: by default the one whose vectors the store holds."""
    stored = store.journal.settings().get("embedder")
    if wanted == plugins.AS_STORED:
        return None if stored == GIVEN else _stored_embedder(stored)
    chosen = plugins.open_embedder(wanted) if isinstance(wanted, str) else wanted
    if chosen is not None:
        check_embedder(stored, chosen)
    return chosen


def _stored_embedder(stored: str | None) -> Embedder:
    if stored is None:
        return plugins.open_embedder(plugins.DEFAULT_EMBEDDER)
    try:
        chosen = plugins.open_embedder(stored)
    except ConfigurationError as error:
        raise EmbedderMismatch(
            f"the store holds vectors of {stored!r}, which is no embedder that is known here",
            details={"stored": stored},
            hint="pass embedder=, or embedder=None to go by words alone; memories.reembed() goes over to another one",
        ) from error
    check_embedder(stored, chosen)
    return chosen


def _check_parts(store: object, embedder: object, reranker: object) -> None:
    named = None if isinstance(embedder, str) else embedder
    for field, value, kind in (
        ("store", store, Store),
        ("embedder", named, Embedder),
        ("reranker", reranker, Reranker),
    ):
        if value is not None and (isinstance(value, type) or not isinstance(value, kind)):
            raise ConfigurationError(
                f"{field} is a {type(value).__name__}, which is not one",
                details={"field": field},
                hint=f"pass what recollect.ports.{kind.__name__} describes",
            )


def _checked_retry(retry: object) -> RetryPolicy:
    if isinstance(retry, RetryPolicy):
        return retry
    raise ConfigurationError(
        f"retry is a {type(retry).__name__}, which is no policy",
        details={"field": "retry"},
        hint="pass a recollect.settings.RetryPolicy, such as RetryPolicy(attempts=1)",
    )


def check_embedder(stored: str | None, embedder: Embedder) -> None:
    """The vectors of a store come from one embedder; another one's cannot be compared with them."""
    if stored not in (None, embedder.name):
        raise EmbedderMismatch(
            f"the store holds vectors of {stored!r}, not of {embedder.name!r}",
            operation="open",
            details={"stored": stored, "given": embedder.name},
            hint="to go over to it, open the store without embedder= (or with embedder=None) and run "
            "memories.reembed(embedder); otherwise open it with the embedder it holds",
        )


class Memories:
    """The open database. Use it as a context manager, or call ``close``.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     memories.health().status.value
    'healthy'
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._agents = AgentRegistry()

    def __repr__(self) -> str:
        store = self._engine.store
        path = getattr(store, "path", "")  # not every store has one
        return f"<Memories {store.name}:{path}>"

    @property
    def plan(self) -> Plan | None:
        """The plan that the database was opened with; without one, everything is allowed.

        >>> import recollect
        >>> with recollect.open("ram:", plan="teams") as memories:
        ...     memories.plan.limit_bytes
        1073741824
        """
        return self._engine.plan

    @operation
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
    ) -> View:
        """The memories that an identity may see. An agent without a user belongs to the user ``default``; no caller may
        name that user.

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     [layer.value for layer in memories.view(user="ada", session="monday", team="core").layers]
        ['user', 'session', 'team']
        """
        identity = Identity(
            agent=agent, user=user, session=session, project=project, team=team, org=org, company=company
        )
        return self._view(layers.named(identity))

    def _view(self, identity: Identity) -> View:
        """The view of an identity whose user may be the default one."""
        return View(self._engine, layers.settle(validation.identity(identity)))

    @operation
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
        context_tokens: int | None = None,
        counter: TokenCounter | None = None,
        limits: Limits | None = None,
    ) -> AgentMemory:
        """The handle of an agent: working memory, long-term memory and context.

        An agent without a user belongs to the user ``default``. ``context_tokens`` is what its context may hold, as
        ``counter`` counts them: characters divided by four, unless a counter is given. ``limits`` says how much its
        working memory may hold. Without them, the settings ``limits`` decide.

        Handles of one agent and user share their working memory and its limits. Close a handle, or use it as a context
        manager: its context is freed, and working memory with the last handle.

        >>> import recollect
        >>> with recollect.open("ram:", embedder=None) as memories:
        ...     me = memories.agent("debugger", user="ada")
        ...     me.working.set("step", 3)
        ...     me.working.get("step"), me.long_term.count(), me.context.tokens_used
        (3, 0, 0)
        """
        from recollect.memories.agent import AgentMemory  # lazy: windows and working memory take 25 ms
        from recollect.text.tokens import by_characters  # lazy: as above

        validation.line("agent", agent, validation.ID_CHARACTERS)
        view = self.view(agent=agent, user=user, session=session, project=project, team=team, org=org, company=company)
        return AgentMemory(
            self._engine,
            view,
            self._agents,
            context_tokens=context_tokens,
            counter=by_characters if counter is None else counter,
            limits=limits,
        )

    def on(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call ``handler`` after each event of a kind; the returned function ends it.

        A handler that fails is reported to the log ``recollect.events``; the write it was told of stands.

        >>> import recollect
        >>> from recollect.events import MemoryStored
        >>> with recollect.open("ram:") as memories:
        ...     stop = memories.on(MemoryStored, lambda event: print(event.type.value))
        ...     _ = memories.view(user="ada").add("Likes tea", type="preference")
        preference
        """
        return self._engine.bus.on(kind, handler)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call ``watcher`` after each operation with how it went; the returned function ends it.

        It hears of reads and failures too, and of working memory and contexts of agents that are made from now on. It
        is told neither content nor keys nor queries. ``recollect.telemetry`` and ``recollect.logs`` have watchers
        ready. One that fails is reported to the log ``recollect.events``; the operation stands.

        >>> import recollect
        >>> with recollect.open("ram:", embedder=None) as memories:
        ...     ada = memories.view(user="ada")
        ...     stop = memories.watch(lambda done: print(done.operation, done.code, done.count))
        ...     _ = ada.search("tea")
        search None 0
        """
        return self._engine.bus.watch(watcher)

    def agents(self) -> tuple[AgentMemory, ...]:
        """The handles of agents that are in use in this process, and a new one for each agent of which only the working
        memory or the context is held.

        >>> import recollect
        >>> with recollect.open("ram:", embedder=None) as memories:
        ...     me = memories.agent("debugger")
        ...     [one.agent_id for one in memories.agents()]
        ['debugger']
        """
        held, alone = self._agents.handles(), self._agents.unattended()
        if not alone:
            return held
        from recollect.memories.agent import AgentMemory  # lazy: as in ``agent``

        views = (self._view(Identity(agent=agent, user=user)) for agent, user in alone)
        return (*held, *(AgentMemory(self._engine, view, self._agents) for view in views))

    @operation
    def sizes(self) -> dict[Layer, types.LayerSize]:
        """How much each layer holds, whoever's it is: for those who run the database.

        >>> import recollect
        >>> with recollect.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     memories.sizes()["user"].active
        1
        """
        by_layer: dict[Layer, set[Owner]] = {}
        for owner in self._engine.journal.owners():
            by_layer.setdefault(owner.layer, set()).add(owner)
        return {layer: self._size(owners) for layer, owners in by_layer.items()}

    def _size(self, owners: set[Owner]) -> types.LayerSize:
        usage = self._engine.journal.usage(owners)
        active = self._engine.journal.count(owners, Where(now=self._engine.clock()))
        return types.LayerSize(
            active=active,
            total=sum(one.memories for one in usage.values()),
            bytes_used=sum(one.bytes_used for one in usage.values()),
        )

    @operation
    def health(self) -> types.Health:
        """Whether the database can work now: its store, its index and its embedder.

        An embedder that has not been asked yet, or whose pause after a failure is over, is asked for one short text.

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     memories.health().latency_ms < 1000
        True
        """
        return engine_health.health(self._engine)

    @operation
    def settings(self) -> dict[str, str]:
        """What the database keeps about itself: embedder, dimension, durability.

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     memories.settings()
        {}
        """
        kept = self._engine.journal.settings()
        return {name: value for name, value in kept.items() if value and name not in _INTERNAL}

    @operation
    def configure(self, *, durability: DurabilityName) -> None:
        """Change how durable the file's writes are: ``full`` or ``relaxed``, for whoever opens it from now on.

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     memories.configure(durability="relaxed")
        ...     memories.settings()["durability"]
        'relaxed'
        """
        if durability not in ("full", "relaxed"):
            raise ConfigurationError(
                f"no durability is named {str(durability)[:40]!r}",
                details={"field": "durability"},
                hint="use 'full' or 'relaxed'",
            )
        self._engine.journal.set_settings({"durability": durability})

    @operation
    def doctor(self, *, repair: bool = False, accept: bool = False) -> types.Diagnosis:
        """Check that what is stored is what was written; with ``repair=True``, mend what can be mended.

        ``accept=True`` first takes over what people edited in the files of the store: as new versions, with the reason
        "edited by hand".

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     memories.doctor().healthy
        True
        """
        validation.flag("accept", accept)
        accepted = self._accepted() if accept else []
        diagnosis = self._engine.store.check(repair=repair)
        findings = reembedding.findings(self._engine, repair=repair or bool(accepted))
        return replace(
            diagnosis,
            checks=(*diagnosis.checks, "embedder"),
            findings=(*accepted, *diagnosis.findings, *findings),
        )

    def _accepted(self) -> list[types.Finding]:
        """Take over what was edited by hand, and tell of it."""
        ids = self._engine.store.accept(self._engine.clock())
        message = f"{len(ids)} memories were edited by hand"
        return [types.Finding(check="edits", message=message, repair="taken over", repaired=True)] if ids else []

    @operation
    def reembed(
        self, embedder: Embedder | str | None = None, *, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Give every memory a vector of the embedder: another one, or the one in use where vectors are missing.

        The database can be read, searched and written meanwhile, here and in other processes; search goes over to the
        new vectors when the last one is there. What was done stays done if it is interrupted: call it again. Returns
        how many memories were embedded; ``progress`` is told how many of how many, after each batch.

        >>> import recollect
        >>> from recollect.embedders.hashing import HashingEmbedder
        >>> with recollect.open("ram:", embedder=None) as memories:
        ...     _ = memories.view(user="ada").add("Likes tea")
        ...     memories.reembed(HashingEmbedder(64)), memories.settings()["embedder"]
        (1, 'hashing-64')
        """
        named = plugins.open_embedder(embedder) if isinstance(embedder, str) else embedder
        _check_parts(None, named, None)
        return reembedding.reembed(self._engine, named, progress)

    @operation
    def rebuild(self) -> None:
        """Derive everything but the journal again: heads, tags, keys, counters, indexes.

        >>> import recollect
        >>> with recollect.open("ram:") as memories:
        ...     memories.rebuild()
        """
        self._engine.store.rebuild()
        if self._engine.own_index is not None:
            self._engine.own_index.drop()

    def close(self) -> None:
        """Write what is pending and release the store. Closing twice is allowed.

        >>> import recollect
        >>> memories = recollect.open("ram:")
        >>> memories.close()
        """
        with suppress(RecollectError):  # bookkeeping: a full disk must not keep anybody from closing
            self._engine.accesses.flush()
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
