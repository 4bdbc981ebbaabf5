"""Values to bytes and back: the one place that knows msgspec.

A memory is kept as JSON with the fields that differ from their defaults, so that a person can read it and a later
release can add fields. ``docs/file-format.md`` describes the form.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from recollect import types
from recollect.errors import InvalidInput, StoreCorrupt
from recollect.types import (
    KnowledgePointer,
    Layer,
    Memory,
    MemoryType,
    Owner,
    Source,
    State,
    Vector,
)
from recollect.types.memory import DEFAULT_IMPORTANCE

if TYPE_CHECKING:
    from recollect.types import Version

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Body(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=False):
    """A memory without what its store keeps beside it: id, owner, version, times of recording, content."""

    type: MemoryType = MemoryType.FACT
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    title: str | None = None
    description: str | None = None
    language: str | None = None
    author: str | None = None
    role: str | None = None
    type_name: str | None = None
    confidence: float | None = None
    relevance: float | None = None
    decay_factor: float | None = None
    source: Source | None = None
    pointer: KnowledgePointer | None = None
    references: tuple[str, ...] = ()
    key: str | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    state: State = State.ACTIVE
    session: str | None = None


class Told(msgspec.Struct):
    """The few fields of a body that an index looks at: reading only these takes a fifth of the time."""

    title: str | None = None
    author: str | None = None
    role: str | None = None
    session: str | None = None
    metadata: dict[str, Any] = {}


class Described(msgspec.Struct, omit_defaults=True, gc=False):
    """What an index of plain files tells of a memory: there are many, and the garbage collector need not look at them.

    >>> encode_json(Described(1, 0, MemoryType.FACT, _EPOCH, ("ui",), 0.5, 0.25))[:33]
    b'{"line_number":1,"byte_offset":0,'
    """

    line_number: int
    byte_offset: int
    type: MemoryType
    timestamp: datetime
    tags: tuple[str, ...]
    importance: float
    current_relevance: float
    deleted: bool = False


_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")
_body_decoder = msgspec.json.Decoder(_Body)
_told_decoder = msgspec.json.Decoder(Told)
_fields_decoder = msgspec.json.Decoder(dict[str, Any])


UNREADABLE = (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError)
"""What reading something damaged may raise."""


def encode_body(memory: Memory) -> bytes:
    """The part of a memory that is neither its content nor kept in columns by every store."""
    return _encoder.encode(
        _Body(
            memory.type,
            DEFAULT_IMPORTANCE if memory.importance == DEFAULT_IMPORTANCE else memory.importance,  # omitted by identity
            memory.tags,
            dict(memory.metadata),
            memory.title,
            memory.description,
            memory.language,
            memory.author,
            memory.role,
            memory.type_name,
            memory.confidence,
            memory.relevance,
            memory.decay_factor,
            memory.source,
            memory.pointer,
            memory.references,
            memory.key,
            None if memory.occurred_at == memory.created_at else memory.occurred_at,
            memory.expires_at,
            memory.state,
            memory.session,
        )
    )


def decode_memory(
    body: bytes | str,
    *,
    id: str,
    content: str,
    owner: Owner,
    version: int,
    created_at: datetime,
    updated_at: datetime,
    access_count: int = 0,
    last_accessed_at: datetime | None = None,
    vector: Vector | None = None,
) -> Memory:
    """The memory that ``encode_body`` and the store's own columns describe."""
    try:
        # Plain values first, checked once, by the conversion: half of what this takes is the making of thirty fields.
        fields = {
            **_DEFAULTS,
            "occurred_at": created_at,
            **_fields_decoder.decode(body),
            "id": id,
            "content": content,
            "owner": owner,
            "version": version,
            "created_at": created_at,
            "updated_at": updated_at,
            "access_count": access_count,
            "last_accessed_at": last_accessed_at,
            "vector": vector,
        }
        return msgspec.convert(fields, Memory)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(
            f"version {version} of memory {id!r} cannot be decoded",
            details={"memory_id": id, "version": version},
            hint="run doctor; it names every damaged version",
        ) from error


def decode_told(body: bytes | str) -> Told:
    """What a body tells an index; nothing if it is damaged, which whoever reads the memory itself will hear of."""
    try:
        return _told_decoder.decode(body)
    except UNREADABLE:
        return Told()


_DEFAULTS = {
    one.name: one.default if one.default_factory is MISSING else one.default_factory()
    for one in dataclasses.fields(Memory)
    if not (one.default is MISSING and one.default_factory is MISSING)
}


def make_memory(fields: Mapping[str, Any], **more: Any) -> Memory:
    """A memory from checked fields, the others as they are by default. Takes half the time of the constructor."""
    return msgspec.convert({**_DEFAULTS, **fields, **more}, Memory)


