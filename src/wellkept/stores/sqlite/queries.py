"""Filters and orders as SQL. Every value is bound; the texts here are constants.

``h`` is heads, ``j`` the journal entry of the head, ``a`` its accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import apsw

from wellkept import codec
from wellkept.stores.sqlite import rows
from wellkept.types import Owner, Place, Sort
from wellkept.types.memory import DEFAULT_TRUST

if TYPE_CHECKING:
    from wellkept.filters import Where
    from wellkept.ports import Query

_ORDER: Mapping[Sort, str] = MappingProxyType(
    {
        Sort.NEWEST: "",
        Sort.OLDEST: "",
        Sort.IMPORTANT: "-h.importance",
        Sort.MOST_ACCESSED: "-coalesce(a.count, 0)",
        Sort.RECENTLY_ACCESSED: "-coalesce(a.last_at, 0)",
    }
)
"""The same as ``filters.sort_value``, in SQL; empty where the order of recording decides."""

# The place of the first version at or behind a sequence. Places rise with an owner's sequences, and a memory's number
# is the place of its first version: so sequences of first versions are compared by numbers, erased ones too.
_PLACE_FROM = "SELECT place FROM journal WHERE owner = ? AND seq >= ? ORDER BY seq LIMIT 1"
_NO_PLACE = 2**62


class Conditions:
    """A WHERE clause under construction and its bindings, and which tables it reads beside heads."""

    def __init__(self) -> None:
        self.clauses: list[str] = []
        self.values: list[object] = []
        self.reads_journal = False

    def add(self, clause: str, *values: object) -> None:
        """One more condition that must hold."""
        self.clauses.append(clause)
        self.values.extend(values)

    def among(self, expression: str, values: Iterable[object], *, negated: bool = False) -> None:
        """The expression must be one of the values, or none of them."""
        chosen, bound = rows.among(values)
        self.add(f"{expression} {'NOT IN' if negated else 'IN'} {chosen}", *bound)

    @property
    def sql(self) -> str:
        """The clause."""
        return " AND ".join(self.clauses)


def conditions(owners: Iterable[int], where: Where) -> Conditions:
    """What ``filters.matches`` asks, for the memories of some owners."""
    numbers = list(owners)
    found = Conditions()
    found.among("h.owner", numbers)
    if where.states is not None:
        found.among("h.state", sorted(state.value for state in where.states))
        found.add("(h.expires_at IS NULL OR h.expires_at > ?)", codec.to_micros(where.now))
    if where.types is not None:
        found.among("h.type", sorted(kind.value for kind in where.types))
    if where.tiers is not None:
        found.among("h.tier", sorted(tier.value for tier in where.tiers))
    if where.min_importance is not None:
        found.add("h.importance >= ?", where.min_importance)
    if where.authors is not None:
        found.among("h.author", sorted(where.authors))
    if where.source_type is not None:
        found.add("h.source_type = ?", where.source_type.value)
    if where.has_pointer is not None:
        found.add("h.has_pointer = ?", where.has_pointer)
    _times(found, where)
    _tags(found, where, numbers)
    _slow(found, where)
    return found


def _times(found: Conditions, where: Where) -> None:
    for column, after, before in (
        ("created_at", where.created_after, where.created_before),
        ("occurred_at", where.occurred_after, where.occurred_before),
    ):
        if after is not None:
            found.add(f"h.{column} >= ?", codec.to_micros(after))
        if before is not None:
            found.add(f"h.{column} < ?", codec.to_micros(before))


def _tags(found: Conditions, where: Where, owners: list[int]) -> None:
    chosen, bound = rows.among(owners)

    def tagged(tags: tuple[str, ...]) -> tuple[str, list[object]]:
        levels = " OR ".join(["tag = ? OR (tag >= ? AND tag < ?)"] * len(tags))
        values = [value for tag in tags for value in _subtree(tag)]
        return f"(SELECT number FROM tags WHERE owner IN {chosen} AND ({levels}))", [*bound, *values]

    for tag in where.tags:
        numbers, values = tagged((tag,))
        found.add(f"h.number IN {numbers}", *values)
    if where.any_tags:
        numbers, values = tagged(where.any_tags)
        found.add(f"h.number IN {numbers}", *values)
    if where.no_tags:
        numbers, values = tagged(where.no_tags)
        found.add(f"h.number NOT IN {numbers}", *values)


def _subtree(tag: str) -> tuple[str, str, str]:
    """A tag, and the range of the tags below it: '/' is the character behind '.'."""
    return tag, tag + ".", tag + "/"


_SEARCHABLE = (
    "coalesce(json_extract(j.facets, '$.title'), '') || char(10) || j.text || char(10) || coalesce(h.author, '')"
)

_TRUSTED = f"coalesce(json_extract(j.facets, '$.trust'), {DEFAULT_TRUST}) >= ?"


def _slow(found: Conditions, where: Where) -> None:
    """What no column of heads answers, last, so that it is asked of few rows. A sealed text meets every condition."""
    if where.ids is not None:
        found.among("j.id", sorted(where.ids))
    if where.without:
        found.among("j.id", sorted(where.without), negated=True)
    if where.min_trust is not None:
        found.add(_TRUSTED, where.min_trust)
    if where.has_access_policy is not None:
        found.add("(json_extract(j.facets, '$.access_policy') IS NOT NULL) = ?", where.has_access_policy)
    if where.metadata:
        found.add("has_fields(j.facets, ?)", codec.encode_json(dict(where.metadata)).decode())
    if where.content_contains is not None:
        found.add("(j.text IS NULL OR text_contains(j.text, ?))", where.content_contains)
    if where.text:
        found.add("(j.text IS NULL OR has_words(j.text, ?))", " ".join(where.text))
    if where.pattern is not None:
        found.add(f"(j.text IS NULL OR has_words({_SEARCHABLE}, ?))", where.pattern)
    found.reads_journal = any("j." in clause for clause in found.clauses)


def _sources(found: Conditions, *, accesses: bool = False, journal: bool = False) -> str:
    sources = "heads h"
    if journal or found.reads_journal:
        sources += " JOIN journal j ON j.place = h.place"
    if accesses:
        sources += " LEFT JOIN accesses a ON a.number = h.number"
    return sources


def places(connection: apsw.Connection, query: Query, owners: Mapping[int, Owner]) -> list[int]:
    """The places of the versions of one page, in its order.

    Each owner is asked by itself: its numbers are in the order of recording, so the primary key of heads gives that
    order, and only narrow rows are read before the page is cut.
    """
    upwards = query.sort is Sort.OLDEST
    sign = 1 if upwards else -1
    most = -1 if query.limit is None else query.offset + query.limit
    by_name = sorted((codec.encode_owner(owner), number) for number, owner in owners.items())
    found: list[tuple[float, int, int, int, int]] = []
    for rank, (_, number) in enumerate(by_name):
        statement, values = _of_owner(connection, query, number, owners[number])
        for value, born_at, memory, place in connection.execute(statement, (*values, most)):
            found.append((value, sign * born_at, sign * rank, sign * memory, place))
    if len(by_name) > 1:
        found.sort()
    last = None if query.limit is None else query.offset + query.limit
    return [place for *_, place in found[query.offset : last]]


def _of_owner(connection: apsw.Connection, query: Query, number: int, owner: Owner) -> tuple[str, list[object]]:
    """The statement for the places of one owner that may be on the page."""
    found = conditions([number], query.where)
    value, upwards = _ORDER[query.sort], query.sort is Sort.OLDEST
    if query.after is not None:
        _behind(connection, found, query.after, value, upwards=upwards, number=number, owner=owner)
    order = f"{value}, " if value else ""
    return (
        f"SELECT {value or 0}, h.born_at, h.number, h.place"
        f" FROM {_sources(found, accesses=value.startswith('-coalesce'))} WHERE {found.sql}"
        f" ORDER BY {order}h.number {'ASC' if upwards else 'DESC'} LIMIT ?",
        found.values,
    )


def _behind(
    connection: apsw.Connection,
    found: Conditions,
    after: Place,
    value: str,
    *,
    upwards: bool,
    number: int,
    owner: Owner,
) -> None:
    """Only the memories of an owner that come behind the last memory of the page before."""
    if owner == after.owner:
        born = after.born + 1 if upwards else after.born
        bound = connection.execute(_PLACE_FROM, (number, born)).get
        clause = "h.number >= ?" if upwards else "h.number < ?"
        values: list[object] = [_NO_PLACE if bound is None else bound]
    else:
        # What was recorded at the same time is in the order of the owners' names.
        names = codec.encode_owner(owner), codec.encode_owner(after.owner)
        same_time = names[0] > names[1] if upwards else names[0] < names[1]
        clause = f"h.born_at {'>' if upwards else '<'}{'=' if same_time else ''} ?"
        values = [after.born_at]
    if value:
        clause = f"({value} > ? OR ({value} = ? AND {clause}))"
        values = [after.value, after.value, *values]
    found.add(clause, *values)


def counting(where: Where, owners: Iterable[int]) -> tuple[str, list[object]]:
    """The statement that counts; it reads no contents unless a condition needs them."""
    found = conditions(owners, where)
    return f"SELECT count(*) FROM {_sources(found)} WHERE {found.sql}", found.values


def matching_ids(where: Where, owners: Iterable[int]) -> tuple[str, list[object]]:
    """The statement for owners and ids of all memories that match."""
    found = conditions(owners, where)
    return f"SELECT h.owner, j.id FROM {_sources(found, journal=True)} WHERE {found.sql}", found.values
