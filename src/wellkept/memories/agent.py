"""One agent's handle: state while it runs, knowledge that lasts, and what goes into its next call."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self

from wellkept import codec, instrument, logs, validation
from wellkept.engine import embedding
from wellkept.engine.agent_cipher import AgentCipher
from wellkept.engine.core import Audited, Engine, operation
from wellkept.entitlements import Feature
from wellkept.errors import InvalidInput, PlanRestriction, ScopeDisposed
from wellkept.events import ContextCompacted, ContextComposed, Event, SnapshotCreated, SnapshotRestored
from wellkept.layers import owner_of
from wellkept.memories import turns
from wellkept.memories.agent_registry import AgentRegistry
from wellkept.memories.view import View
from wellkept.text.tokens import TokenCounter, by_characters
from wellkept.types import Layer, Need, Stats
from wellkept.window import (
    Compaction,
    Composition,
    ContextItem,
    ContextWindow,
    Kept,
    RecalledMemory,
    Strategy,
    WindowSnapshot,
)
from wellkept.window.items import TOKENS_MAX
from wellkept.window.offload import unkept
from wellkept.window.snapshot import FORMAT as WINDOW_FORMAT
from wellkept.working import Limits, WorkingMemory, WorkingSnapshot
from wellkept.working.snapshots import FORMAT_VERSION

FORMAT = 1
"""The version of a snapshot's form in which nothing is encrypted, so that every release reads it."""

ENCRYPTED_FORMAT = 2
"""The version of one with something encrypted. A release reads its own and all earlier ones."""

_RECALLED = 20
_LIKELY = 0.02  # the chance to answer that a memory must have to be worth its tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStats:
    """What an agent holds, in all three places: working memory, long-term memory and context.

    ``bytes_used``, ``oldest`` and ``newest`` are of all three together. ``bytes_limit`` is the limit of the plan, which
    refuses writes to long-term memory alone.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     me = memories.agent("debugger", user="ada")
    ...     me.working.set("step", 3)
    ...     stats = me.stats()
    >>> stats.working_entries, stats.long_term, stats.context_tokens, stats.context_tokens_limit
    (1, 0, 0, 8000)
    """

    working_entries: int
    working_scopes: int
    working_bytes: int
    long_term: int
    long_term_bytes: int
    forgotten: int
    bytes_used: int
    bytes_limit: int | None
    oldest: datetime | None
    newest: datetime | None
    context_items: int
    context_bytes: int
    context_tokens: int
    context_tokens_limit: int

    @property
    def percent_used(self) -> float:
        """The bytes used, in percent of the limit; 0 without one."""
        return 100.0 * self.bytes_used / self.bytes_limit if self.bytes_limit else 0.0

    @property
    def context_percent_used(self) -> float:
        """The tokens of the context, in percent of their limit."""
        return 100.0 * self.context_tokens / self.context_tokens_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSnapshot:
    """The state of an agent at one moment: its working memory with the tree of scopes, and its context.

    Long-term memory is not in it: that lasts by itself. What is sensitive is encrypted by the agent's key.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     me = memories.agent("debugger", user="ada")
    ...     me.working.set("step", 3)
    ...     saved = AgentSnapshot.from_json(me.snapshot().to_json())
    ...     me.clear()
    ...     me.restore(saved)
    ...     me.working.get("step")
    3
    """

    agent_id: str
    user_id: str
    taken_at: datetime
    working: WorkingSnapshot
    context: WindowSnapshot
    format: int = FORMAT

    def to_json(self) -> str:
        """The snapshot as JSON."""
        return codec.encode_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "AgentSnapshot":
        """The snapshot that ``to_json`` wrote, or an error that says what is wrong with it."""
        try:
            snapshot = codec.decode_as(text, cls)
        except (ValueError, TypeError, RecursionError):
            raise _wrong("is not JSON of a snapshot", "pass what to_json returned") from None
        return _readable(snapshot)


