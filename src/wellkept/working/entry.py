"""Entries of working memory: a value as JSON, its attributes, and their validation."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from wellkept import codec, ids, logs, validation
from wellkept.errors import ContentTooLong, InvalidInput
from wellkept.types import MemoryType
from wellkept.types.memory import DEFAULT_IMPORTANCE
from wellkept.types.representation import hiding

NO_METADATA = b""
_PLACE = re.compile(r"`(\$[\w.\[\]]*)`$")
# What the codec raises for a value or a type that it does not support. Its own errors are ValueErrors.
CODEC_ERRORS = (ValueError, TypeError, OverflowError, RecursionError, NameError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one agent's working memory, scopes included.

    ``entry_bytes`` counts the value and the metadata of an entry as JSON.

    >>> Limits(entries=100).scopes
    100
    """

    entries: int = 10_000
    entry_bytes: int = 1024 * 1024
    scopes: int = 100

    def __post_init__(self) -> None:
        for name in self.__slots__:
            validation.integer(f"limits.{name}", getattr(self, name), 0, 2**63 - 1)


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An immutable copy of an entry: ``content`` is JSON, ``type_name`` the Python type of the original value.

    ``timestamp`` is when the key was last set. ``id``, ``access_count`` and ``sensitive`` survive when the key is set
    again. What is ``sensitive`` is encrypted in snapshots; unless a caller says so or not, its text decides there.

    >>> from datetime import UTC
    >>> entry = Entry(key="step", id="1", content="3", type_name="int", timestamp=datetime(2026, 1, 7, tzinfo=UTC))
    >>> entry.value, entry.type.value, entry.importance
    (3, 'fact', 0.5)
    """

    key: str
    id: str
    content: str
    type_name: str
    timestamp: datetime
    type: MemoryType = MemoryType.FACT
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    access_count: int = 0
    last_accessed_at: datetime | None = None
    expires_at: datetime | None = None
    sensitive: bool | None = None

    __repr__ = hiding("content", "tags", "metadata")

    @property
    def value(self) -> Any:
        """The decoded content, a new object at each access."""
        return decode(self.key, self.content.encode())


class Attributes(NamedTuple):
    """What a caller may say about a value. Entries without any share ``DEFAULT_ATTRIBUTES``."""

    type: MemoryType = MemoryType.FACT
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    metadata: bytes = NO_METADATA
    sensitive: bool | None = None

    def after(self, before: "Attributes") -> "Attributes":
        """These attributes where there were others before: a mark stays until a caller takes it away."""
        if self.sensitive is not None or before.sensitive is None:
            return self
        return self._replace(sensitive=before.sensitive)


DEFAULT_ATTRIBUTES = Attributes()


class KeyState:
    """What survives when a key is set again: the id, the access count and the time of the last access.

    Accesses are counted without a lock: the interpreter switches threads only at calls and backward jumps, so
    ``access_count += 1`` is atomic. All values of a key share one state, so no access is lost to a replaced value.
    """

    __slots__ = ("_created_at", "_id", "access_count", "last_accessed_at")

    def __init__(self, created_at: datetime, id: bytes | str) -> None:
        self._created_at = created_at
        self._id = id  # an existing id, or ten random bytes for a new one
        self.access_count = 0
        self.last_accessed_at: datetime | None = None

    @property
    def id(self) -> str:
        """Formatted on demand: that takes longer than the rest of setting a key."""
        if isinstance(self._id, str):
            return self._id
        return ids.uuid7(codec.to_micros(self._created_at) // 1000, self._id)


class Slot:
    """The stored value of a key on one level. Setting the key replaces the slot and keeps its ``key_state``."""

    __slots__ = ("attributes", "content", "expires_at", "key_state", "timestamp", "type_name")

    key_state: KeyState

    def __init__(
        self,
        content: bytes,
        type_name: str,
        timestamp: datetime,
        expires_at: datetime | None = None,
        attributes: Attributes = DEFAULT_ATTRIBUTES,
    ) -> None:
        self.content = content
        self.type_name = type_name
        self.timestamp = timestamp
        self.expires_at = expires_at
        self.attributes = attributes

    @property
    def size(self) -> int:
        """The bytes that count towards ``Limits.entry_bytes``."""
        return len(self.content) + len(self.attributes.metadata)

    def expired(self, now: datetime) -> bool:
        """Whether the entry has expired."""
        return self.expires_at is not None and self.expires_at <= now

    def entry(self, key: str) -> Entry:
        """An immutable copy for callers."""
        attributes, key_state = self.attributes, self.key_state
        return Entry(
            key=key,
            id=key_state.id,
            content=self.content.decode(),
            type_name=self.type_name,
            timestamp=self.timestamp,
            type=attributes.type,
            importance=attributes.importance,
            tags=attributes.tags,
            metadata=codec.decode_json(attributes.metadata) if attributes.metadata else {},
            access_count=key_state.access_count,
            last_accessed_at=key_state.last_accessed_at,
            expires_at=self.expires_at,
            sensitive=attributes.sensitive,
        )


def checked_name(field: str, value: object) -> str:
    """One line of text that is not blank."""
    name = validation.line(field, value)
    if name.isspace():
        raise InvalidInput(f"{field} is blank", details={"field": field}, hint="use a name that can be seen")
    return name


def checked_key(value: object) -> str:
    """A valid key as an exact ``str``: a subclass could run its own code during lookups."""
    key = checked_name("key", value)
    return key if type(key) is str else str.__str__(key)


def checked_size(key: str, slot: Slot, limit: int) -> Slot:
    """The slot, or ``ContentTooLong`` if it exceeds the limit."""
    if len(slot.content) + len(slot.attributes.metadata) > limit:
        raise ContentTooLong(
            f"the entry {quoted(key)} has {slot.size} bytes, the limit is {limit}",
            details={"field": "value", "key": key, "bytes": slot.size, "limit": limit},
            hint="split it, keep it in a file, or raise limits.entry_bytes, in the settings or by agent(limits=)",
        )
    return slot


def expiry(now: datetime, expires_at: object, ttl: object, *, checked: bool = False) -> datetime | None:
    """The expiry time from ``expires_at`` or ``ttl``, or ``None``; giving both is an error, and so is a time in the
    past, unless it was ``checked`` before and passed meanwhile.
    """
    if ttl is None:
        if expires_at is None or checked:
            return validation.optional_moment("expires_at", expires_at)
        return validation.future("expires_at", expires_at, now)
    if expires_at is not None or not isinstance(ttl, timedelta) or ttl <= timedelta(0):
        raise InvalidInput(
            "ttl must be a timedelta above zero, without expires_at beside it",
            details={"field": "ttl"},
            hint="pass ttl=timedelta(minutes=5), or expires_at alone",
        )
    try:
        return now + ttl
    except OverflowError:
        raise InvalidInput("ttl is too long", details={"field": "ttl"}, hint="leave it out") from None


def type_name(value: object) -> str:
    """The qualified name of a value's type; builtins without their module."""
    kind = type(value)
    return _PLAIN_NAMES.get(kind) or _full_name(kind)


