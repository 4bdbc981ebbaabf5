"""Filters and orders as SQL. Every value is bound; the texts here are constants.

``o`` is owners, ``h`` heads, ``j`` the journal entry of the head, ``a`` its accesses. What SQL cannot say exactly as
``filters.matches`` does (folding of letters, words, JSON values) is left to it: ``exact`` tells whether there is any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from wellkept import codec
from wellkept.stores.postgres import rows
from wellkept.types import Owner, Place, Sort

if TYPE_CHECKING:
    from wellkept.filters import Where
    from wellkept.ports import Query

_ORDER: Mapping[Sort, str] = MappingProxyType(
    {
        Sort.NEWEST: "",
        Sort.OLDEST: "",
        Sort.IMPORTANT: "(-h.importance)",
        Sort.MOST_ACCESSED: "(-coalesce(a.times, 0))::double precision",
        Sort.RECENTLY_ACCESSED: "(-coalesce(a.last_at, 0))::double precision",
    }
)
"""The same as ``filters.sort_value``, in SQL; empty where the order of recording decides."""


class Conditions:
    """A WHERE clause under construction and its bindings."""

    def __init__(self) -> None:
        self.clauses: list[str] = [f"h.state <> '{rows.ERASED}'"]
        self.values: list[object] = []

    def add(self, clause: str, *values: object) -> None:
        """One more condition that must hold."""
        self.clauses.append(clause)
        self.values.extend(values)

    @property
    def sql(self) -> str:
        """The clause."""
        return " AND ".join(self.clauses)


# Custom fields may have that name as well: the facets themselves are looked at once more.
_POLICIED = (
    "EXISTS (SELECT 1 FROM journal p WHERE p.owner = h.owner AND p.seq = h.seq"
    """ AND p.facets LIKE '%%"access_policy":%%')"""
)


def rest_of(where: Where) -> Where | None:
    """What is left to ask of the memories that the server found; ``None`` if nothing is."""
    worded = where.content_contains is not None or where.text or where.pattern is not None
    hidden = where.min_trust is not None or where.has_access_policy is not None
    if not (worded or where.metadata or hidden):
        return None
    return replace(where, states=None)


def conditions(where: Where) -> Conditions:
    """What the server can say of ``filters.matches``."""
    found = Conditions()
    if where.ids is not None:
        found.add("h.id = ANY(%s)", sorted(where.ids))
    if where.without:
        found.add("h.id <> ALL(%s)", sorted(where.without))
    if where.states is not None:
        found.add("h.state = ANY(%s)", sorted(state.value for state in where.states))
        found.add("(h.expires_at IS NULL OR h.expires_at > %s)", codec.to_micros(where.now))
    if where.types is not None:
        found.add("h.type = ANY(%s)", sorted(kind.value for kind in where.types))
    if where.tiers is not None:
        found.add("h.tier = ANY(%s)", sorted(tier.value for tier in where.tiers))
    if where.min_importance is not None:
        found.add("h.importance >= %s", float(where.min_importance))
    if where.authors is not None:
        found.add("h.author = ANY(%s)", sorted(where.authors))
    if where.source_type is not None:
        found.add("h.source_type = %s", where.source_type.value)
    if where.has_pointer is not None:
        found.add("h.has_pointer = %s", where.has_pointer)
    if where.has_access_policy:
        found.add(_POLICIED)
    _times(found, where)
    _tags(found, where)
    return found


def _times(found: Conditions, where: Where) -> None:
    for column, after, before in (
        ("created_at", where.created_after, where.created_before),
        ("occurred_at", where.occurred_after, where.occurred_before),
    ):
        if after is not None:
            found.add(f"h.{column} >= %s", codec.to_micros(after))
        if before is not None:
            found.add(f"h.{column} < %s", codec.to_micros(before))


_TAGGED = "EXISTS (SELECT 1 FROM unnest(h.tags) t, unnest(%s::text[]) w WHERE t = w OR starts_with(t, w || '.'))"


def _tags(found: Conditions, where: Where) -> None:
    for tag in where.tags:
        found.add(_TAGGED, [tag])
    if where.any_tags:
        found.add(_TAGGED, list(where.any_tags))
    if where.no_tags:
        found.add(f"NOT {_TAGGED}", list(where.no_tags))


def page(query: Query, *, size: int | None) -> tuple[str, list[object]]:
    """The statement for at most ``size`` memories behind the place of a query, in its order.

    Each owner is asked by itself, in the order of its index, and only so many rows of each are read.
    """
    found = conditions(query.where)
    value, upwards = _ORDER[query.sort], query.sort is Sort.OLDEST
    if query.after is not None:
        _behind(found, query.after, value, upwards=upwards)
    way = "ASC" if upwards else "DESC"
    accesses = " LEFT JOIN accesses a ON a.owner = h.owner AND a.born = h.born"
    return (
        f"SELECT o.name, {rows.JOURNAL}, h.times, h.last_at, {rows.NO_VECTOR}, h.value FROM owners o"
        f" CROSS JOIN LATERAL (SELECT h.seq, h.born, h.born_at, a.times, a.last_at,"
        f" {value or '0::double precision'} AS value FROM heads h{accesses}"
        f" WHERE h.owner = o.no AND {found.sql}"
        f" ORDER BY {f'{value}, ' if value else ''}h.born_at {way}, h.born {way} LIMIT %s) h"
        " JOIN journal j ON j.owner = o.no AND j.seq = h.seq"
        f" WHERE o.digest = ANY(%s) ORDER BY h.value, h.born_at {way}, o.name {way}, h.born {way} LIMIT %s",
        [*found.values, size, rows.digests(query.owners), size],
    )


def _behind(found: Conditions, after: Place, value: str, *, upwards: bool) -> None:
    """Only the memories behind the last one of the page before."""
    name, sign = rows.named(after.owner).name, ">" if upwards else "<"
    clause = f"(h.born_at, o.name, h.born) {sign} (%s, %s, %s)"
    place: list[object] = [after.born_at, name, after.born]
    if value:
        found.add(f"({value} > %s OR ({value} = %s AND {clause}))", after.value, after.value, *place)
    else:
        # The first condition says nothing new, but an index can begin there.
        found.add(f"h.born_at {sign}= %s AND {clause}", after.born_at, *place)


def counting(owners: Iterable[Owner], where: Where) -> tuple[str, list[object]]:
    """The statement that counts."""
    found = conditions(where)
    source = "heads h JOIN owners o ON o.no = h.owner"
    return (
        f"SELECT count(*) FROM {source} WHERE o.digest = ANY(%s) AND {found.sql}",
        [rows.digests(owners), *found.values],
    )


def matching_ids(owners: Iterable[Owner], where: Where) -> tuple[str, list[object]]:
    """The statement for the owners and ids of all memories that match."""
    found = conditions(where)
    return (
        f"SELECT o.name, h.id FROM owners o JOIN heads h ON h.owner = o.no WHERE o.digest = ANY(%s) AND {found.sql}",
        [rows.digests(owners), *found.values],
    )
