"""Versions as lines of JSON, each sealed by a checksum, and back. ``docs/file-format.md`` describes them.

A line is self-contained: it names its owner, its stamp, the stamp it replaced, the line before it in the journal of its
owner, and its batch. Whatever a folder holds besides can be derived from its lines.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from wellkept import codec
from wellkept.text import objects, plain_entries
from wellkept.types import Layer, MemoryType, Operation, Owner, Stamp, State, Stored, Tier, Vector

Fields = dict[str, Any]

SCHEMA = 1
CHECKSUM = "checksum"
UNREADABLE = plain_entries.UNREADABLE
"""What reading a hostile line may raise."""

_MOST = 2**53
TEXT_LENGTH = 1_000
_CONTENT = (("role", "role"), ("message", "text"), ("metadata", "fields"))
_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""What some editors and tools take for ends of lines. They stand inside texts only."""

_BESIDE = ("role", "metadata")
_TIMES = frozenset({"created_at", "occurred_at", "expires_at"})
_NAMED = """type tier tier_set importance decay_factor tags state key author session title occurred_at expires_at
source_type has_pointer trust superseded_by bytes""".split()
"""Facets that stand in a line under their own names; others stand together under ``facets``."""
_NAMES = frozenset(_NAMED)

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "type": str,
    "tier": str,
    "importance": (int, float),
    "decay_factor": (int, float),
    "trust": (int, float),
    "tags": list,
    "state": str,
    "key": str,
    "author": str,
    "session": str,
    "title": str,
    "role": str,
    "access_policy": str,
    "text": str,
    "fields": dict,
    "bytes": int,
}


class Batch(NamedTuple):
    """Which append a line belongs to: a batch counts when all its lines are found."""

    id: str
    place: int
    size: int


class Line(NamedTuple):
    """One version as it stands in a file; its ``seq`` and ``born`` are not known yet, nor its ``born_at``, unless it is
    a tombstone: nothing else tells when an erased memory began.

    ``after`` is the stamp of the line that was written before it for the same owner. A tombstone says which stamps it
    ``removed``, and which batches were complete although lines of them are gone.
    """

    stored: Stored
    after: Stamp | None = None
    batch: Batch | None = None
    vector: Vector | None = None
    keeps_vector: bool = False
    removed: tuple[str, ...] = ()
    completes: tuple[str, ...] = ()


class Flaw(NamedTuple):
    """A line that is not served, and why: ``damaged``, ``edited`` (its checksum does not fit), ``unsealed`` (it has
    none), ``newer`` (of a later release). ``fields`` are there if it could be parsed.
    """

    kind: str
    data: bytes
    fields: Fields | None = None


CORRUPT = frozenset({"damaged", "edited", "misplaced"})
"""The kinds of flaws that are damage."""


# -- sealing --------------------------------------------------------------------------------------------------


def checksum(fields: Mapping[str, Any]) -> str:
    """What a line, or a file, keeps beside its values to know whether they are what was written."""
    return f"sha256:{hashlib.sha256(codec.encode_sorted(fields)).hexdigest()}"


def seal(fields: Fields) -> bytes:
    """A line with its checksum, which is over the values and not over their order.

    >>> line = seal({"b": 1, "a": {"d": 2, "c": 3}})
    >>> unsealed(line) == {"a": {"c": 3, "d": 2}, "b": 1}
    True
    """
    line = codec.encode_json(fields)[:-1] + f',"{CHECKSUM}":"{checksum(fields)}"}}\n'.encode()
    for letter, escaped in _LINE_ENDS:
        line = line.replace(letter, escaped)
    return line


def unsealed(data: bytes) -> Fields | Flaw:
    """What a line says, or why it does not count."""
    try:
        fields = plain_entries.parsed(data)
        found = fields.pop(CHECKSUM, None)
        if found is None:
            return Flaw("unsealed", data, fields)
        if found != checksum(fields):
            return Flaw("edited", data, fields)
    except UNREADABLE:
        return Flaw("damaged", data)
    if isinstance(schema := fields.get("schema_version"), int) and schema > SCHEMA:
        return Flaw("newer", data, fields)
    return fields


def as_object(data: bytes) -> Fields | None:
    """The JSON object of a whole file, if it is one."""
    try:
        found = codec.decode_json(data)
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None


def split(data: bytes) -> Iterator[bytes]:
    """The lines of a file, without their ends and without empty ones."""
    return (line for _, line in plain_entries.numbered(data))


# -- versions -------------------------------------------------------------------------------------------------


