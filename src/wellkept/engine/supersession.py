"""What new memories replace: the memories before are kept as superseded, and lead to what replaced them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from wellkept import filters
from wellkept.engine import revisions
from wellkept.engine.core import Engine
from wellkept.engine.revisions import Prepared
from wellkept.engine.sealing import seal, unseal
from wellkept.errors import Conflict, NotFound
from wellkept.types import Lineage, Memory, Operation, Owner, Owners, State, Stored, Write

SUPERSEDED = "superseded"
"""What the history says of the version by which a memory was replaced."""

_STEPS = 1_000
_Named = tuple[Owner, str]


def closing(
    engine: Engine, owners: Owners, fresh: Mapping[_Named, Prepared], former: Mapping[_Named, Stored]
) -> tuple[dict[_Named, Prepared], list[Write]]:
    """New memories that name what they replace, and the writes that mark that as superseded.

    ``former`` are the facts that new ones contradict; other memories are named by ``supersedes``.
    """
    now = engine.clock()
    done, closed = dict(fresh), dict[_Named, Write]()
    for name, (memory, write) in fresh.items():
        before = _named(engine, owners, memory, now)
        if name in former and former[name].id not in memory.supersedes:
            before.append(former[name])
        if not before:
            continue
        naming = replace(memory, supersedes=tuple(one.id for one in before))
        facets, payload = seal(naming)
        done[name] = naming, write._replace(facets=facets, payload=payload)
        for one in before:
            if (one.owner, one.id) in closed:
                raise Conflict(
                    f"memory {one.id!r} would be superseded twice",
                    details={"field": "supersedes", "memory_id": one.id},
                    hint="let one new memory supersede it",
                )
            closed[one.owner, one.id] = _closed(engine, one, naming, now)
    return done, list(closed.values())


def _named(engine: Engine, owners: Owners, memory: Memory, now: datetime) -> list[Stored]:
    """The memories that a new one says it replaces, as they are now."""
    if not memory.supersedes:
        return []
    found = {one.id: one for one in engine.journal.get(owners, memory.supersedes)}
    for id in memory.supersedes:
        one = found.get(id)
        if one is not None and one.facets["state"] == State.SUPERSEDED:
            raise Conflict(
                f"memory {id[:64]!r} was superseded already",
                details={"field": "supersedes", "memory_id": id[:64]},
                hint="lineage(id) shows by which memory; supersede that one",
            )
        if one is None or not filters.visible(unseal(one), now):
            raise NotFound(
                f"supersedes contains {id[:64]!r}, which names no memory that is visible here",
                details={"field": "supersedes", "memory_id": id[:64]},
                hint="it may be forgotten, erased, expired or somebody else's",
            )
    return [found[id] for id in memory.supersedes]


def _closed(engine: Engine, stored: Stored, by: Memory, now: datetime) -> Write:
    """The version that marks a memory as superseded. A fact holds until the new one begins to hold."""
    memory = unseal(stored)
    fact = memory.fact
    if fact is not None:
        until = by.occurred_at if by.fact is None or by.fact.valid_from is None else by.fact.valid_from
        if fact.valid_until is None or until < fact.valid_until:
            fact = replace(fact, valid_until=until)
    after = replace(
        memory,
        state=State.SUPERSEDED,
        superseded_by=by.id,
        fact=fact,
        key=None if memory.owner == by.owner and memory.key == by.key else memory.key,
        version=memory.version + 1,
        updated_at=now,
    )
    return revisions.changed(engine, after, Operation.UPDATED, stored, now, keeps_vector=True, reason=SUPERSEDED)


def lineage(engine: Engine, owners: Owners, id: str) -> Lineage:
    """What a memory replaced and what replaced it, as far as it can be read by its id."""
    start = _read(engine, owners, id)
    if start is None:
        raise NotFound(
            f"no memory {id[:64]!r} is visible here",
            details={"memory_id": id[:64]},
            hint="it may be forgotten, erased, expired or somebody else's",
        )
    seen, frontier, replaced = {start.id}, [start], list[Memory]()
    while frontier and len(seen) < _STEPS:
        ids = [one for memory in frontier for one in memory.supersedes if one not in seen]
        seen.update(ids)
        frontier = [found for one in dict.fromkeys(ids) if (found := _read(engine, owners, one)) is not None]
        replaced += frontier
    since, newest = list[Memory](), start
    while newest.superseded_by is not None and newest.superseded_by not in seen and len(seen) < _STEPS:
        seen.add(newest.superseded_by)
        following = _read(engine, owners, newest.superseded_by)
        if following is None:
            break
        since.append(following)
        newest = following
    return Lineage(replaced=tuple(reversed(replaced)), replaced_by=tuple(since))


def _read(engine: Engine, owners: Owners, id: str) -> Memory | None:
    memories = [unseal(one) for one in engine.journal.get(owners, [id]) if one.facets["state"] in filters.KEPT]
    return memories[0] if memories else None
