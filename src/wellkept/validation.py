"""Validation of input: each function returns the normalised value or raises ``InvalidInput`` with the field."""

import array
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from typing import Any, TypeVar

from wellkept import codec
from wellkept.errors import ContentTooLong, InvalidInput
from wellkept.types import AccessPolicy, Fact, Identity, KnowledgePointer, PointerType, Source, SourceType, Tier, Vector
from wellkept.types.owners import DEFAULT_USER

CONTENT_BYTES = 10 * 1024 * 1024
METADATA_BYTES = 1024 * 1024
METADATA_DEPTH = 32
ID_CHARACTERS = 256
LINE_CHARACTERS = 1_000
DESCRIPTION_CHARACTERS = 100_000
TAGS = 100
REFERENCES = 1_000
DIMENSIONS = 65_536
BATCH = 100_000
_REPEATED = 10_000  # entries of a list in which each may stand several times

_INT_LIMIT = 2**63

K = TypeVar("K", bound=Enum)


def _wrong(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{field} {what}", details={"field": field}, hint=hint)


def _has_controls(value: str) -> bool:
    """Whether a text has control characters or line separators."""
    return not value.isprintable() and any(
        letter < " " or "\x7f" <= letter <= "\x9f" or letter in "\u2028\u2029" for letter in value
    )


def _has_surrogates(value: str) -> bool:
    """Whether a text has unpaired surrogates, which cannot be encoded."""
    try:
        return not (value.isascii() or value.encode())
    except UnicodeEncodeError:
        return True


def content(value: object, field: str = "content") -> str:
    """A text that is not blank, within the size limit, and free of NUL."""
    if not isinstance(value, str):
        raise _wrong(field, f"must be text, not {type(value).__name__}", "pass a str, or a dict as structured content")
    if not value or value.isspace():
        raise _wrong(field, "is empty", "pass a text that is not blank")
    if "\x00" in value:
        raise _wrong(field, "contains NUL", "remove the NUL characters")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise _wrong(field, "contains unpaired surrogates", "decode it with errors='replace' first") from None
    if size > CONTENT_BYTES:
        raise _too_long(field, size)
    return value


def _too_long(field: str, size: int) -> ContentTooLong:
    return ContentTooLong(
        f"{field} has {size} bytes, the limit is {CONTENT_BYTES}",
        details={"field": field, "bytes": size, "limit": CONTENT_BYTES},
        hint="split it into several memories",
    )


def content_object(value: Mapping[Any, Any], field: str = "content") -> dict[str, Any]:
    """A deep copy of a JSON object that is content, within the limits of size and depth."""
    if not value:
        raise _wrong(field, "is an empty object", "pass an object that says something, or a text")
    copy: dict[str, Any] = _json(field, value, METADATA_DEPTH, Room(CONTENT_BYTES - 1, CONTENT_BYTES))
    size = len(codec.encode_json(copy))
    if size > CONTENT_BYTES:
        raise _too_long(field, size)
    return copy


def line(
    field: str, value: object, limit: int = LINE_CHARACTERS, *, empty: str = "leave it out or give it a value"
) -> str:
    """One line of text: not empty (or the hint ``empty``), no control characters, within the limit."""
    if not isinstance(value, str):
        raise _wrong(field, f"must be text, not {type(value).__name__}", "pass a str")
    if not value:
        raise _wrong(field, "is empty", empty)
    if len(value) > limit:
        raise _wrong(field, f"has {len(value)} characters, the limit is {limit}", "shorten it")
    if _has_controls(value) or _has_surrogates(value):
        raise _wrong(field, "contains control characters", "remove line breaks and other control characters")
    return value


def name(field: str, value: object, limit: int = ID_CHARACTERS) -> str:
    """One line of text that names something: white space alone names nothing."""
    checked = line(field, value, limit)
    if checked.isspace():
        raise _wrong(field, "is only white space", "leave it out or give it a value")
    return checked


def text_id(value: object, field: str = "id", hint: str = "pass memory.id") -> str:
    """The id of a memory, or of what the hint says. Any encodable text: an unknown id is simply not found."""
    if not isinstance(value, str):
        raise _wrong(field, f"must be text, not {type(value).__name__}", hint)
    if len(value) > LINE_CHARACTERS:
        raise _wrong(field, f"has {len(value)} characters, the limit is {LINE_CHARACTERS}", hint)
    if _has_surrogates(value):
        raise _wrong(field, "contains unpaired surrogates", hint)
    return value


def optional_line(field: str, value: object, limit: int = LINE_CHARACTERS) -> str | None:
    """One line of text, or ``None``."""
    return None if value is None else line(field, value, limit)


def description(value: object) -> str | None:
    """A text of several lines, or ``None``."""
    if value is None:
        return None
    if not isinstance(value, str) or "\x00" in value or _has_surrogates(value):
        raise _wrong("description", "must be text without NUL", "pass a str")
    if len(value) > DESCRIPTION_CHARACTERS:
        raise _wrong("description", f"is longer than {DESCRIPTION_CHARACTERS} characters", "shorten it")
    return value


def unit(field: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _wrong(field, "must be a number from 0 to 1", "scale it to that range")
    return float(value)


def optional_unit(field: str, value: object) -> float | None:
    """A number from 0 to 1, or ``None``."""
    return None if value is None else unit(field, value)


def moment(field: str, value: object) -> datetime:
    """An aware datetime, converted to UTC."""
    if not isinstance(value, datetime):
        raise _wrong(field, f"must be a datetime, not {type(value).__name__}", "pass a datetime")
    if value.tzinfo is None or value.utcoffset() is None:
        raise _wrong(field, "has no time zone", "use datetime.now(UTC) or replace(tzinfo=...)")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise _wrong(field, "is out of range", "use a year between 1 and 9999") from None


def optional_moment(field: str, value: object) -> datetime | None:
    """An aware datetime in UTC, or ``None``."""
    return None if value is None else moment(field, value)


def future(field: str, value: object, now: datetime) -> datetime:
    """An aware datetime in UTC that is still to come: what ends before it begins would never be seen."""
    at = moment(field, value)
    if at <= now:
        raise _wrong(field, "is not in the future", f"it is {now:%Y-%m-%d %H:%M} UTC now; use a later time")
    return at


def choice(field: str, kind: type[K], value: object) -> K:
    """A member of an enumeration, from the member or its value."""
    if isinstance(value, kind):
        return value
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(one.value) for one in kind)
        raise _wrong(field, f"has no value {named(value)}", f"use one of {known}") from None


def tier(value: object) -> Tier | None:
    """The tier of a stored memory, or ``None`` for the one that follows from its type, layer and state."""
    if value is None:
        return None
    chosen = choice("tier", Tier, value)
    if chosen is Tier.WORKING:
        raise _wrong("tier", "cannot be 'working', which is never stored", "use agent.working, or another tier")
    return chosen


def named(value: object) -> str:
    """An unknown name for error messages: a truncated text, or the type of another value."""
    return repr(value[:40]) if isinstance(value, str) else f"of type {type(value).__name__}"


def flag(field: str, value: object) -> bool:
    """A bool, strictly: the text "no" would be truthy."""
    if not isinstance(value, bool):
        raise _wrong(field, f"must be True or False, not {type(value).__name__}", "pass a bool")
    return value


def optional_flag(field: str, value: object) -> bool | None:
    """A bool, or ``None``."""
    return None if value is None else flag(field, value)


def integer(field: str, value: object, low: int, high: int) -> int:
    """An integer within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(field, f"must be a whole number from {low} to {high}", "choose one in that range")
    return value


def several(field: str, values: object) -> Iterable[Any]:
    """Any iterable except a text."""
    if isinstance(values, tuple | list):  # the common case: the check for Iterable is slow
        return values
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _wrong(field, f"must be a list, not {type(values).__name__}", f"pass {field}=[...]")
    return values


def batch(field: str, values: object, most: int = BATCH) -> list[Any]:
    """A list of at most so many values; an iterable without an end is not read to its end."""
    given = list(islice(several(field, values), most + 1))
    if len(given) > most:
        raise _wrong(field, f"has more than {most} entries", "use fewer, or several calls")
    return given


def lines(field: str, values: object, most: int) -> tuple[str, ...]:
    """Distinct lines of text, in order."""
    given = batch(field, values, max(most, _REPEATED))
    unique = tuple(dict.fromkeys(line(field, value, ID_CHARACTERS) for value in given))
    if len(unique) > most:
        raise _wrong(field, f"has {len(unique)} entries, the limit is {most}", "use fewer")
    return unique


def tags(values: object, field: str = "tags") -> tuple[str, ...]:
    """Distinct tags. A dot separates the levels of a hierarchy."""
    return () if values in (None, ()) else lines(field, values, TAGS)


def references(values: object, field: str = "references") -> tuple[str, ...]:
    """Distinct ids of other memories."""
    return () if values in (None, ()) else lines(field, values, REFERENCES)


def identity(value: Identity) -> Identity:
    """An identity whose ids are each a line of text that is not blank, or ``None``."""
    for one in fields(value):
        if (given := getattr(value, one.name)) is not None:
            name(one.name, given)
    return value


def user(field: str, value: object) -> str:
    """The id of a user whom a caller names. ``default`` stands for the user who was left out, and is reserved."""
    checked = name(field, value)
    if checked == DEFAULT_USER:
        raise _wrong(field, f"{DEFAULT_USER!r} is reserved", "leave the user out, or choose another id")
    return checked


def metadata(value: object, field: str = "metadata") -> dict[str, Any]:
    """A deep copy of a JSON object, within the limits of size and depth."""
    if not isinstance(value, dict | Mapping):
        raise _wrong(field, "must be a mapping", "pass a dict")
    if not value:
        return {}
    copy: dict[str, Any] = dict(value) if _is_flat(value) else json_value(field, value)
    if len(codec.encode_json(copy)) > METADATA_BYTES:
        raise _too_large(field, METADATA_BYTES)
    return copy


def _is_flat(value: Mapping[Any, Any]) -> bool:
    """Whether an object has only plain scalars, which need no further check or copy: most metadata is flat."""
    for name, one in value.items():
        if type(name) is not str or not name.isascii():
            return False
        kind = type(one)
        if kind is str:
            if not one.isascii():
                return False
        elif kind is int:
            if not -_INT_LIMIT <= one < _INT_LIMIT:
                return False
        elif kind is not bool and one is not None:
            return False
    return True


def _too_large(field: str, limit: int) -> InvalidInput:
    return _wrong(field, f"is larger than {limit} bytes as JSON", "keep large things in the content or in files")


def json_value(field: str, value: object) -> Any:
    """A deep copy of any JSON value, within the limits of size and depth."""
    return _json(field, value, METADATA_DEPTH, Room(METADATA_BYTES - 1, METADATA_BYTES))


@dataclass(slots=True)
class Room:
    """What is left of the size that a value may have: an object that refers to the same list many times on each level
    would otherwise expand exponentially.
    """

    left: int
    limit: int

    def take(self, size: int, field: str) -> None:
        """Subtract the minimal JSON size of a part: ``0,`` per list value, ``"":0,`` per object member."""
        self.left -= size or 1
        if self.left < 0:
            raise _too_large(field, self.limit)


def _json(field: str, value: object, depth: int, room: Room) -> Any:
    """Copy a value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(field, value)
    if isinstance(value, int):
        if not -_INT_LIMIT <= value < _INT_LIMIT:
            raise _wrong(field, "contains an integer beyond 64 bits", "store it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong(field, "contains a number that is not finite", "use None instead of NaN or infinity")
        return float(value)
    if depth == 0:
        raise _wrong(field, f"is nested deeper than {METADATA_DEPTH} levels", "flatten it")
    if isinstance(value, dict | Mapping):  # dict first: the check for Mapping is slow
        room.take(5 * len(value), field)
        return {_name(field, name): _json(field, one, depth - 1, room) for name, one in value.items()}
    if isinstance(value, list | tuple):
        room.take(2 * len(value), field)
        return [_json(field, one, depth - 1, room) for one in value]
    raise _wrong(field, f"contains a {type(value).__name__}, which is not JSON", "convert it first")


def _text(field: str, value: Any) -> str:
    if _has_surrogates(value):
        raise _wrong(field, "contains unpaired surrogates", "decode it with errors='replace' first")
    return str.__str__(value)  # for a str enumeration this is the value, while str() may give the name


def _name(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(field, "has a key that is not text", "use str keys")
    return _text(field, value)


def source(value: object) -> Source | None:
    """A source, or ``None``."""
    if value is None:
        return None
    if not isinstance(value, Source):
        raise _wrong("source", "must be a Source", "pass Source(type=..., reference=...)")
    kind = choice("source.type", SourceType, value.type)
    return Source(type=kind, reference=optional_line("source.reference", value.reference))


def fact(value: object) -> Fact | None:
    """A fact whose time of holding does not end before it begins, or ``None``."""
    if value is None:
        return None
    if not isinstance(value, Fact):
        raise _wrong("fact", "must be a Fact", "pass Fact(subject=..., predicate=..., object=...)")
    start = optional_moment("fact.valid_from", value.valid_from)
    end = optional_moment("fact.valid_until", value.valid_until)
    if start is not None and end is not None and end <= start:
        raise _wrong("fact.valid_until", "lies before fact.valid_from", "swap the two, or leave one out")
    return Fact(
        subject=line("fact.subject", value.subject),
        predicate=line("fact.predicate", value.predicate),
        object=line("fact.object", value.object),
        kind=optional_line("fact.kind", value.kind),
        valid_from=start,
        valid_until=end,
        multiple=flag("fact.multiple", value.multiple),
    )


def pointer(value: object) -> KnowledgePointer | None:
    """A knowledge pointer, or ``None``."""
    if value is None:
        return None
    if not isinstance(value, KnowledgePointer):
        raise _wrong("pointer", "must be a KnowledgePointer", "pass KnowledgePointer(...)")
    return KnowledgePointer(
        source_type=choice("pointer.source_type", PointerType, value.source_type),
        source_id=line("pointer.source_id", value.source_id),
        content_hash=line("pointer.content_hash", value.content_hash),
        synced_at=moment("pointer.synced_at", value.synced_at),
    )


def access_policy(value: object) -> AccessPolicy | None:
    """Who may read a memory, or ``None``."""
    return None if value is None else choice("access_policy", AccessPolicy, value)


def vector(value: object, embedder: str) -> Vector:
    """A finite, non-zero vector of 32-bit floats with the name of its embedder."""
    if isinstance(value, Vector) and value.spans:
        return _passages(value)
    if isinstance(value, Vector):
        embedder, value = line("vector.embedder", value.embedder), value.data
    numbers = _floats(value)
    if not 1 <= len(numbers) <= DIMENSIONS:
        raise _wrong("vector", f"has {len(numbers)} dimensions", f"use 1 to {DIMENSIONS}")
    if not any(numbers):
        raise _wrong("vector", "is all zeros and has no direction", "leave it out instead")
    if sys.byteorder == "big":
        numbers.byteswap()
    data = numbers.tobytes()
    # A fast pre-check: the top byte of NaN and infinity is 7f or ff, as is that of finite numbers beyond 1e38.
    exponents = data[3::4]
    if (0x7F in exponents or 0xFF in exponents) and not all(map(math.isfinite, Vector(embedder, data).values)):
        raise _wrong("vector", "contains NaN or infinity", "check the embedder")
    return Vector(embedder, data)


def _passages(value: Vector) -> Vector:
    """Validate a vector with spans: one valid row for each passage."""
    if value.dimension * 4 * len(value.spans) != len(value.data):
        raise _wrong("vector", "has not one row for each of its spans", "pass it as it was read")
    for row in value.rows:
        vector(row, value.embedder)
    return value


def _floats(value: object) -> "array.array[float]":
    numbers = array.array("f")
    try:
        if isinstance(value, bytes):
            numbers.frombytes(value)
            if sys.byteorder == "big":
                numbers.byteswap()
            return numbers
        try:
            view = memoryview(value)  # type: ignore[arg-type]  # the TypeError is the test
        except TypeError:
            numbers.extend(islice(value, DIMENSIONS + 1))  # type: ignore[call-overload]  # as above
            return numbers
        # A float32 buffer (numpy, array, torch) is copied at once; anything else number by number.
        if view.format == "f" and view.ndim == 1:
            numbers.frombytes(view.tobytes())
        else:
            # Not view.tolist(): memoryview supports neither half precision nor a foreign byte order.
            numbers.extend(islice(iter(value), DIMENSIONS + 1))  # type: ignore[call-overload]  # as above
    except (TypeError, ValueError, OverflowError):
        raise _wrong("vector", "is not a row of numbers", "pass floats") from None
    return numbers
