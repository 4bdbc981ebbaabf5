"""Filters and orders as SQL. Every value is bound; the texts here are constants.

``h`` is heads, ``j`` the journal entry of the head, ``a`` its accesses, ``o`` its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import apsw

from recollect import codec
from recollect.stores.sqlite import rows
from recollect.types import Owner, Place, Sort

if TYPE_CHECKING:
    from recollect.filters import Where
    from recollect.ports import Query

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


def _slow(found: Conditions, where: Where) -> None:
    """What no column of heads answers, last, so that it is asked of few rows. A sealed text meets every condition."""
    if where.ids is not None:
        found.among("j.id", sorted(where.ids))
    if where.without:
        found.among("j.id", sorted(where.without), negated=True)
    if where.metadata:
        found.add("has_fields(j.facets, ?)", codec.encode_json(dict(where.metadata)).decode())
    if where.content_contains is not None:
        found.add("(j.text IS NULL OR text_contains(j.text, ?))", where.content_contains)
    if where.text:
        found.add("(j.text IS NULL OR has_words(j.text, ?))", " ".join(where.text))
    if where.prefix is not None:
        found.add(f"(j.text IS NULL OR has_words({_SEARCHABLE}, ?))", f"{where.prefix}*")
    found.reads_journal = any("j." in clause for clause in found.clauses)


def _sources(found: Conditions, *, accesses: bool = False, journal: bool = False, owners: bool = False) -> str:
    sources = "heads h"
    if journal or found.reads_journal:
        sources += " JOIN journal j ON j.place = h.place"
    if accesses:
        sources += " LEFT JOIN accesses a ON a.number = h.number"
    if owners:
        sources += " JOIN owners o ON o.owner = h.owner"
    return sources


def selection(connection: apsw.Connection, query: Query, owners: Mapping[int, Owner]) -> tuple[str, list[object]]:
    """The statement for one page: the places first, from narrow rows, and the memories of those only."""
    found = conditions(owners, query.where)
    value, upwards = _ORDER[query.sort], query.sort is Sort.OLDEST
    one_owner = len(owners) == 1
    if query.after is not None:
        _behind(connection, found, query.after, value, upwards=upwards, owners=owners)
    direction = "ASC" if upwards else "DESC"
    # Of one owner, numbers are in the order of recording, and the primary key of heads gives it.
    order = [("h.number", direction)]
    if not one_owner:
        order = [("h.born_at", direction), ("o.name", direction), *order]
    if value:
        order = [(value, "ASC"), *order]
    sources = _sources(found, accesses=value.startswith("-coalesce"), owners="o.name" in found.sql or not one_owner)
    columns = ", ".join(f"{expression} AS c{column}" for column, (expression, _) in enumerate(order))
    inner = ", ".join(f"{expression} {way}" for expression, way in order)
    outer = ", ".join(f"p.c{column} {way}" for column, (_, way) in enumerate(order))
    places = f"SELECT h.place, {columns} FROM {sources} WHERE {found.sql} ORDER BY {inner} LIMIT ? OFFSET ?"
    limit = -1 if query.limit is None else query.limit
    return (
        f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} FROM ({places}) p"
        f" JOIN journal j ON j.place = p.place LEFT JOIN accesses a ON a.number = j.number ORDER BY {outer}",
        [*found.values, limit, query.offset],
    )


def _behind(
    connection: apsw.Connection,
    found: Conditions,
    after: Place,
    value: str,
    *,
    upwards: bool,
    owners: Mapping[int, Owner],
) -> None:
    """Only what comes behind the last memory of the page before."""
    number = next((number for number, owner in owners.items() if owner == after.owner), 0)
    born = after.born + 1 if upwards else after.born
    bound = connection.execute(_PLACE_FROM, (number, born)).get
    if bound is None:
        bound = _NO_PLACE
    beyond, same_owner = (">", "h.number >= ?") if upwards else ("<", "h.number < ?")
    if len(owners) == 1 and number:
        clause, values = same_owner, [bound]
    else:
        name = codec.encode_owner(after.owner)
        clause = f"(h.born_at {beyond} ? OR (h.born_at = ? AND (o.name {beyond} ? OR (o.name = ? AND {same_owner}))))"
        values = [after.born_at, after.born_at, name, name, bound]
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
