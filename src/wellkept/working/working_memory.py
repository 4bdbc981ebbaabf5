"""The working memory of one agent: its root level, scopes, statistics and snapshots."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from wellkept import logs, validation
from wellkept.errors import InvalidInput
from wellkept.events import EventBus, WorkingMemoryCleared
from wellkept.instrument import named, unwatch
from wellkept.snapshot_cipher import NO_CIPHER, SnapshotCipher
from wellkept.types.owners import DEFAULT_USER
from wellkept.working.agent_state import AgentState
from wellkept.working.entry import DEFAULT_LIMITS, Entry, Limits, Slot
from wellkept.working.scope_chain import Level, atomic
from wellkept.working.scopes import WorkingScope, dispose_scopes, new_scope, scopes_of
from wellkept.working.search import Meaning, Searchable
from wellkept.working.snapshots import ScopeSnapshot, WorkingSnapshot, checked, encrypted, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingStats:
    """Statistics of an agent's working memory, scopes included. ``bytes_used`` counts values and metadata as JSON,
    ``scope_fallbacks`` the reads in a scope that a parent answered.

    >>> WorkingStats(entries=2, scopes=1, bytes_used=40).oldest is None
    True
    """

    entries: int
    scopes: int
    bytes_used: int
    oldest: datetime | None = None
    newest: datetime | None = None
    scope_fallbacks: int = 0


class WorkingMemory(Searchable):
    """Thread-safe key-value state of one agent.

    Values are stored as JSON, so they can be snapshotted and later changes to the caller's objects do not affect
    them. Event handlers run after a change, in the thread that made it.

    >>> from datetime import UTC
    >>> working = WorkingMemory("debugger", clock=lambda: datetime.now(UTC))
    >>> working.set("step", 3, tags=["progress"])
    >>> working.get("step"), working.get("nothing", default="-"), working.get_or_set("plan", lambda: ["look", "think"])
    (3, '-', ['look', 'think'])
    >>> list(working), working.entry("step").tags
    (['step', 'plan'], ('progress',))
    """

    def __init__(
        self,
        agent_id: str,
        *,
        user_id: str = DEFAULT_USER,
        clock: Callable[[], datetime],
        bus: EventBus | None = None,
        limits: Limits = DEFAULT_LIMITS,
        entropy: Callable[[int], bytes] = os.urandom,
        meaning: Meaning | None = None,
        cipher: SnapshotCipher = NO_CIPHER,
    ) -> None:
        validation.line("agent_id", agent_id, validation.ID_CHARACTERS)
        validation.line("user_id", user_id, validation.ID_CHARACTERS)
        if not isinstance(limits, Limits):
            raise InvalidInput(
                "limits must be Limits", details={"field": "limits"}, hint="pass wellkept.working.Limits(entries=...)"
            )
        super().__init__(
            AgentState(agent_id, user_id, clock=clock, bus=bus, limits=limits, entropy=entropy, cipher=cipher),
            None,
            None,
            None,
        )
        self._agent.meaning = meaning

    @property
    def agent_id(self) -> str:
        """The id of the agent."""
        return self._agent.id

    @property
    def user_id(self) -> str:
        """The id of the user for whom the agent works."""
        return self._agent.user_id

    @property
    def limits(self) -> Limits:
        """The limits, scopes included."""
        return self._agent.limits

    def __len__(self) -> int:
        return len(self._visible())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    @named
    def clear(self, *, scopes: bool = False) -> int:
        """Remove all entries of the root level and, with ``scopes``, dispose all scopes; returns the entry count."""
        validation.flag("scopes", scopes)
        with self._lock:
            self._check()
        return self._clear(scopes)

    def _clear(self, scopes: bool) -> int:
        ended = dispose_scopes(self._agent) if scopes else 0
        now = self._clock()
        with self._lock:
            count = self._empty(now)
        logs.working_memory_cleared(self._agent.id, count)
        if self._agent.bus.wants(WorkingMemoryCleared):
            self._agent.bus.emit(
                WorkingMemoryCleared(
                    at=now, agent_id=self._agent.id, user_id=self._agent.user_id, entries_cleared=count
                )
            )
        return count + ended

    def _close(self) -> None:
        """Empty working memory for good: the last handle of the agent was closed."""
        with self._lock:
            self._disposed = True  # first: nothing may be set after the rest
            scopes = scopes_of(self._agent)
        self._clear(scopes=True)
        for level in (self, *scopes):
            unwatch(level)  # wrapped methods refer to their level in a circle

    @named
    def create_scope(self, name: str) -> WorkingScope:
        """Create a scope on the root level. Use it in a ``with`` block, or dispose it."""
        return new_scope(self, name)

    def active_scopes(self) -> tuple[WorkingScope, ...]:
        """All scopes that are not disposed, nested ones included, each after its parent."""
        with self._lock:
            return tuple(scopes_of(self._agent))

    @named
    def stats(self) -> WorkingStats:
        """Statistics over all levels."""
        levels = self._levels()
        slots = [slot for _, held in levels for slot in held.values()]
        times = [slot.timestamp for slot in slots]
        return WorkingStats(
            entries=len(slots),
            scopes=len(levels) - 1,
            bytes_used=sum(slot.size for slot in slots),
            oldest=min(times, default=None),
            newest=max(times, default=None),
            scope_fallbacks=self._agent.fallbacks,
        )

    @named
    def snapshot(self) -> WorkingSnapshot:
        """A consistent snapshot of all levels. What is sensitive is encrypted in it."""
        now = self._clock()
        (_, own), *scopes = self._levels()
        taken = WorkingSnapshot(
            agent_id=self._agent.id,
            user_id=self._agent.user_id,
            taken_at=now,
            entries=_entries(own),
            scopes=tuple(
                ScopeSnapshot(id=scope.id, name=scope.name, parent_id=scope.parent._id, entries=_entries(held))
                for scope, held in scopes
                if isinstance(scope, WorkingScope)
            ),
        )
        return encrypted(taken, self._agent.cipher)

    @named
    def restore(self, snapshot: WorkingSnapshot) -> None:
        """Replace everything by a snapshot. An invalid snapshot raises ``InvalidInput`` and changes nothing; nor does
        one that cannot be decrypted, which raises ``KeyUnavailable`` or ``Tampered``.

        A scope that is in the snapshot and still active keeps its handle. One that was disposed since gets a new
        handle, see ``active_scopes``; one that was created since is disposed. No events are emitted.
        """
        agent, now = self._agent, self._clock()
        subject = (agent.id, agent.user_id)
        snapshot = opened(snapshot, subject, agent.cipher)
        restored = checked(snapshot, agent.limits, now)
        with agent.lock:
            self._check()
            levels: dict[str | None, Level] = {None: self}
            for saved in snapshot.scopes:
                levels[saved.id] = self._scope_for(saved, levels[saved.parent_id])
            with atomic(*levels.values()):
                for scope in scopes_of(agent):
                    if levels.get(scope.id) is not scope:
                        scope._dispose(now)
                for scope_id, slots in restored.items():
                    levels[scope_id]._slots, levels[scope_id]._may_expire = slots, True
                agent.scopes = {scope_id: scope for scope_id, scope in levels.items() if scope_id is not None}
                agent.entries = sum(map(len, restored.values()))

    def _scope_for(self, saved: ScopeSnapshot, parent: Level) -> Level:
        """The handle of a snapshot's scope: the active one, or a new one."""
        active = self._agent.scopes.get(saved.id)
        if active is not None and active._parent is parent and active._name == saved.name:
            return active
        return WorkingScope(self._agent, parent, saved.id, saved.name)

    def _levels(self) -> list[tuple[Level, dict[str, Slot]]]:
        """Each level with a copy of its slots, the root level first."""
        now = self._clock()
        with self._lock:
            self._check()
            levels = [self, *self._agent.scopes.values()]
            for level in levels:
                level._sweep(now)
            return [(level, dict(level._slots)) for level in levels]


def _entries(slots: dict[str, Slot]) -> tuple[Entry, ...]:
    return tuple(slot.entry(key) for key, slot in slots.items())
