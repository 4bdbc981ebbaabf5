"""Between values and rows: what a version, a head and a vector look like in the file."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from typing import Any

import apsw

from wellkept import codec
from wellkept.errors import StoreCorrupt
from wellkept.ports import SettingRow, Step, StoreSettings
from wellkept.types import Facets, Layer, Operation, Owner, Stamp, State, Stored, Vector
from wellkept.types.stored import ALWAYS_THERE

# What most of some vectors are.
_OF_VECTORS = (
    "SELECT embedder, length(data) / 4 / max(1, coalesce(length(spans), 0) / 8)"
    " FROM (SELECT embedder, data, spans FROM vectors LIMIT 500) GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 1"
)
_CHUNKS = (64, 16, 4, 1)
_BOUND = 200  # values: more of them are bound as one JSON text


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


VERSION = (
    "place, owner, id, version, seq, number, born, born_at, recorded_at, operation, stamp, replaced, reason,"
    " write_id, facets, text, payload"
)
CHECKED = f"{VERSION}, checksum"
"""A whole row of the journal, its checksum last."""

HEAD = (
    "owner, number, place, state, type, tier, importance, created_at, occurred_at, expires_at, author, source_type,"
    " has_pointer, bytes, born_at"
)

INTO_JOURNAL = Insert(f"journal ({CHECKED})", 18)
INTO_HEADS = Insert(f"heads ({HEAD})", 15)
INTO_TAGS = Insert("tags (owner, tag, number)", 3)
INTO_KEYS = Insert("keys (owner, key, number)", 3)
INTO_VECTORS = Insert("vectors (number, embedder, data, spans, pieces, digest)", 6)

JOURNAL = ", ".join(f"j.{column}" for column in CHECKED.split(", "))
WITHOUT_PAYLOAD = ", ".join(
    f"NULL AS {column}" if column in ("text", "payload", "checksum") else f"j.{column}"
    for column in CHECKED.split(", ")
)
ACCESSES = "a.count, a.last_at"
NO_ACCESSES = "NULL, NULL"
VECTOR = "v.embedder, v.data, v.spans, v.pieces"
NO_VECTOR = "NULL, NULL, NULL, NULL"

ID_BY_KEY = (
    "SELECT j.id FROM keys k JOIN heads h ON h.owner = k.owner AND h.number = k.number"
    " JOIN journal j ON j.place = h.place WHERE k.owner = ? AND k.key = ?"
)
_FIRST, _LAST = codec.FIRST_MICROS, codec.LAST_MICROS
_SOMEBODY = Owner(Layer.USER, ("",))
_always_there = itemgetter("state", "type", "tier", "importance", "created_at", "occurred_at", "bytes")
_TYPES = {(str, str, str, number, int, int, int) for number in (int, float)}
_COLUMNS = (str, int, int, int, int, int, int)  # from id to recorded_at: without its payload no checksum is compared
_OPTIONAL: Mapping[str, type] = {
    **dict.fromkeys(("key", "author", "role", "session", "title", "source_type", "access_policy"), str),
    "tags": list,
    "derived_from": list,
    "trust": float,
    "fields": dict,
    "expires_at": int,
    "has_pointer": bool,
    "tier_set": bool,
}
_OPERATIONS: Mapping[str, Operation] = {operation.value: operation for operation in Operation}
ERASED = Operation.ERASED.value
BOUND = 2**62
"""Places, sequences and versions are below it. Beyond it are those that somebody planted, to stop all writes."""


def journal_row(step: Step, owner: int, number: int, place: int) -> tuple[object, ...]:
    """A version as a row of the journal, with its checksum. Of an erased memory only the tombstone is kept."""
    write, seq, born, born_at, recorded_at, _, _ = step
    facets: str | None = None
    text: str | None = None
    payload: bytes | None = None
    if write.operation is not Operation.ERASED:
        rest = dict(write.facets)
        text = rest.pop("text", None)
        facets = codec.encode_json(rest).decode()
        payload = write.payload
    values = (
        place,
        owner,
        write.id,
        write.version,
        seq,
        number,
        born,
        born_at,
        recorded_at,
        write.operation,
        write.stamp,
        write.replaced,
        write.reason,
        _written_by(step),
        facets,
        text,
        payload,
    )
    return (*values, checksum(values))


def _written_by(step: Step) -> str | None:
    """The id of a write, unless it is the stamp of the version: most writes have one version."""
    write_id = step.write_id
    return None if write_id == step.write.stamp else write_id


_NUMBERS = struct.Struct("<8q7q")


def checksum(values: Sequence[Any]) -> bytes:
    """The checksum over every other column of a journal row; the lengths keep the texts apart."""
    (
        place,
        owner,
        id_,
        version,
        seq,
        number,
        born,
        born_at,
        recorded_at,
        operation,
        stamp,
        replaced,
        reason,
        write_id,
        facets,
        text,
        payload,
    ) = values
    numbers = _NUMBERS.pack(
        place,
        owner,
        version,
        seq,
        number,
        born,
        born_at,
        recorded_at,
        len(id_),
        len(stamp),
        -1 if replaced is None else len(replaced),
        -1 if reason is None else len(reason),
        -1 if write_id is None else len(write_id),
        -1 if facets is None else len(facets),
        -1 if text is None else len(text),
    )
    texts = f"{operation}{id_}{stamp}{replaced}{reason}{write_id}{facets}{text}".encode()
    return blake2b(numbers + texts + payload if payload else numbers + texts, digest_size=16).digest()


def verify(row: Sequence[Any]) -> None:
    """Refuse a version of the columns ``CHECKED`` that is not what was written."""
    try:
        sound = checksum(row[:17]) == row[17]
    except (TypeError, ValueError, struct.error):
        sound = False  # a column has another type than was written
    if not sound:
        raise damaged(row)


def damaged(row: Sequence[Any]) -> StoreCorrupt:
    """The error of a version that is not what was written, or cannot be decoded."""
    return StoreCorrupt(
        f"version {row[3]} of memory {row[2]!r} is damaged",
        details={"memory_id": row[2], "version": row[3]},
        hint="run doctor with repair=True: it goes back to the last good version",
    )


def head_columns(facets: Facets, size: int) -> tuple[object, ...]:
    """What filters and orders need of a memory as it is now: the columns of heads from ``state`` to ``bytes``. ``size``
    includes the vector; what is archived counts for nothing.
    """
    get = facets.get
    return (
        facets["state"],
        facets["type"],
        facets["tier"],
        facets["importance"],
        facets["created_at"],
        facets["occurred_at"],
        get("expires_at"),
        get("author"),
        get("source_type"),
        get("has_pointer", False),
        0 if facets["state"] == State.ARCHIVED else size,
    )


def vector_row(number: int, vector: Vector, digest: bytes | None) -> tuple[object, ...]:
    """A vector as a row."""
    flat = [place for span in vector.spans for place in span]
    spans = struct.pack(f"<{len(flat)}I", *flat) if flat else None
    return number, vector.embedder, vector.data, spans, vector.pieces or None, digest


def to_vector(embedder: str, data: bytes, spans: bytes | None, pieces: bytes | None) -> Vector:
    """The vector of the columns ``VECTOR``."""
    found = Vector(embedder, data, tuple(struct.iter_unpack("<2I", spans)) if spans else (), pieces or b"")
    if (type(embedder), type(data), type(found.pieces)) != (str, bytes, bytes):
        raise TypeError("a column of a vector has another type")
    return found


def to_stored(row: tuple[Any, ...], owner: Owner, *, payload: bool = True) -> Stored:
    """The version of the columns ``JOURNAL, ACCESSES, VECTOR``; columns behind them are passed over.

    With its payload it is compared with its checksum; what is damaged is ``StoreCorrupt``.
    """
    if payload:
        verify(row)
    try:
        return _decoded(row, owner)
    except (struct.error, *codec.UNREADABLE) as error:
        raise damaged(row) from error


def _decoded(row: tuple[Any, ...], owner: Owner) -> Stored:
    facets: dict[str, Any] = {} if row[14] is None else codec.decode_json(row[14])
    if row[9] != ERASED:
        check_facets(facets)
    if tuple(map(type, row[2:9])) != _COLUMNS:
        raise ValueError("a column has another type")
    if not (_FIRST <= row[7] <= _LAST and _FIRST <= row[8] <= _LAST):
        raise ValueError("a time is out of range")
    if row[15] is not None:
        facets["text"] = row[15]
    return Stored(
        owner,
        row[2],
        row[3],
        row[4],
        row[6],
        row[7],
        row[8],
        _OPERATIONS[row[9]],
        Stamp(row[10]),
        row[11],
        row[12],
        facets,
        row[16] or b"",
        row[18] or 0,
        row[19],
        None if row[21] is None else to_vector(row[20], row[21], row[22], row[23]),
        row[10] if row[13] is None else row[13],
    )


def check_facets(facets: dict[str, Any]) -> None:
    """Refuse facets whose values are of other types than filters and orders compare: nobody else looks at them."""
    if tuple(map(type, _always_there(facets))) not in _TYPES:
        raise ValueError("a facet has another type")
    if len(facets) > len(ALWAYS_THERE):
        for name, value in facets.items():
            if (kind := _OPTIONAL.get(name)) is not None and type(value) is not kind:
                raise ValueError("a facet has another type")
        for tag in facets.get("tags", ()):
            if type(tag) is not str:
                raise ValueError("a tag is no text")


def is_sound(row: Sequence[Any]) -> bool:
    """Whether a version of the columns ``CHECKED`` is what was written, and can be decoded."""
    try:
        to_stored((*row, *[None] * 6), _SOMEBODY)
        return all(number < BOUND for number in (row[0], *row[3:7]))
    except (StoreCorrupt, TypeError):
        return False


def fetch(connection: apsw.Connection, statement: str, values: Sequence[object] = ()) -> list[Any]:
    """All rows of a statement. Their columns are what the statement says, which a type checker cannot know."""
    return connection.execute(statement, values).fetchall()


def among(values: Iterable[Any]) -> tuple[str, list[Any]]:
    """A list for SQL's ``IN``, and its bindings: many values are bound as one JSON text."""
    chosen = list(values)
    if len(chosen) > _BOUND:
        return "(SELECT value FROM json_each(?))", [codec.encode_json(chosen).decode()]
    return f"({', '.join('?' * len(chosen))})", chosen


