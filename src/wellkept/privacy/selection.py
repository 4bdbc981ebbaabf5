"""What an erasure takes: owners that go as a whole, single memories, and what was made from either."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from wellkept import layers, validation
from wellkept.engine import reading, sealing
from wellkept.engine.core import Engine
from wellkept.errors import InvalidInput, KeyUnavailable, StoreCorrupt, Tampered
from wellkept.filters import Where
from wellkept.privacy import owners as whose
from wellkept.types import ErasureScope, Filter, Identity, Layer, Operation, Owner, Owners, Stored

Place = tuple[Owner, str]
"""A memory: its owner and its id."""

BATCH = 1_000
"""How many memories are read or written at once."""


class Chosen(NamedTuple):
    """What is chosen: owners that go as a whole, or single memories, told by ``places``.

    ``buried`` are memories that were erased before and whose tombstones have a reason. ``derived`` come from others.
    """

    scope: ErasureScope
    whole: tuple[Owner, ...]
    places: tuple[Place, ...]
    derived: tuple[Place, ...] = ()
    buried: tuple[Place, ...] = ()


def choose(
    engine: Engine,
    identity: Identity,
    ids: Iterable[str] | None,
    filter: Filter | Mapping[str, Any] | None,
    source: str | None,
) -> Chosen:
    """What a caller asks to erase, with all that was made from it."""
    given = whose.given(identity)
    single = {"ids": ids, "filter": filter, "source": source}
    wanted_by = [name for name, value in single.items() if value is not None]
    if len(wanted_by) > 1:
        raise InvalidInput(
            f"{' and '.join(wanted_by)} were given together", details={"field": wanted_by[1]}, hint="pass one of them"
        )
    if not given and not wanted_by:
        raise InvalidInput(
            "nothing was chosen to be erased",
            details={"field": "user"},
            hint="pass a user, the ids of one owner, ids of memories, a filter or a source",
        )
    scope, within = _within(engine, identity, given)
    if ids is not None:
        wanted = [validation.text_id(id) for id in validation.several("ids", ids)]
        chosen = _by_ids(engine, within, wanted)
    elif source is not None:
        reference = validation.line("source", source)
        chosen = Chosen(ErasureScope.MATCHING, (), tuple(_from(engine, within, reference)))
    elif filter is not None:
        now = engine.clock()
        where = reading.resolve(engine, frozenset(within), reading.to_filter(filter), now)
        places = engine.journal.ids(frozenset(within), replace(where, states=None)) if within else ()
        chosen = Chosen(ErasureScope.MATCHING, (), tuple(places))
    else:
        chosen = Chosen(scope, tuple(within), ())
    return chosen._replace(derived=tuple(derived(engine, chosen)))


def _within(engine: Engine, identity: Identity, given: Mapping[str, str]) -> tuple[ErasureScope, list[Owner]]:
    """The owners to look at: of a person, one, or everybody."""
    if not given:
        return ErasureScope.MATCHING, list(whose.every(engine))
    settled = layers.settle(layers.named(identity))
    owner = whose.named(settled)
    if owner.layer is Layer.USER:
        return ErasureScope.PERSON, whose.belonging(engine, owner)
    return ErasureScope.OWNER, [owner]


def _by_ids(engine: Engine, within: Sequence[Owner], ids: Sequence[str]) -> Chosen:
    """Single memories; one that was erased before is chosen for the reason that its tombstone keeps."""
    where = Where(now=engine.clock(), states=None, ids=frozenset(ids))
    places = tuple(engine.journal.ids(frozenset(within), where)) if within and ids else ()
    missing = set(ids) - {id for _, id in places}
    buried = [
        (owner, id)
        for owner in (within if missing else ())
        for id in missing
        for one in engine.journal.history(owner, id, opened=False)
        if one.operation is Operation.ERASED and one.reason is not None
    ]
    return Chosen(ErasureScope.MEMORIES, (), places, (), tuple(buried))


def _from(engine: Engine, within: Iterable[Owner], reference: str) -> Iterator[Place]:
    """The memories that came from a source, which only their contents tell."""
    for owner in within:
        for stored, memory in sealing.readable(engine.journal.scan({owner})):
            if memory.source is not None and memory.source.reference == reference:
                yield stored.owner, stored.id


def everything(engine: Engine, owners: Owners) -> Sequence[Place]:
    """All memories of some owners, in every state."""
    return engine.journal.ids(owners, Where(now=engine.clock(), states=None)) if owners else ()


def found(engine: Engine, places: Iterable[Place]) -> Iterator[Stored | Place]:
    """Memories as the store keeps them, without their contents; the place alone of one that cannot be read."""
    by_owner: dict[Owner, list[str]] = {}
    for owner, id in places:
        by_owner.setdefault(owner, []).append(id)
    for owner, ids in by_owner.items():
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            try:
                yield from engine.journal.get({owner}, some, payload=False, opened=False)
            except StoreCorrupt:
                yield from _one_by_one(engine, owner, some)


def _one_by_one(engine: Engine, owner: Owner, ids: Iterable[str]) -> Iterator[Stored | Place]:
    for id in ids:
        try:
            yield from engine.journal.get({owner}, [id], payload=False, opened=False)
        except StoreCorrupt:
            yield owner, id


# -- what was made from others ------------------------------------------------------------------------------------


def derived(engine: Engine, chosen: Chosen) -> list[Place]:
    """What was made from the chosen memories, and from that, in whosever layer: by derivation or by supersession."""
    taken = set(chosen.places) | set(everything(engine, frozenset(chosen.whole)))
    if not taken:
        return []
    made, successors = _edges(engine)
    if not made and not successors:
        return []
    following: list[Place] = []
    reached = {id for _, id in taken}
    heads = list(reached)
    while heads:
        id = heads.pop()
        more = [place for place in (*made.get(id, ()), *successors.get(id, ())) if place not in taken]
        for place in more:
            taken.add(place)
            following.append(place)
            if place[1] not in reached:
                reached.add(place[1])
                heads.append(place[1])
    whole = set(chosen.whole)
    return [place for place in following if place[0] not in whole]


def _edges(engine: Engine) -> tuple[dict[str, list[Place]], dict[str, list[Place]]]:
    """By id, the memories that were derived from it, and those that superseded it."""
    made: dict[str, list[Place]] = {}
    superseded: dict[str, str] = {}
    everybody = frozenset(whose.every(engine))
    for owner in everybody:
        for one in _readable(engine, owner):
            for source in one.facets.get("derived_from", ()):
                made.setdefault(source, []).append((one.owner, one.id))
            if (successor := one.facets.get("superseded_by")) is not None:
                superseded[one.id] = successor
    owners: dict[str, list[Owner]] = {}
    successors = set(superseded.values())
    for one in engine.journal.get(everybody, successors, payload=False, opened=False) if superseded else ():
        owners.setdefault(one.id, []).append(one.owner)
    return made, {id: [(owner, later) for owner in owners.get(later, ())] for id, later in superseded.items()}


def _readable(engine: Engine, owner: Owner) -> list[Stored]:
    """The memories of an owner; one that cannot be opened as the store keeps it: what it was made from is gone too."""
    try:
        return list(engine.journal.scan({owner}, payload=False))
    except (KeyUnavailable, Tampered):
        return [_opened(engine, one) for one in engine.journal.scan({owner}, payload=False, opened=False)]


def _opened(engine: Engine, stored: Stored) -> Stored:
    try:
        return next(iter(engine.journal.get({stored.owner}, [stored.id], payload=False)), stored)
    except (KeyUnavailable, Tampered):
        return stored