_FIELDS = tuple(one.name for one in dataclasses.fields(Memory))
_values = attrgetter(*_FIELDS)


def changed_memory(memory: Memory, **changes: Any) -> Memory:
    """``dataclasses.replace`` for memories, in half its time: every page copies some dozens."""
    return msgspec.convert({**dict(zip(_FIELDS, _values(memory), strict=True)), **changes}, Memory)


def is_body(data: bytes | str) -> bool:
    """Whether a text is what ``encode_body`` writes."""
    try:
        _body_decoder.decode(data)
    except msgspec.MsgspecError:
        return False
    return True


def encode_version(version: "Version") -> bytes:
    """All that a version says but its sequence, which is its store's: equal bytes mean that nothing was lost."""
    memory = version.memory
    told = (
        version.memory_id,
        encode_owner(version.owner),
        version.version,
        version.operation,
        to_micros(version.recorded_at),
        version.reason,
    )
    if memory is None:
        return _encoder.encode(told)
    return _encoder.encode((*told, to_micros(memory.created_at), memory.content, encode_body(memory).decode()))


def encode_owner(owner: Owner) -> str:
    """An owner as JSON: equal texts mean equal owners, whatever characters the ids have."""
    return _encoder.encode([owner.layer.value, *owner.ids]).decode()


def decode_owner(text: str) -> Owner:
    """The owner that ``encode_owner`` wrote."""
    layer, *ids = msgspec.json.decode(text, type=list[str])
    return Owner(Layer(layer), tuple(ids))


encode_json: Callable[[object], bytes] = _encoder.encode
"""A value as compact JSON."""


def encode_sorted(value: object) -> bytes:
    """A value as compact JSON with the names of every object in order: equal values, equal bytes.

    >>> encode_sorted({"b": {"d": 1, "c": 2}, "a": 0})
    b'{"a":0,"b":{"c":2,"d":1}}'
    """
    return _sorting_encoder.encode(value)


decode_json: Callable[[bytes | str], Any] = msgspec.json.Decoder().decode
"""The plain value of a JSON text. The method itself: reading working memory is not much more than this call."""


def decode_as(data: bytes | str, kind: type[T]) -> T:
    """A JSON text as a value of a type, such as a ``TypedDict``; fields that the type does not have are passed over.

    >>> decode_as('{"a": 1, "b": [2]}', dict[str, object])["a"]
    1
    """
    return msgspec.json.decode(data, type=kind)


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """``decode_as`` for many texts of one type.

    >>> reader(dict[str, int])(b'{"a": 1}')
    {'a': 1}
    """
    return msgspec.json.Decoder(kind).decode


def checksum(text: str) -> bytes:
    """Sixteen bytes that tell whether a text changed."""
    import hashlib  # lazy: brings in OpenSSL, and reading needs no checksum

    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def to_micros(moment: datetime) -> int:
    """An aware time as whole microseconds since 1970, exactly.

    >>> to_micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The time of ``to_micros``, in UTC.

    >>> from_micros(1000000).second
    1
    """
    return _EPOCH + micros * _MICROSECOND


Cursor = tuple[str, float, int, int | None, int | None]
"""A fingerprint of a listing, the value and number of the last memory taken, the sequence it is as of, and the time by
which its values were judged, in microseconds, where they change with time.
"""

_cursor_decoder: msgspec.json.Decoder[Cursor] = msgspec.json.Decoder(Cursor)


def encode_cursor(fingerprint: str, value: float, number: int, as_of: int | None, judged_at: int | None = None) -> str:
    """An opaque, URL-safe text for a position in a listing."""
    import base64  # lazy: only longer listings have cursors

    position: Cursor = (fingerprint, value, number, as_of, judged_at)
    return base64.urlsafe_b64encode(_encoder.encode(position)).decode().rstrip("=")


def decode_cursor(cursor: object) -> Cursor:
    """The position that ``encode_cursor`` wrote, or an error for anything else."""
    import base64  # lazy: as above

    try:
        text = cursor if isinstance(cursor, str) else "?"
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return _cursor_decoder.decode(data)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidInput(
            "the cursor is not one that a listing returned",
            details={"field": "cursor"},
            hint="pass page.next_cursor unchanged, or none for the first page",
        ) from None


def to_filter(fields: Mapping[str, Any]) -> "types.Filter":
    """A filter from a plain mapping, as the edges receive it; an unknown field is an error."""
    unknown = sorted(str(name) for name in set(fields) - set(types.Filter.__dataclass_fields__))
    if unknown:
        raise InvalidInput(
            f"a filter has no field {unknown[0][:40]!r}",
            details={"field": f"filter.{unknown[0][:40]}"},
            hint=f"use {', '.join(types.Filter.__dataclass_fields__)}",
        )
    return types.Filter(**fields)
