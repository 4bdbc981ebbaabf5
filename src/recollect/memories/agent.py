"""One agent's handle: state while it runs, knowledge that lasts, and what goes into its next call."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect import codec, instrument, validation
from recollect.engine.core import Engine, operation
from recollect.entitlements import Feature
from recollect.errors import InvalidInput, PlanRestriction
from recollect.events import ContextCompacted, ContextComposed, Event, SnapshotCreated, SnapshotRestored
from recollect.memories import turns
from recollect.memories.view import View
from recollect.text.tokens import TokenCounter, by_characters
from recollect.types import Layer, Stats
from recollect.window import (
    Compaction,
    Composition,
    ContextItem,
    ContextWindow,
    Kept,
    RecalledMemory,
    Strategy,
    WindowSnapshot,
)
from recollect.window.offload import unkept
from recollect.working import Limits, WorkingMemory, WorkingSnapshot

FORMAT = 1
"""The version of a snapshot's form. A release reads its own and all earlier ones."""

_RECALLED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStats:
    """What an agent holds, in all three places.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
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
    forgotten: int
    bytes_used: int
    bytes_limit: int | None
    oldest: datetime | None
    newest: datetime | None
    context_items: int
    context_tokens: int
    context_tokens_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSnapshot:
    """The state of an agent at one moment: its working memory with the tree of scopes, and its context.

    Long-term memory is not in it: that lasts by itself.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
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
    what goes into the next call of a language model.

    >>> import recollect
    >>> with recollect.open("ram:") as memories:
    ...     me = memories.agent("debugger", user="ada")
    ...     _ = me.long_term.add("The user prefers dark mode")
    ...     me.working.set("step", 3)
    ...     _ = me.context.add("user", "Make the theme as I like it")
    ...     prompt = me.context.compose("What theme does the user prefer?", budget_tokens=500)
    >>> "The user prefers dark mode" in prompt.text, prompt.receipt.total_tokens <= 500
    (True, True)
    """

    def __init__(
        self,
        engine: Engine,
        view: View,
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
        self.long_term = view
        configured = engine.settings.limits
        usual = Limits(entries=configured.entries, entry_bytes=configured.entry_bytes, scopes=configured.scopes)
        self.working = WorkingMemory(
            self.agent_id,
            user_id=self.user_id,
            clock=engine.clock,
            bus=engine.bus,
            limits=usual if limits is None else limits,
        )
        self.context = ContextWindow(
            configured.context_tokens if context_tokens is None else context_tokens,
            counter=counter,
            clock=engine.clock,
            recall=self._recall,
            keep=self._keep,
            permit=self._permit,
            tell=self._tell,
        )
        self._engine = engine
        if engine.bus.watchers:
            instrument.watch_over(self.context, engine.bus, self.agent_id)
        engine.agents[id(self)] = self

    def __repr__(self) -> str:
        return f"<AgentMemory {self.identity}>"

    def _permit(self, strategy: Strategy) -> None:
        """Refuse to summarise a context where the plan leaves that out."""
        if strategy.advanced:
            self._engine.require(Feature.ADVANCED_COMPACTION)

    def _recall(self, query: str) -> list[RecalledMemory]:
        return [RecalledMemory.of(hit) for hit in self.long_term.search(query, limit=_RECALLED)]

    def _keep(self, items: Sequence[ContextItem]) -> Kept:
        """Store what leaves the context. A plan without long-term memory must not keep anybody from making room."""
        try:
            return turns.keep(self._engine, self.long_term, items)
        except PlanRestriction as error:
            return unkept(items, error.message)

    def _tell(self, done: Composition | Compaction) -> None:
        """Announce what the context did."""
        kind = ContextComposed if isinstance(done, Composition) else ContextCompacted
        if self._engine.bus.wants(kind):
            self._engine.bus.emit(_event(done, self._engine.clock(), self.agent_id, self.user_id))

    @operation
    def stats(self) -> AgentStats:
        """Counts over working memory, long-term memory and context; of a plan without long-term memory, zeros."""
        remembers = self._engine.allows(Feature.LONG_TERM_MEMORY)
        working, kept = self.working.stats(), self.long_term.stats() if remembers else Stats(bytes_limit=0)
        return AgentStats(
            working_entries=working.entries,
            working_scopes=working.scopes,
            working_bytes=working.bytes_used,
            long_term=kept.active,
            forgotten=kept.forgotten,
            bytes_used=kept.bytes_used,
            bytes_limit=kept.bytes_limit,
            oldest=kept.oldest,
            newest=kept.newest,
            context_items=len(self.context),
            context_tokens=self.context.tokens_used,
            context_tokens_limit=self.context.max_tokens,
        )

    @operation
    def clear(self, *, working: bool = True, context: bool = True, long_term: bool = False) -> None:
        """Empty working memory, with its scopes, and the context; the agent's own long-term memories only when asked.

        Those are forgotten, not erased: ``long_term.restore`` brings them back. Memories of other layers stay.

        >>> import recollect
        >>> with recollect.open("ram:", embedder=None) as memories:
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

    @operation
    def snapshot(self) -> AgentSnapshot:
        """The state of working memory and context, as a value."""
        started = time.perf_counter()
        snapshot = AgentSnapshot(
            agent_id=self.agent_id,
            user_id=self.user_id,
            taken_at=self._engine.clock(),
            working=self.working.snapshot(),
            context=self.context.snapshot(),
        )
        self._tell_snapshot(SnapshotCreated, snapshot, started)
        return snapshot

    @operation
    def restore(self, snapshot: AgentSnapshot) -> None:
        """Go back to a snapshot of this agent; another agent's is refused, and then nothing is changed."""
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
    if not 1 <= snapshot.format <= FORMAT:
        raise _wrong(f"has the format {snapshot.format}, this release reads up to {FORMAT}", "use a newer release")
    return snapshot


def _wrong(what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"the snapshot {what}", details={"field": "snapshot"}, hint=hint)