def settings(connection: apsw.Connection) -> StoreSettings:
    """The settings of the file. For damaged ones, versions and vectors are asked for what the store needs."""
    known = StoreSettings.of_rows(
        SettingRow(readable(name), readable(value), checksum) for name, value, checksum in _setting_rows(connection)
    )
    if not known.damaged:
        return known
    stamp = connection.execute("SELECT stamp FROM journal ORDER BY place DESC LIMIT 1").get
    of_vectors = [
        {"embedder": embedder, "dimension": str(dimension)} for embedder, dimension in fetch(connection, _OF_VECTORS)
    ]
    return known.derive(of_vectors[0] if of_vectors else {}, None if stamp is None else Stamp(stamp))


def _setting_rows(connection: apsw.Connection) -> list[Any]:
    """All as bytes: what is damaged need not be a text any more."""
    return fetch(connection, "SELECT CAST(name AS BLOB), CAST(value AS BLOB), CAST(checksum AS BLOB) FROM settings")


def readable(text: bytes | None) -> str:
    """A text, also if its bytes are damaged; a flipped bit may even make it NULL."""
    return (text or b"").decode(errors="replace")


def set_settings(connection: apsw.Connection, values: Mapping[str, str], *, over: bool = True) -> None:
    """Change settings of the file; those that are there only if ``over``."""
    update = "UPDATE SET value = excluded.value, checksum = excluded.checksum" if over else "NOTHING"
    connection.executemany(
        f"INSERT INTO settings (name, value, checksum) VALUES (?, ?, ?) ON CONFLICT (name) DO {update}",
        [SettingRow.sealed(*one) for one in values.items()],
    )


