"""Reading: memories by id, pages of a listing with cursors, moments in the past, references followed to a depth."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from wellkept import codec, events, filters, layers, validation
from wellkept.engine.core import PAGE, Engine
from wellkept.engine.scope import Policies
from wellkept.engine.sealing import readable, unseal, version_of
from wellkept.errors import InvalidInput
from wellkept.filters import Where
from wellkept.lifecycle import decay
from wellkept.ports import Query, positions
from wellkept.types import Changes, Filter, Memory, Owners, Page, Place, Position, Sort, State, Stored

PAGE_LIMIT = 100
Moment = datetime | str
"""A time, or a position: what ``as_of`` takes."""

_TOP = 10
_EVERYTHING = Filter()
_OFFSET_LIMIT = 1_000_000_000
_REACHED = 10_000
_KEYS = 1_000
_MOVING = ("now", "created_after")  # `within` makes these differ from page to page


# -- by id --------------------------------------------------------------------------------------------------------


def get(
    engine: Engine,
    owners: Owners,
    ids: Sequence[str],
    *,
    as_of: Moment | None,
    include_forgotten: bool,
    include_vector: bool,
) -> dict[str, Memory]:
    """Memories by id, of the present or of a moment; of several owners that have one, the most specific owner's.

    Reading the present counts as an access.
    """
    for id in ids:
        validation.text_id(id)
    validation.flag("include_forgotten", include_forgotten)
    validation.flag("include_vector", include_vector)
    at, now = moment(engine, owners, as_of)
    found = engine.journal.get(owners, ids, at=at, vectors=include_vector)
    micros = codec.to_micros(now)
    if include_forgotten:  # one that was moved is where it was moved to
        found = [one for one in found if one.facets["state"] != State.MOVED]
    else:
        found = [one for one in found if filters.visible_at(one, micros)]
    if len(found) > 1 and len(found) > len({one.id for one in found}):
        found = _most_specific(found)
    if at is None and found:
        found = engine.accesses.count(found, micros)
    by_id = {one.id: unseal(one) for one in found}
    if at is None and engine.bus.handlers and engine.bus.wants(events.MemoryRetrieved):
        for memory in by_id.values():
            engine.bus.emit(events.MemoryRetrieved(at=now, memory_id=memory.id, owner=memory.owner, type=memory.type))
    return by_id if len(ids) <= 1 else {id: by_id[id] for id in ids if id in by_id}


def by_key(
    engine: Engine, owners: Owners, key: str, *, as_of: Moment | None, include_forgotten: bool, include_vector: bool
) -> Memory | None:
    """The memory of a key; of several owners that have one, the most specific owner's."""
    validation.line("key", key)
    at, _ = moment(engine, owners, as_of)
    for owner in layers.ordered(owners):
        found = get(
            engine,
            {owner},
            _holders(engine, {owner}, {key}, at),
            as_of=as_of,
            include_forgotten=include_forgotten,
            include_vector=include_vector,
        )
        for memory in found.values():
            return memory
    return None


def _holders(engine: Engine, owners: Owners, keys: AbstractSet[str], at: Position | None) -> list[str]:
    """The ids of the memories that have one of these keys, or had it at a position."""
    if at is None:
        return [id for owner in owners for id in engine.journal.keyed(owner, keys).values()]
    return [one.id for one in engine.journal.scan(owners, at=at, payload=False) if one.facets.get("key") in keys]


def _most_specific(found: Sequence[Stored]) -> list[Stored]:
    widest_first = sorted(found, key=lambda one: layers.PRECEDENCE[one.owner.layer], reverse=True)
    return list({one.id: one for one in widest_first}.values())


def moment(engine: Engine, owners: Owners, as_of: Moment | None) -> tuple[Position | None, datetime]:
    """The position to read at, none for the present, and the time by which expiry and relative times are judged.

    A position is a time as well: that of the last version before it.
    """
    if as_of is None:
        return None, engine.clock()
    if isinstance(as_of, datetime):
        at = validation.moment("as_of", as_of)
        return engine.journal.position(owners, at), at
    if not isinstance(as_of, str):
        raise InvalidInput(
            f"as_of must be a time or a position, not {type(as_of).__name__}",
            details={"field": "as_of"},
            hint="pass a datetime with a time zone, or view.position()",
        )
    last = positions.time_of(as_of)
    return Position(as_of), engine.clock() if last is None else codec.from_micros(last)


