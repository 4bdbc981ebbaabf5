"""Writing: check everything, embed in one batch, seal, append within the limits, announce.

One way for every write: what changes a memory goes through ``append``.
"""

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from wellkept import codec, events, filters, layers, logs, validation
from wellkept.engine import drafts, embedding, holds, keys, provenance, quotas, references, revisions, sensitive
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.embedding import Made
from wellkept.engine.journal import BOOKKEEPING, EngineJournal
from wellkept.engine.revisions import Prepared
from wellkept.engine.scope import Scope
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, InvalidInput, KeyUnavailable, NotFound, StoreCorrupt, Tampered
from wellkept.filters import Where
from wellkept.ports import Query
from wellkept.types import (
    ChangedFields,
    Duplicates,
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

Decided = tuple[Memory | None, Write]
"""A memory as a write leaves it, none if it erases it, and the write."""

Decide = Callable[[Stored, datetime], Decided | None]
"""What becomes of a memory at a time; ``None`` if it stays as it is."""

_AWAY = frozenset({State.FORGOTTEN, State.QUARANTINED, State.MOVED})
"""The states of what there is nothing left to forget of."""


# -- adding -------------------------------------------------------------------------------------------------------


def add_all(
    engine: Engine,
    scope: Scope,
    news: Sequence[NewMemory],
    session: str | None = None,
    *,
    dangling: bool = False,
    duplicates: Duplicates | str = Duplicates.MERGE,
) -> list[Memory]:
    """Store new memories, all or none; those whose key is known already are returned as they are stored.

    ``session`` is the one that the memories belong to if they name none. With ``dangling`` references are not checked.
    """
    validation.flag("dangling", dangling)
    policy = validation.choice("duplicates", Duplicates, duplicates)
    now = engine.clock()
    owners = [scope.owner_of(new) for new in news]
    ids = engine.new_ids(now, len(news))
    trusts = engine.settings.trust
    memories = [
        drafts.draft(new, owner, now, id, session, trusts=trusts)
        for new, owner, id in zip(news, owners, ids, strict=True)
    ]
    memories = provenance.limited(engine, scope.owners, memories, dangling=dangling)
    memories = [sensitive.judged(engine, one) for one in memories]
    referring = None if dangling else scope.owners
    if referring is not None:  # what has a key may be stored already; it is checked if it is not
        references.check(engine, referring, references.of([one for one in memories if one.key is None]))
    started = time.perf_counter()
    vectors = _vectors(engine, memories, [new.vector for new in news])
    embedding_ms = (time.perf_counter() - started) * 1000
    for one, made in zip(memories, vectors, strict=True):
        drafts.tell(one, embedded=made.vector is not None)
    offered = _additions(engine, memories, vectors, now)
    if policy is not Duplicates.KEEP:
        offered = [keys.marked(*one, timed=new.occurred_at is not None) for one, new in zip(offered, news, strict=True)]
    written, stored = keys.append_once(engine, offered, scope.owners, dangling=dangling, policy=policy)
    announce_added(engine, written, embedding_ms)
    if written:
        quotas.warn(engine, {memory.owner for memory in written})
    return stored


def _additions(engine: Engine, memories: Sequence[Memory], vectors: Sequence[Made], now: datetime) -> list[Prepared]:
    micros = codec.to_micros(now)
    stamps = engine.stamps.stamps(micros, len(memories))
    return [
        (memory, revisions.written(engine, memory, Operation.ADDED, None, stamp, micros=micros, made=made))
        for memory, made, stamp in zip(memories, vectors, stamps, strict=True)
    ]


def _vectors(
    engine: Engine, memories: Sequence[Memory], given: Sequence[Vector | Iterable[float] | None]
) -> list[Made]:
    """The vector of each new memory: the one that came with it, or one from the batch that is embedded now."""
    brought = iter(embedding.given(engine, [vector for vector in given if vector is not None]))
    bare = [memory for memory, vector in zip(memories, given, strict=True) if vector is None]
    made = iter(embedding.embed(engine, bare, [memory.owner for memory in bare]))
    return [next(made) if vector is None else Made(next(brought), given=True) for vector in given]


# -- changing -----------------------------------------------------------------------------------------------------


def update(
    engine: Engine,
    owners: Owners,
    id: str,
    changes: ChangedFields,
    *,
    if_version: int | None,
    vector: Vector | Iterable[float] | None,
    dangling: bool = False,
) -> Memory:
    """Append the version that the changes lead to, unless they change nothing. New references are checked."""
    _check_expected(if_version)
    validation.flag("dangling", dangling)

    def revised(memory: Memory, now: datetime) -> Memory | None:
        if not filters.visible(memory, now):
            return None
        _check_version(memory.id, memory.version, if_version)
        after = drafts.updated(memory, changes, now, engine.settings.trust)
        after = provenance.revised(engine, owners, memory, after, dangling=dangling)
        if not dangling:
            references.check(engine, owners, (id for id in after.references if id not in memory.references))
        return after

    return revise(engine, owners, id, revised, vector=vector)


def revise(
    engine: Engine,
    owners: Owners,
    id: str,
    revised: Callable[[Memory, datetime], Memory | None],
    *,
    vector: Vector | Iterable[float] | None,
) -> Memory:
    """Append the version that ``revised`` makes of a memory, unless that is the memory itself; ``NotFound`` if it makes
    none.
    """
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
        after = revised(memory, now)
        if after is not None and after is not memory:
            after = sensitive.judged(engine, after)
        if after is None or (after is memory and given is None):
            return None
        if after is memory:
            after = replace(memory, version=memory.version + 1, updated_at=now)
        keeps = given is None and embedding.texts_of(after) == embedding.texts_of(memory)
        made = Made(given, given=given is not None) if keeps or given else embed(after)
        after = replace(after, embedded=made.vector is not None)
        return after, revisions.changed(engine, after, Operation.UPDATED, stored, now, made=made, keeps_vector=keeps)

    found, done = _decided(engine, owners, id, decide, grows=True)
    if done is not None:
        memory, write = done
        assert memory is not None  # noqa: S101  # an update erases nothing; for the type checker
        _announce(engine, events.MemoryUpdated, write, version=memory.version)
        quotas.warn(engine, {memory.owner})
        return memory
    if found is None or not filters.visible(same := unseal(found), engine.clock()):
        raise NotFound(
            f"no memory {id[:64]!r} is visible here",
            details={"memory_id": id[:64]},
            hint="it may be forgotten, erased, expired, superseded or somebody else's",
        )
    return same


def _check_expected(if_version: int | None) -> None:
    if if_version is not None:
        validation.integer("if_version", if_version, 1, 2**62)


def _check_version(id: str, version: int, if_version: int | None) -> None:
    if if_version is not None and version != if_version:
        raise Conflict(
            f"memory {id!r} is at version {version}, not {if_version}",
            details={"memory_id": id, "version": version, "if_version": if_version},
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

    def decide(stored: Stored, now: datetime) -> Decided | None:
        _check_version(stored.id, stored.version, if_version)
        return forgetting(stored, now)

    try:
        _, done = _decided(engine, owners, id, decide)
    except (StoreCorrupt, KeyUnavailable, Tampered):
        where = Where(now=engine.clock(), states=None, ids=frozenset({id}))
        writes = _damaged(engine, owners, where, reason) if permanent else []
        if not writes:
            raise
        engine.journal.append(writes)
        done = None, writes[0]
    if done is not None:
        _announce_forgotten(engine, done[1], permanent=permanent, reason=reason)
        if permanent:
            _erase_left_behind(engine, owners, [id], reason)
    return done is not None


def _erase_left_behind(engine: Engine, owners: Owners, ids: Sequence[str], reason: str | None) -> None:
    """Erase the versions that former owners of erased memories keep of them."""
    left = [one for one in engine.journal.get(owners, ids) if one.facets["state"] == State.MOVED]
    if left:
        holds.append(engine, [revisions.erasing(engine, one, engine.clock(), reason) for one in left])


def _damaged(
    engine: Engine, owners: Owners, where: Where, reason: str | None, others: Container[tuple[Owner, str]] = ()
) -> list[Write]:
    """What erases the memories that match but cannot be read: a store needs to know no more of them than their ids."""
    now = engine.clock()
    writes: list[Write] = []
    for owner, id in engine.journal.ids(owners, where):
        if (owner, id) not in others:
            try:
                engine.journal.get({owner}, [id])
            except StoreCorrupt as error:
                version = error.details.get("version")
                known = version if isinstance(version, int) else 1
                writes.append(revisions.erasure(engine, owner, id, known, now, reason=reason))
            except (KeyUnavailable, Tampered):
                versions = EngineJournal(engine.shared, BOOKKEEPING).get({owner}, [id], opened=False)
                writes += [revisions.erasing(engine, one, now, reason) for one in versions]
    return writes


def _forgetting(engine: Engine, *, permanent: bool, reason: str | None) -> Decide:
    def decide(stored: Stored, now: datetime) -> Decided | None:
        if permanent:
            return None, revisions.erasing(engine, stored, now, reason)
        if stored.facets["state"] in _AWAY:
            return None
        return revisions.moved(engine, stored, State.FORGOTTEN, now, operation=Operation.FORGOTTEN, reason=reason)

    return decide


def restore(engine: Engine, owners: Owners, id: str, *, if_version: int | None = None) -> bool:
    """Make a forgotten or archived memory active again; with ``if_version`` only if it is still at that version."""
    _check_expected(if_version)

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        _check_version(stored.id, stored.version, if_version)
        if stored.facets["state"] in filters.KEPT or stored.facets["state"] == State.MOVED:
            return None
        if stored.facets["state"] == State.QUARANTINED:
            raise Conflict(
                f"memory {stored.id!r} is quarantined",
                details={"memory_id": stored.id},
                hint="release the quarantine that took it; view.history(id) names its run",
            )
        return revisions.restored(engine, stored, now)

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


def check_alone(filter: Filter | Mapping[str, Any] | None) -> None:
    """Refuse a filter beside ids: it is unclear whether both must hold."""
    if filter is not None:
        raise InvalidInput("both ids and a filter were given", details={"field": "filter"}, hint="pass one of the two")


def forget_many(engine: Engine, query: Query, *, permanent: bool, reason: str | None, dry_run: bool) -> Removal:
    """Forget or erase all that a query takes, in one batch. Erasing takes what was forgotten before as well."""
    for name, value in (("permanent", permanent), ("dry_run", dry_run)):
        validation.flag(name, value)
    validation.optional_line("reason", reason)
    if permanent:
        query = replace(query, where=replace(query.where, states=None))
    forgetting = _forgetting(engine, permanent=permanent, reason=reason)
    writes = _decided_many(engine, lambda: engine.journal.select(query), forgetting, dry_run=dry_run)
    if permanent:
        read = {(write.owner, write.id) for write in writes}
        damaged = _damaged(engine, query.owners, query.where, reason, read)
        if damaged and not dry_run:
            engine.journal.append(damaged)
        writes += damaged
    if not dry_run:
        for write in writes:
            _announce_forgotten(engine, write, permanent=permanent, reason=reason)
    return Removal(ids=tuple(write.id for write in writes), permanent=permanent, dry_run=dry_run)


def forget_ids(
    engine: Engine, owners: Owners, ids: Iterable[str], *, permanent: bool, reason: str | None, dry_run: bool
) -> Removal:
    """Forget or erase memories by their ids, in one batch; ids for which there is nothing to forget are told."""
    for name, value in (("permanent", permanent), ("dry_run", dry_run)):
        validation.flag(name, value)
    validation.optional_line("reason", reason)
    wanted = list(dict.fromkeys(ids))

    def look() -> Iterable[Stored]:
        found: dict[str, list[Stored]] = {}
        for one in engine.journal.get(owners, [id for id in wanted if _is_id(id)]):
            found.setdefault(one.id, []).append(one)
        return (chosen for some in found.values() if (chosen := newest(some)) is not None)

    writes = _decided_many(engine, look, _forgetting(engine, permanent=permanent, reason=reason), dry_run=dry_run)
    done = {write.id for write in writes}
    if permanent and done and not dry_run:
        _erase_left_behind(engine, owners, list(done), reason)
    for write in () if dry_run else writes:
        _announce_forgotten(engine, write, permanent=permanent, reason=reason)
    return Removal(
        ids=tuple(id for id in wanted if id in done),
        permanent=permanent,
        dry_run=dry_run,
        failed=tuple(str(id) for id in wanted if id not in done),
    )


def _is_id(value: object) -> bool:
    try:
        validation.text_id(value)
    except InvalidInput:
        return False
    return True


def restore_many(engine: Engine, query: Query, *, since: datetime) -> int:
    """Make all memories active again that a query takes and that were forgotten at a time or after it."""
    micros = codec.to_micros(since)

    def decide(stored: Stored, now: datetime) -> Prepared | None:
        if stored.facets["state"] != State.FORGOTTEN or stored.recorded_at < micros:
            return None
        return revisions.restored(engine, stored, now)

    writes = _decided_many(engine, lambda: engine.journal.select(query), decide)
    for write in writes:
        _announce(engine, events.MemoryRestored, write)
    return len(writes)


# -- deciding -------------------------------------------------------------------------------------------------------


def _decided(
    engine: Engine, owners: Owners, id: str, decide: Decide, *, grows: bool = False
) -> tuple[Stored | None, Decided | None]:
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
                holds.append(engine, [done[1]])
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
    if len(found) > 1:  # one that was moved is where it was moved to
        for wanted in (filters.KEPT, frozenset(State) - {State.MOVED}):
            if some := [one for one in found if one.facets["state"] in wanted]:
                found = some
                break
        return min(found, key=lambda one: layers.PRECEDENCE[one.owner.layer])
    return found[0] if found else None


def _decided_many(
    engine: Engine, look: Callable[[], Iterable[Stored]], decide: Decide, *, dry_run: bool = False
) -> list[Write]:
    """Write what ``decide`` makes of all that a look finds, in one batch; look again if another writer was faster."""
    for _ in range(ATTEMPTS):
        now = engine.clock()
        found = (decide(stored, now) for stored in look())
        writes = [done[1] for done in found if done is not None]
        if dry_run or not writes:
            holds.check(engine, writes)
            return writes
        try:
            holds.append(engine, writes)
        except Conflict:
            continue
        return writes
    raise Conflict("the memories kept changing while they were written", hint="try again when there are fewer writers")


# -- announcing ---------------------------------------------------------------------------------------------------


def announce_added(engine: Engine, memories: Sequence[Memory], embedding_ms: float) -> None:
    """Tell handlers of new memories."""
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
