"""A level of working memory: the agent's own, or a scope on top of it. Reads fall back to the level below."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any, TypeVar, overload

from recollect import codec, validation
from recollect.errors import InvalidInput, LimitReached, ScopeDisposed
from recollect.events import WorkingMemoryRemoved, WorkingMemorySet
from recollect.types import MemoryType, MemoryTypeName
from recollect.types.memory import DEFAULT_IMPORTANCE
from recollect.working.agents import AgentState
from recollect.working.entries import (
    NO_METADATA,
    PLAIN,
    REFUSALS,
    About,
    Entry,
    Lineage,
    Slot,
    checked_key,
    checked_size,
    decode,
    encode,
    encode_metadata,
    expiry,
    shown,
    type_name,
    unreadable,
)
from recollect.working.single_flight import Flight, TaskWaiter, ThreadWaiter, Waiter, making

T = TypeVar("T")
D = TypeVar("D")
W = TypeVar("W", bound=Waiter)


@contextmanager
def one_step(*levels: "Level") -> Iterator[None]:
    """Have nobody read these levels before all of a change is done. Called with the lock held."""
    for level in levels:
        level._readable = {}
    try:
        yield
    finally:
        for level in levels:
            level._readable = level._slots


class Level:
    """What the agent's own level and its scopes have in common."""

    def __init__(self, agent: AgentState, parent: "Level | None", scope_id: str | None, name: str | None) -> None:
        self._agent = agent
        self._clock = agent.clock  # beside the agent: the two that every read needs
        self._lock = agent.lock
        self._parent = parent
        self._id = scope_id
        self._name = name
        # What it holds, changed with the lock held. Reads look into ``_readable`` first, without the lock. That is the
        # same dict, but empty once the level is disposed and while something happens that must be seen as one step: a
        # read that finds nothing there waits for the lock, and looks again.
        self._slots = self._readable = dict[str, Slot]()
        self._mortal = False  # whether any of them may expire
        self._disposed = False
        agent.watch_over(self)

    # --- writing

    def set(
        self,
        key: str,
        value: object,
        *,
        type: MemoryType | MemoryTypeName | None = None,
        importance: float = DEFAULT_IMPORTANCE,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
    ) -> None:
        """Keep a value under a key of this level, in place of what it had.

        The value is kept as JSON: later changes to it do not reach the memory. Everything said about the entry is
        said anew; its id and its access count stay.
        """
        if key.__class__ is not str or key not in self._slots:  # one that is there was checked
            key = checked_key(key)
        agent, now = self._agent, self._clock()
        limit = agent.limits.entry_bytes
        content = encode(key, value, limit)
        ends = None if expires_at is None and ttl is None else expiry(now, expires_at, ttl)
        if type is None and metadata is None and tags == () and importance is DEFAULT_IMPORTANCE:
            about = PLAIN
        else:
            about = About(
                PLAIN.type if type is None else validation.choice("type", MemoryType, type),
                validation.unit("importance", importance),
                validation.tags(tags),
                NO_METADATA if metadata is None else encode_metadata(metadata),
            )
        slot = checked_size(key, Slot(content, type_name(value), now, ends, about), limit)
        with self._lock:
            if self._disposed:
                self._check()
            is_update = self._put(key, slot)
        if agent.bus.handlers:
            self._tell_set(key, slot, is_update, now)

    def remove(self, key: str) -> bool:
        """Remove a key from this level; whether it was there. What a scope shadowed becomes visible again."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            found = self._local(key, now) is not None
            if found:
                self._drop(key)
        if found:
            self._tell_removed(key, now)
        return found

    @overload
    def get_or_set(
        self,
        key: str,
        factory: Callable[[], object],
        *,
        type: type[T],
        expires_at: datetime | None = ...,
        ttl: timedelta | None = ...,
    ) -> T: ...
    @overload
    def get_or_set(
        self,
        key: str,
        factory: Callable[[], object],
        *,
        type: Any = ...,
        expires_at: datetime | None = ...,
        ttl: timedelta | None = ...,
    ) -> Any: ...
    def get_or_set(
        self,
        key: str,
        factory: Callable[[], object],
        *,
        type: Any = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
    ) -> Any:
        """The value that is visible under a key, or what the factory makes, kept on this level.

        Under any number of threads one factory runs for a key, and the others wait for it; other keys do not. If it
        raises, nothing is kept and one of those who waited runs its own. If the key is set while it runs, what was
        set stays and is returned.
        """
        key = self._asked(key, factory, expires_at, ttl)
        while True:
            found = self._look(key, ThreadWaiter)
            if isinstance(found, Slot):
                return decode(key, found.content, type)
            if isinstance(found, Flight):
                with self._landing(key, found):
                    result, new = self._keep_made(key, factory(), type, expires_at, ttl)
                return self._told(key, result, new)
            try:
                found.wait()
            finally:
                self._leave(found)

    @overload
    async def aget_or_set(
        self,
        key: str,
        factory: Callable[[], Awaitable[object] | object],
        *,
        type: type[T],
        expires_at: datetime | None = ...,
        ttl: timedelta | None = ...,
    ) -> T: ...
    @overload
    async def aget_or_set(
        self,
        key: str,
        factory: Callable[[], Awaitable[object] | object],
        *,
        type: Any = ...,
        expires_at: datetime | None = ...,
        ttl: timedelta | None = ...,
    ) -> Any: ...
    async def aget_or_set(
        self,
        key: str,
        factory: Callable[[], Awaitable[object] | object],
        *,
        type: Any = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
    ) -> Any:
        """``get_or_set`` for tasks: what the factory returns is awaited if it can be, and a loop is never blocked.

        Tasks of any loops and threads share one factory for a key, without a hop between threads. If the task that
        runs it is cancelled, one of those who wait runs its own.
        """
        key = self._asked(key, factory, expires_at, ttl)
        while True:
            found = self._look(key, TaskWaiter)
            if isinstance(found, Slot):
                return decode(key, found.content, type)
            if isinstance(found, Flight):
                with self._landing(key, found):
                    made = factory()
                    value = await made if isawaitable(made) else made
                    result, new = self._keep_made(key, value, type, expires_at, ttl)
                return self._told(key, result, new)
            try:
                await found.landed
            finally:
                self._leave(found)

    def _asked(self, key: object, factory: object, expires_at: object, ttl: object) -> str:
        """The key, if all that was asked for is right: refused before anything is made."""
        wanted = checked_key(key)
        if not callable(factory):
            raise InvalidInput("factory must be callable", details={"field": "factory"}, hint="pass a function")
        expiry(self._clock(), expires_at, ttl)
        return wanted

    def _look(self, key: str, waiting: Callable[[], W]) -> Slot | Flight | W:
        """The slot that is visible, or a flight for the caller to make, or a place among those who wait."""
        now = self._clock()
        with self._lock:
            self._check()
            slot = self._touch(key, now)
            return self._agent.flights.board((self, key), key, waiting) if slot is None else slot

    @contextmanager
    def _landing(self, key: str, flight: Flight) -> Iterator[None]:
        """Run the factory of a flight, and land whatever happens."""
        try:
            with making(flight):
                yield
        finally:
            with self._lock:
                self._agent.flights.land((self, key))

    def _leave(self, waiter: Waiter) -> None:
        with self._lock:
            self._agent.flights.leave(waiter)

    def _keep_made(
        self, key: str, value: object, kind: Any, expires_at: object, ttl: object
    ) -> tuple[Any, Slot | None]:
        """Keep what a factory made, unless somebody set the key meanwhile: the result, and the slot if it is new."""
        now, limit = self._clock(), self._agent.limits.entry_bytes
        slot = Slot(encode(key, value, limit), type_name(value), now, expiry(now, expires_at, ttl))
        checked_size(key, slot, limit)
        result = decode(key, slot.content, kind)  # before it is kept: what does not fit the type is refused
        with self._lock:
            self._check()
            present = self._touch(key, now)
            if present is None:
                self._put(key, slot)
        return (result, slot) if present is None else (decode(key, present.content, kind), None)

    def _told(self, key: str, result: Any, new: Slot | None) -> Any:
        """The result, after it was announced if it is new."""
        if new is not None:
            self._tell_set(key, new, is_update=False, now=new.timestamp)
        return result

    # --- reading

    @overload
    def get(self, key: str, *, type: type[T]) -> T | None: ...
    @overload
    def get(self, key: str, *, type: type[T], default: D) -> T | D: ...
    @overload
    def get(self, key: str, *, type: Any = ..., default: Any = ...) -> Any: ...
    def get(self, key: str, *, type: Any = None, default: Any = None) -> Any:
        """The value that is visible under a key: plain JSON values, or a value of ``type``. Counts as an access.

        A value that does not fit the type is an error. A missing key gives ``default``.
        """
        if key.__class__ is not str:
            key = checked_key(key)
        slot, now = self._readable.get(key), self._clock()
        if slot is None or slot.expires_at is not None:
            with self._lock:
                if self._disposed:
                    self._check()
                slot = self._find(key, now)
            if slot is None:
                checked_key(key)
                return default
        lineage = slot.lineage
        lineage.access_count += 1
        lineage.last_accessed_at = now
        try:
            return codec.decode_json(slot.content) if type is None else codec.decode_as(slot.content, type)
        except REFUSALS as error:
            raise unreadable(key, type, error) from None

    def contains(self, key: str) -> bool:
        """Whether a key is visible from this level."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            return self._find(key, now) is not None

    def __contains__(self, key: str) -> bool:
        return self.contains(key)

    def entry(self, key: str) -> Entry | None:
        """The visible entry of a key with all that is known about it. Looking does not count as an access."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            slot = self._find(key, now)
        return None if slot is None else slot.entry(key)

    def all(self) -> dict[str, Entry]:
        """All visible entries by key; those of a nearer level stand for those that they shadow."""
        return {key: slot.entry(key) for key, slot in self._visible().items()}

    def keys(self) -> tuple[str, ...]:
        """All visible keys."""
        return tuple(self._visible())

    # --- for the package: called with the lock held, but for those that tell

    def _check(self) -> None:
        """Refuse what comes after disposal."""
        if self._disposed:
            raise ScopeDisposed(
                f"scope {shown(self._name or '')} was disposed, or one around it",
                details={"scope_id": self._id, "scope_name": self._name},
                hint="create a new scope; merge_to_parent keeps what should outlive one",
            )

    def _local(self, key: str, now: datetime) -> Slot | None:
        """The slot of a key on this level alone; an expired one is dropped."""
        slot = self._slots.get(key)
        if slot is not None and slot.expired(now):
            self._drop(key)
            return None
        return slot

    def _drop(self, key: str) -> None:
        """Take a key out."""
        if self._slots.pop(key, None) is not None:
            self._agent.entries -= 1

    def _sweep(self, now: datetime) -> None:
        """Drop everything that has expired."""
        if self._mortal:
            for key in [key for key, slot in self._slots.items() if slot.expired(now)]:
                self._drop(key)
            self._mortal = any(slot.expires_at is not None for slot in self._slots.values())

    def _empty(self, now: datetime) -> int:
        """Take everything out; how many entries that were."""
        self._sweep(now)
        count = len(self._slots)
        self._slots = self._readable = {}
        self._mortal = False
        self._agent.entries -= count
        return count

    def _end(self, now: datetime) -> int:
        """Empty a scope for good; how many entries went."""
        self._disposed = True
        self._agent.scopes.pop(self._id or "", None)
        return self._empty(now)  # and stays empty: nothing is put where something was disposed

    def _find(self, key: str, now: datetime) -> Slot | None:
        """The slot that is visible; what has expired is dropped and shadows nothing."""
        level: Level | None = self
        while level is not None:
            slot = level._slots.get(key)
            if slot is not None:
                if slot.expires_at is None or slot.expires_at > now:
                    if level is not self:
                        self._agent.fallbacks += 1
                    return slot
                level._drop(key)
            level = level._parent
        return None

    def _touch(self, key: str, now: datetime) -> Slot | None:
        """The slot that is visible, with an access counted."""
        slot = self._find(key, now)
        if slot is not None:
            slot.lineage.access_count += 1
            slot.lineage.last_accessed_at = now
        return slot

    def _put(self, key: str, slot: Slot) -> bool:
        """Keep a new slot; whether the key was there."""
        previous = self._slots.get(key)
        if previous is not None and previous.expires_at is not None:  # what most writes need not ask
            previous = self._local(key, slot.timestamp)
        if previous is None:
            agent = self._agent
            if agent.entries >= agent.limits.entries:
                self._make_room(key, slot.timestamp)
            slot.lineage = Lineage(slot.timestamp, agent.random())
            agent.entries += 1
        else:
            slot.lineage = previous.lineage
        self._slots[key] = slot
        if slot.expires_at is not None:
            self._mortal = True
        return previous is not None

    def _make_room(self, key: str, now: datetime) -> None:
        """See that one more entry fits; what has expired on any level makes way."""
        agent, limit = self._agent, self._agent.limits.entries
        for level in (self._chain()[-1], *agent.scopes.values()):
            level._sweep(now)
        if agent.entries >= limit:
            raise LimitReached(
                f"no room for {shown(key)}: the agent has {agent.entries} entries, the limit is {limit}",
                details={"field": "key", "key": key, "entries": agent.entries, "limit": limit},
                hint="remove entries, dispose scopes, or raise limits.entries",
            )

    def _adopt(self, key: str, slot: Slot) -> None:
        """Take over a slot that another level dropped, as it is."""
        self._agent.entries += key not in self._slots
        self._slots[key] = slot
        self._mortal = self._mortal or slot.expires_at is not None

    def _chain(self) -> list["Level"]:
        """This level and all below it, down to the agent's own."""
        chain = [self]
        while (below := chain[-1]._parent) is not None:
            chain.append(below)
        return chain

    def _visible(self) -> dict[str, Slot]:
        now = self._clock()
        with self._lock:
            self._check()
            chain = self._chain()
            for level in chain:
                level._sweep(now)
            return {key: slot for level in reversed(chain) for key, slot in level._slots.items()}

    def _tell_set(self, key: str, slot: Slot, is_update: bool, now: datetime) -> None:
        if self._agent.bus.wants(WorkingMemorySet):
            self._agent.bus.emit(
                WorkingMemorySet(
                    at=now,
                    agent_id=self._agent.id,
                    key=key,
                    type_name=slot.type_name,
                    is_update=is_update,
                    scope_id=self._id,
                    scope_name=self._name,
                )
            )

    def _tell_removed(self, key: str, now: datetime) -> None:
        if self._agent.bus.wants(WorkingMemoryRemoved):
            self._agent.bus.emit(
                WorkingMemoryRemoved(at=now, agent_id=self._agent.id, key=key, scope_id=self._id, scope_name=self._name)
            )