class AgentMemory:
    """All that an agent needs during a run; ``Memories.agent`` makes it.

    ``working`` is state that ends with the process, ``long_term`` the memories that its identity may see, ``context``
    what goes into the next call of a language model. Handles of one agent and user share working memory; each has a
    context of its own. Use a handle as a context manager, or call ``close``, to free both at once.

    >>> import wellkept
    >>> with wellkept.open("ram:") as memories:
    ...     me = memories.agent("debugger", user="ada")
    ...     _ = me.long_term.add("The user prefers dark mode")
    ...     me.working.set("step", 3)
    ...     _ = me.context.add("user", "Make the theme as I like it")
    ...     prompt = me.context.compose("What theme does the user prefer?", budget_tokens=500)
    >>> "The user prefers dark mode" in prompt.text, prompt.receipt.total_tokens <= 500
    (True, True)
    """

    _audited_as = "agent"

    def __init__(
        self,
        engine: Engine,
        view: View,
        registry: AgentRegistry,
        *,
        context_tokens: int | None = None,
        counter: TokenCounter = by_characters,
        limits: Limits | None = None,
    ) -> None:
        self.identity = identity = view.identity
        if identity.agent is None or identity.user is None:
            raise InvalidInput("an agent needs an id", details={"field": "agent"}, hint="name the agent")
        self.agent_id = identity.agent
        self.user_id = identity.user
        self._own = owner_of(identity, Layer.AGENT)
        engine.check(Need.WRITE, {self._own})  # working memory can be changed, and is shared with other handles
        self._subject = (identity.agent, identity.user)
        self._engine = engine
        self._registry = registry
        self._long_term = view
        self._closed = False
        chosen = _limits(engine, limits)
        tokens = engine.settings.limits.context_tokens if context_tokens is None else context_tokens
        validation.integer("context_tokens", tokens, 1, TOKENS_MAX)
        bound = _Bindings(engine, view)
        cipher = AgentCipher(engine, self._own)
        self._context = ContextWindow(
            tokens,
            counter=counter,
            clock=engine.clock,
            recall=bound.recall,
            keep=bound.keep,
            permit=bound.permit,
            tell=bound.tell,
            cipher=cipher,
        )
        if engine.bus.watchers:
            instrument.watch_over(self._context, engine.bus, self.agent_id)
        make = partial(
            WorkingMemory,
            self.agent_id,
            user_id=self.user_id,
            clock=engine.clock,
            bus=engine.bus,
            limits=chosen,
            meaning=embedding.meaning(engine, view._scope.owners),
            cipher=cipher,
        )
        self._working: WorkingMemory
        registry.join(self, limits, make)  # last: from now on others may see this handle
        bound.working = self._working
        logs.agent_opened(self.agent_id, long_term=engine.allows(Feature.LONG_TERM_MEMORY))

    @property
    def working(self) -> WorkingMemory:
        """State that ends with the process. All handles of this agent and user share it."""
        self._check_open()
        return self._working

    @property
    def long_term(self) -> View:
        """The memories that the identity may see."""
        self._check_open()
        return self._long_term

    @property
    def context(self) -> ContextWindow:
        """What goes into the next call of a language model."""
        self._check_open()
        return self._context

    def _check_open(self) -> None:
        if self._closed:
            raise ScopeDisposed(
                f"the handle of the agent {self.agent_id!r} was closed",
                details={"agent": self.agent_id},
                hint="get a new one from memories.agent(...)",
            )
        self._engine.check(Need.WRITE, {self._own})

    def close(self) -> None:
        """End the use of this handle. Its context goes; working memory goes with the last handle of the agent and user.

        Nothing waits for the garbage collector. Long-term memory stays. Closing twice is allowed.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     with memories.agent("debugger", user="ada") as me:
        ...         me.working.set("step", 3)
        ...     memories.agent("debugger", user="ada").working.get("step") is None
        True
        """
        if self._closed:
            return
        self._closed = True
        instrument.unwatch(self._context)  # its wrapped methods refer to it in a circle
        self._context.clear()
        self._registry.leave(self)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AgentMemory {self.identity}>"

    @operation(Need.WRITE, audited=Audited.AS_READ)
    def stats(self) -> AgentStats:
        """Counts over working memory, long-term memory and context; of a plan without long-term memory, zeros."""
        remembers = self._engine.allows(Feature.LONG_TERM_MEMORY)
        working, kept = self.working.stats(), self.long_term.stats() if remembers else Stats(bytes_limit=0)
        items = self.context.items
        context_bytes = sum(len(item.content.encode()) for item in items)
        times = [item.created_at for item in items]
        times += [at for at in (working.oldest, working.newest, kept.oldest, kept.newest) if at is not None]
        return AgentStats(
            working_entries=working.entries,
            working_scopes=working.scopes,
            working_bytes=working.bytes_used,
            long_term=kept.active,
            long_term_bytes=kept.bytes_used,
            forgotten=kept.forgotten,
            bytes_used=working.bytes_used + kept.bytes_used + context_bytes,
            bytes_limit=kept.bytes_limit,
            oldest=min(times, default=None),
            newest=max(times, default=None),
            context_items=len(items),
            context_bytes=context_bytes,
            context_tokens=sum(item.tokens for item in items),
            context_tokens_limit=self.context.max_tokens,
        )

    @operation(Need.WRITE)
    def clear(self, *, working: bool = True, context: bool = True, long_term: bool = False) -> None:
        """Empty working memory, with its scopes, and the context; the agent's own long-term memories only when asked.

        Those are forgotten, not erased: ``long_term.restore`` brings them back. Memories of other layers stay.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     me = memories.agent("debugger", user="ada")
        ...     _ = me.long_term.add("Tabs, not spaces")
        ...     me.clear(long_term=True)
        ...     me.long_term.count()
        0
        """
        for name, value in (("working", working), ("context", context), ("long_term", long_term)):
            validation.flag(name, value)
        if long_term:
            self._engine.require(Feature.LONG_TERM_MEMORY)
        if working:
            self.working.clear(scopes=True)
        if context:
            self.context.clear()
        if long_term:
            self.long_term.forget_many(filter={}, layers=[Layer.AGENT], reason="cleared")

    @operation(Need.WRITE, audited=Audited.NEVER)
    def snapshot(self) -> AgentSnapshot:
        """The state of working memory and context, as a value. What is sensitive is encrypted in it by the agent's key,
        and everything where the settings ask for that.
        """
        started = time.perf_counter()
        working, context = self.working.snapshot(), self.context.snapshot()
        plain = (working.version, context.format) == (FORMAT_VERSION, WINDOW_FORMAT)
        snapshot = AgentSnapshot(
            agent_id=self.agent_id,
            user_id=self.user_id,
            taken_at=self._engine.clock(),
            working=working,
            context=context,
            format=FORMAT if plain else ENCRYPTED_FORMAT,
        )
        self._tell_snapshot(SnapshotCreated, snapshot, started)
        return snapshot

    @operation(Need.WRITE)
    def restore(self, snapshot: AgentSnapshot) -> None:
        """Go back to a snapshot of this agent; another agent's is refused, and then nothing is changed.

        A snapshot whose key is lost or was destroyed raises ``KeyUnavailable``, one that was altered ``Tampered``; then
        nothing is changed either.
        """
        if not isinstance(snapshot, AgentSnapshot):
            raise _wrong(f"must be an AgentSnapshot, not {type(snapshot).__name__}", "pass what snapshot() returned")
        _readable(snapshot)
        if (snapshot.agent_id, snapshot.user_id) != (self.agent_id, self.user_id):
            raise _wrong(f"is of agent {snapshot.agent_id!r}, not of {self.agent_id!r}", "restore it to its own agent")
        started = time.perf_counter()
        context = self.context._recounted(snapshot.context)
        self.working.restore(snapshot.working)  # checks all of it first; what follows cannot fail
        self.context._hold(context)
        self._tell_snapshot(SnapshotRestored, snapshot, started)

    def _tell_snapshot(
        self, kind: type[SnapshotCreated] | type[SnapshotRestored], snapshot: AgentSnapshot, started: float
    ) -> None:
        if self._engine.bus.wants(kind):
            working = snapshot.working
            self._engine.bus.emit(
                kind(
                    at=self._engine.clock(),
                    agent_id=self.agent_id,
                    user_id=self.user_id,
                    working_entries=len(working.entries) + sum(len(scope.entries) for scope in working.scopes),
                    context_items=len(snapshot.context.items),
                    duration_ms=(time.perf_counter() - started) * 1000,
                )
            )


