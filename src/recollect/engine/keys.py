"""Idempotent adding: a key stands for one request of an owner, however often it is repeated."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime

from recollect import codec
from recollect.engine import drafts, quotas, revisions
from recollect.engine.core import ATTEMPTS, Engine
from recollect.engine.revisions import Prepared
from recollect.engine.sealing import unseal
from recollect.errors import Conflict
from recollect.types import Memory, Operation, Owner, State, Stored, Write

EXPIRED = "expired"
"""What the history says of the version by which an expired memory frees its key."""


def append_once(engine: Engine, offered: Sequence[Prepared]) -> tuple[list[Memory], list[Memory]]:
    """Write what is not stored under its key already; return that, and the stored memory for each offer.

    An expired memory frees its key: it gets a version without it. Another writer may take a key between our look and
    our write; then the look is repeated.
    """
    for _ in range(ATTEMPTS):
        known, freed = _known(engine, [memory for memory, _ in offered])
        fresh = _fresh(offered, known)
        try:
            quotas.append(engine, [*freed, *(write for _, write in fresh.values())])
        except Conflict:
            continue
        stored = known | {name: memory for name, (memory, _) in fresh.items()}
        return [memory for memory, _ in fresh.values()], [stored[_name(memory)] for memory, _ in offered]
    raise Conflict("a key was taken again and again by other writers", details={"field": "key"}, hint="try again")


def _name(memory: Memory) -> tuple[Owner, str]:
    """What a draft is known by: its key if it has one, else its own id."""
    return memory.owner, memory.id if memory.key is None else f"key {memory.key}"


def _known(engine: Engine, wanted: Sequence[Memory]) -> tuple[dict[tuple[Owner, str], Memory], list[Write]]:
    """The stored memories that drafts with a key ask for again, and the writes that take keys from expired ones."""
    known: dict[tuple[Owner, str], Memory] = {}
    freed: dict[str, Write] = {}
    now = engine.clock()
    for memory in wanted:
        if memory.key is None or _name(memory) in known:
            continue
        found = engine.journal.keyed(memory.owner, [memory.key]).get(memory.key)
        for one in engine.journal.get({memory.owner}, [found]) if found and found not in freed else ():
            if _has_ended(one, now):
                freed[one.id] = _without_key(engine, one, now)
            else:
                _check_same(engine, memory, one)
                known[_name(memory)] = unseal(one)
    return known, list(freed.values())


def _has_ended(stored: Stored, now: datetime) -> bool:
    """Whether a memory has expired. One that was forgotten before keeps its key: a replay must not undo that."""
    ends = stored.facets.get("expires_at")
    return ends is not None and ends <= codec.to_micros(now) and stored.facets["state"] != State.FORGOTTEN


def _without_key(engine: Engine, stored: Stored, now: datetime) -> Write:
    after = replace(unseal(stored), key=None, version=stored.version + 1, updated_at=now)
    return revisions.changed(engine, after, Operation.UPDATED, stored, now, keeps_vector=True, reason=EXPIRED)


def _check_same(engine: Engine, memory: Memory, stored: Stored) -> None:
    """A key stands for one request. It may be repeated, but it cannot mean two things or undo a deletion."""
    if stored.facets["state"] == State.FORGOTTEN:
        raise Conflict(
            f"the key belongs to memory {stored.id!r}, which is forgotten",
            details={"field": "key", "memory_id": stored.id},
            hint="restore that memory, or use another key",
        )
    first = engine.journal.history(stored.owner, stored.id)
    if not first or not drafts.same_request(memory, unseal(first[0])):
        raise _another(stored.id)


def _another(memory_id: str) -> Conflict:
    return Conflict(
        f"the key belongs to memory {memory_id!r}, which was added with other fields",
        details={"field": "key", "memory_id": memory_id},
        hint="update that memory, or use another key",
    )


def _fresh(offered: Sequence[Prepared], known: Container[tuple[Owner, str]]) -> dict[tuple[Owner, str], Prepared]:
    """The writes to make, each key once."""
    fresh: dict[tuple[Owner, str], Prepared] = {}
    for memory, write in offered:
        name = _name(memory)
        if name not in known:
            first, _ = fresh.setdefault(name, (memory, write))
            if first is not memory and not drafts.same_request(first, memory):
                raise _another(first.id)
    return fresh
