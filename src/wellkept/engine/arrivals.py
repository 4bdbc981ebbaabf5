"""Memories that come with ids, times and states of their own, as from an export: each is stored once."""

import graphlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from wellkept import codec, filters, layers, validation
from wellkept.engine import drafts, embedding, keys, provenance, quotas, revisions, sensitive, writing
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.revisions import Prepared
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, InvalidInput
from wellkept.lifecycle import duplicates
from wellkept.types import Memory, NewMemory, Operation, Owner, Source, SourceType, State, Stored, Write

IMPORTED = "imported"
"""What the history says of the version that an import made."""

_SOURCE = Source(type=SourceType.IMPORT)


class Place(NamedTuple):
    """Where a memory stands in what is read: the line 3, or the memory 3."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A memory as it is told: what a caller could set, and what else is kept of it."""

    place: Place
    id: str
    new: NewMemory
    created_at: datetime
    state: State = State.ACTIVE
    expires_at: datetime | None = None
    superseded_by: str | None = None
    sources: tuple[Source, ...] = ()
    key: str | None = None


class Outcome(NamedTuple):
    """The ids of memories that are new, that were here already, and that were erased here and stay so."""

    added: tuple[str, ...]
    known: tuple[str, ...]
    erased: tuple[str, ...]


def misplaced(place: Place, error: InvalidInput) -> InvalidInput:
    """An error about one memory, with the place at which it stands."""
    details = {**error.details, place.kind: place.number}
    return type(error)(f"{place.kind} {place.number}: {error.message}", details=details, hint=error.hint)


# -- checking -----------------------------------------------------------------------------------------------------


def drafted(engine: Engine, owner: Owner, arrivals: Sequence[Arrival]) -> list[Memory]:
    """What arrives as memories of an owner, every field checked; trusted no more than what is imported is."""
    now = engine.clock()
    memories: dict[str, Memory] = {}
    taken: set[str] = set()
    for one in arrivals:
        try:
            memory = _drafted(engine, owner, one, now)
            if memory.id in memories:
                raise InvalidInput("the id stands twice", details={"field": "id"}, hint="leave one of them out")
            if memory.key in taken:
                raise InvalidInput("the key stands twice", details={"field": "key"}, hint="leave one of them out")
        except InvalidInput as error:
            raise misplaced(one.place, error) from None
        memories[memory.id] = memory
        if memory.key is not None:
            taken.add(memory.key)
    return [sensitive.judged(engine, one) for one in _limited(engine, owner, memories)]


def _drafted(engine: Engine, owner: Owner, one: Arrival, now: datetime) -> Memory:
    new, trusts = one.new, engine.settings.trust
    if new.source is None and new.pointer is None:
        new = replace(new, source=_SOURCE)
    memory = drafts.draft(new, owner, now, validation.name("id", one.id), owner.ids[-1], trusts=trusts)
    arrived = replace(
        memory,
        created_at=min(validation.moment("created_at", one.created_at), now),  # another machine's clock may be ahead
        trust=min(memory.trust, trusts.document),
        state=one.state,
        forgotten_at=now if one.state is State.FORGOTTEN else None,
        expires_at=validation.optional_moment("expires_at", one.expires_at),
        superseded_by=validation.optional_line("superseded_by", one.superseded_by),
        sources=tuple(found for each in one.sources if (found := validation.source(each)) is not None),
        key=validation.optional_line("key", one.key),
    )
    return layers.with_tier(arrived)


def _limited(engine: Engine, owner: Owner, memories: dict[str, Memory]) -> list[Memory]:
    """Memories that are trusted no more than what they are derived from, which may arrive with them."""
    inside = {id: [source for source in one.derived_from if source in memories] for id, one in memories.items()}
    outside = [
        replace(one, derived_from=tuple(source for source in one.derived_from if source not in memories))
        for one in memories.values()
    ]
    trusts = {one.id: one.trust for one in provenance.limited(engine, {owner}, outside, dangling=True)}
    try:
        order = list(graphlib.TopologicalSorter(inside).static_order())
    except graphlib.CycleError as error:
        id = error.args[1][0]
        raise InvalidInput(
            f"memory {id[:64]!r} would be derived from itself",
            details={"field": "derived_from", "memory_id": id[:64]},
            hint="correct the derived_from of the memories that lead in a circle",
        ) from None
    for id in order:
        trusts[id] = min([trusts[id], *(trusts[source] for source in inside[id])])
    return [replace(one, trust=trusts[id]) for id, one in memories.items()]


# -- storing ------------------------------------------------------------------------------------------------------