_PLAIN_NAMES: dict[type, str] = {kind: kind.__qualname__ for kind in (str, int, float, bool, dict, list, type(None))}


def _full_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def encode(key: str, value: object, limit: int) -> bytes:
    """A value as JSON; ``InvalidInput`` names the key if it cannot be encoded."""
    try:
        content = codec.encode_json(value)
    except CODEC_ERRORS:
        raise _not_json(key, value, f"of type {type_name(value)} is not JSON") from None
    # The encoder silently writes NaN and infinity as null. Content above the limit is refused later anyway.
    # (`find` instead of `in`: `in` first tries the pattern as a number, which takes as long as the encoding.)
    if content.find(b"null") >= 0 and len(content) <= limit and _has_infinite(value):
        raise _not_json(key, value, "contains a number that is not finite")
    return content


def encode_metadata(value: object, field: str = "metadata") -> bytes:
    """Metadata as JSON."""
    return codec.encode_json(validation.metadata(value, field)) if value != {} else NO_METADATA


def _not_json(key: str, value: object, what: str) -> InvalidInput:
    logs.value_not_json(type_name(value), InvalidInput.code)
    return InvalidInput(
        f"the value for {quoted(key)} {what}",
        details={"field": "value", "key": key},
        hint="use text, finite numbers, lists, dicts, dataclasses or msgspec structs, not nested too deeply",
    )


def _has_infinite(value: object) -> bool:
    """Whether an encodable value contains NaN or infinity."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return True
        elif isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            waiting.extend(one)
        elif not isinstance(one, type):
            names = getattr(one, "__struct_fields__", ()) or getattr(one, "__dataclass_fields__", ())
            waiting.extend(getattr(one, name, None) for name in names)
    return False


def decode(key: str, content: bytes, kind: Any = None) -> Any:
    """Decode a content, to plain JSON values or to a type. May run the type's code: never call it with a lock held."""
    try:
        return codec.decode_json(content) if kind is None else codec.decode_as(content, kind)
    except CODEC_ERRORS as error:
        raise undecodable(key, kind, error) from None


def undecodable(key: str, kind: Any, error: BaseException) -> InvalidInput:
    """The error for a content that could not be decoded: names key, type and path, never the value."""
    if isinstance(error, RecursionError):
        what = "is nested too deeply to be read from here"
    else:
        place = _PLACE.search(str(error))
        what = f"does not fit {_called(kind)[:100]}{f', at {place[1]}' if place else ''}"
    return InvalidInput(
        f"the value for {quoted(key)} {what}",
        details={"field": "type", "key": key, "type": _called(kind)},
        hint="get it without a type to see what it is, or ask for the type that it was set as",
    )


def _called(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def quoted(key: str) -> str:
    """A key for error messages, truncated."""
    return repr(key if len(key) <= 60 else f"{key[:60]}...")
