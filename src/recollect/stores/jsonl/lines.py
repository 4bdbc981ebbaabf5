"""Values as lines of JSON, each with a checksum, and back. ``docs/file-format.md`` describes them."""

import base64
import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from typing import Any, NotRequired, TypedDict, cast

from recollect import codec
from recollect.errors import SchemaTooNew
from recollect.stores.journal import Accesses, Entry
from recollect.types import KnowledgePointer, Layer, Memory, MemoryType, Operation, Owner, Source, State, Vector

Fields = dict[str, Any]

STEPS: tuple[Callable[[Fields], Fields], ...] = ()
"""From schema 1 to 2, from 2 to 3, ...: old lines are read through them, and written anew when a file is rewritten."""

SCHEMA = 1 + len(STEPS)
_OPTIONAL = (
    "key",
    "expires_at",
    "title",
    "description",
    "language",
    "author",
    "session",
    "type_name",
    "confidence",
    "relevance",
    "source",
    "pointer",
)
"""Fields of a memory that stand in a line under their own names, if they have a value."""


_ENDING_BYTES = len(',"checksum":"sha256:"}') + 64


def checksum(fields: Fields) -> str:
    """The checksum of a line: over all of it but itself, however its members are ordered.

    >>> checksum({"a": 1, "b": {"c": 2, "d": 3}}) == checksum({"b": {"d": 3, "c": 2}, "a": 1})
    True
    """
    return f"sha256:{hashlib.sha256(codec.encode_sorted(fields)).hexdigest()}"


def seal(fields: Fields) -> bytes:
    """A line with its checksum: the canonical form with one more member at its end."""
    canonical = codec.encode_sorted(fields)
    return canonical[:-1] + _ending(hashlib.sha256(canonical).hexdigest()) + b"\n"


def _ending(digits: str) -> bytes:
    return f',"checksum":"sha256:{digits}"}}'.encode()


def seal_of(line: bytes) -> bytes | None:
    """The checksum of a line that is what ``seal`` wrote, byte for byte: far quicker to find out than to bring it into
    order. Equal checksums mean equal lines.
    """
    found = hashlib.sha256(line[:-_ENDING_BYTES] + b"}")
    return found.digest() if line.endswith(_ending(found.hexdigest())) else None


def unseal(line: bytes, file: str) -> Fields | None:
    """What stands in a line; none if it is not what was written."""
    try:
        fields = codec.decode_json(line)
        found = fields.pop("checksum")
        if seal_of(line) is None and found != checksum(fields):
            return None
        schema = fields.get("schema_version", SCHEMA)
        if schema > SCHEMA:
            raise SchemaTooNew(
                f"{file!r} has lines of schema {schema}, this release reads up to {SCHEMA}",
                details={"file": file, "schema": schema},
                hint="install a newer release of recollect",
            )
    except codec.UNREADABLE:
        return None
    for step in STEPS[schema - 1 :]:
        fields = step(fields)
    return fields  # type: ignore[no-any-return]  # it had a member to pop, and checksum took it for an object


def split(data: bytes) -> Iterator[bytes]:
    """The lines of a file; both line ends are allowed, and empty lines. One by one: all of them take as much again."""
    if b"\r" in data:
        return (line for line in data.splitlines() if line.strip())
    return filter(None, (line.rstrip(b"\n") for line in BytesIO(data)))


# -- versions -------------------------------------------------------------------------------------------------


class _Content(TypedDict):
    role: str | None
    message: str
    metadata: dict[str, Any]


class _Version(TypedDict):
    """A version as ``of_entry`` writes it."""

    id: str
    timestamp: datetime
    type: MemoryType
    content: _Content
    importance: float
    decay_factor: float | None
    tags: tuple[str, ...]
    references: tuple[str, ...]
    schema_version: int
    owner: list[str]
    sequence: int
    version: int
    operation: Operation
    number: NotRequired[int]
    recorded_at: NotRequired[datetime]
    reason: NotRequired[str]
    occurred_at: NotRequired[datetime]
    state: NotRequired[State]
    key: NotRequired[str]
    expires_at: NotRequired[datetime]
    title: NotRequired[str]
    description: NotRequired[str]
    language: NotRequired[str]
    author: NotRequired[str]
    session: NotRequired[str]
    type_name: NotRequired[str]
    confidence: NotRequired[float]
    relevance: NotRequired[float]
    source: NotRequired[Source]
    pointer: NotRequired[KnowledgePointer]


_read_version = codec.reader(_Version)


def unseal_version(line: bytes, file: str) -> Fields | None:
    """``unseal`` for versions, of which there are many: in two thirds of the time, if the line is as we wrote it."""
    return unseal(line, file) if seal_of(line) is None else unseal_own(line, file)


def unseal_own(line: bytes, file: str) -> Fields | None:
    """The same for a line that has the ``seal_of`` ours."""
    try:
        fields = cast("Fields", _read_version(line))
    except codec.UNREADABLE:
        return unseal(line, file)  # perhaps of another schema
    return fields if fields["schema_version"] == SCHEMA else unseal(line, file)


