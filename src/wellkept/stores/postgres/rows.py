"""Between values and rows: what a version, a head, a vector and an owner look like in the tables."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from wellkept import codec
from wellkept.errors import StoreCorrupt
from wellkept.ports import Step
from wellkept.types import Operation, Owner, Stamp, State, Stored, Vector
from wellkept.types.stored import ALWAYS_THERE

ERASED = Operation.ERASED.value
_OPERATIONS: Mapping[str, Operation] = {operation.value: operation for operation in Operation}

VERSION = (
    "id, version, seq, born, born_at, recorded_at, operation, stamp, replaced, reason, write_id, facets, content,"
    " payload, digest"
)
JOURNAL = ", ".join(f"j.{column}" for column in VERSION.split(", "))
WITHOUT_PAYLOAD = ", ".join(
    f"NULL AS {column}" if column in ("content", "payload", "digest") else f"j.{column}"
    for column in VERSION.split(", ")
)
ACCESSES = "a.times, a.last_at"
NO_ACCESSES = "NULL::bigint, NULL::bigint"
VECTOR = "v.embedder, v.data, v.spans, v.pieces"
NO_VECTOR = "NULL::text, NULL::bytea, NULL::bytea, NULL::bytea"
PLAIN = f"o.name, {JOURNAL}, {NO_ACCESSES}, {NO_VECTOR}"
"""A version by itself, with its owner; what belongs to its memory is left out."""


def looked_up(table: str, name: str, condition: str, *, optional: bool = False) -> str:
    """A join with the one row of a table that a condition names by a key. OFFSET keeps the planner from joining freely:
    where most owners are small, it would read all rows of the owner, which may be the large one.
    """
    join, on = ("LEFT JOIN", " ON true") if optional else ("CROSS JOIN", "")
    return f" {join} LATERAL (SELECT * FROM {table} {name} WHERE {condition} OFFSET 0) {name}{on}"


HEAD_BY_ID = looked_up("heads", "h", "h.owner = o.no AND h.id = w.id")


WHO, ID, SEQ, OPERATION, STAMP, DIGEST = 0, 1, 3, 7, 8, 15


class Named(NamedTuple):
    """How the tables know an owner: by its name, and by a digest of it, which is short whatever the name is."""

    name: str
    digest: bytes
    lock: int


@lru_cache(maxsize=10_000)
def named(owner: Owner) -> Named:
    """The name and digest of an owner, and the number of its lock.

    >>> from wellkept.types import Layer
    >>> named(Owner(Layer.USER, ("ada",))).name
    '["user","ada"]'
    """
    name = codec.encode_owner(owner)
    digest = blake2b(name.encode(), digest_size=16).digest()
    return Named(name, digest, int.from_bytes(digest[:8], "big", signed=True))


def digests(owners: Iterable[Owner]) -> list[bytes]:
    """The digests of owners."""
    return [named(owner).digest for owner in owners]


_owner_of = lru_cache(maxsize=10_000)(codec.decode_owner)


def owner_of(name: str) -> Owner:
    """The owner that has a name."""
    return _owner_of(name)


class JournalRow(NamedTuple):
    """A version as the journal keeps it, without owner and epoch. Of an erased memory only the tombstone is kept."""

    id: str
    version: int
    seq: int
    born: int
    born_at: int
    recorded_at: int
    operation: str
    stamp: str
    replaced: str | None
    reason: str | None
    write_id: str | None
    facets: str | None
    content: str | None
    payload: bytes | None
    digest: bytes


def journal_row(step: Step) -> JournalRow:
    """The row of a step."""
    write = step.write
    facets = content = payload = None
    if write.operation is not Operation.ERASED:
        rest = dict(write.facets)
        content = rest.pop("text", None)
        facets = codec.encode_json(rest).decode()
        payload = write.payload
    values = (
        *(write.id, write.version, step.seq, step.born, step.born_at, step.recorded_at, write.operation.value),
        *(str(write.stamp), write.replaced, write.reason),
        # Most writes have one version: its stamp is the id of the write.
        *(None if step.write_id == write.stamp else step.write_id, facets, content, payload),
    )
    return JournalRow(*values, checksum(values))


_NUMBERS = struct.Struct("<5q8q")


def checksum(values: Sequence[Any]) -> bytes:
    """The checksum over a version; the lengths keep the texts apart."""
    id_, version, seq, born, born_at, recorded_at, operation, *texts, payload = values
    lengths = [-1 if text is None else len(text) for text in (id_, operation, *texts)]
    packed = _NUMBERS.pack(version, seq, born, born_at, recorded_at, *lengths)
    joined = "".join(text for text in (id_, operation, *texts) if text is not None).encode()
    return blake2b(packed + joined + (payload or b""), digest_size=16).digest()


def verify(row: Sequence[Any]) -> None:
    """Refuse a version that is not what was written. The row begins with its owner's name."""
    try:
        sound = checksum(row[ID:DIGEST]) == row[DIGEST]
    except (TypeError, ValueError, struct.error):
        sound = False
    if not sound:
        raise StoreCorrupt(
            f"version {row[2]} of memory {row[ID]!r} is damaged",
            details={"memory_id": row[ID], "version": row[2]},
            hint="run doctor; restore the database from a backup of the server",
        )


