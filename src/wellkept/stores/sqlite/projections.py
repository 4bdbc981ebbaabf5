"""What follows from the journal: heads, tags, keys and the counters of owners, derived again for checks and repairs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from wellkept import codec
from wellkept.errors import StoreCorrupt
from wellkept.stores.sqlite import connections, rows

_NEWEST = (
    "FROM journal j LEFT JOIN vectors v ON v.number = j.number WHERE j.operation <> 'erased' AND NOT EXISTS"
    " (SELECT 1 FROM journal k WHERE k.id = j.id AND k.owner = j.owner AND k.version > j.version)"
)
# Sequences of versions set aside as damaged are not given again: followers have passed them.
_LAST = (
    "SELECT owner, max(seq), max(recorded_at) FROM"
    " (SELECT owner, seq, recorded_at FROM journal UNION ALL SELECT owner, seq, 0 FROM damaged"
    f" WHERE typeof(owner) = 'integer' AND typeof(seq) = 'integer' AND seq < {rows.BOUND}) GROUP BY owner"
)


@dataclass(frozen=True, slots=True)
class Projection:
    """What the newest version of a memory looks like in heads, tags and keys."""

    head: tuple[object, ...]
    tags: tuple[tuple[int, str, int], ...]
    keys: tuple[tuple[int, str, int], ...]


class OwnerCounters(NamedTuple):
    """The counters of an owner, by its number."""

    owner: int
    seq: int
    memories: int
    bytes_used: int
    last_at: int


def projections(connection: apsw.Connection) -> Iterator[Projection]:
    """The projections that follow from the journal."""
    newest = connection.execute(f"SELECT {raw(rows.JOURNAL)}, length(v.data) {_NEWEST}")
    for *row, vector_bytes in newest:
        # What cannot be read is left out: the check of the checksums names it.
        projection = None
        with suppress(StoreCorrupt, *connections.UNREADABLE):
            projection = _projection(decoded(row), vector_bytes or 0)
        if projection is not None:
            yield projection


def _projection(row: tuple[Any, ...], vector_bytes: int) -> Projection:
    place, owner, number, facets = row[0], row[1], row[5], codec.decode_json(row[14])
    rows.check_facets(facets)
    size = int(facets["bytes"]) + vector_bytes
    return Projection(
        head=(owner, number, place, *rows.head_columns(facets, size), row[7]),
        tags=tuple((owner, tag, number) for tag in facets.get("tags", ())),
        keys=() if facets.get("key") is None else ((owner, facets["key"], number),),
    )


def counters(connection: apsw.Connection, projected: Iterable[Projection]) -> list[OwnerCounters]:
    """The counters that follow from the journal and the projections."""
    memories: defaultdict[Any, int] = defaultdict(int)
    used: defaultdict[Any, int] = defaultdict(int)
    for projection in projected:
        owner, size = projection.head[0], projection.head[13]
        memories[owner] += 1
        used[owner] += int(str(size))
    last = {owner: (seq, at) for owner, seq, at in rows.fetch(connection, _LAST)}
    owners = [owner for (owner,) in rows.fetch(connection, "SELECT owner FROM owners")]
    return [
        OwnerCounters(owner, last.get(owner, (0, 0))[0], memories[owner], used[owner], last.get(owner, (0, 0))[1])
        for owner in owners
    ]


def rebuild(connection: apsw.Connection) -> None:
    """Make every projection again. Where one was wrong, the owner's revision rises: indexes of it are outdated."""
    projected = list(projections(connection))
    derived: dict[rows.Insert, list[tuple[Any, ...]]] = {
        rows.INTO_HEADS: [projection.head for projection in projected],
        rows.INTO_TAGS: [row for projection in projected for row in projection.tags],
        rows.INTO_KEYS: [row for projection in projected for row in projection.keys],
    }
    wrong: set[Any] = set()
    for insert, expected in derived.items():
        table, columns = insert.into.rstrip(")").split(" (")
        actual = rows.fetch(connection, f"SELECT {columns} FROM {table}")
        differing = {row[0] for row in {*expected} ^ {*actual}}
        if differing or len(actual) != len(expected):
            connection.execute(f"DELETE FROM {table}")
            insert.rows(connection, expected)
            wrong |= differing
    connection.executemany(
        # A sequence that was given once is not given again, whatever became of its version.
        f"UPDATE owners SET seq = max(iif(seq < {rows.BOUND}, seq, 0), ?), memories = ?, bytes = ?,"
        f" last_at = max(iif(last_at <= {codec.LAST_MICROS}, last_at, 0), ?) WHERE owner = ?",
        [(one.seq, one.memories, one.bytes_used, one.last_at, one.owner) for one in counters(connection, projected)],
    )
    for owner in wrong:
        rows.revise(connection, owner)
    connection.execute("DELETE FROM images")


_TEXTS = r"\b(?:j\.)?(?:id|operation|stamp|replaced|reason|write_id|facets|text)\b"


def raw(columns: str) -> str:
    """Columns of the journal with their texts as bytes: what is damaged need not be a text any more."""
    return re.sub(_TEXTS, r"CAST(\g<0> AS BLOB)", columns)


def decoded(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row of raw columns with its texts; payload and checksum stay bytes."""
    return tuple(
        value.decode() if isinstance(value, bytes) and column < 16 else value for column, value in enumerate(row)
    )