def encode(line: Line) -> bytes:
    """The line of a version, or of a tombstone."""
    one = line.stored
    fields: Fields = {"id": one.id}
    if one.owner.layer is Layer.SESSION and one.owner.ids:
        fields["session_id"] = one.owner.ids[-1]
    if one.operation is Operation.ERASED:
        fields["timestamp"] = _iso(one.recorded_at)
        fields |= {"reason": one.reason, "born_at": _iso(one.born_at), "removed": list(line.removed)}
        if line.completes:
            fields["completes"] = list(line.completes)
    else:
        fields |= _structured(_of_facets(one.facets) | _of_payload(one.payload))
        fields["recorded_at"] = _iso(one.recorded_at)
        if one.reason is not None:
            fields["reason"] = one.reason
    fields |= {"schema_version": SCHEMA, "owner": codec.owner_parts(one.owner), "version": one.version}
    fields |= {"operation": one.operation.value, "stamp": one.stamp}
    fields |= {name: value for name, value in (("replaced", one.replaced), ("after", line.after)) if value is not None}
    if one.write_id not in ("", one.stamp):
        fields["write_id"] = one.write_id
    if line.batch is not None:
        fields["batch"] = {"id": line.batch.id, "place": line.batch.place, "count": line.batch.size}
    if line.keeps_vector:
        fields["keeps_vector"] = True
    if line.vector is not None:
        fields["vector"] = of_vector(line.vector)
    return seal(fields)


def decode(data: bytes) -> Line | Flaw:
    """The version of a line, or why it does not count."""
    fields = unsealed(data)
    if isinstance(fields, Flaw):
        return fields
    try:
        return line(plain(fields))
    except UNREADABLE:
        return Flaw("damaged", data, fields)


def line(fields: Fields) -> Line:
    """The version that the members of a line tell of; one of ``UNREADABLE`` if there is none."""
    operation = Operation(fields["operation"])
    erased = operation is Operation.ERASED
    stored = Stored(
        owner=_owner(codec.encode_json(fields["owner"])),
        id=text(fields["id"]),
        version=_number(fields["version"], 1),
        seq=0,
        born=0,
        born_at=micros(fields["born_at"]) if erased else 0,
        recorded_at=micros(fields["timestamp" if erased else "recorded_at"]),
        operation=operation,
        stamp=Stamp(text(fields["stamp"])),
        replaced=None if fields.get("replaced") is None else Stamp(text(fields["replaced"])),
        reason=fields.get("reason"),
        facets={} if erased else to_facets(fields),
        payload=b"" if erased else to_payload(fields),
        write_id=text(fields.get("write_id", fields["stamp"])),
    )
    if stored.reason is not None and not isinstance(stored.reason, str):
        raise ValueError("a reason is a text")
    batch = fields.get("batch")
    return Line(
        stored=stored,
        after=None if fields.get("after") is None else Stamp(text(fields["after"])),
        batch=None
        if batch is None
        else Batch(text(batch["id"]), _number(batch["place"], 1), _number(batch["count"], 1)),
        vector=None if fields.get("vector") is None else to_vector(fields["vector"]),
        keeps_vector=fields.get("keeps_vector") is True,
        removed=tuple(map(text, fields.get("removed", ()))),
        completes=tuple(map(text, fields.get("completes", ()))),
    )


@lru_cache(maxsize=1_000)
def _owner(name: bytes) -> Owner:
    """Most lines of a file have the same one."""
    owner = codec.decode_owner(name)
    if any(len(one) > TEXT_LENGTH for one in (*owner.ids, owner.branch)):
        raise ValueError("an id is too long")
    return owner


# -- facets and payload ---------------------------------------------------------------------------------------


def _of_facets(facets: Mapping[str, Any]) -> Fields:
    rest = dict(facets)
    created_at = rest.pop("created_at", None)
    fields: Fields = {"timestamp": _iso(created_at)}
    if rest.get("occurred_at", "missing") == created_at:
        del rest["occurred_at"]  # most memories are of the time at which they were told
    elif "occurred_at" not in rest:
        fields["occurred_at"] = None
    content = {name: rest.pop(facet) for name, facet in _CONTENT if facet in rest}
    for name in _NAMED:
        if name in rest:
            value = rest.pop(name)
            fields[name] = _iso(value) if name in _TIMES else value
        if name == "type":
            fields["content"] = content
    return fields | ({"facets": rest} if rest else {})


def to_facets(fields: Fields) -> Fields:
    """The facets that a line tells of."""
    content, extra = fields.get("content", {}), fields.get("facets", {})
    facets: Fields = dict(extra) | {facet: content[name] for name, facet in _CONTENT if name in content}
    if fields.get("timestamp") is not None:
        facets["created_at"] = facets["occurred_at"] = micros(fields["timestamp"])
    for name, value in fields.items():
        if name in _NAMES:
            facets[name] = micros(value) if name in _TIMES and value is not None else value
    if facets.get("occurred_at", 0) is None:
        del facets["occurred_at"]
    for name, value in facets.items():
        if name in _KINDS and value is not None and (not isinstance(value, _KINDS[name]) or isinstance(value, bool)):
            raise ValueError(f"{name} has another type")
    if not all(isinstance(tag, str) for tag in facets.get("tags") or ()):
        raise ValueError("a tag is a text")
    _number(facets.get("bytes") or 0, 0)
    MemoryType(facets["type"])  # one line that the engine cannot read would stop every listing
    Tier(facets["tier"])
    State(facets["state"])
    return facets