class _Bindings:
    """What a context needs of its agent. Apart from the handle, so that no circle keeps that alive.

    It holds the working memory: an agent is in use as long as its context is.
    """

    def __init__(self, engine: Engine, view: View) -> None:
        self._engine = engine
        self._view = view
        self.working: WorkingMemory | None = None

    def permit(self, strategy: Strategy) -> None:
        """Refuse to summarise a context where the plan leaves that out."""
        if strategy.advanced:
            self._engine.require(Feature.ADVANCED_COMPACTION)

    def recall(self, query: str, min_trust: float) -> list[RecalledMemory]:
        """The memories nearest to a query, of those that are trusted so far."""
        trusted = min_trust or None  # a condition that all meet would only take time
        found = self._view.search(query, limit=_RECALLED, min_score=_LIKELY, min_trust=trusted)
        return [RecalledMemory.of(hit) for hit in found]

    def keep(self, items: Sequence[ContextItem]) -> Kept:
        """Store what leaves the context. A plan without long-term memory must not keep anybody from making room."""
        try:
            return turns.keep(self._engine, self._view, items)
        except PlanRestriction as error:
            return unkept(items, error.message)

    def tell(self, done: Composition | Compaction) -> None:
        """Announce what the context did."""
        kind = ContextComposed if isinstance(done, Composition) else ContextCompacted
        if self._engine.bus.wants(kind):
            agent, user = owner_of(self._view.identity, Layer.AGENT).ids[::-1]
            self._engine.bus.emit(_event(done, self._engine.clock(), agent, user))


