"""Writing: check everything, embed in one batch, seal, append within the limits, announce.

One way for every write: what changes a memory goes through ``append``.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect import codec, events, filters, layers, logs, validation
from recollect.engine import drafts, embedding, keys, quotas, revisions
from recollect.engine.core import ATTEMPTS, Engine
from recollect.engine.embedding import Made
from recollect.engine.revisions import Prepared
from recollect.engine.scope import Scope
from recollect.engine.sealing import unseal
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.ports import Query
from recollect.types import (
    ChangedFields,
    Filter,
    Layer,
    Memory,
    NewMemory,
    Operation,
    Owner,
    Owners,
    Removal,
    State,
    Stored,
    Vector,
    Write,
)

Decide = Callable[[Stored, datetime], Prepared | None]
"""What becomes of a memory at a time; ``None`` if it stays as it is."""


# -- adding -------------------------------------------------------------------------------------------------------


def add_all(engine: Engine, scope: Scope, news: Sequence[NewMemory], session: str | None = None) -> list[Memory]:
    """Store new memories, all or none; those whose key is known already are returned as they are stored.

    ``session`` is the one that the memories belong to if they name none.
    """
    now = engine.clock()
    owners = [scope.owner_of(new) for new in news]
    news = [drafts.in_own_words(new) for new in news]
    ids = engine.new_ids(now, len(news))
    memories = [drafts.draft(new, owner, now, id, session) for new, owner, id in zip(news, owners, ids, strict=True)]
    started = time.perf_counter()
    vectors = _vectors(engine, news, owners)
    embedding_ms = (time.perf_counter() - started) * 1000
    offered = _additions(engine, memories, vectors, now)
    if any(memory.key is not None for memory in memories):
        written, stored = keys.append_once(engine, offered)
    else:
        quotas.append(engine, [write for _, write in offered])
        written, stored = memories, memories
    _announce_added(engine, written, embedding_ms)
    if written:
        quotas.warn(engine, {memory.owner for memory in written})
    return stored


def _additions(engine: Engine, memories: Sequence[Memory], vectors: Sequence[Made], now: datetime) -> list[Prepared]:
    micros = codec.to_micros(now)
    stamps = engine.stamps.stamps(micros, len(memories))
    return [
        (memory, revisions.written(memory, Operation.ADDED, None, stamp, micros, made=made))
        for memory, made, stamp in zip(memories, vectors, stamps, strict=True)
    ]


def _vectors(engine: Engine, news: Sequence[NewMemory], owners: Sequence[Owner]) -> list[Made]:
    """The vector of each new memory: the one that came with it, or one from the batch that is embedded now."""
    brought = iter(embedding.given(engine, [new.vector for new in news if new.vector is not None]))
    bare = [(new, owner) for new, owner in zip(news, owners, strict=True) if new.vector is None]
    made = iter(embedding.embed(engine, [new for new, _ in bare], [owner for _, owner in bare]))
    return [next(made) if new.vector is None else Made(next(brought), given=True) for new in news]


# -- changing -----------------------------------------------------------------------------------------------------


def update(
    engine: Engine,
    owners: Owners,
    id: str,
    changes: ChangedFields,
    *,
    if_version: int | None,
    vector: Vector | Iterable[float] | None,
) -> Memory:
    """Append the version that the changes lead to, unless they change nothing."""
    _check_expected(if_version)
    given = None if vector is None else embedding.given(engine, [vector])[0]
    embedded: dict[tuple[str, ...], Made] = {}

    def embed(memory: Memory) -> Made:
        """Once for each text, however often the change is tried."""
        texts = tuple(embedding.texts_of(memory)[1])
        if texts not in embedded:
            embedded[texts] = embedding.embed(engine, [memory], [memory.owner])[0]
        return embedded[texts]

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        memory = unseal(engine.accesses.dressed(stored))
        if not filters.visible(memory, now):
            return None
        _check_version(stored, if_version)
        after = drafts.updated(memory, changes, now)
        if after is memory and given is None:
            return None
        if after is memory:
            after = replace(memory, version=memory.version + 1, updated_at=now)
        keeps = given is None and embedding.texts_of(after) == embedding.texts_of(memory)
        made = Made(given, given=given is not None) if keeps or given else embed(after)
        return after, revisions.changed(engine, after, Operation.UPDATED, stored, now, made=made, keeps_vector=keeps)

    found, done = _decided(engine, owners, id, decide, grows=True)
    if done is not None:
        memory, write = done
        _announce(engine, events.MemoryUpdated, write, version=memory.version)
        quotas.warn(engine, {memory.owner})
        return memory
    if found is None or not filters.visible(memory := unseal(found), engine.clock()):
        raise NotFound(
            f"no memory {id[:64]!r} is visible here",
            details={"memory_id": id[:64]},
            hint="it may be forgotten, erased, expired or somebody else's",
        )
    return memory


def _check_expected(if_version: int | None) -> None:
    if if_version is not None:
        validation.integer("if_version", if_version, 1, 2**62)


def _check_version(stored: Stored, if_version: int | None) -> None:
    if if_version is not None and stored.version != if_version:
        raise Conflict(
            f"memory {stored.id!r} is at version {stored.version}, not {if_version}",
            details={"memory_id": stored.id, "version": stored.version, "if_version": if_version},
            hint="read it again and repeat the change",
        )


def forget(
    engine: Engine, owners: Owners, id: str, *, permanent: bool, reason: str | None, if_version: int | None = None
) -> bool:
    """Forget a memory, or erase it; with ``if_version`` only if it is still at that version."""
    validation.flag("permanent", permanent)
    validation.optional_line("reason", reason)
    _check_expected(if_version)
    forgetting = _forgetting(engine, permanent=permanent, reason=reason)

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        _check_version(stored, if_version)
        return forgetting(stored, now)

    _, done = _decided(engine, owners, id, decide)
    if done is not None:
        _announce_forgotten(engine, done[1], permanent=permanent, reason=reason)
    return done is not None


def _forgetting(engine: Engine, *, permanent: bool, reason: str | None) -> Decide:
    def decide(stored: Stored, now: datetime) -> Prepared | None:
        if permanent:
            return revisions.erasure(engine, stored, now, reason)
        if stored.facets["state"] == State.FORGOTTEN:
            return None
        return revisions.moved(engine, stored, State.FORGOTTEN, now, operation=Operation.FORGOTTEN, reason=reason)

    return decide


def restore(engine: Engine, owners: Owners, id: str, *, if_version: int | None = None) -> bool:
    """Make a forgotten or archived memory active again; with ``if_version`` only if it is still at that version."""
    _check_expected(if_version)

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        _check_version(stored, if_version)
        if stored.facets["state"] == State.ACTIVE:
            return None
        return revisions.moved(engine, stored, State.ACTIVE, now, operation=Operation.RESTORED)

    _, done = _decided(engine, owners, id, decide, grows=True)
    if done is not None:
        _announce(engine, events.MemoryRestored, done[1])
    return done is not None


def required(filter: Filter | Mapping[str, Any] | None) -> Filter | Mapping[str, Any]:
    """A filter that was given: to leave it out must not take everything."""
    if filter is None:
        raise InvalidInput(
            "no filter was given", details={"field": "filter"}, hint="pass filter=Filter() to take everything in view"
        )
    return filter


def forget_many(engine: Engine, query: Query, *, permanent: bool, reason: str | None, dry_run: bool) -> Removal:
    """Forget or erase all that a query takes, in one batch. Erasing takes what was forgotten before as well."""
    for name, value in (("permanent", permanent), ("dry_run", dry_run)):
        validation.flag(name, value)
    validation.optional_line("reason", reason)
    if permanent:
        query = replace(query, where=replace(query.where, states=None))
    writes = _decided_many(engine, query, _forgetting(engine, permanent=permanent, reason=reason), dry_run=dry_run)
    if not dry_run:
        for write in writes:
            _announce_forgotten(engine, write, permanent=permanent, reason=reason)
    return Removal(ids=tuple(write.id for write in writes), permanent=permanent, dry_run=dry_run)


def restore_many(engine: Engine, query: Query, *, since: datetime) -> int:
    """Make all memories active again that a query takes and that were forgotten at a time or after it."""
    micros = codec.to_micros(since)

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        if stored.facets["state"] != State.FORGOTTEN or stored.recorded_at < micros:
            return None
        return revisions.moved(engine, stored, State.ACTIVE, now, operation=Operation.RESTORED)

    writes = _decided_many(engine, query, decide)
    for write in writes:
        _announce(engine, events.MemoryRestored, write)
    return len(writes)


# -- deciding -------------------------------------------------------------------------------------------------------


def _decided(
    engine: Engine, owners: Owners, id: str, decide: Decide, *, grows: bool = False
) -> tuple[Stored | None, Prepared | None]:
    """Write what ``decide`` makes of the memory as it is now; decide anew if another writer was faster.

    What ``grows`` must stay within the limits; forgetting is always possible.
    """
    validation.text_id(id)
    for _ in range(ATTEMPTS):
        found = newest(engine.journal.get(owners, [id]))
        done = decide(found, engine.clock()) if found else None
        if done is None:
            return found, None
        try:
            if grows:
                quotas.append(engine, [done[1]])
            else:
                engine.journal.append([done[1]])
        except Conflict:
            continue
        return found, done
    raise Conflict(
        f"memory {id!r} kept changing while it was written",
        details={"memory_id": id},
        hint="try again when there are fewer writers",
    )


def newest(found: Sequence[Stored]) -> Stored | None:
    """The memory of an id: of several owners that have one, the most specific owner's."""
    if len(found) > 1:
        return min(found, key=lambda one: layers.PRECEDENCE[one.owner.layer])
    return found[0] if found else None


