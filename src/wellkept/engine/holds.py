"""Holds: memories that upkeep must not touch and nobody may erase. Every erasure is appended here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, NamedTuple

from wellkept import codec, filters, layers, validation
from wellkept.engine import index_following
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.journal import BOOKKEEPING, EngineJournal, EngineRecords
from wellkept.engine.reading import to_filter
from wellkept.errors import Conflict, Held, InvalidInput, KeyUnavailable, NotFound
from wellkept.ports import Record
from wellkept.types import Filter, Guard, Hold, Operation, Owner, Stored, Write
from wellkept.types.owners import DATABASE

_KIND = "holds"
_LISTS = ("types", "tags", "any_tags", "no_tags", "authors")
_TIMES = ("created_after", "created_before", "occurred_after", "occurred_before")
HeldBy = Callable[[Stored], Hold | None]


class Holds(NamedTuple):
    """All holds, at a version of their record."""

    version: int
    every: tuple[Hold, ...]

    @property
    def guard(self) -> Guard:
        """The condition that no hold was placed or released meanwhile."""
        return Guard(owner=DATABASE, kind=_KIND, name=_KIND, version=self.version)

    @property
    def read_text(self) -> bool:
        """Whether contents must be read to know what is held."""
        return any(one.filter.text is not None or one.filter.content_contains is not None for one in self.every)

    def over(self, owner: Owner) -> HeldBy:
        """For a memory of an owner, the hold that covers it."""
        concerned = [
            (one, filters.matching(replace(filters.resolve(one.filter, one.placed_at), states=None)))
            for one in self.every
            if one.owner is None or layers.belongs(owner, one.owner)
        ]
        return lambda stored: next((one for one, fits in concerned if fits(stored)), None)


def _records(engine: Engine) -> EngineRecords:
    return EngineRecords(engine.shared, BOOKKEEPING)


def read(engine: Engine) -> Holds:
    """The holds as they are now."""
    record = _records(engine).get(DATABASE, _KIND, _KIND)
    if record is None:
        return Holds(0, ())
    return Holds(record.version, tuple(_decoded(one) for one in codec.decode_json(record.body)))


def place(engine: Engine, given: Filter | Mapping[str, Any], reason: str, owner: Owner | None, now: datetime) -> Hold:
    """Place a hold. Relative times in its filter count from now on."""
    validation.line("reason", reason, empty="say why, such as the name of a case")
    filter = _settled(to_filter(given), now)
    hold = Hold(id=engine.new_ids(now, 1)[0], filter=filter, reason=reason, placed_at=now, owner=owner)
    _change(engine, now, lambda every: (*every, hold))
    return hold


def release(engine: Engine, id: str, now: datetime) -> Hold:
    """Release a hold; the one that was released."""
    validation.text_id(id, "hold_id", "pass hold.id; memories.upkeep.holds() lists them")
    found: list[Hold] = []

    def without(every: tuple[Hold, ...]) -> tuple[Hold, ...]:
        found[:] = [one for one in every if one.id == id]
        if not found:
            raise NotFound(
                f"there is no hold {id[:64]!r}", details={"hold": id[:64]}, hint="memories.upkeep.holds() lists them"
            )
        return tuple(one for one in every if one.id != id)

    _change(engine, now, without)
    return found[0]


def _change(engine: Engine, now: datetime, decide: Callable[[tuple[Hold, ...]], tuple[Hold, ...]]) -> None:
    for _ in range(ATTEMPTS):
        known = read(engine)
        body = codec.encode_json([_encoded(one) for one in decide(known.every)])
        record = Record(owner=DATABASE, kind=_KIND, name=_KIND, body=body, version=known.version + 1, updated_at=now)
        try:
            engine.records.put(record)
        except Conflict:
            continue
        return
    raise Conflict("the holds kept changing while they were written", hint="try again when there are fewer writers")


def _settled(given: Filter, now: datetime) -> Filter:
    """A filter that means the same at any time: lists as tuples, times absolute."""
    if given.references is not None:
        raise InvalidInput(
            "a hold cannot follow references",
            details={"field": "filter.references"},
            hint="name the memories by a tag, a type, an author or times",
        )
    where = filters.resolve(given, now)
    lists: dict[str, Any] = {
        name: (value,) if isinstance(value, str) else tuple(value)
        for name in _LISTS
        if (value := getattr(given, name)) is not None
    }
    return replace(given, **lists, created_after=where.created_after, within=None)


def _encoded(hold: Hold) -> dict[str, Any]:
    given = {name: value for name, value in asdict(hold.filter).items() if value is not None}
    owner = None if hold.owner is None else codec.encode_owner(hold.owner)
    return {"id": hold.id, "filter": given, "reason": hold.reason, "placed_at": hold.placed_at, "owner": owner}


def _decoded(body: Mapping[str, Any]) -> Hold:
    given = dict(body["filter"])
    given.update({name: datetime.fromisoformat(given[name]) for name in _TIMES if name in given})
    given.update({name: tuple(given[name]) for name in _LISTS if name in given})
    return Hold(
        id=body["id"],
        filter=codec.to_filter(given),
        reason=body["reason"],
        placed_at=datetime.fromisoformat(body["placed_at"]),
        owner=None if body["owner"] is None else codec.decode_owner(body["owner"]),
    )


# -- erasing ------------------------------------------------------------------------------------------------------


def append(engine: Engine, writes: Sequence[Write], *, guards: Sequence[Guard] = (), again: bool = False) -> None:
    """Append writes; an erasure of something that is held is refused, also if the hold is placed at this moment.

    ``again``: it was erased before, and an older backup brought it back. If its key is destroyed, nothing of it is left
    that a hold could keep.
    """
    checked = check(engine, writes, again=again)
    engine.journal.append(writes, guards=[*guards, checked.guard] if checked is not None else guards)
    if checked is not None and engine.live.chosen_index is not None:
        index_following.forget(
            EngineJournal(engine.shared, BOOKKEEPING), engine.index, {write.owner for write in writes}
        )


def check(engine: Engine, writes: Iterable[Write], *, again: bool = False) -> Holds | None:
    """Refuse erasures of what is held; the holds that were looked at, if anything is erased."""
    erased = [(write.owner, write.id) for write in writes if write.operation is Operation.ERASED]
    if not erased:
        return None
    known = read(engine)
    for (_, id), hold in covering(engine, known, erased, again=again):
        raise held(id, hold)
    return known


def covering(
    engine: Engine, known: Holds, places: Iterable[tuple[Owner, str]], *, again: bool = False
) -> Iterator[tuple[tuple[Owner, str], Hold]]:
    """Which of some memories are held, and by what."""
    by_owner: dict[Owner, list[str]] = {}
    for owner, id in places if known.every else ():
        by_owner.setdefault(owner, []).append(id)
    for owner, ids in by_owner.items():
        covered = known.over(owner)
        for stored in _opened(engine, owner, ids, payload=known.read_text, again=again):
            if (hold := covered(stored)) is not None:
                yield (owner, stored.id), hold


def _opened(engine: Engine, owner: Owner, ids: Sequence[str], *, payload: bool, again: bool) -> Iterable[Stored]:
    try:
        return engine.journal.get({owner}, ids, payload=payload)
    except KeyUnavailable:
        if not again or engine.keyring is None:
            raise  # whether it is held cannot be told
    found: list[Stored] = []
    for id in ids:
        with suppress(KeyUnavailable):
            found += engine.journal.get({owner}, [id], payload=payload)
    return found


def held(id: str, hold: Hold, done: str = "erased") -> Held:
    """The refusal to erase or move a memory that is held. Why it is held is for administrators, not for callers."""
    return Held(
        f"memory {id!r} is held by {hold.id}",
        details={"memory_id": id, "hold": hold.id},
        hint=f"nothing was {done}; wellkept hold list tells an administrator why, and wellkept hold release ends it",
    )
