"""What memories are derived from: it must exist, may not lead in a circle, and bounds their trust."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from wellkept.engine.core import Engine
from wellkept.engine.references import standing
from wellkept.errors import InvalidInput
from wellkept.types import Memory, Owners, Stored
from wellkept.types.memory import DEFAULT_TRUST

_FOLLOWED = 10_000


def limited(engine: Engine, owners: Owners, memories: Sequence[Memory], *, dangling: bool = False) -> list[Memory]:
    """New memories, trusted no more than what they are derived from, and than a grant allows.

    The sources must be visible; with ``dangling`` one that is not counts as an unknown source. What has a key may be
    stored already; its sources are checked if it is not.
    """
    memories = [_capped(memory, engine.grant.max_trust) for memory in memories]
    ids = dict.fromkeys(id for memory in memories for id in memory.derived_from)
    if not ids:
        return list(memories)
    if not dangling:
        check(engine, owners, [memory for memory in memories if memory.key is None])
    trusts = _trusts(engine, owners, ids, dangling=True)
    return [
        replace(memory, trust=min(memory.trust, *(trusts[id] for id in memory.derived_from)))
        if memory.derived_from
        else memory
        for memory in memories
    ]


def capped(engine: Engine, memory: Memory) -> Memory:
    """A new memory, trusted no more than the caller's grant says."""
    return _capped(memory, engine.grant.max_trust)


def check(engine: Engine, owners: Owners, memories: Iterable[Memory]) -> None:
    """Refuse new memories that are derived from what is not visible."""
    _trusts(engine, owners, dict.fromkeys(id for memory in memories for id in memory.derived_from), dangling=False)


def revised(engine: Engine, owners: Owners, before: Memory, after: Memory, *, dangling: bool = False) -> Memory:
    """The next version of a memory, trusted no more than what it is derived from; refused if that is itself."""
    if after is before:
        return after
    after = _capped(after, engine.grant.max_trust)
    added = [id for id in after.derived_from if id not in before.derived_from]
    if added:
        _check_circle(engine, owners, after.id, added)
    elif after.trust <= before.trust:
        return after
    trusts = _trusts(engine, owners, added, dangling=dangling)
    trusts |= _trusts(engine, owners, before.derived_from, dangling=True)
    return replace(after, trust=min([after.trust, *trusts.values()]))


def _capped(memory: Memory, most: float) -> Memory:
    return memory if memory.trust <= most else replace(memory, trust=most)


def _trusts(engine: Engine, owners: Owners, ids: Collection[str], *, dangling: bool) -> dict[str, float]:
    """How far each of some memories is trusted."""
    found = {one.id: one for one in _found(engine, owners, ids)}
    missing = [id for id in ids if id not in found]
    if missing and not dangling:
        raise InvalidInput(
            f"derived_from contains {missing[0][:64]!r}, which names no memory that is visible here",
            details={"field": "derived_from", "memory_id": missing[0][:64]},
            hint="name memories that this view can get, or pass dangling=True to keep ids of others",
        )
    unknown = engine.settings.trust.unknown
    return {id: float(found[id].facets.get("trust", DEFAULT_TRUST)) if id in found else unknown for id in ids}


def _found(engine: Engine, owners: Owners, ids: Iterable[str]) -> list[Stored]:
    return standing(engine, owners, list(ids)) if ids else []


def _check_circle(engine: Engine, owners: Owners, id: str, added: Sequence[str]) -> None:
    """Refuse sources that were themselves made from the memory."""
    seen: set[str] = set()
    frontier = list(added)
    while frontier:
        if id in frontier:
            raise InvalidInput(
                f"memory {id!r} would be derived from itself",
                details={"field": "derived_from", "memory_id": id},
                hint="name only memories that were not made from it",
            )
        seen.update(frontier)
        if len(seen) > _FOLLOWED:
            raise InvalidInput(
                f"derived_from leads to more than {_FOLLOWED} memories",
                details={"field": "derived_from", "memory_id": id},
                hint="derive it from fewer memories",
            )
        sources = (source for one in _followed(engine, owners, frontier) for source in one)
        frontier = [source for source in dict.fromkeys(sources) if source not in seen]


def _followed(engine: Engine, owners: Owners, ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (one.facets.get("derived_from", ()) for one in engine.journal.get(owners, ids, payload=False))