def changes(engine: Engine, owners: Owners, after: str | None, limit: int) -> Changes:
    """What was written behind a position, each version with its own."""
    behind = None if after is None else Position(after)
    page = engine.journal.versions(owners, after=behind, limit=limit)
    places = positions.along(behind, page)
    versions = tuple(version_of(one, place) for one, place in zip(page, places, strict=True))
    return Changes(versions=versions, next=page.next, more=page.more)


# -- filters ------------------------------------------------------------------------------------------------------


def to_filter(value: Filter | Mapping[str, Any]) -> Filter:
    """A filter as callers may give it."""
    if isinstance(value, Filter):
        return value
    if isinstance(value, Mapping):
        return codec.to_filter(value)
    raise InvalidInput(
        f"filter must be a Filter or a mapping, not {type(value).__name__}",
        details={"field": "filter"},
        hint="pass filter=Filter(...)",
    )


def resolve(
    engine: Engine,
    owners: Owners,
    given: Filter | Mapping[str, Any] | None,
    now: datetime,
    at: Position | None = None,
) -> Where:
    """Check a filter, make its times absolute, look up its keys, and follow its references."""
    if given is None:
        return Where(now=now)
    wanted = to_filter(given)
    where = filters.resolve(wanted, now)
    if wanted.keyed is not None:
        keys = frozenset(validation.lines("filter.keyed", wanted.keyed, _KEYS))
        where = replace(where, ids=frozenset(_holders(engine, owners, keys, at)))
    if wanted.references is None:
        return where
    start = [wanted.references] if isinstance(wanted.references, str) else wanted.references
    ids = validation.references(start, "filter.references")
    reached = _reached(engine, owners, ids, wanted.max_depth)
    return replace(where, ids=reached if where.ids is None else reached & where.ids)


def _reached(engine: Engine, owners: Owners, start: Iterable[str], depth: int) -> frozenset[str]:
    """The memories that references lead to from some ids in at most so many steps; cycles end by themselves.

    Only memories of the owners are followed, so that a reference never leads through somebody else's memory.
    """
    seen = frozenset(start)
    first, frontier = seen, seen
    for _ in range(depth):
        found = readable(engine.journal.get(owners, frontier))
        frontier = frozenset(id for _, memory in found for id in memory.references) - seen
        seen |= frontier
        if len(seen) > _REACHED:
            raise InvalidInput(
                f"the references lead to more than {_REACHED} memories",
                details={"field": "filter.max_depth"},
                hint="use a smaller max_depth",
            )
        if not frontier:
            break
    return seen - first


# -- pages --------------------------------------------------------------------------------------------------------


def usual_limit(engine: Engine, given: Filter | Mapping[str, Any] | None, sort: Sort | str) -> int:
    """How many memories a page has where the caller does not say: what is configured, if anything is; otherwise
    100 with a filter, 10 of the most important or most recently read, and 50 of a plain listing.
    """
    lists = engine.settings.lists
    if "lists.page_size" in engine.settings.origins:
        return lists.page_size
    if given is not None and to_filter(given) != _EVERYTHING:
        return PAGE_LIMIT
    return _TOP if sort in (Sort.IMPORTANT, Sort.RECENTLY_ACCESSED) else lists.page_size


def page_of(query: Query, *, sort: Sort | str, limit: int, offset: int) -> Query:
    """A query as a listing with checked bounds."""
    return replace(
        query,
        sort=validation.choice("sort_by", Sort, sort),
        limit=validation.integer("limit", limit, 1, PAGE_LIMIT),
        offset=validation.integer("offset", offset, 0, _OFFSET_LIMIT),
    )