def of_entry(entry: Entry, memory: Memory) -> bytes:
    """A version: the fields of a memory, then what the journal knows of it."""
    fields: Fields = {"id": entry.memory_id}
    if entry.owner.layer is Layer.SESSION:
        fields["session_id"] = entry.owner.ids[-1] if entry.owner.ids else None
    fields |= {
        "timestamp": memory.created_at,
        "type": memory.type,
        "content": {"role": memory.role, "message": memory.content, "metadata": memory.metadata},
        "importance": memory.importance,
        "decay_factor": memory.decay_factor,
        "tags": memory.tags,
        "references": memory.references,
        "schema_version": SCHEMA,
        "owner": [entry.owner.layer, *entry.owner.ids],
        "sequence": entry.sequence,
        "version": entry.version,
        "operation": entry.operation,
    }
    if entry.number != entry.sequence:
        fields["number"] = entry.number
    if entry.recorded_at != memory.created_at:
        fields["recorded_at"] = entry.recorded_at
    if entry.reason is not None:
        fields["reason"] = entry.reason
    if memory.occurred_at != memory.created_at:
        fields["occurred_at"] = memory.occurred_at
    if memory.state is not State.ACTIVE:
        fields["state"] = memory.state
    fields |= {name: value for name in _OPTIONAL if (value := getattr(memory, name)) is not None}
    return seal(fields)


def to_entry(fields: Fields) -> Entry:
    """The version that a line tells of. The fields of a memory that stand under other names there come last."""
    owner, content, created_at = _owner(*fields["owner"]), fields["content"], fields["timestamp"]
    memory = codec.make_memory(
        fields,
        content=content["message"],
        metadata=content["metadata"],
        role=content["role"],
        owner=owner,
        created_at=created_at,
        updated_at=fields.get("recorded_at", created_at),
        occurred_at=fields.get("occurred_at", created_at),
    )
    sequence = int(fields["sequence"])
    return Entry(
        sequence,
        int(fields.get("number", sequence)),
        memory.version,
        Operation(fields["operation"]),
        memory.updated_at,
        fields.get("reason"),
        memory.id,
        owner,
        memory,
    )


@lru_cache(maxsize=1_000)
def _owner(layer: str, *ids: str) -> Owner:
    """Most lines of a file have the same one."""
    return Owner(Layer(layer), ids)


# -- tombstones -----------------------------------------------------------------------------------------------


def of_tombstone(entry: Entry) -> bytes:
    """That a memory was forgotten or erased: when, why, and what the journal keeps of an erased one."""
    return seal(
        {
            "id": entry.memory_id,
            "timestamp": entry.recorded_at,
            "reason": entry.reason,
            "operation": entry.operation,
            "schema_version": SCHEMA,
            "owner": [entry.owner.layer, *entry.owner.ids],
            "sequence": entry.sequence,
            "version": entry.version,
            "number": entry.number,
        }
    )


def to_mark(fields: Fields) -> Entry | None:
    """The mark of an erased memory; of a forgotten one the versions tell."""
    if fields["operation"] != Operation.ERASED:
        return None
    return Entry(
        fields["sequence"],
        fields["number"],
        fields["version"],
        Operation.ERASED,
        _moment(fields["timestamp"]),
        fields["reason"],
        fields["id"],
        _owner(*fields["owner"]),
        None,
    )


def _moment(text: str) -> datetime:
    return codec.decode_as(codec.encode_json(text), datetime)


# -- vectors, accesses and settings ---------------------------------------------------------------------------


def of_vector(memory_id: str, vector: Vector | None, sequence: int | None) -> bytes:
    """A vector that came with a version, or later (without a sequence); ``null`` if the version has none."""
    fields: Fields = {"id": memory_id, "schema_version": SCHEMA}
    if sequence is not None:
        fields["sequence"] = sequence
    if vector is None:
        return seal({**fields, "vector": None})
    fields |= {"embedder": vector.embedder, "vector": base64.b64encode(vector.data).decode()}
    if vector.spans:
        fields["spans"] = vector.spans
    if vector.pieces:
        fields["pieces"] = base64.b64encode(vector.pieces).decode()
    return seal(fields)


def to_vector(fields: Fields) -> tuple[str, Vector | None, bool]:
    """The id, the vector, and whether it came with a version and so replaces all others."""
    vector = None
    if fields["vector"] is not None:
        vector = Vector(
            fields["embedder"],
            base64.b64decode(fields["vector"]),
            tuple((first, last) for first, last in fields.get("spans", ())),
            base64.b64decode(fields.get("pieces", "")),
        )
    return fields["id"], vector, "sequence" in fields


def of_accesses(memory_id: str, accesses: Accesses) -> bytes:
    """Accesses that were counted since the last line."""
    return seal({"id": memory_id, "count": accesses.count, "last_accessed": accesses.last_at, "schema_version": SCHEMA})


def to_accesses(fields: Fields) -> tuple[str, Accesses]:
    """The id, and accesses to it."""
    return fields["id"], Accesses(fields["count"], _moment(fields["last_accessed"]))


def of_setting(name: str, value: str | None) -> bytes:
    """A setting; ``null`` if it is no more."""
    return seal({"name": name, "value": value, "schema_version": SCHEMA})
