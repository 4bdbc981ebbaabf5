"""Undo: the last writes and runs, taken back. The journal is the log: a version knows what it replaced.

What one call wrote is taken back together, whatever the clock said.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from wellkept import codec, events, layers
from wellkept.engine import embedding, moves, quotas, revisions, run_log
from wellkept.engine.core import Engine
from wellkept.engine.embedding import Made
from wellkept.engine.moves import Moved
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, NotFound, WellkeptError
from wellkept.types import Memory, Need, Operation, Owner, Owners, State, Stored, Undoable, Undone, Write
from wellkept.upkeep import undo as runs_undo
from wellkept.upkeep.counting import counting, run_of, undoing

_LOOKED_AT = 1_000  # memories
_PAGE = 10_000
_NAMED = 10
_NOTHING = Made(None)
_OPERATIONS = {State.FORGOTTEN: Operation.FORGOTTEN, State.ARCHIVED: Operation.ARCHIVED}


@dataclass(slots=True)
class _Entry:
    """The versions of one write, of one run, or of one move, that still count."""

    run_id: str | None
    moved: Moved | None = None
    versions: list[Stored] = field(default_factory=list)
    later: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.run_id or self.versions[0].write_id


def undoable(engine: Engine, owners: Owners, reach: Owners, limit: int) -> list[Undoable]:
    """The last writes and runs of some owners, the newest first. ``reach`` are those that the caller may write."""
    return [_told(engine, one, reach) for one in _entries(engine, owners)[:limit]]


def undo(engine: Engine, owners: Owners, reach: Owners, id: str | None) -> Undone:
    """Take back a write or a run, by default the last one, or change nothing and say why."""
    found = _entries(engine, owners)
    wanted = next((one for one in found if id is None or one.id == id), None)
    if wanted is None:
        raise NotFound(
            "there is nothing to undo" if id is None else f"there is no write {id[:64]!r} to undo",
            details={} if id is None else {"id": id[:64]},
            hint="wellkept undo --list shows what could be undone",
        )
    told = _told(engine, wanted, reach)
    if told.blocked is not None:
        raise Conflict(
            f"it cannot be undone: {told.blocked}",
            details={"id": wanted.id, "changed": ", ".join(wanted.later or told.memory_ids)},
            hint="nothing was changed; wellkept undo --list shows what could be undone"
            + ("; administrators have wellkept upkeep undo" if wanted.run_id else ""),
        )
    if wanted.run_id is not None:
        changed = {*owners, *run_log.memories_of(engine, wanted.run_id)}
        return runs_undo.undo(run_log.running(engine, Need.WRITE, changed), wanted.run_id)
    if wanted.moved is not None:
        _move_back(engine, wanted.moved)
        return Undone(run_id=wanted.id, ids=(wanted.moved.id,), erased=())
    return _taken_back(engine, wanted)


def _told(engine: Engine, entry: _Entry, reach: Owners) -> Undoable:
    last = entry.versions[-1]
    operations = [Operation.MOVED] if entry.moved else [one.operation for one in entry.versions]
    return Undoable(
        id=entry.id,
        at=codec.from_micros(last.recorded_at),
        operations=tuple(dict.fromkeys(operations)),
        memory_ids=tuple(dict.fromkeys(one.id for one in entry.versions)),
        reason=last.reason,
        run_id=entry.run_id,
        blocked=_blocked(engine, entry, reach),
    )


def _blocked(engine: Engine, entry: _Entry, reach: Owners) -> str | None:
    """What stands in the way of taking a write or a run back."""
    erased = [one.id for one in entry.versions if one.operation is Operation.ERASED]
    if erased:
        return f"{_listed(erased)} erased for good"
    if entry.later:
        return f"changed since: {_listed(entry.later)}"
    if entry.run_id is not None:
        return _beyond(engine, entry.run_id, reach)
    if entry.moved is None:
        return None
    if entry.moved.target not in reach:
        return f"moved to {moves.named(entry.moved.target)}, which is out of reach here"
    if entry.moved.source not in reach:  # whose it was is not for everybody
        return "moved here by somebody who is out of reach here"
    return None if _standing(engine, entry.moved) else f"changed since: {entry.moved.id}"


def _beyond(engine: Engine, run_id: str, reach: Owners) -> str | None:
    """Why a run is not for this caller: a user's own sessions and agents are, others are not."""
    try:
        changed = run_log.memories_of(engine, run_id)
    except NotFound as error:
        return error.message
    own = all(any(layers.belongs(owner, one) for one in reach) for owner in changed)
    return None if own and not run_log.is_withheld(engine, changed) else "it changed memories of others as well"