def _decided_many(engine: Engine, query: Query, decide: Decide, *, dry_run: bool = False) -> list[Write]:
    """Write what ``decide`` makes of all that a query takes, in one batch; look again if another writer was faster."""
    for _ in range(ATTEMPTS):
        now = engine.clock()
        found = (decide(stored, now) for stored in engine.journal.select(query))
        writes = [done[1] for done in found if done is not None]
        if dry_run or not writes:
            return writes
        try:
            engine.journal.append(writes)
        except Conflict:
            continue
        return writes
    raise Conflict("the memories kept changing while they were written", hint="try again when there are fewer writers")


# -- announcing ---------------------------------------------------------------------------------------------------


def _announce_added(engine: Engine, memories: Sequence[Memory], embedding_ms: float) -> None:
    if not engine.bus.handlers or not engine.bus.wants(events.MemoryStored):
        return
    for memory in memories:
        engine.bus.emit(
            events.MemoryStored(
                at=memory.created_at,
                memory_id=memory.id,
                owner=memory.owner,
                type=memory.type,
                importance=memory.importance,
                content_length=len(memory.content.encode()),
                embedding_ms=embedding_ms,
            )
        )


def _announce(engine: Engine, kind: Callable[..., events.Event], write: Write, **fields: object) -> None:
    if engine.bus.handlers:
        at = codec.from_micros(write.recorded_at)
        engine.bus.emit(kind(at=at, memory_id=write.id, owner=write.owner, **fields))


def _announce_forgotten(engine: Engine, write: Write, *, permanent: bool, reason: str | None) -> None:
    owner = write.owner
    agent_id = owner.ids[-1] if owner.layer is Layer.AGENT else None
    logs.memory_forgotten(write.id, owner.layer, agent_id, permanent=permanent)
    _announce(engine, events.MemoryForgotten, write, permanent=permanent, reason=reason)
