"""Updating, forgetting and restoring: read, decide, write if nobody was faster."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from recollect import filters, validation
from recollect.errors import Conflict, NotFound
from recollect.events import Event, MemoryForgotten, MemoryRestored, MemoryUpdated
from recollect.memories import drafts, embedding, entitlements
from recollect.memories.embedding import Made
from recollect.memories.engine import ATTEMPTS, Engine
from recollect.ports import Owners, Write
from recollect.types import ChangedFields, Memory, Operation, State, Vector


def _change(
    engine: Engine,
    owners: Owners,
    id: str,
    decide: Callable[[Memory, datetime], Write | None],
    *,
    grows: bool = False,
) -> tuple[Memory | None, Write | None]:
    """Write what ``decide`` makes of the memory as it is now; decide anew if another writer was faster.

    Only what ``grows`` must fit into the plan: forgetting is always possible.
    """
    validation.text_id(id)
    for _ in range(ATTEMPTS):
        memory = engine.store.get(owners, [id]).get(id)
        write = decide(memory, engine.clock()) if memory else None
        if write is None:
            return memory, None
        try:
            if grows:
                entitlements.apply(engine, owners, [write])
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
    owners: Owners,
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

    memory, write = _change(engine, owners, id, decide, grows=True)
    if write is None and (memory is None or not filters.visible(memory, engine.clock())):
        raise NotFound(
            f"no memory {id[:64]!r} is visible here",
            details={"memory_id": id[:64]},
            hint="it may be forgotten, erased, expired or somebody else's",
        )
    if write is None:
        assert memory is not None  # noqa: S101  # the check above, for the type checker
        return memory
    _tell(engine, MemoryUpdated, write, version=write.memory.version)
    entitlements.warn(engine, owners)
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
    if write is not None:
        _tell(engine, MemoryForgotten, write, permanent=permanent, reason=reason)
    return write is not None


def restore(engine: Engine, owners: Owners, id: str) -> bool:
    """Make a forgotten memory active again."""

    def decide(memory: Memory, now: datetime) -> Write | None:
        if memory.state is not State.FORGOTTEN:
            return None
        return _write(memory, Operation.RESTORED, State.ACTIVE, now, None)

    _, write = _change(engine, owners, id, decide)
    if write is not None:
        _tell(engine, MemoryRestored, write)
    return write is not None


def _write(memory: Memory, operation: Operation, state: State, now: datetime, reason: str | None) -> Write:
    after = replace(memory, state=state, version=memory.version + 1, updated_at=now)
    return Write(operation=operation, memory=after, recorded_at=now, reason=reason, keeps_vector=True)


def _tell(engine: Engine, kind: Callable[..., Event], write: Write, **fields: object) -> None:
    engine.bus.emit(kind(at=write.recorded_at, memory_id=write.memory.id, owner=write.memory.owner, **fields))