def _limits(engine: Engine, given: Limits | None) -> Limits:
    """The limits given, or those of the settings."""
    if given is None:
        configured = engine.settings.limits
        return Limits(entries=configured.entries, entry_bytes=configured.entry_bytes, scopes=configured.scopes)
    if not isinstance(given, Limits):
        raise InvalidInput(
            "limits must be Limits", details={"field": "limits"}, hint="pass wellkept.working.Limits(entries=...)"
        )
    return given


def _event(done: Composition | Compaction, at: datetime, agent_id: str, user_id: str) -> Event:
    if isinstance(done, Composition):
        return ContextComposed(
            at=at,
            agent_id=agent_id,
            user_id=user_id,
            budget_tokens=done.receipt.budget_tokens,
            total_tokens=done.receipt.total_tokens,
            included=len(done.receipt.included),
            left_out=len(done.receipt.left_out),
        )
    return ContextCompacted(
        at=at,
        agent_id=agent_id,
        user_id=user_id,
        strategy=done.receipt.strategy.value,
        tokens_before=done.receipt.tokens_before,
        tokens_after=done.receipt.tokens_after,
        dropped=len(done.receipt.dropped),
        summarised=len(done.receipt.summarised),
    )


def _readable(snapshot: AgentSnapshot) -> AgentSnapshot:
    if not FORMAT <= snapshot.format <= ENCRYPTED_FORMAT:
        newest = ENCRYPTED_FORMAT
        raise _wrong(f"has the format {snapshot.format}, this release reads up to {newest}", "use a newer release")
    return snapshot


def _wrong(what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"the snapshot {what}", details={"field": "snapshot"}, hint=hint)