def _listed(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


# -- reading ------------------------------------------------------------------------------------------------------


def _entries(engine: Engine, owners: Owners) -> list[_Entry]:
    """The last writes and runs that still count, the newest first."""
    last, whole = _last_versions(engine, owners)
    versions = counting(last)
    entries: dict[tuple[str, ...], _Entry] = {}
    newest: dict[tuple[Owner, str], _Entry] = {}
    moved = {(one.write_id, one.id): move for one in versions if (move := moves.told_by(one))}
    for one in versions:
        move, run = moved.get((one.write_id, one.id)), run_of(one)
        if move is not None:
            entry = entries.setdefault(("move", one.write_id, one.id), _Entry(None, move))
        elif run is not None:
            entry = entries.setdefault(("run", run), _Entry(run))
        else:
            entry = entries.setdefault(("write", one.write_id), _Entry(None))
        entry.versions.append(one)
        before = newest.get((one.owner, one.id))
        if before is not None and before is not entry and one.id not in before.later:
            before.later.append(one.id)
        newest[one.owner, one.id] = entry
    complete = (entry for entry in entries.values() if entry.run_id or entry.versions[0].write_id >= whole)
    return sorted(complete, key=lambda entry: entry.versions[-1].stamp, reverse=True)


def _last_versions(engine: Engine, owners: Owners) -> tuple[list[Stored], str]:
    """Every version since the oldest of the memories that were written last, in the order of writing; and the first
    write of which all versions are among them: the id of a write is the first stamp of its call.
    """
    heads = (one.recorded_at for one in engine.journal.scan(owners, payload=False))
    last = heapq.nlargest(_LOOKED_AT, heads)
    after = None
    if len(last) == _LOOKED_AT:
        after = engine.journal.position(owners, codec.from_micros(last[-1] - 1))
    begun, versions = after, list[Stored]()
    while True:
        page = engine.journal.versions(owners, after=after, limit=_PAGE)
        versions += page
        if not page.more:
            break
        after = page.next
    versions.sort(key=lambda one: one.stamp)
    return versions, "" if begun is None or not versions else versions[0].stamp


# -- writing ------------------------------------------------------------------------------------------------------


def _taken_back(engine: Engine, entry: _Entry) -> Undone:
    """Every memory of a write as it was before, in one append; what goes first frees its key for what comes back."""
    first: dict[tuple[Owner, str], Stored] = {}
    for one in entry.versions:
        first.setdefault((one.owner, one.id), one)
    writes = sorted((_inverse(engine, one) for one in first.values()), key=lambda one: "key" in one.facets)
    quotas.append(engine, writes)
    for write in writes if engine.bus.handlers else ():
        at = codec.from_micros(write.recorded_at)
        engine.bus.emit(events.MemoryUpdated(at=at, memory_id=write.id, owner=write.owner, version=write.version))
    return Undone(run_id=entry.id, ids=tuple(write.id for write in writes), erased=())


def _standing(engine: Engine, moved: Moved) -> tuple[Sequence[Stored], Sequence[Stored]] | None:
    """The histories of a memory that was moved, with both owners, if nothing changed since; it was copied before it was
    marked.
    """
    here = engine.journal.history(moved.source, moved.id)
    there = engine.journal.history(moved.target, moved.id)
    last, copied = counting(here)[-1:], counting(there)[-1:]
    if not last or not copied or moves.told_by(last[0]) != moved or copied[0].stamp > last[0].stamp:
        return None
    return here, there


def _move_back(engine: Engine, moved: Moved) -> None:
    """A memory back with the owner that it was moved from, as it was there."""
    engine.check(Need.WRITE, {moved.source, moved.target})
    found = _standing(engine, moved)
    if found is None:
        raise run_log.changed("the move", [moved.id])
    heads = found[0][-1].version, found[1][-1].version
    here, there = counting(found[0]), counting(found[1])
    first = next(one for one in there if one.write_id == there[-1].write_id)
    moves.take_back(engine, moved, here[-2], heads, (undoing(here[-1]), undoing(first)))


def _inverse(engine: Engine, version: Stored) -> Write:
    """The version that makes a memory what it was before one of its versions: forgotten, if there was none."""
    history = engine.journal.history(version.owner, version.id)
    [head] = engine.journal.get({version.owner}, [version.id])
    before = [one for one in counting(history) if one.version < version.version]
    now, current = engine.clock(), unseal(head)
    what = {"version": head.version + 1, "updated_at": now}
    reason = undoing(version)
    if not before:
        key = None if current.fact is not None else current.key  # the fact before gets its place back
        gone = replace(current, **what, state=State.FORGOTTEN, key=key)  # type: ignore[arg-type]
        return revisions.changed(engine, gone, Operation.FORGOTTEN, head, now, keeps_vector=True, reason=reason)
    former = replace(unseal(before[-1]), **what)  # type: ignore[arg-type]
    same = former.state is current.state
    operation = Operation.UPDATED if same else _OPERATIONS.get(former.state, Operation.RESTORED)
    keeps, made = _vector(engine, current, former)
    return revisions.changed(engine, former, operation, head, now, made=made, keeps_vector=keeps, reason=reason)


def _vector(engine: Engine, current: Memory, former: Memory) -> tuple[bool, Made]:
    """Whether the stored vector still fits, and otherwise the one of the former text."""
    if current.state is not State.MOVED and embedding.texts_of(current) == embedding.texts_of(former):
        return True, _NOTHING
    try:
        return False, embedding.embed(engine, [former], [former.owner])[0]
    except WellkeptError:  # found by its words until it is embedded again
        return False, _NOTHING
