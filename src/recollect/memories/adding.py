"""Adding memories: check everything, embed in one batch, write in one transaction."""

import time
from collections.abc import Container, Sequence

from recollect import events
from recollect.errors import Conflict
from recollect.memories import drafts, embedding, entitlements
from recollect.memories.embedding import Made
from recollect.memories.engine import ATTEMPTS, Engine
from recollect.memories.reach import Reach
from recollect.ports import Write
from recollect.types import Memory, NewMemory, Operation, Owner, State


def add_all(engine: Engine, reach: Reach, news: Sequence[NewMemory], session: str | None = None) -> list[Memory]:
    """Store new memories, all or none; those whose key is known already are returned as they are stored.

    ``session`` is the one that the memories belong to if they name none.
    """
    now = engine.clock()
    whose = [reach.owner_of(new) for new in news]
    news = [drafts.in_own_words(new) for new in news]
    ids = engine.new_ids(now, len(news))
    wanted = [drafts.draft(new, owner, now, id, session) for new, owner, id in zip(news, whose, ids, strict=True)]
    started = time.perf_counter()
    vectors = _vectors(engine, news)
    embedding_ms = (time.perf_counter() - started) * 1000
    offered = [
        Write(operation=Operation.ADDED, memory=memory, recorded_at=now, vector=made.vector, digest=made.digest)
        for memory, made in zip(wanted, vectors, strict=True)
    ]
    if any(memory.key is not None for memory in wanted):
        written, stored = _apply_once(engine, reach, offered)
    else:
        entitlements.apply(engine, reach, offered)
        written, stored = offered, wanted
    _tell(engine, written, embedding_ms)
    if written:
        entitlements.warn(engine, reach.owners)
    return stored


def _vectors(engine: Engine, news: Sequence[NewMemory]) -> list[Made]:
    """The vector of each new memory: the one that came with it, or one from the batch that is embedded now."""
    brought = iter(embedding.given(engine, [new.vector for new in news if new.vector is not None]))
    made = iter(embedding.embed(engine, [new for new in news if new.vector is None]))
    return [next(made) if new.vector is None else Made(next(brought)) for new in news]


def _apply_once(engine: Engine, reach: Reach, offered: Sequence[Write]) -> tuple[list[Write], list[Memory]]:
    """Write what is not stored under its key already; return that, and the stored memory for each offer.

    Another writer may take a key between our look and our write; then the look is repeated.
    """
    for _ in range(ATTEMPTS):
        known = _known(engine, [write.memory for write in offered])
        fresh = _fresh(offered, known)
        try:
            entitlements.apply(engine, reach, list(fresh.values()))
        except Conflict:
            continue
        stored = known | {name: write.memory for name, write in fresh.items()}
        return list(fresh.values()), [stored[_name(write.memory)] for write in offered]
    raise Conflict("a key was taken again and again by other writers", details={"field": "key"}, hint="try again")


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


def _fresh(offered: Sequence[Write], known: Container[tuple[Owner, str]]) -> dict[tuple[Owner, str], Write]:
    """The writes to make, each key once."""
    fresh: dict[tuple[Owner, str], Write] = {}
    for write in offered:
        name = _name(write.memory)
        if name not in known:
            first = fresh.setdefault(name, write)
            if first is not write and not drafts.same_request(first.memory, write.memory):
                raise _another(first.memory)
    return fresh


def _tell(engine: Engine, writes: Sequence[Write], embedding_ms: float) -> None:
    if not engine.bus.handlers or not engine.bus.wants(events.MemoryStored):
        return
    for write in writes:
        memory = write.memory
        engine.bus.emit(
            events.MemoryStored(
                at=memory.created_at,
                memory_id=memory.id,
                owner=memory.owner,
                type=memory.type,
                importance=memory.importance,
                content_length=len(memory.content),
                embedding_ms=embedding_ms,
            )
        )
