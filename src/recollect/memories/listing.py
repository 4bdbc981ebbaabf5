"""Pages and filters of a view: cursors, moments in the past, and references followed to a depth."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from recollect import codec, filters, validation
from recollect.errors import InvalidInput
from recollect.filters import Where
from recollect.lifecycle import decay
from recollect.memories.engine import PAGE
from recollect.memories.reach import Policies
from recollect.ports import Owners, Query, Store, Stored
from recollect.types import Filter, Page, Sort

PAGE_LIMIT = 100
_OFFSET_LIMIT = 1_000_000_000
_REACHED = 10_000
_SEQUENCE = 2**62
_EARLIEST, _LATEST = (codec.to_micros(datetime(year, 1, 1, tzinfo=UTC)) for year in (1, 9999))
_MOVING = ("now", "created_after")  # `within` makes these differ from page to page


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


def resolve(store: Store, owners: Owners, given: Filter | Mapping[str, Any] | None, now: datetime) -> Where:
    """Check a filter, make its times absolute, and follow its references."""
    if given is None:
        return Where(now=now)
    wanted = to_filter(given)
    where = filters.resolve(wanted, now)
    if wanted.references is None:
        return where
    start = [wanted.references] if isinstance(wanted.references, str) else wanted.references
    return replace(
        where, ids=reached(store, owners, validation.references(start, "filter.references"), wanted.max_depth)
    )


def reached(store: Store, owners: Owners, start: Iterable[str], depth: int) -> frozenset[str]:
    """The memories that references lead to from some ids in at most so many steps; cycles end by themselves.

    Only what the owners may see is followed, so that a reference never leads through somebody else's memory.
    """
    seen = frozenset(start)
    first, frontier = seen, seen
    for _ in range(depth):
        memories = store.get(owners, frontier)
        frontier = frozenset(id for memory in memories.values() for id in memory.references) - seen
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


def moment(store: Store, owners: Owners, as_of: datetime | int | None, now: datetime) -> tuple[int | None, datetime]:
    """The sequence to read at, none for the present, and the time by which expiry and relative times are judged.

    A sequence is a time as well: that of its version. One that is not in the owners' journal is judged by the present.
    """
    if as_of is None:
        return None, now
    if isinstance(as_of, datetime):
        at = validation.moment("as_of", as_of)
        return store.sequence(at), at
    sequence = validation.integer("as_of", as_of, 0, _SEQUENCE)
    written = store.versions(owners, after=max(0, sequence - 1), limit=1)
    exact = [version.recorded_at for version in written if version.sequence == sequence]
    return sequence, exact[0] if exact else now


def page(store: Store, query: Query, cursor: str | None, policies: Policies) -> Page:
    """One page of a listing, continued behind the cursor if there is one."""
    query, judged_at = _continued(query, cursor)
    if query.sort is Sort.RELEVANCE:
        return _by_relevance(store, query, judged_at, policies)
    limit = query.limit or PAGE
    found = store.select(replace(query, limit=limit + 1))
    taken = found[:limit]
    return Page(
        memories=tuple(stored.memory for stored in taken),
        next_cursor=_cursor(query, taken[-1]) if len(found) > limit else None,
        total=store.count(query),
    )


def _by_relevance(store: Store, query: Query, judged_at: datetime, policies: Policies) -> Page:
    """A page in an order that changes with time: every page is judged by the time of the first one."""

    value = decay.Irrelevance(judged_at, {owner: policies.get(owner, decay.USUAL) for owner in query.owners})
    limit = query.limit or PAGE
    found = store.ranked(replace(query, limit=limit + 1), value)
    memories = [stored.memory for stored in found[:limit]]
    parts = [decay.relevance(one, judged_at, policies.get(one.owner, decay.USUAL)) for one in memories]
    more = len(found) > limit
    return Page(
        memories=tuple(memories),
        next_cursor=_cursor(query, found[limit - 1], value(memories[-1]), judged_at) if more else None,
        total=store.count(query),
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
    fingerprint, value, number, as_of, judged_at = codec.decode_cursor(cursor)
    timed = query.sort is Sort.RELEVANCE
    fits = fingerprint == _fingerprint(query) and (query.as_of is None) == (as_of is None)
    if not fits or timed != (judged_at is not None):
        raise InvalidInput(
            "the cursor belongs to another listing",
            details={"field": "cursor"},
            hint="repeat the same filter, layers, order and as_of, or start without a cursor",
        )
    validation.integer("cursor", number, 0, _SEQUENCE)
    validation.integer("cursor", 0 if as_of is None else as_of, 0, _SEQUENCE)
    micros = validation.integer("cursor", judged_at or 0, _EARLIEST, _LATEST)
    judged = codec.from_micros(micros) if timed else query.where.now
    return replace(query, after=(value, number), as_of=as_of), judged


def _cursor(query: Query, last: Stored, value: float | None = None, judged_at: datetime | None = None) -> str:
    """The cursor behind a memory."""
    kept = filters.sort_value(last.memory, query.sort) if value is None else value
    micros = None if judged_at is None else codec.to_micros(judged_at)
    return codec.encode_cursor(_fingerprint(query), kept, last.number, query.as_of, micros)


def _fingerprint(query: Query) -> str:
    """Tells listings apart. It is no secret and gives no access: owners come from the view, never from a cursor."""
    kept = [repr(_ordered(getattr(query.where, one.name))) for one in fields(Where) if one.name not in _MOVING]
    owners = sorted(codec.encode_owner(owner) for owner in query.owners)
    return codec.checksum(repr((query.sort.value, owners, kept))).hex()[:16]


def _ordered(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value


def page_of(query: Query, *, sort: Sort | str, limit: int, offset: int) -> Query:
    """A query as a listing with checked bounds."""
    return replace(
        query,
        sort=validation.choice("sort_by", Sort, sort),
        limit=validation.integer("limit", limit, 1, PAGE_LIMIT),
        offset=validation.integer("offset", offset, 0, _OFFSET_LIMIT),
    )
