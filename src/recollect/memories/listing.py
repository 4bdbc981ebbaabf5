"""Pages and filters of a view: cursors, moments in the past, and references followed to a depth."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from recollect import codec, filters, validation
from recollect.errors import InvalidInput
from recollect.filters import Where
from recollect.ports import Owners, Query, Store, Stored
from recollect.types import Filter, Sort

PAGE = 50
PAGE_LIMIT = 100
_OFFSET_LIMIT = 1_000_000_000
_REACHED = 10_000
_SEQUENCE = 2**62
_MOVING = ("now", "created_after")  # `within` makes these differ from page to page


def to_filter(value: Filter | Mapping[str, Any] | None) -> Filter:
    """A filter as callers may give it."""
    if value is None:
        return Filter()
    if isinstance(value, Filter):
        return value
    if isinstance(value, Mapping):
        return codec.to_filter(value)
    raise InvalidInput(
        f"filter must be a Filter or a mapping, not {type(value).__name__}",
        details={"field": "filter"},
        hint="pass filter=Filter(...)",
    )


def resolve(store: Store, owners: Owners, wanted: Filter, now: datetime) -> Where:
    """Check a filter, make its times absolute, and follow its references."""
    where = filters.resolve(wanted, now)
    if wanted.references is None:
        return where
    given = [wanted.references] if isinstance(wanted.references, str) else wanted.references
    return replace(
        where, ids=reached(store, owners, validation.references(given, "filter.references"), wanted.max_depth)
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


def paged(query: Query, cursor: str | None) -> Query:
    """The query, continued behind the cursor."""
    if cursor is None:
        return query
    if query.offset:
        raise InvalidInput(
            "offset and cursor were given together",
            details={"field": "offset"},
            hint="a cursor knows where to go on; leave the offset out",
        )
    fingerprint, value, number, as_of = codec.decode_cursor(cursor)
    if fingerprint != _fingerprint(query) or (query.as_of is None) != (as_of is None):
        raise InvalidInput(
            "the cursor belongs to another listing",
            details={"field": "cursor"},
            hint="repeat the same filter, layers, order and as_of, or start without a cursor",
        )
    validation.integer("cursor", number, 0, _SEQUENCE)
    validation.integer("cursor", 0 if as_of is None else as_of, 0, _SEQUENCE)
    return replace(query, after=(value, number), as_of=as_of)


def cursor_after(query: Query, last: Stored) -> str:
    """The cursor behind a memory."""
    value = filters.sort_value(last.memory, query.sort)
    return codec.encode_cursor(_fingerprint(query), value, last.number, query.as_of)


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
