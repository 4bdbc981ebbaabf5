"""Adding memories: check everything, embed in one batch, write in one transaction."""

import time
from collections.abc import Container, Sequence
from datetime import UTC, datetime

from recollect import validation
from recollect.errors import Conflict
from recollect.events import MemoryStored
from recollect.memories import drafts
from recollect.memories.engine import ATTEMPTS, Engine
from recollect.ports import Write
from recollect.types import Identity, Memory, NewMemory, Operation, Owner, State, Vector

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add_all(engine: Engine, identity: Identity, news: Sequence[NewMemory]) -> list[Memory]:
    """Store new memories, all or none; those whose key is known already are returned as they are stored."""
    now = engine.clock()
    time_ms = int((now - _EPOCH).total_seconds() * 1000)
    wanted = [drafts.draft(new, identity, now, engine.new_id(time_ms)) for new in news]
    started = time.perf_counter()
    vectors = _vectors(engine, news, wanted)
    embedding_ms = (time.perf_counter() - started) * 1000
    # Another writer may take a key between our look and our write; then the look is repeated.
    for _ in range(ATTEMPTS):
        known = _known(engine, wanted)
        fresh = _fresh(wanted, known)
        writes = [
            Write(operation=Operation.ADDED, memory=memory, recorded_at=now, vector=vectors[memory.id])
            for memory in fresh.values()
        ]
        try:
            engine.store.apply(writes)
        except Conflict:
            if not any(memory.key for memory in fresh.values()):
                raise
            continue
        _tell(engine, writes, embedding_ms)
        return [known.get(_name(memory)) or fresh[_name(memory)] for memory in wanted]
    raise Conflict("a key was taken again and again by other writers", details={"field": "key"}, hint="try again")


def _vectors(engine: Engine, news: Sequence[NewMemory], wanted: Sequence[Memory]) -> dict[str, Vector | None]:
    """The vector of each draft: the one that came with it, or one from the batch that is embedded now."""
    vectors: dict[str, Vector | None] = {}
    name = engine.vector_name() if any(new.vector is not None for new in news) else ""
    missing: list[Memory] = []
    for new, memory in zip(news, wanted, strict=True):
        if new.vector is None:
            missing.append(memory)
        else:
            vectors[memory.id] = validation.vector(new.vector, name)
    made = engine.embed([memory.content for memory in missing])
    vectors.update(zip([memory.id for memory in missing], made, strict=True))
    return vectors


def _name(memory: Memory) -> tuple[Owner, str]:
    """What a draft is known by: its key if it has one, else its own id."""
    return memory.owner, memory.id if memory.key is None else f"key {memory.key}"


def _known(engine: Engine, wanted: Sequence[Memory]) -> dict[tuple[Owner, str], Memory]:
    """The stored memories that drafts with a key ask for again."""
    known: dict[tuple[Owner, str], Memory] = {}
    for memory in wanted:
        if memory.key is None:
            continue
        stored = known.get(_name(memory)) or _stored(engine, memory.owner, memory.key)
        if stored is not None:
            _check_same(engine, memory, stored)
            known[_name(memory)] = stored
    return known


def _stored(engine: Engine, owner: Owner, key: str) -> Memory | None:
    found = engine.store.keys(owner, [key]).get(key)
    return engine.store.get({owner}, [found]).get(found) if found else None


def _check_same(engine: Engine, memory: Memory, stored: Memory) -> None:
    """A key stands for one request. It may be repeated, but it cannot mean two things or undo a deletion."""
    if stored.state is State.FORGOTTEN:
        raise Conflict(
            f"the key belongs to memory {stored.id!r}, which is forgotten",
            details={"field": "key", "memory_id": stored.id},
            hint="restore that memory, or use another key",
        )
    first = engine.store.versions({stored.owner}, memory_id=stored.id, limit=1)
    if not first or first[0].memory is None or not drafts.same_request(memory, first[0].memory):
        raise _another(stored)


def _another(stored: Memory) -> Conflict:
    return Conflict(
        f"the key belongs to memory {stored.id!r}, which was added with other fields",
        details={"field": "key", "memory_id": stored.id},
        hint="update that memory, or use another key",
    )


def _fresh(wanted: Sequence[Memory], known: Container[tuple[Owner, str]]) -> dict[tuple[Owner, str], Memory]:
    """The drafts to write, each key once."""
    fresh: dict[tuple[Owner, str], Memory] = {}
    for memory in wanted:
        name = _name(memory)
        if name not in known:
            first = fresh.setdefault(name, memory)
            if first is not memory and not drafts.same_request(first, memory):
                raise _another(first)
    return fresh


def _tell(engine: Engine, writes: Sequence[Write], embedding_ms: float) -> None:
    if not engine.bus.wants(MemoryStored):
        return
    for write in writes:
        memory = write.memory
        engine.bus.emit(
            MemoryStored(
                at=memory.created_at,
                memory_id=memory.id,
                owner=memory.owner,
                type=memory.type,
                importance=memory.importance,
                content_length=len(memory.content),
                embedding_ms=embedding_ms,
            )
        )
