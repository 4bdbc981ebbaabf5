"""The room that a session has: a write that may grow it must fit, if need be after a compaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recollect import statistics
from recollect.errors import QuotaExceeded
from recollect.memories import compacting
from recollect.memories.engine import Engine
from recollect.memories.reach import Reach
from recollect.memories.records import SessionRecords
from recollect.ports import Write
from recollect.types import Owner, SessionConfig

Attempt = Callable[[int | None], None]
"""Writes, if the session then takes no more than a number of bytes; ``QuotaExceeded`` if it would."""


@dataclass(frozen=True, slots=True)
class Room:
    """A session that is written to, how it is configured, and the memories that are written."""

    owner: Owner
    config: SessionConfig
    written: frozenset[str]


def entered(engine: Engine, reach: Reach, owner: Owner, writes: Sequence[Write]) -> Room | None:
    """The session that writes go to. One that nobody made has limits only where the store sets them."""
    config = reach.config()
    if config is None:
        user, session = owner.ids
        described = SessionRecords(engine, user).find(session)
        config = engine.store.session_defaults() if described is None else described.settings(engine.defaults)
    return None if config is None else Room(owner, config, frozenset(write.memory.id for write in writes))


def fill(engine: Engine, room: Room, attempt: Attempt) -> None:
    """Write into a session: within what starts a compaction, or after one, or at least within the limit."""
    config, limit = room.config, room.config.limit_bytes
    if limit is None or not config.auto_compact:
        attempt(limit)
        return
    try:
        attempt(int(limit * config.compaction_threshold))
    except QuotaExceeded as error:
        if error.details["limit"] != int(limit * config.compaction_threshold):
            raise  # it is the plan's limit, which no session can do anything about
        usage, needed = error.details["usage"], error.details["needed"]
    else:
        return
    if usage + needed > limit or usage >= engine.crowded.get(room.owner, 0):
        _make(engine, room, limit, needed)
    attempt(limit)


def _make(engine: Engine, room: Room, limit: int, needed: int) -> None:
    """Compact; if that leaves the session nearly full, do not try again before half of the rest is full as well."""
    report = compacting.make_room(engine, room.owner, room.config, needed, room.written)
    if report.bytes_after + needed > limit * room.config.compaction_threshold:
        engine.crowded[room.owner] = report.bytes_after + (limit - report.bytes_after) // 2
    else:
        engine.crowded.pop(room.owner, None)


def growth(engine: Engine, owner: Owner, writes: Sequence[Write]) -> int:
    """By how many bytes writes would let the memories of an owner grow, for who cannot leave that to the store."""
    theirs = {write.memory.id: write for write in writes if write.memory.owner == owner}
    known = engine.store.get({owner}, theirs, vectors=True)
    total = 0
    for id, write in theirs.items():
        before = known.get(id)
        vector = before.vector if before is not None and write.keeps_vector else write.vector
        total += statistics.footprint(write.memory) + (len(vector.data) if vector else 0)
        total -= 0 if before is None else statistics.footprint(before)
    return total
