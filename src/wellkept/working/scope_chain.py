"""The scope chain of working memory: a root level and nested scopes. Reads fall back to the parent level."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any, TypeVar, overload

from wellkept import codec, validation
from wellkept.errors import InvalidInput, LimitReached, ScopeDisposed, WellkeptError
from wellkept.instrument import anamed, named
from wellkept.types import MemoryType, MemoryTypeName
from wellkept.types.memory import DEFAULT_IMPORTANCE
from wellkept.working.agent_state import AgentState
from wellkept.working.entry import (
    CODEC_ERRORS,
    DEFAULT_ATTRIBUTES,
    NO_METADATA,
    Attributes,
    Entry,
    KeyState,
    Slot,
    checked_key,
    checked_size,
    decode,
    encode,
    encode_metadata,
    expiry,
    quoted,
    type_name,
    undecodable,
)
from wellkept.working.single_flight import Call, TaskWaiter, ThreadWaiter, Waiter, running

T = TypeVar("T")
D = TypeVar("D")
W = TypeVar("W", bound=Waiter)


@contextmanager
def atomic(*levels: "Level") -> Iterator[None]:
    """Make a change to several levels atomic for lock-free readers. Called with the lock held."""
    for level in levels:
        level._readable = {}
    try:
        yield
    finally:
        for level in levels:
            level._readable = level._slots


class Level:
    """One level of the scope chain: the base of ``WorkingMemory`` (the root level) and ``WorkingScope``."""

    def __init__(self, agent: AgentState, parent: "Level | None", scope_id: str | None, name: str | None) -> None:
        self._agent = agent
        self._clock = agent.clock  # clock and lock are copied here because every read needs them
        self._lock = agent.lock
        self._parent = parent
        self._id = scope_id
        self._name = name
        # ``_slots`` changes only with the lock held. Reads try ``_readable`` first, without the lock: the same dict,
        # but empty during an ``atomic`` change and after disposal. A read that misses there repeats with the lock held.
        self._slots = self._readable = dict[str, Slot]()
        self._may_expire = False  # whether any slot has an expiry time
        self._disposed = False
        agent.instrument(self)

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
        sensitive: bool | None = None,
    ) -> None:
        """Set a key on this level, replacing its value and attributes; the id and the access count stay, and so does
        the mark ``sensitive`` unless it is given. What is sensitive is encrypted in snapshots.

        The value is stored as JSON: later changes to the object do not affect the entry. Raises ``ContentTooLong`` or
        ``LimitReached`` beyond the limits, ``InvalidInput`` for a value that is not JSON.
        """
        try:  # not by ``named``: a call more would be felt here
            if key.__class__ is not str or key not in self._slots:  # an existing key is valid
                key = checked_key(key)
            agent, now = self._agent, self._clock()
            limit = agent.limits.entry_bytes
            content = encode(key, value, limit)
            ends = None if expires_at is None and ttl is None else expiry(now, expires_at, ttl)
            if (
                type is None
                and metadata is None
                and sensitive is None
                and tags == ()
                and importance is DEFAULT_IMPORTANCE
            ):
                attributes = DEFAULT_ATTRIBUTES
            else:
                attributes = Attributes(
                    DEFAULT_ATTRIBUTES.type if type is None else validation.choice("type", MemoryType, type),
                    validation.unit("importance", importance),
                    validation.tags(tags),
                    NO_METADATA if metadata is None else encode_metadata(metadata),
                    self._marked(sensitive, metadata),
                )
            slot = checked_size(key, Slot(content, type_name(value), now, ends, attributes), limit)
            with self._lock:
                if self._disposed:
                    self._check()
                is_update = self._put(key, slot)
        except WellkeptError as error:
            error.operation = error.operation or "set"
            raise
        if agent.bus.handlers:
            agent.emit_set(self, key, slot, is_update, now)

    @named
    def remove(self, key: str) -> bool:
        """Remove a key from this level; returns whether it existed. A shadowed entry becomes visible again."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            found = self._local(key, now) is not None
            if found:
                self._drop(key)
        if found:
            self._agent.emit_removed(self, key, now)
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
        sensitive: bool | None = ...,
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
        sensitive: bool | None = ...,
    ) -> Any: ...
    @named
    def get_or_set(
        self,
        key: str,
        factory: Callable[[], object],
        *,
        type: Any = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        sensitive: bool | None = None,
    ) -> Any:
        """The visible value of a key, or the factory's result, stored on this level.

        Single-flight per key: one thread runs its factory while others wait for the result; other keys are not
        blocked. If the factory raises, nothing is stored and one of the waiting threads runs its own. If the key is
        set while the factory runs, that value wins and is returned.
        """
        key = self._checked_call(key, factory, expires_at, ttl)
        attributes = DEFAULT_ATTRIBUTES if sensitive is None else Attributes(sensitive=self._marked(sensitive))
        while True:
            found = self._look(key, ThreadWaiter)
            if isinstance(found, Slot):
                return decode(key, found.content, type)
            if isinstance(found, Call):
                with self._running(key, found):
                    result, new = self._store_result(key, factory(), type, attributes, expires_at=expires_at, ttl=ttl)
                return self._announced(key, result, new)
            try:
                found.wait()
            finally:
                self._withdraw(found)

    @overload
    async def aget_or_set(
        self,
        key: str,
        factory: Callable[[], Awaitable[object] | object],
        *,
        type: type[T],
        expires_at: datetime | None = ...,
        ttl: timedelta | None = ...,
        sensitive: bool | None = ...,
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
        sensitive: bool | None = ...,
    ) -> Any: ...
    @anamed
    async def aget_or_set(
        self,
        key: str,
        factory: Callable[[], Awaitable[object] | object],
        *,
        type: Any = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        sensitive: bool | None = None,
    ) -> Any:
        """``get_or_set`` for tasks: an awaitable result of the factory is awaited; the event loop is never blocked.

        Tasks of any event loop share one flight per key, without a thread hop. If the task that runs the factory is
        cancelled, one of the waiting tasks runs its own.
        """
        key = self._checked_call(key, factory, expires_at, ttl)
        attributes = DEFAULT_ATTRIBUTES if sensitive is None else Attributes(sensitive=self._marked(sensitive))
        while True:
            found = self._look(key, TaskWaiter)
            if isinstance(found, Slot):
                return decode(key, found.content, type)
            if isinstance(found, Call):
                with self._running(key, found):
                    made = factory()
                    value = await made if isawaitable(made) else made
                    result, new = self._store_result(key, value, type, attributes, expires_at=expires_at, ttl=ttl)
                return self._announced(key, result, new)
            try:
                await found.finished
            finally:
                self._withdraw(found)

    def _checked_call(self, key: object, factory: object, expires_at: object, ttl: object) -> str:
        """Validate the arguments before the factory runs; returns the key."""
        wanted = checked_key(key)
        if not callable(factory):
            raise InvalidInput("factory must be callable", details={"field": "factory"}, hint="pass a function")
        expiry(self._clock(), expires_at, ttl)
        return wanted

    def _marked(self, sensitive: bool | None, metadata: Mapping[str, Any] | None = None) -> bool | None:
        """Whether a value is marked, by the argument or by its metadata; refused if it could not be encrypted."""
        if sensitive is None:
            own = None if metadata is None else metadata.get("sensitive")
            sensitive = own if isinstance(own, bool) else None
        if sensitive is not None and validation.flag("sensitive", sensitive):
            self._agent.cipher.check()
        return sensitive

    def _look(self, key: str, waiting: Callable[[], W]) -> Slot | Call | W:
        """The visible slot, or a call for the caller to run, or a waiter on the call in progress."""
        now = self._clock()
        with self._lock:
            self._check()
            slot = self._touch(key, now)
            return self._agent.single_flight.join((self, key), key, waiting) if slot is None else slot

    @contextmanager
    def _running(self, key: str, call: Call) -> Iterator[None]:
        """Run a factory call, and finish it whatever happens."""
        try:
            with running(call):
                yield
        finally:
            with self._lock:
                self._agent.single_flight.finish((self, key))

    def _withdraw(self, waiter: Waiter) -> None:
        with self._lock:
            self._agent.single_flight.withdraw(waiter)

    def _store_result(
        self, key: str, value: object, kind: Any, attributes: Attributes, *, expires_at: object, ttl: object
    ) -> tuple[Any, Slot | None]:
        """Store a factory's result unless the key was set meanwhile: the value to return, and the slot if stored."""
        now, limit = self._clock(), self._agent.limits.entry_bytes
        ends = expiry(now, expires_at, ttl, checked=True)
        slot = checked_size(key, Slot(encode(key, value, limit), type_name(value), now, ends, attributes), limit)
        result = decode(key, slot.content, kind)  # before storing: a value that does not fit the type is refused
        with self._lock:
            self._check()
            present = self._touch(key, now)
            if present is None:
                self._put(key, slot)
        return (result, slot) if present is None else (decode(key, present.content, kind), None)

    def _announced(self, key: str, result: Any, new: Slot | None) -> Any:
        """The result, after emitting ``WorkingMemorySet`` if it was stored."""
        if new is not None:
            self._agent.emit_set(self, key, new, is_update=False, now=new.timestamp)
        return result

    # --- reading

    @overload
    def get(self, key: str, *, type: type[T]) -> T | None: ...
    @overload
    def get(self, key: str, *, type: type[T], default: D) -> T | D: ...
    @overload
    def get(self, key: str, *, type: Any = ..., default: Any = ...) -> Any: ...
    def get(self, key: str, *, type: Any = None, default: Any = None) -> Any:
        """The visible value of a key, as plain JSON values or as ``type``; ``default`` if missing. Counts an access.

        Raises ``InvalidInput`` if the value does not fit the type.
        """
        try:  # as in ``set``
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
            key_state = slot.key_state
            key_state.access_count += 1
            key_state.last_accessed_at = now
            try:
                return codec.decode_json(slot.content) if type is None else codec.decode_as(slot.content, type)
            except CODEC_ERRORS as error:
                raise undecodable(key, type, error) from None
        except WellkeptError as error:
            error.operation = error.operation or "get"
            raise

    @named
    def contains(self, key: str) -> bool:
        """Whether a key is visible from this level."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            return self._find(key, now) is not None

    def __contains__(self, key: str) -> bool:
        return self.contains(key)

    @named
    def entry(self, key: str) -> Entry | None:
        """The visible entry of a key with its attributes. Does not count as an access."""
        key, now = checked_key(key), self._clock()
        with self._lock:
            self._check()
            slot = self._find(key, now)
        return None if slot is None else slot.entry(key)

    @named
    def all(self) -> dict[str, Entry]:
        """All visible entries by key, without shadowed ones."""
        return {key: slot.entry(key) for key, slot in self._visible().items()}

    @named
    def keys(self) -> tuple[str, ...]:
        """All visible keys."""
        return tuple(self._visible())

    # --- for the package: called with the lock held

    def _check(self) -> None:
        """Raise ``ScopeDisposed`` after disposal."""
        if self._disposed and self._parent is None:
            raise ScopeDisposed(
                f"the working memory of the agent {quoted(self._agent.id)} ended with its last handle",
                details={"agent": self._agent.id},
                hint="get a new handle from memories.agent(...)",
            )
        if self._disposed:
            raise ScopeDisposed(
                f"scope {quoted(self._name or '')} was disposed, itself or with an enclosing scope",
                details={"scope_id": self._id, "scope_name": self._name},
                hint="create a new scope; call merge_to_parent before disposing to keep entries",
            )

    def _local(self, key: str, now: datetime) -> Slot | None:
        """The slot of a key on this level alone; an expired one is dropped."""
        slot = self._slots.get(key)
        if slot is not None and slot.expired(now):
            self._drop(key)
            return None
        return slot

    def _drop(self, key: str) -> None:
        """Remove a key."""
        if self._slots.pop(key, None) is not None:
            self._agent.entries -= 1

    def _sweep(self, now: datetime) -> None:
        """Drop all expired slots."""
        if self._may_expire:
            for key in [key for key, slot in self._slots.items() if slot.expired(now)]:
                self._drop(key)
            self._may_expire = any(slot.expires_at is not None for slot in self._slots.values())

    def _empty(self, now: datetime) -> int:
        """Remove all slots; returns how many."""
        self._sweep(now)
        count = len(self._slots)
        self._slots = self._readable = {}
        self._may_expire = False
        self._agent.entries -= count
        return count

    def _dispose(self, now: datetime) -> int:
        """Dispose this scope; returns the number of entries removed."""
        self._disposed = True
        self._agent.scopes.pop(self._id or "", None)
        return self._empty(now)  # stays empty: writes to a disposed scope are refused

    def _find(self, key: str, now: datetime) -> Slot | None:
        """The visible slot. Expired slots on the way are dropped and shadow nothing."""
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
        """The visible slot, counting an access."""
        slot = self._find(key, now)
        if slot is not None:
            slot.key_state.access_count += 1
            slot.key_state.last_accessed_at = now
        return slot

    def _put(self, key: str, slot: Slot) -> bool:
        """Store a slot; returns whether the key existed. Raises ``LimitReached`` if it is one too many."""
        previous = self._slots.get(key)
        if previous is not None and previous.expires_at is not None:  # most entries never expire
            previous = self._local(key, slot.timestamp)
        if previous is None:
            agent = self._agent
            if agent.entries >= agent.limits.entries:
                self._make_room(key, slot.timestamp)
            slot.key_state = KeyState(slot.timestamp, agent.random())
            agent.entries += 1
        else:
            slot.key_state = previous.key_state
            if slot.attributes is not previous.attributes:  # most have none
                slot.attributes = slot.attributes.after(previous.attributes)
        self._slots[key] = slot
        if slot.expires_at is not None:
            self._may_expire = True
        return previous is not None

    def _make_room(self, key: str, now: datetime) -> None:
        """Drop expired slots on all levels; raises ``LimitReached`` if the agent is still full."""
        agent, limit = self._agent, self._agent.limits.entries
        for level in (self._chain()[-1], *agent.scopes.values()):
            level._sweep(now)
        if agent.entries >= limit:
            raise LimitReached(
                f"cannot add {quoted(key)}: the agent has {agent.entries} entries, the limit is {limit}",
                details={"field": "key", "key": key, "entries": agent.entries, "limit": limit},
                hint="remove entries, dispose scopes, or raise limits.entries, in the settings or by agent(limits=)",
            )

    def _take_over(self, key: str, slot: Slot) -> None:
        """Store a slot moved from another level, unchanged."""
        self._agent.entries += key not in self._slots
        self._slots[key] = slot
        self._may_expire = self._may_expire or slot.expires_at is not None

    def _chain(self) -> list["Level"]:
        """This level and its ancestors, up to the root level."""
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
