"""Filters and orders as SQL. Every value is bound; the texts here are constants.

``h`` is heads, ``j`` the journal entry of the head, ``a`` its accesses.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING

from recollect import codec
from recollect.stores.sqlite import rows
from recollect.types import Sort

if TYPE_CHECKING:
    from recollect.filters import Where
    from recollect.ports import Query

_ORDER = MappingProxyType(
    {
        Sort.NEWEST: "0",
        Sort.OLDEST: "0",
        Sort.IMPORTANT: "-h.importance",
        Sort.MOST_ACCESSED: "-coalesce(a.count, 0)",
        Sort.RECENTLY_ACCESSED: "-coalesce(a.last_at, 0)",
    }
)
"""The same as ``filters.sort_value``, in SQL."""


class Conditions:
    """A WHERE clause under construction and its bindings, and whether it looks into the journal."""

    def __init__(self) -> None:
        self.clauses: list[str] = []
        self.values: list[object] = []
        self.reads_journal = False

    def add(self, clause: str, *values: object) -> None:
        """One more condition that must hold."""
        self.clauses.append(clause)
        self.values.extend(values)

    def among(self, expression: str, values: Iterable[object]) -> None:
        """The expression must be one of the values."""
        chosen = list(values)
        self.add(f"{expression} IN ({marks(chosen)})", *chosen)

    @property
    def sql(self) -> str:
        """The clause."""
        return " AND ".join(self.clauses)


def marks(values: Iterable[object]) -> str:
    """As many placeholders as there are values."""
    return ", ".join("?" for _ in values)


def conditions(owners: Iterable[int], where: Where) -> Conditions:
    """What ``filters.matches`` asks, for the memories of some owners."""
    numbers = list(owners)
    found = Conditions()
    found.among("h.owner", numbers)
    if not where.include_forgotten:
        now = codec.to_micros(where.now)
        found.add("h.state = 'active' AND (h.expires_at IS NULL OR h.expires_at > ?)", now)
    if where.types is not None:
        found.among("h.type", sorted(where.types))
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
    for tag in where.tags:
        found.add(f"h.number IN ({_tagged(owners, 1)})", *owners, *_subtree(tag))
    if where.any_tags:
        levels = [value for tag in where.any_tags for value in _subtree(tag)]
        found.add(f"h.number IN ({_tagged(owners, len(where.any_tags))})", *owners, *levels)
    if where.no_tags:
        levels = [value for tag in where.no_tags for value in _subtree(tag)]
        found.add(f"h.number NOT IN ({_tagged(owners, len(where.no_tags))})", *owners, *levels)


def _tagged(owners: list[int], tags: int) -> str:
    levels = " OR ".join(["tag = ? OR (tag >= ? AND tag < ?)"] * tags)
    return f"SELECT number FROM tags WHERE owner IN ({marks(owners)}) AND ({levels})"


def _subtree(tag: str) -> tuple[str, str, str]:
    """A tag, and the range of the tags below it: '/' is the character behind '.'."""
    return tag, tag + ".", tag + "/"


def _slow(found: Conditions, where: Where) -> None:
    """What no column answers, last, so that it is asked of few rows."""
    if where.ids is not None:
        found.reads_journal = True
        found.among("j.id", sorted(where.ids))
    if where.metadata:
        found.reads_journal = True
        found.add("has_fields(j.body, ?)", codec.encode_json(dict(where.metadata)).decode())
    if where.content_contains is not None:
        found.reads_journal = True
        found.add("text_contains(j.content, ?)", where.content_contains)
    if where.text:
        found.reads_journal = True
        found.add("has_words(j.content, ?)", " ".join(where.text))


def _sources(found: Conditions, *, accesses: bool) -> str:
    sources = "heads h"
    if found.reads_journal:
        sources += " JOIN journal j ON j.sequence = h.sequence"
    if accesses:
        sources += " LEFT JOIN accesses a ON a.number = h.number"
    return sources


def selection(query: Query, owners: Iterable[int]) -> tuple[str, list[object]]:
    """The statement for one page: the places first, from narrow rows, and the memories of those only."""
    found = conditions(owners, query.where)
    order, direction = _ORDER[query.sort], "ASC" if query.sort is Sort.OLDEST else "DESC"
    if query.after is not None:
        value, number = query.after
        beyond = ">" if query.sort is Sort.OLDEST else "<"
        if order == "0":
            found.add(f"h.number {beyond} ?", number)
        else:
            found.add(f"({order} > ? OR ({order} = ? AND h.number {beyond} ?))", value, value, number)
    sources = _sources(found, accesses=order.startswith("-coalesce"))
    places = (
        f"SELECT h.number, h.sequence, {order} AS place FROM {sources} WHERE {found.sql}"
        f" ORDER BY {_first(order)}h.number {direction} LIMIT ? OFFSET ?"
    )
    limit = -1 if query.limit is None else query.limit
    return (
        f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} FROM ({places}) p"
        " JOIN journal j ON j.sequence = p.sequence LEFT JOIN accesses a ON a.number = p.number"
        f" ORDER BY p.place, p.number {direction}",
        [*found.values, limit, query.offset],
    )


def _first(order: str) -> str:
    """A constant would be read as the number of a column, and would keep the index from giving the order."""
    return "" if order == "0" else f"{order}, "


def counting(query: Query, owners: Iterable[int]) -> tuple[str, list[object]]:
    """The statement that counts."""
    found = conditions(owners, query.where)
    return f"SELECT count(*) FROM {_sources(found, accesses=False)} WHERE {found.sql}", found.values


def numbers(query: Query, owners: Iterable[int]) -> tuple[str, list[object]]:
    """The statement for the numbers of all memories that match."""
    found = conditions(owners, query.where)
    return f"SELECT h.number FROM {_sources(found, accesses=False)} WHERE {found.sql}", found.values


def by_beginning(owners: Iterable[int], prefix: str) -> tuple[str, list[object]]:
    """The statement for the active memories that may have a word with that beginning: letters that fold into others
    are beyond SQL, so every text with more than ASCII in it is among them.
    """
    found = Conditions()
    found.among("h.owner", owners)
    return (
        f"SELECT {rows.JOURNAL}, 0, NULL, {rows.NO_VECTOR} FROM heads h JOIN journal j ON j.sequence = h.sequence"
        f" WHERE {found.sql} AND h.state = 'active' AND (j.content LIKE ? OR j.body LIKE ?"
        " OR length(CAST(j.content AS BLOB)) <> length(j.content) OR length(CAST(j.body AS BLOB)) <> length(j.body))",
        [*found.values, f"%{prefix}%", f"%{prefix}%"],
    )


def by_numbers(owners: Iterable[int], numbers: Iterable[int], *, vectors: bool = False) -> tuple[str, list[object]]:
    """The statement for memories whose numbers are known."""
    found = Conditions()
    found.among("h.owner", owners)
    found.among("h.number", numbers)
    chosen = rows.VECTOR if vectors else rows.NO_VECTOR
    joined = " LEFT JOIN vectors v ON v.number = h.number" if vectors else ""
    return (
        f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {chosen} FROM heads h"
        f" JOIN journal j ON j.sequence = h.sequence LEFT JOIN accesses a ON a.number = h.number{joined}"
        f" WHERE {found.sql}",
        found.values,
    )