def mend_settings(connection: apsw.Connection) -> None:
    """Write damaged settings anew, as far as it is known what they were."""
    mended = settings(connection).mended()
    for name, _, _ in _setting_rows(connection):
        if readable(name) in mended:
            connection.execute("DELETE FROM settings WHERE CAST(name AS BLOB) IS ?", (name,))
    written = {name: value for name, value in mended.values() if value is not None}
    set_settings(connection, written | dict(settings(connection).sound))  # what was set since stays


def owner_number(connection: apsw.Connection, owner: Owner) -> int:
    """The number of an owner in this file; 0 if it has none."""
    return number_of_name(connection, codec.encode_owner(owner))


def number_of_name(connection: apsw.Connection, name: str) -> int:
    """The number of an owner, by the index of names."""
    return int(connection.execute("SELECT owner FROM owners WHERE name = ?", (name,)).get or 0)


def revise(connection: apsw.Connection, owner: int | None = None) -> None:
    """Count a change that no version tells of, for one owner or for all, and drop the images that it outdates."""
    chosen, values = ("", ()) if owner is None else (" WHERE owner = ?", (owner,))
    connection.execute(f"UPDATE owners SET revision = revision + 1{chosen}", values)
    connection.execute(f"DELETE FROM images{chosen}", values)
