"""Moves: a memory changes its owner. Its history is appended to the new owner, and the old one points there.

Where a store cannot write two owners in one append, what is about to be done is recorded first, and a move that was
killed in the middle is finished when the database is opened again.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from wellkept import codec, events, filters, layers
from wellkept.engine import holds, quotas, revisions
from wellkept.engine.core import ATTEMPTS, GIVEN, Engine
from wellkept.engine.journal import BOOKKEEPING, EngineRecords
from wellkept.engine.sealing import unseal
from wellkept.engine.writing import newest
from wellkept.errors import Conflict, NotFound
from wellkept.lifecycle import duplicates
from wellkept.ports import Record, Records, sound
from wellkept.types import Access, Memory, Operation, Owner, Owners, State, Stored, Write
from wellkept.types.owners import DATABASE

_KIND = "move"
_TO, _FROM = "moved_to", "moved_from"


class Moved(NamedTuple):
    """A move that was made: of which memory, from whom, to whom."""

    id: str
    source: Owner
    target: Owner


def told_by(version: Stored) -> Moved | None:
    """The move that a version tells of: of where its memory went, or of where it came from."""
    if (target := version.facets.get(_TO)) is not None:
        return Moved(version.id, version.owner, codec.decode_owner(target))
    if (source := version.facets.get(_FROM)) is not None:
        return Moved(version.id, codec.decode_owner(source), version.owner)
    return None


class _Intent(NamedTuple):
    """A move that is under way: of which memory, from whom, to whom."""

    id: str
    source: str
    target: str


_read = codec.reader(_Intent)


def _intents(engine: Engine) -> Records:
    """Where it stands what a move is about to do."""
    return EngineRecords(engine.shared, BOOKKEEPING)


def move(engine: Engine, owners: Owners, id: str, target: Owner) -> Memory:
    """Give a memory that is visible to another owner; the memory as it is there."""
    engine.accesses.flush()
    for _ in range(ATTEMPTS):
        stored = newest(list(map(engine.accesses.dressed, engine.journal.get(owners, [id], vectors=True))))
        if stored is None or not filters.visible_at(stored, codec.to_micros(engine.clock())):
            raise NotFound(
                f"no memory {id[:64]!r} is visible here",
                details={"memory_id": id[:64]},
                hint="it may be forgotten, erased, expired or somebody else's",
            )
        if stored.owner == target:
            return unseal(stored)
        _check_hold(engine, stored)
        try:
            return _moved(engine, stored, target)
        except _Changed:
            continue
    raise Conflict(f"memory {id!r} kept changing while it was moved", details={"memory_id": id}, hint="try again")


class _Changed(Exception):
    """Another writer changed the memory meanwhile."""


def _check_hold(engine: Engine, stored: Stored) -> None:
    """What is held for its owner stays there: elsewhere, the hold might not cover it."""
    hold = holds.read(engine).over(stored.owner)(stored)
    if hold is not None:
        raise holds.held(stored.id, hold, "moved")


def _moved(engine: Engine, stored: Stored, target: Owner) -> Memory:
    there, now = newest(engine.journal.get({target}, [stored.id])), engine.clock()
    copies, marker = _copies(engine, stored, target, there, now), _marker(engine, stored, target, now)
    _write(engine, stored, copies, marker)
    if stored.access_count:
        engine.accesses.add(Access(target, stored.id, stored.access_count, stored.last_accessed_at or 0))
        engine.accesses.flush()
    [memory] = [unseal(engine.accesses.dressed(one)) for one in engine.journal.get({target}, [stored.id])]
    if engine.bus.handlers:
        moved = events.MemoryUpdated(at=engine.clock(), memory_id=memory.id, owner=target, version=memory.version)
        engine.bus.emit(moved)
    return memory


def _write(engine: Engine, stored: Stored, copies: Sequence[Write], marker: Write) -> None:
    """Give the new owner a memory, and let the old one point there."""
    if engine.store.capabilities.batches:
        _append(engine, stored, [*copies, marker], copies)
        return
    intent = _Intent(stored.id, codec.encode_owner(stored.owner), codec.encode_owner(copies[-1].owner))
    record = Record(
        owner=DATABASE,
        kind=_KIND,
        name=stored.id,
        body=codec.encode_json(intent),
        version=1,
        updated_at=engine.clock(),
    )
    _intents(engine).put(record)
    try:
        _append(engine, stored, copies, copies)
    except BaseException:  # reason: nothing was copied, so there is nothing to finish
        _intents(engine).drop(DATABASE, _KIND, stored.id)
        raise
    try:
        engine.journal.append([marker])
    except Conflict:  # the old memory changed meanwhile
        _finish(engine, intent)
    else:
        _intents(engine).drop(DATABASE, _KIND, stored.id)


def _append(engine: Engine, stored: Stored, writes: Sequence[Write], copies: Sequence[Write]) -> None:
    """Append a move; if it is refused, find out whether the memory changed, or the new owner has its key."""
    try:
        quotas.append(engine, writes)
    except Conflict as error:
        now = engine.journal.get({stored.owner}, [stored.id], payload=False)
        if not now or now[0].version != stored.version:
            raise _Changed from error
        key = copies[-1].facets.get("key")
        if key is not None and engine.journal.keyed(copies[-1].owner, [key]):
            raise Conflict(
                f"the new owner has a memory with the key of memory {stored.id!r}",
                details={"field": "key", "memory_id": stored.id},
                hint="update or forget one of the two first",
            ) from error
        raise


def _copies(engine: Engine, stored: Stored, target: Owner, there: Stored | None, now: datetime) -> list[Write]:
    """The writes that append the history of a memory to its new owner.

    One that was there before has its history; it goes on with the memory as it is now.
    """
    history = engine.journal.history(stored.owner, stored.id) if there is None else [stored]
    stamps = engine.stamps.stamps(codec.to_micros(now), len(history))
    writes: list[Write] = []
    before = (0, None) if there is None else (there.version, there.stamp)
    for one, stamp in zip(history, stamps, strict=True):
        last = one.version == stored.version
        version = one.version if there is None else max(one.version, there.version) + 1
        write = Write(
            owner=target,
            id=stored.id,
            version=version,
            expected=before[0],
            operation=one.operation if there is None else Operation.RESTORED,
            stamp=stamp,
            recorded_at=codec.to_micros(now),
            replaced=before[1],
            reason=one.reason if there is None else f"moved from {named(stored.owner)}",
            facets=_own(one, target) if not last else {**_own(one, target), _FROM: codec.encode_owner(stored.owner)},
            payload=one.payload,
            vector=stored.vector if last else None,
            given=last and stored.vector is not None and (engine.embedder is None or stored.vector.embedder == GIVEN),
            write_id=engine.write_id(stamp),
        )
        writes.append(write)
        before = (version, stamp)
    return writes


def _own(stored: Stored, target: Owner) -> dict[str, object]:
    """The facets without the mark by which the old owner finds the memory when the same is added again, and without
    what tells of moves before; in the tier that the memory has with the new owner.
    """
    facets = stored.facets
    left_out = {_TO, _FROM, "key"} if duplicates.is_mark(facets.get("key")) else {_TO, _FROM}
    own = {name: value for name, value in facets.items() if name not in left_out}
    if "tier_set" not in facets:
        own["tier"] = layers.tier_of(target.layer, facets["type"], facets["state"], is_fact="fact" in facets).value
    return own


def _marker(engine: Engine, stored: Stored, target: Owner, now: datetime) -> Write:
    """The version by which the old owner points to the new one."""
    after = replace(unseal(stored), state=State.MOVED, key=None, version=stored.version + 1, updated_at=now)
    write = revisions.changed(engine, after, Operation.MOVED, stored, now, reason=f"moved to {named(target)}")
    return write._replace(facets={**write.facets, _TO: codec.encode_owner(target)})


def named(owner: Owner) -> str:
    """An owner in words, as histories have it."""
    return f"{owner.layer.value} {'/'.join(owner.ids)}"


# -- taking back --------------------------------------------------------------------------------------------------


def take_back(engine: Engine, moved: Moved, former: Stored, heads: tuple[int, int], reasons: tuple[str, str]) -> None:
    """Give a memory back to the owner that it was moved from, as its version ``former`` there, if both owners have
    these versions of it. They get the versions that say so, with these reasons.
    """
    marker = newest(engine.journal.get({moved.source}, [moved.id]))
    there = newest(engine.journal.get({moved.target}, [moved.id], vectors=True))
    if marker is None or there is None or (marker.version, there.version) != heads:
        raise Conflict(
            f"memory {moved.id!r} was changed since it was moved",
            details={"memory_id": moved.id, "changed": moved.id},
            hint="nothing was changed; look at it, then decide",
        )
    _check_hold(engine, there)
    now = engine.clock()
    [copy] = _copies(engine, there, moved.source, marker, now)
    facets = {name: value for name, value in former.facets.items() if name not in (_TO, _FROM)}
    left = _marker(engine, there, moved.source, now)._replace(reason=reasons[1])
    _write(engine, there, [copy._replace(facets=facets, reason=reasons[0])], left)
    if engine.bus.handlers:
        back = events.MemoryUpdated(at=now, memory_id=moved.id, owner=moved.source, version=copy.version)
        engine.bus.emit(back)


# -- finishing ----------------------------------------------------------------------------------------------------


def finish(engine: Engine) -> int:
    """Finish moves that were killed in the middle; how many there were."""
    if engine.store.capabilities.batches:
        return 0
    waiting = sound(_intents(engine).list({DATABASE}, _KIND))
    for record in waiting:
        _finish(engine, _read(record.body))
    return len(waiting)


def _finish(engine: Engine, intent: _Intent) -> None:
    """Do what is left of a move. What was copied stays; a change of the old memory since then is taken along."""
    source, target = codec.decode_owner(intent.source), codec.decode_owner(intent.target)
    for _ in range(ATTEMPTS):
        stored, now = newest(engine.journal.get({source}, [intent.id], vectors=True)), engine.clock()
        if stored is None or stored.facets["state"] == State.MOVED:
            break
        there = newest(engine.journal.get({target}, [intent.id]))
        try:
            if there is None or there.facets["state"] == State.MOVED or there.version < stored.version:
                engine.journal.append(_copies(engine, stored, target, there, now))
            engine.journal.append([_marker(engine, stored, target, now)])
        except Conflict:
            continue
        break
    _intents(engine).drop(DATABASE, _KIND, intent.id)
