"""Updating, forgetting and restoring: read, decide, write if nobody was faster."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect import events, filters, validation
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.memories import drafts, embedding, entitlements
from recollect.memories.embedding import Made
from recollect.memories.engine import ATTEMPTS, Engine
from recollect.memories.reach import Reach
from recollect.ports import Owners, Query, Write
from recollect.types import ChangedFields, Filter, Memory, Operation, Removal, State, Vector


def _change(
    engine: Engine,
    owners: Owners,
    id: str,
    decide: Callable[[Memory, datetime], Write | None],
    *,
    within: Reach | None = None,
) -> tuple[Memory | None, Write | None]:
    """Write what ``decide`` makes of the memory as it is now; decide anew if another writer was faster.

    What may grow must stay ``within`` the limits of a reach; forgetting is always possible.
    """
    validation.text_id(id)
    for _ in range(ATTEMPTS):
        memory = engine.store.get(owners, [id]).get(id)
        write = decide(memory, engine.clock()) if memory else None
        if write is None:
            return memory, None
        try:
            if within is not None:
                entitlements.apply(engine, within, [write])
            else:
                engine.store.apply([write])
        except Conflict:
            continue
        return memory, write
    raise Conflict(
        f"memory {id!r} kept changing while it was written",
        details={"memory_id": id},
        hint="try again when there are fewer writers",
    )


def update(
    engine: Engine,
    reach: Reach,
    id: str,
    changes: ChangedFields,
    *,
    if_version: int | None,
    vector: Vector | Iterable[float] | None,
) -> Memory:
    """Append the version that the changes lead to, unless they change nothing."""
    if if_version is not None:
        validation.integer("if_version", if_version, 1, 2**62)
    given = None if vector is None else embedding.given(engine, [vector])[0]
    embedded: dict[tuple[str, ...], Made] = {}

    def embed(memory: Memory) -> Made:
        """Once for each text, however often the change is tried."""
        texts = tuple(embedding.texts_of(memory)[1])
        if texts not in embedded:
            embedded[texts] = embedding.embed(engine, [memory])[0]
        return embedded[texts]

    def decide(memory: Memory, now: datetime) -> Write | None:
        if not filters.visible(memory, now):
            return None
        _check_version(memory, if_version)
        after = drafts.updated(memory, changes, now)
        if after is memory and given is None:
            return None
        if after is memory:
            after = replace(memory, version=memory.version + 1, updated_at=now)
        keeps = given is None and embedding.texts_of(after) == embedding.texts_of(memory)
        made = Made(given) if keeps or given else embed(after)
        return Write(
            operation=Operation.UPDATED,
            memory=after,
            recorded_at=now,
            vector=made.vector,
            keeps_vector=keeps,
            digest=made.digest,
        )

    memory, write = _change(engine, reach.owners, id, decide, within=reach)
    if write is None and (memory is None or not filters.visible(memory, engine.clock())):
        raise NotFound(
            f"no memory {id[:64]!r} is visible here",
            details={"memory_id": id[:64]},
            hint="it may be forgotten, erased, expired or somebody else's",
        )
    if write is None:
        assert memory is not None  # noqa: S101  # the check above, for the type checker
        return memory
    if engine.bus.handlers:
        _tell(engine, events.MemoryUpdated, write, version=write.memory.version)
    entitlements.warn(engine, reach.owners)
    return write.memory


def _check_version(memory: Memory, if_version: int | None) -> None:
    if if_version is not None and memory.version != if_version:
        raise Conflict(
            f"memory {memory.id!r} is at version {memory.version}, not {if_version}",
            details={"memory_id": memory.id, "version": memory.version, "if_version": if_version},
            hint="read it again and repeat the change",
        )


def forget(engine: Engine, owners: Owners, id: str, *, permanent: bool, reason: str | None) -> bool:
    """Forget a memory, or erase it."""
    validation.flag("permanent", permanent)
    validation.optional_line("reason", reason)
    operation = Operation.ERASED if permanent else Operation.FORGOTTEN

    def decide(memory: Memory, now: datetime) -> Write | None:
        if memory.state is State.FORGOTTEN and not permanent:
            return None
        return _write(memory, operation, State.FORGOTTEN, now, reason)

    _, write = _change(engine, owners, id, decide)
    if write is not None and engine.bus.handlers:
        _tell(engine, events.MemoryForgotten, write, permanent=permanent, reason=reason)
    return write is not None


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
        query = replace(query, where=replace(query.where, include_forgotten=True))
    operation = Operation.ERASED if permanent else Operation.FORGOTTEN

    def decide(memory: Memory, now: datetime) -> Write | None:
        if memory.state is State.FORGOTTEN and not permanent:
            return None
        return _write(memory, operation, State.FORGOTTEN, now, reason)

    writes = _change_many(engine, query, decide, dry_run=dry_run)
    if not dry_run and engine.bus.handlers:
        for write in writes:
            _tell(engine, events.MemoryForgotten, write, permanent=permanent, reason=reason)
    return Removal(ids=tuple(write.memory.id for write in writes), permanent=permanent, dry_run=dry_run)


def restore_many(engine: Engine, query: Query, *, since: datetime) -> int:
    """Make all memories active again that a query takes and that were forgotten at a time or after it."""

    def decide(memory: Memory, now: datetime) -> Write | None:
        if memory.state is not State.FORGOTTEN or memory.updated_at < since:
            return None
        return _write(memory, Operation.RESTORED, State.ACTIVE, now, None)

    writes = _change_many(engine, query, decide)
    if engine.bus.handlers:
        for write in writes:
            _tell(engine, events.MemoryRestored, write)
    return len(writes)


def _change_many(
    engine: Engine, query: Query, decide: Callable[[Memory, datetime], Write | None], *, dry_run: bool = False
) -> list[Write]:
    """Write what ``decide`` makes of all that a query takes, in one batch; look again if another writer was faster."""
    for _ in range(ATTEMPTS):
        now = engine.clock()
        found = (decide(stored.memory, now) for stored in engine.store.select(query))
        writes = [write for write in found if write is not None]
        if dry_run or not writes:
            return writes
        try:
            engine.store.apply(writes)
        except Conflict:
            continue
        return writes
    raise Conflict("the memories kept changing while they were written", hint="try again when there are fewer writers")


def restore(engine: Engine, owners: Owners, id: str) -> bool:
    """Make a forgotten memory active again."""

    def decide(memory: Memory, now: datetime) -> Write | None:
        if memory.state is not State.FORGOTTEN:
            return None
        return _write(memory, Operation.RESTORED, State.ACTIVE, now, None)

    _, write = _change(engine, owners, id, decide)
    if write is not None and engine.bus.handlers:
        _tell(engine, events.MemoryRestored, write)
    return write is not None


def _write(memory: Memory, operation: Operation, state: State, now: datetime, reason: str | None) -> Write:
    after = replace(memory, state=state, version=memory.version + 1, updated_at=now)
    return Write(operation=operation, memory=after, recorded_at=now, reason=reason, keeps_vector=True)


def _tell(engine: Engine, kind: "Callable[..., events.Event]", write: Write, **fields: object) -> None:
    engine.bus.emit(kind(at=write.recorded_at, memory_id=write.memory.id, owner=write.memory.owner, **fields))