def to_stored(row: Sequence[Any]) -> Stored:
    """The version of the columns ``o.name, JOURNAL, ACCESSES, VECTOR``; columns behind them are passed over."""
    try:
        facets: dict[str, Any] = {} if row[12] is None else codec.decode_json(row[12])
        if row[OPERATION] != ERASED and not facets.keys() >= ALWAYS_THERE:
            raise ValueError("a facet is missing")
    except codec.UNREADABLE as error:
        raise StoreCorrupt(
            f"version {row[2]} of memory {row[ID]!r} is damaged",
            details={"memory_id": row[ID], "version": row[2]},
            hint="run doctor; restore the database from a backup of the server",
        ) from error
    if row[13] is not None:
        facets["text"] = row[13]
    return Stored(
        _owner_of(row[WHO]),
        row[ID],
        row[2],
        row[SEQ],
        row[4],
        row[5],
        row[6],
        _OPERATIONS[row[OPERATION]],
        Stamp(row[STAMP]),
        row[9],
        row[10],
        facets,
        row[14] or b"",
        row[16] or 0,
        row[17],
        None if row[19] is None else to_vector(*row[18:22]),
        row[STAMP] if row[11] is None else row[11],
    )


def checked(row: Sequence[Any]) -> Stored:
    """The same, after its checksum was compared."""
    verify(row)
    return to_stored(row)


HEAD = (
    "owner, id, born, born_at, seq, version, stamp, state, type, tier, importance, created_at, occurred_at,"
    " expires_at, author, source_type, has_pointer, tags, key, size, vector"
)


def head_row(owner: int, step: Step) -> tuple[object, ...]:
    """A memory as a step leaves it: what filters and orders need of it. A tombstone keeps nothing of it."""
    write, after = step.write, step.after
    place = (owner, write.id, after.born, after.born_at, step.seq, after.version, str(after.stamp))
    if after.erased:
        return (*place, ERASED, "", "", 0.0, 0, 0, None, None, None, False, [], None, 0, 0)
    facets = write.facets
    get = facets.get
    return (
        *place,
        str(facets["state"]),
        str(facets["type"]),
        str(facets["tier"]),
        float(facets["importance"]),
        facets["created_at"],
        facets["occurred_at"],
        get("expires_at"),
        get("author"),
        get("source_type"),
        bool(get("has_pointer", False)),
        list(get("tags", ())),
        after.key,
        after.size,
        after.vector,
    )


def vector_row(owner: int, born: int, vector: Vector, digest: bytes | None) -> tuple[object, ...]:
    """A vector as a row."""
    flat = [place for span in vector.spans for place in span]
    spans = struct.pack(f"<{len(flat)}I", *flat) if flat else None
    return owner, born, vector.embedder, vector.data, spans, vector.pieces or None, digest


def to_vector(embedder: str, data: bytes, spans: bytes | None, pieces: bytes | None) -> Vector:
    """The vector of the columns ``VECTOR``."""
    return Vector(embedder, data, tuple(struct.iter_unpack("<2I", spans)) if spans else (), pieces or b"")


COUNTED = f"h.state NOT IN ('{ERASED}', '{State.ARCHIVED.value}')"
"""Whose bytes count."""
