"""Encoding and decoding of values: the only module that imports msgspec."""

import base64
import dataclasses
import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import msgspec

from wellkept.errors import InvalidInput
from wellkept.types import (
    Filter,
    Layer,
    Memory,
    Owner,
)

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MICROS = 253_402_300_799_000_000  # the end of the year 9999


_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")


UNREADABLE = (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What decoding damaged data may raise."""


_DEFAULTS = {
    one.name: one.default if one.default_factory is MISSING else one.default_factory()
    for one in dataclasses.fields(Memory)
    if not (one.default is MISSING and one.default_factory is MISSING)
}


# msgspec learns a class when it is first decoded. A thread that decodes the same class meanwhile finds it half learned,
# and the process crashes: so classes are learned one at a time.
_learning = threading.Lock()


def reader(kind: type[T]) -> Callable[[bytes | str], T]:
    """A reusable ``decode_as`` for one type.

    >>> reader(dict[str, int])(b'{"a": 1}')
    {'a': 1}
    """
    with _learning:
        return msgspec.json.Decoder(kind).decode


reader(Memory)  # for `make_memory`, which has no time for a lock


def make_memory(fields: Mapping[str, Any], **more: Any) -> Memory:
    """A memory from validated fields, with defaults for the rest. Twice as fast as the constructor."""
    return msgspec.convert({**_DEFAULTS, **fields, **more}, Memory)


def encode_owner(owner: Owner) -> str:
    """An owner as JSON, canonical: equal texts mean equal owners."""
    return _encoder.encode(owner_parts(owner)).decode()


def owner_parts(owner: Owner) -> list[str | dict[str, str]]:
    """An owner as a JSON array: its layer, its ids, and its branch if it is not the main one.

    >>> owner_parts(Owner(Layer.USER, ("ada",), "draft"))
    ['user', 'ada', {'branch': 'draft'}]
    """
    return [owner.layer.value, *owner.ids, *([{"branch": owner.branch}] if owner.branch else ())]


_owner_decoder = msgspec.json.Decoder(list[str | dict[str, str]])


def decode_owner(text: str | bytes) -> Owner:
    """Decode the output of ``encode_owner``; anything else is one of ``UNREADABLE``."""
    parts = _owner_decoder.decode(text)
    branch = ""
    if parts and isinstance(named := parts[-1], dict):
        del parts[-1]
        branch = named.get("branch", "")
        if len(named) > 1 or not branch:
            raise ValueError("a branch has a name and nothing else")
    layer, *ids = (part for part in parts if isinstance(part, str))
    if len(ids) + 1 < len(parts):
        raise ValueError("ids are texts")
    return Owner(Layer(layer), tuple(ids), branch)


encode_json: Callable[[object], bytes] = _encoder.encode
"""A value as compact JSON."""


def encode_sorted(value: object) -> bytes:
    """A value as compact JSON with sorted keys: equal values give equal bytes.

    >>> encode_sorted({"b": {"d": 1, "c": 2}, "a": 0})
    b'{"a":0,"b":{"c":2,"d":1}}'
    """
    return _sorting_encoder.encode(value)


decode_json: Callable[[bytes | str], Any] = msgspec.json.Decoder().decode
"""The plain value of a JSON text. The bound method itself, because working memory reads depend on its speed."""


def decode_as(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON as a type, such as a ``TypedDict``; unknown fields are ignored.

    >>> decode_as('{"a": 1, "b": [2]}', dict[str, object])["a"]
    1
    """
    return reader(kind)(data)


def checksum(text: str) -> bytes:
    """A 16-byte checksum of a text (BLAKE2b)."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def to_micros(moment: datetime) -> int:
    """An aware datetime as integer microseconds since 1970, exactly.

    >>> to_micros(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The inverse of ``to_micros``, in UTC.

    >>> from_micros(1000000).second
    1
    """
    return _EPOCH + micros * _MICROSECOND


FIRST_MICROS = to_micros(datetime.min.replace(tzinfo=UTC))
LAST_MICROS = to_micros(datetime.max.replace(tzinfo=UTC))
"""The first and the last moment that there are."""


class Cursor(msgspec.Struct, array_like=True, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place in a listing: a fingerprint of the query, the sort value and the recording order of the last memory, the
    position that the listing is as of, and the ``now`` of sort values that change with time.
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
    """A cursor as opaque, URL-safe text."""
    return base64.urlsafe_b64encode(_encoder.encode(cursor)).decode().rstrip("=")


def decode_cursor(cursor: object) -> Cursor:
    """Decode the output of ``encode_cursor``; anything else raises ``InvalidInput``."""
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
    """A filter from a plain mapping; an unknown field raises ``InvalidInput``."""
    unknown = sorted(str(name) for name in set(fields) - set(Filter.__dataclass_fields__))
    if unknown:
        raise InvalidInput(
            f"a filter has no field {unknown[0][:40]!r}",
            details={"field": f"filter.{unknown[0][:40]}"},
            hint=f"use {', '.join(Filter.__dataclass_fields__)}",
        )
    return Filter(**fields)