def add(engine: Engine, owner: Owner, memories: Sequence[Memory], *, dry_run: bool = False) -> Outcome:
    """Store what is not here yet, all or none. ``Conflict`` if another memory has an id or a key of these.

    What is here is recognised by its id and its content, or the content that it once had: what became of it here
    stays. Another writer may be faster; then the look is repeated.
    """
    made: dict[str, embedding.Made] = {}
    started = time.perf_counter()
    erased: set[str] = set()
    for _ in range(ATTEMPTS):
        known = _known(engine, owner, memories)
        fresh = [one for one in memories if one.id not in known and one.id not in erased]
        _check_keys(engine, owner, fresh)
        if dry_run:
            erased = _erased(engine, owner, fresh)
            fresh = [one for one in fresh if one.id not in erased]
        outcome = Outcome(tuple(one.id for one in fresh), tuple(known), tuple(erased))
        if dry_run or not fresh:
            return outcome
        bare = [one for one in fresh if one.id not in made]
        vectors = embedding.embed(engine, bare, [owner] * len(bare))
        made.update({one.id: vector for one, vector in zip(bare, vectors, strict=True)})
        embedding_ms = (time.perf_counter() - started) * 1000
        try:
            quotas.append(engine, _writes(engine, owner, fresh, made))
        except Conflict:
            erased = _erased(engine, owner, fresh)
            continue
        writing.announce_added(engine, [one for one in fresh if one.state is State.ACTIVE], embedding_ms)
        quotas.warn(engine, {owner})
        return outcome
    raise Conflict("the memories kept changing while they were written", hint="try again when there are fewer writers")


def _known(engine: Engine, owner: Owner, memories: Sequence[Memory]) -> set[str]:
    offered = {one.id: one for one in memories}
    found = engine.journal.get({owner}, list(offered)) if offered else ()
    for stored in found:
        memory = offered[stored.id]
        if not _says(stored, memory) and not any(
            _says(one, memory) for one in engine.journal.history(owner, stored.id) if one.operation != Operation.ERASED
        ):
            raise Conflict(
                f"memory {stored.id[:64]!r} is here already, and says something else",
                details={"memory_id": stored.id[:64], "session_id": owner.ids[-1]},
                hint="nothing was imported; import into another session",
            )
    return {one.id for one in found}


def _says(stored: Stored, memory: Memory) -> bool:
    found = unseal(stored)
    return found.content == memory.content and filters.same_json(found.data, memory.data)


def _check_keys(engine: Engine, owner: Owner, fresh: Iterable[Memory]) -> None:
    wanted = {one.key: one.id for one in fresh if one.key is not None}
    holders = engine.journal.keyed(owner, list(wanted)) if wanted else {}
    for key, holder in holders.items():
        raise Conflict(
            f"memory {holder[:64]!r} has the key of memory {wanted[key][:64]!r}",
            details={"field": "key", "memory_id": holder[:64], "session_id": owner.ids[-1]},
            hint="nothing was imported; import into another session",
        )


def _erased(engine: Engine, owner: Owner, fresh: Iterable[Memory]) -> set[str]:
    """Those that were erased here: an id is never used again."""
    return {
        one.id
        for one in fresh
        if any(version.operation is Operation.ERASED for version in engine.journal.history(owner, one.id))
    }


def _writes(engine: Engine, owner: Owner, fresh: Sequence[Memory], made: dict[str, Any]) -> list[Write]:
    micros = codec.to_micros(engine.clock())
    stamps = engine.stamps.stamps(micros, len(fresh))
    prepared: list[Prepared] = [
        (one, revisions.written(engine, one, Operation.ADDED, None, stamp, micros=micros, made=made[one.id]))
        for one, stamp in zip(fresh, stamps, strict=True)
    ]
    return [write._replace(reason=IMPORTED) for write in _marked(engine, owner, prepared)]


def _marked(engine: Engine, owner: Owner, prepared: Sequence[Prepared]) -> list[Write]:
    """With the keys by which the same is found when it is added again, where no other memory has them."""
    offered = [
        keys.marked(memory, write, timed=memory.occurred_at != memory.created_at)[1]
        if memory.state is State.ACTIVE
        else write
        for memory, write in prepared
    ]
    marks = [key for write in offered if (key := _mark_of(write)) is not None]
    taken = set(engine.journal.keyed(owner, marks)) if marks else set()
    writes = []
    for (_, plain), write in zip(prepared, offered, strict=True):
        mark = _mark_of(write)
        writes.append(plain if mark in taken else write)
        if mark is not None:
            taken.add(mark)
    return writes


def _mark_of(write: Write) -> str | None:
    key: str | None = write.facets.get("key")
    return key if duplicates.is_mark(key) else None
