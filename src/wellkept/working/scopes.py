"""Scopes: temporary levels of working memory."""

from types import TracebackType
from typing import Any, TypeVar, overload

from wellkept import logs, validation
from wellkept.errors import LimitReached
from wellkept.events import WorkingScopeCreated, WorkingScopeDisposed
from wellkept.instrument import named
from wellkept.working.agent_state import AgentState
from wellkept.working.entry import Entry, Slot, checked_key, checked_name, decode, quoted
from wellkept.working.scope_chain import Level, atomic
from wellkept.working.search import Searchable

T = TypeVar("T")
D = TypeVar("D")


class WorkingScope(Searchable):
    """A temporary level for one task, nested in a parent level.

    Reads look here first, then in the parent, and so on down to the root level; writes and removals affect this scope
    only. After ``dispose`` every use of the scope, and of the scopes within it, raises ``ScopeDisposed``.

    >>> from datetime import UTC, datetime
    >>> from wellkept.working import WorkingMemory
    >>> working = WorkingMemory("debugger", clock=lambda: datetime.now(UTC))
    >>> working.set("goal", "fix the build")
    >>> with working.create_scope("tests") as scope:
    ...     scope.set("goal", "read the log")
    ...     scope.get("goal"), working.get("goal"), scope.local_count
    ('read the log', 'fix the build', 1)
    >>> scope.is_disposed, working.active_scopes()
    (True, ())
    """

    _id: str
    _name: str
    _parent: Level

    @property
    def id(self) -> str:
        """The id used in snapshots and events."""
        return self._id

    @property
    def name(self) -> str:
        """The name given by the caller; not necessarily unique."""
        return self._name

    @property
    def parent(self) -> Level:
        """The enclosing scope, or the agent's working memory."""
        return self._parent

    @property
    def is_disposed(self) -> bool:
        """Whether this scope, or an enclosing one, was disposed."""
        return self._disposed

    @property
    @named
    def local_count(self) -> int:
        """The number of entries in this scope itself."""
        return len(self._local_slots())

    @named
    def create_scope(self, name: str) -> "WorkingScope":
        """Create a scope within this one."""
        return new_scope(self, name)

    @named
    def children(self) -> tuple["WorkingScope", ...]:
        """The scopes directly within this one, oldest first."""
        with self._lock:
            self._check()
            return tuple(scope for scope in scopes_of(self._agent) if scope._parent is self)

    @overload
    def get_local(self, key: str, *, type: type[T]) -> T | None: ...
    @overload
    def get_local(self, key: str, *, type: type[T], default: D) -> T | D: ...
    @overload
    def get_local(self, key: str, *, type: Any = ..., default: Any = ...) -> Any: ...
    @named
    def get_local(self, key: str, *, type: Any = None, default: Any = None) -> Any:
        """Like ``get``, without looking further than this scope."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            slot = None if self._local(key, now) is None else self._touch(key, now)
        return default if slot is None else decode(key, slot.content, type)

    @named
    def contains_local(self, key: str) -> bool:
        """Whether this scope itself has a key."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            return self._local(key, now) is not None

    @named
    def local_entries(self) -> dict[str, Entry]:
        """The entries of this scope itself, by key."""
        return {key: slot.entry(key) for key, slot in self._local_slots().items()}

    @named
    def merge_to_parent(self, *, overwrite: bool = True) -> int:
        """Move the entries of this scope to its parent, with ids and counters; returns how many were moved.

        Without ``overwrite``, keys that exist in the parent itself stay unchanged on both levels.
        """
        validation.flag("overwrite", overwrite)
        parent, now = self._parent, self._clock()
        moved: list[tuple[str, Slot, bool]] = []
        with self._lock:
            self._check()
            self._sweep(now)
            with atomic(self, parent):
                for key, slot in list(self._slots.items()):
                    is_update = parent._local(key, now) is not None
                    if overwrite or not is_update:
                        self._drop(key)
                        parent._take_over(key, slot)
                        moved.append((key, slot, is_update))
        for key, slot, is_update in moved:
            self._agent.emit_removed(self, key, now)
            self._agent.emit_set(parent, key, slot, is_update, now)
        return len(moved)

    def dispose(self) -> int:
        """Dispose this scope and the scopes within it; returns the number of entries removed. Idempotent."""
        if self._disposed:
            logs.scope_disposed_before(self._agent.id, self._id)
        return dispose_scopes(self._agent, self)

    def __enter__(self) -> "WorkingScope":
        with self._lock:
            self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._disposed:
            self.dispose()

    def _local_slots(self) -> dict[str, Slot]:
        now = self._clock()
        with self._lock:
            self._check()
            self._sweep(now)
            return dict(self._slots)


def new_scope(parent: Level, name: str) -> WorkingScope:
    """Create a scope on a level and emit ``WorkingScopeCreated``."""
    agent = parent._agent
    name, now = checked_name("name", name), agent.clock()
    with agent.lock:
        parent._check()
        count = len(agent.scopes)
        if count >= agent.limits.scopes:
            raise LimitReached(
                f"cannot create scope {quoted(name)}: the agent has {count} scopes, the limit is {agent.limits.scopes}",
                details={"field": "name", "name": name, "scopes": count, "limit": agent.limits.scopes},
                hint="dispose finished scopes, or raise limits.scopes, in the settings or by agent(limits=)",
            )
        scope = WorkingScope(agent, parent, agent.new_id(now), name)
        agent.scopes[scope.id] = scope
    if agent.bus.wants(WorkingScopeCreated):
        agent.bus.emit(
            WorkingScopeCreated(
                at=now,
                agent_id=agent.id,
                user_id=agent.user_id,
                scope_id=scope.id,
                scope_name=name,
                parent_id=parent._id,
            )
        )
    return scope


def scopes_of(agent: AgentState) -> list[WorkingScope]:
    """The scopes of an agent, each after its parent. Called with the lock held."""
    return [level for level in agent.scopes.values() if isinstance(level, WorkingScope)]


def dispose_scopes(agent: AgentState, first: WorkingScope | None = None) -> int:
    """Dispose a scope with its descendants, or every scope, innermost first; returns the number of entries removed."""
    now, chosen = agent.clock(), list[WorkingScope]()
    with agent.lock:
        for scope in scopes_of(agent):
            if first is None or scope is first or scope._parent in chosen:
                chosen.append(scope)
        counts = [(scope, scope._dispose(now)) for scope in reversed(chosen)]
    if agent.bus.wants(WorkingScopeDisposed):
        for scope, count in counts:
            agent.bus.emit(
                WorkingScopeDisposed(
                    at=now,
                    agent_id=agent.id,
                    user_id=agent.user_id,
                    scope_id=scope.id,
                    scope_name=scope.name,
                    entries_cleared=count,
                )
            )
    return sum(count for _, count in counts)