def size_of(facets: Mapping[str, Any], payload: bytes) -> int:
    """What a memory counts for without its vector, as the engine counts it."""
    always = {"state", "type", "tier", "importance", "created_at", "occurred_at", "bytes", "text"}
    named = {name: value for name, value in facets.items() if name not in always}
    return len((facets.get("text") or "").encode()) + len(codec.encode_json(named)) + len(payload)


def _structured(fields: Fields) -> Fields:
    """With the object that a memory was given as its content, instead of its text, which follows from it."""
    content, payload = fields["content"], fields.get("payload")
    if not isinstance(payload, dict) or next(iter(payload), "") != "data" or not isinstance(payload["data"], dict):
        return fields
    data, *rest = payload.items()
    if objects.rendered(data[1]) != content.get("message"):
        return fields
    beside = {name: content[name] for name in _BESIDE if name in content}
    shown = fields | {"content": data[1], "structured": True} | beside
    return shown | {"payload": dict(rest)} if rest else {name: one for name, one in shown.items() if name != "payload"}


def plain(fields: Fields) -> Fields:
    """A line whose content is an object of its own as one with the text of that object, and the object as data."""
    data, payload = fields.get("content"), fields.get("payload", {})
    if fields.get("structured") is not True or not isinstance(data, dict) or not isinstance(payload, dict):
        return fields
    content = {"message": objects.rendered(data)} | {name: fields[name] for name in _BESIDE if name in fields}
    return fields | {"content": content, "payload": {"data": data} | payload}


def by_hand(fields: Fields) -> Fields:
    """A line that a person or other software wrote: its content may be a text, a message, or any other object."""
    content = fields.get("content")
    if isinstance(content, str):
        return fields | {"content": {"message": content}}
    return plain(fields | {"structured": True} if plain_entries.is_structured(content) else fields)


def _of_payload(payload: bytes) -> Fields:
    """A payload that is plain JSON as an object, so that people can read it; anything else as base64."""
    if not payload:
        return {}
    value: Any = None
    try:
        value = codec.decode_json(payload)
        plain = (
            isinstance(value, dict)
            and codec.encode_json(value) == payload
            and plain_entries.is_shallow(value, plain_entries.DEPTH - 1)
        )
    except UNREADABLE:
        plain = False
    if not plain:
        return {"payload": base64.b64encode(payload).decode()}
    if list(value)[-1:] == ["references"]:
        references = value.pop("references")
        return {"references": references} | ({"payload": value} if value else {})
    return {"payload": value}


def to_payload(fields: Fields) -> bytes:
    """The payload that a line tells of."""
    value = fields.get("payload", {})
    if isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if "references" in fields:
        value = {**value, "references": fields["references"]}
    return codec.encode_json(value) if value or "payload" in fields else b""


# -- values ---------------------------------------------------------------------------------------------------


def of_vector(vector: Vector) -> Fields:
    """A vector as JSON."""
    fields: Fields = {"embedder": vector.embedder, "data": base64.b64encode(vector.data).decode()}
    if vector.spans:
        fields["spans"] = vector.spans
    if vector.pieces:
        fields["pieces"] = base64.b64encode(vector.pieces).decode()
    return fields


def to_vector(fields: Fields) -> Vector:
    """The vector of ``of_vector``."""
    data = base64.b64decode(fields["data"], validate=True)
    if not data or len(data) % 4:
        raise ValueError("not a vector")
    return Vector(
        text(fields["embedder"]),
        data,
        tuple((_number(first, 0), _number(last, 0)) for first, last in fields.get("spans", ())),
        base64.b64decode(fields.get("pieces", ""), validate=True),
    )


def _iso(value: Any) -> Any:
    """A time as people read it; as it is where it is none."""
    if not isinstance(value, int):
        return value
    try:
        return codec.from_micros(value).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return value


def micros(value: Any) -> int:
    """A time in microseconds, written so or as ISO 8601."""
    if isinstance(value, int):
        return _number(value, -_MOST)
    return codec.to_micros(datetime.fromisoformat(value))


def _number(value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise ValueError("not a number, or out of bounds")
    return value


def text(value: Any) -> str:
    """A text that is neither empty nor too long."""
    if not isinstance(value, str) or not value or len(value) > TEXT_LENGTH:
        raise ValueError("not a text, or too long")
    return value