def page(engine: Engine, query: Query, cursor: str | None, policies: Policies) -> Page:
    """One page of a listing, continued behind the cursor if there is one."""
    query, judged_at = _continued(query, cursor)
    if query.sort in (Sort.RELEVANCE, Sort.MOST_ACCESSED, Sort.RECENTLY_ACCESSED):
        engine.accesses.flush()
    if query.sort is Sort.RELEVANCE:
        return _by_relevance(engine, query, judged_at, policies)
    limit = query.limit or PAGE
    stored = engine.journal.select(replace(query, limit=limit + 1))
    taken, more = stored[:limit], len(stored) > limit
    last = filters.place_of(taken[-1], filters.sort_value(taken[-1], query.sort)) if more else None
    return Page(
        memories=tuple(memory for _, memory in readable(map(engine.accesses.dressed, taken))),
        next_cursor=None if last is None else _cursor(query, last),
        total=engine.journal.count(query.owners, query.where, at=query.at),  # as `count` says: the damaged included
    )


def _by_relevance(engine: Engine, query: Query, judged_at: datetime, policies: Policies) -> Page:
    """A page in an order that changes with time, computed over the facets of all that matches. Every page is judged by
    the time of the first one.
    """
    limit = query.limit or PAGE
    fits = filters.matching(query.where)
    text = query.where.content_contains is not None or bool(query.where.text)
    stored = map(engine.accesses.dressed, engine.journal.scan(query.owners, at=query.at, payload=text))
    matching = [one for one in stored if fits(one)]
    value = decay.irrelevance_of(judged_at, {owner: policies.get(owner, decay.USUAL) for owner in query.owners})
    found = filters.page(matching, query.sort, after=query.after, offset=query.offset, limit=limit + 1, value=value)
    taken = found[:limit]
    whole = map(engine.accesses.dressed, engine.journal.get(query.owners, [one.id for one in taken], at=query.at))
    read = {(one.owner, one.id): one for one in whole}
    chosen = (read[place] for one in taken if (place := (one.owner, one.id)) in read)
    memories = [memory for _, memory in readable(chosen)]
    parts = [decay.relevance(one, judged_at, policies.get(one.owner, decay.USUAL)) for one in memories]
    last = filters.place_of(taken[-1], value(taken[-1])) if len(found) > limit else None
    return Page(
        memories=tuple(memories),
        next_cursor=None if last is None else _cursor(query, last, judged_at),
        total=len(matching),
        reasons=tuple({name: round(part, 4) for name, part in one.items()} for one in parts),
    )


def _continued(query: Query, cursor: str | None) -> tuple[Query, datetime]:
    """The query behind the cursor, and the time by which its order is judged."""
    if cursor is None:
        return query, query.where.now
    if query.offset:
        raise InvalidInput(
            "offset and cursor were given together",
            details={"field": "offset"},
            hint="a cursor knows where to go on; leave the offset out",
        )
    kept = codec.decode_cursor(cursor)
    timed = query.sort is Sort.RELEVANCE
    fits = kept.fingerprint == _fingerprint(query) and (query.at is None) == (kept.at is None)
    if not fits or timed != (kept.judged_at is not None):
        raise InvalidInput(
            "the cursor belongs to another listing",
            details={"field": "cursor"},
            hint="repeat the same filter, layers, order and as_of, or start without a cursor",
        )
    after = Place(kept.value, kept.born_at, codec.decode_owner(kept.owner), kept.born)
    judged = query.where.now if kept.judged_at is None else codec.from_micros(kept.judged_at)
    return replace(query, after=after, at=None if kept.at is None else Position(kept.at)), judged


def _cursor(query: Query, last: Place, judged_at: datetime | None = None) -> str:
    """The cursor behind a memory."""
    return codec.encode_cursor(
        codec.Cursor(
            fingerprint=_fingerprint(query),
            value=last.value,
            born_at=last.born_at,
            owner=codec.encode_owner(last.owner),
            born=last.born,
            at=query.at,
            judged_at=None if judged_at is None else codec.to_micros(judged_at),
        )
    )


def _fingerprint(query: Query) -> str:
    """Tells listings apart. It is no secret and gives no access: owners come from the view, never from a cursor."""
    kept = [repr(_ordered(getattr(query.where, one.name))) for one in fields(Where) if one.name not in _MOVING]
    owners = sorted(codec.encode_owner(owner) for owner in query.owners)
    return codec.checksum(repr((query.sort.value, owners, kept))).hex()[:16]


def _ordered(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value
