"""Values to bytes and back: the one place that knows msgspec.

A memory is kept as JSON with the fields that differ from their defaults, so that a person can read it and a later
release can add fields. ``docs/file-format.md`` describes the form.
"""

import base64
import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, TypeVar

import msgspec

from recollect.errors import InvalidInput
from recollect.types import (
    Filter,
    Layer,
    Memory,
    Owner,
)

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROS = 253_402_300_799_000_000  # the last moment of the calendar


_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")


UNREADABLE = (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What reading something damaged may raise."""


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


class Cursor(msgspec.Struct, array_like=True, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in a listing: a fingerprint of the listing, the value and the place of recording of the last memory, the
    position that the listing is as of, and the time by which its values were judged where they change with time.
    """

    fingerprint: str
    value: float
    born_at: Annotated[int, msgspec.Meta(ge=-_MICROS, le=_MICROS)]
    owner: str
    born: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    at: str | None = None
    judged_at: Annotated[int, msgspec.Meta(ge=-_MICROS, le=_MICROS)] | None = None


_cursor_decoder: msgspec.json.Decoder[Cursor] = msgspec.json.Decoder(Cursor)


def encode_cursor(cursor: Cursor) -> str:
    """An opaque, URL-safe text for a place in a listing."""
    return base64.urlsafe_b64encode(_encoder.encode(cursor)).decode().rstrip("=")


def decode_cursor(cursor: object) -> Cursor:
    """The place that ``encode_cursor`` wrote, or an error for anything else."""
    try:
        text = cursor if isinstance(cursor, str) else "?"
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = _cursor_decoder.decode(data)
        decode_owner(found.owner)
        return found
    except (ValueError, msgspec.MsgspecError):
        raise InvalidInput(
            "the cursor is not one that a listing returned",
            details={"field": "cursor"},
            hint="pass page.next_cursor unchanged, or none for the first page",
        ) from None


def to_filter(fields: Mapping[str, Any]) -> Filter:
    """A filter from a plain mapping, as the edges receive it; an unknown field is an error."""
    unknown = sorted(str(name) for name in set(fields) - set(Filter.__dataclass_fields__))
    if unknown:
        raise InvalidInput(
            f"a filter has no field {unknown[0][:40]!r}",
            details={"field": f"filter.{unknown[0][:40]}"},
            hint=f"use {', '.join(Filter.__dataclass_fields__)}",
        )
    return Filter(**fields)
