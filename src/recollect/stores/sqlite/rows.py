"""Between values and rows: what a version, a head and a memory look like in the file."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import apsw

from recollect import codec, types
from recollect.errors import StoreCorrupt
from recollect.types import Memory, Operation, Owner, Vector

if TYPE_CHECKING:
    from recollect.ports import Write

_CHUNKS = (64, 16, 4, 1)


class Insert:
    """Rows into one table, many with one statement: each statement costs a release of the interpreter's lock."""

    __slots__ = ("into", "width")

    def __init__(self, into: str, width: int) -> None:
        self.into, self.width = into, width

    def rows(self, connection: apsw.Connection, values: Sequence[tuple[object, ...]]) -> None:
        """Insert them all."""
        if len(values) <= 1:
            for row in values:
                connection.execute(_statement(self.into, self.width, 1), row)
            return
        start = 0
        for size in _CHUNKS:
            while len(values) - start >= size:
                chunk = values[start : start + size]
                connection.execute(_statement(self.into, self.width, size), tuple(chain.from_iterable(chunk)))
                start += size


@cache
def _statement(into: str, width: int, size: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {into} VALUES {', '.join([row] * size)}"


INTO_JOURNAL = Insert(
    "journal (sequence, id, version, number, owner, operation,"
    " recorded_at, created_at, reason, content, body, checksum)",
    12,
)
INTO_HEADS = Insert(
    "heads (owner, number, sequence, state, type, importance, created_at, occurred_at,"
    " expires_at, author, source_type, has_pointer, bytes)",
    13,
)
INTO_TAGS = Insert("tags (owner, tag, number)", 3)
INTO_KEYS = Insert("keys (owner, key, number)", 3)
INTO_VECTORS = Insert("vectors (number, embedder, data, spans, pieces, digest)", 6)

GENERATION = "generation"
"""The setting that counts changes which the journal does not tell: see ``renew``."""

CHECKED = "sequence, id, version, number, owner, operation, recorded_at, created_at, reason, content, body, checksum"
"""A whole row of the journal, its checksum last."""

JOURNAL = "j.id, j.version, j.number, j.owner, j.operation, j.recorded_at, j.created_at, j.content, j.body"
ACCESSES = "a.count, a.last_at"
NO_VECTOR = "NULL, NULL, NULL, NULL"
VECTOR = "v.embedder, v.data, v.spans, v.pieces"

ID_BY_KEY = (
    "SELECT j.id FROM keys k JOIN heads h ON h.owner = k.owner AND h.number = k.number"
    " JOIN journal j ON j.sequence = h.sequence WHERE k.owner = ? AND k.key = ?"
)

Accesses = tuple[int, datetime]
"""How often, and when last."""


def journal_row(write: Write, body: bytes, number: int, sequence: int, owner: int) -> tuple[object, ...]:
    """A version as a row of the journal, with its checksum."""
    memory = write.memory
    recorded_at = codec.to_micros(write.recorded_at)
    same = memory.created_at is write.recorded_at
    values = (
        sequence,
        memory.id,
        memory.version,
        number,
        owner,
        write.operation,
        recorded_at,
        recorded_at if same else codec.to_micros(memory.created_at),
        write.reason,
        memory.content,
        body.decode(),
    )
    return (*values, checksum(values))


def tombstone(write: Write, number: int, sequence: int, owner: int) -> tuple[object, ...]:
    """What remains of an erased memory: that it was erased, when and why."""
    at = codec.to_micros(write.recorded_at)
    memory = write.memory
    values = (sequence, memory.id, memory.version, number, owner, Operation.ERASED, at, at, write.reason, None, None)
    return (*values, checksum(values))


def checksum(values: tuple[Any, ...]) -> bytes:
    """The checksum over every other column of a journal row; the lengths keep the texts apart."""
    sequence, id_, version, number, owner, operation, recorded_at, created_at, reason, content, body = values
    return codec.checksum(
        f"{sequence},{version},{number},{owner},{operation},{recorded_at},{created_at}"
        f",{len(id_)}:{id_},{len(reason or '')}:{reason},{len(content or '')}:{content},{body}"
    )


def verify(row: tuple[Any, ...]) -> None:
    """Refuse to build on a version that is not what was written: the damage would get a valid checksum."""
    try:
        sound = checksum(row[:-1]) == row[-1]
    except TypeError:
        sound = False  # what was a text is none any more
    if not sound:
        raise StoreCorrupt(
            f"version {row[2]} of memory {row[1]!r} is damaged",
            details={"memory_id": row[1], "version": row[2], "sequence": row[0]},
            hint="run doctor with repair=True: it goes back to the last good version",
        )


def head_row(memory: Memory, number: int, sequence: int, owner: int, size: int) -> tuple[object, ...]:
    """The columns that filters and orders need of a memory as it is now."""
    created_at = codec.to_micros(memory.created_at)
    return (
        owner,
        number,
        sequence,
        memory.state,
        memory.type,
        memory.importance,
        created_at,
        created_at if memory.occurred_at is memory.created_at else codec.to_micros(memory.occurred_at),
        None if memory.expires_at is None else codec.to_micros(memory.expires_at),
        memory.author,
        memory.source.type if memory.source else None,
        memory.pointer is not None,
        size,
    )


def vector_row(number: int, vector: Vector, digest: bytes | None) -> tuple[object, ...]:
    """A vector as a row."""
    flat = [place for span in vector.spans for place in span]
    spans = struct.pack(f"<{len(flat)}I", *flat) if flat else None
    return number, vector.embedder, vector.data, spans, vector.pieces or None, digest


def to_vector(embedder: str, data: bytes, spans: bytes | None, pieces: bytes | None) -> Vector:
    """The vector of the columns ``VECTOR``."""
    return Vector(embedder, data, tuple(struct.iter_unpack("<2I", spans)) if spans else (), pieces or b"")


def to_memory(row: tuple[Any, ...], owner: Owner, pending: Accesses | None = None) -> Memory:
    """The memory of the columns ``JOURNAL, ACCESSES, VECTOR``, with accesses not yet written added."""
    id_, version, _, _, _, recorded_at, created_at, content, body, count, last_at, embedder, data, spans, pieces = row
    last_accessed_at = None if last_at is None else codec.from_micros(last_at)
    if pending is not None:
        count, last_accessed_at = (count or 0) + pending[0], pending[1]
    created = codec.from_micros(created_at)
    return codec.decode_memory(
        body,
        id=id_,
        content=content,
        owner=owner,
        version=version,
        created_at=created,
        updated_at=created if recorded_at == created_at else codec.from_micros(recorded_at),
        access_count=count or 0,
        last_accessed_at=last_accessed_at,
        vector=None if data is None else to_vector(embedder, data, spans, pieces),
    )


def to_version(row: tuple[Any, ...], owners: Mapping[int, Owner]) -> types.Version:
    """The journal entry of the columns ``JOURNAL, sequence, reason``."""
    *kept, sequence, reason = row
    erased = kept[4] == Operation.ERASED
    owner = owners[kept[3]]
    return types.Version(
        sequence=sequence,
        memory_id=kept[0],
        owner=owner,
        version=kept[1],
        operation=Operation(kept[4]),
        recorded_at=codec.from_micros(kept[5]),
        reason=reason,
        memory=None if erased else to_memory((*kept, 0, None, None, None, None, None), owner),
    )


def checked_version(row: tuple[Any, ...], owner: Owner) -> types.Version:
    """The journal entry of the columns ``CHECKED``."""
    sequence, id_, version, number, owned, operation, recorded_at, created_at, reason, content, body, _ = row
    kept = (id_, version, number, owned, operation, recorded_at, created_at, content, body)
    return to_version((*kept, sequence, reason), {owned: owner})


def fetch(connection: apsw.Connection, statement: str, values: Sequence[object] = ()) -> list[Any]:
    """All rows of a statement. Their columns are what the statement says, which a type checker cannot know."""
    return connection.execute(statement, values).fetchall()


def settings(connection: apsw.Connection) -> dict[str, str]:
    """What the file says about itself."""
    return dict(fetch(connection, "SELECT name, value FROM settings"))


def set_settings(connection: apsw.Connection, values: Mapping[str, str]) -> None:
    """Change what the file says about itself."""
    connection.executemany(
        "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        list(values.items()),
    )


def owner_number(connection: apsw.Connection, owner: Owner) -> int:
    """The number of an owner in this file; 0 if it never owned anything here."""
    found = connection.execute("SELECT owner FROM owners WHERE name = ?", (codec.encode_owner(owner),)).get
    return int(found or 0)


def forget_images(connection: apsw.Connection, owner: int | None = None) -> None:
    """Drop the stored indexes, of one owner or of all. After dropping all, whoever holds one makes it anew."""
    if owner is not None:
        connection.execute("DELETE FROM images WHERE owner = ?", (owner,))
        return
    connection.execute("DELETE FROM images")
    renew(connection)


def renew(connection: apsw.Connection) -> None:
    """Tell the processes that hold an index that something changed which the journal does not tell."""
    connection.execute(
        "INSERT INTO settings (name, value) VALUES (?, '1')"
        " ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)",
        (GENERATION,),
    )
