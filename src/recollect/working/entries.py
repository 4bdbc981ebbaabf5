"""One entry of working memory: the value as JSON, what is known about it, and how both are checked."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from recollect import codec, ids, validation
from recollect.errors import ContentTooLong, InvalidInput
from recollect.types import MemoryType
from recollect.types.memory import DEFAULT_IMPORTANCE

NO_METADATA = b""
_PLACE = re.compile(r"`(\$[\w.\[\]]*)`$")
# What the codec raises for a value or a type that it cannot take. Its own errors are ValueErrors.
REFUSALS = (ValueError, TypeError, OverflowError, RecursionError, NameError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one agent may keep in its working memory, scopes included.

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
    """An entry as it was when it was asked for: ``content`` is JSON, ``type_name`` the Python type it was made from.

    ``timestamp`` is when the key was last set. ``id`` and ``access_count`` stay while the key is set anew.

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

    @property
    def value(self) -> Any:
        """The content as plain JSON values, made anew each time."""
        return decode(self.key, self.content.encode())


class About(NamedTuple):
    """What is said about a value besides itself. Of most nothing is, and all of those share one."""

    type: MemoryType = MemoryType.FACT
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    metadata: bytes = NO_METADATA


PLAIN = About()


class Lineage:
    """What stays while a key is set anew: the id, and how often and when last its value was read.

    Reads count without a lock: the interpreter goes to another thread at calls and at jumps backwards alone, so
    ``access_count += 1`` is one step. All values of a key share their lineage: no access is lost to one just replaced.
    """

    __slots__ = ("_born", "_id", "access_count", "last_accessed_at")

    def __init__(self, born: datetime, by: bytes | str) -> None:
        self._born = born
        self._id = by  # an id that it had, or ten random bytes for a new one
        self.access_count = 0
        self.last_accessed_at: datetime | None = None

    @property
    def id(self) -> str:
        """Written out when somebody asks for it: that takes longer than all else that setting a key does."""
        return self._id if isinstance(self._id, str) else ids.uuid7(codec.to_micros(self._born) // 1000, self._id)


class Slot:
    """What a level keeps for a key. Setting the key makes a new one, which goes on with the lineage of the old."""

    __slots__ = ("about", "content", "expires_at", "lineage", "timestamp", "type_name")

    lineage: Lineage

    def __init__(
        self,
        content: bytes,
        type_name: str,
        timestamp: datetime,
        expires_at: datetime | None = None,
        about: About = PLAIN,
    ) -> None:
        self.content = content
        self.type_name = type_name
        self.timestamp = timestamp
        self.expires_at = expires_at
        self.about = about

    @property
    def size(self) -> int:
        """The bytes that count against the limit."""
        return len(self.content) + len(self.about.metadata)

    def expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    def entry(self, key: str) -> Entry:
        """The entry for the outside, which shares nothing that could be changed."""
        about, lineage = self.about, self.lineage
        return Entry(
            key=key,
            id=lineage.id,
            content=self.content.decode(),
            type_name=self.type_name,
            timestamp=self.timestamp,
            type=about.type,
            importance=about.importance,
            tags=about.tags,
            metadata=codec.decode_json(about.metadata) if about.metadata else {},
            access_count=lineage.access_count,
            last_accessed_at=lineage.last_accessed_at,
            expires_at=self.expires_at,
        )


def checked_key(value: object) -> str:
    """A key as plain text: a subclass of ``str`` could run code of its own while it is looked up."""
    key = validation.line("key", value)
    return key if type(key) is str else str.__str__(key)


def checked_size(key: str, slot: Slot, limit: int) -> Slot:
    """The slot, if it is not too large."""
    if len(slot.content) + len(slot.about.metadata) > limit:
        raise ContentTooLong(
            f"the entry {shown(key)} has {slot.size} bytes, the limit is {limit}",
            details={"field": "value", "key": key, "bytes": slot.size, "limit": limit},
            hint="split it, keep a reference to a file instead, or raise limits.entry_bytes",
        )
    return slot


def expiry(now: datetime, expires_at: object, ttl: object) -> datetime | None:
    """When an entry ends: at a time, after a while, or never."""
    if ttl is None:
        return None if expires_at is None else validation.moment("expires_at", expires_at)
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
    """The full name of a value's type; builtins go without their module."""
    kind = type(value)
    return _PLAIN_NAMES.get(kind) or _full_name(kind)


_PLAIN_NAMES: dict[type, str] = {kind: kind.__qualname__ for kind in (str, int, float, bool, dict, list, type(None))}


def _full_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def encode(key: str, value: object, limit: int) -> bytes:
    """A value as JSON, or an error that names the key."""
    try:
        content = codec.encode_json(value)
    except REFUSALS:
        raise _not_json(key, f"of type {type_name(value)} is not JSON") from None
    # JSON has no NaN, and the encoder writes null in its place: what comes back would not be what was set. Too large
    # a content is refused soon, and not worth the walk.
    # (`in` would first try the pattern as a number, which takes as long as all of the encoding.)
    if content.find(b"null") >= 0 and len(content) <= limit and _has_infinite(value):
        raise _not_json(key, "contains a number that is not finite")
    return content


def encode_metadata(value: object, field: str = "metadata") -> bytes:
    """Metadata as JSON."""
    return codec.encode_json(validation.metadata(value, field)) if value != {} else NO_METADATA


def _not_json(key: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"the value for {shown(key)} {what}",
        details={"field": "value", "key": key},
        hint="use text, finite numbers, lists, dicts, dataclasses or msgspec structs, not nested too deeply",
    )


def _has_infinite(value: object) -> bool:
    """Whether a number that is not finite hides anywhere in a value that could be encoded."""
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
    """The value of a content, plain or as a type. May run code of that type: never call it with a lock held."""
    try:
        return codec.decode_json(content) if kind is None else codec.decode_as(content, kind)
    except REFUSALS as error:
        raise unreadable(key, kind, error) from None


def unreadable(key: str, kind: Any, error: BaseException) -> InvalidInput:
    """What to raise for a content that could not be decoded: names the key, the type and the place, never the value."""
    if isinstance(error, RecursionError):
        what = "is nested too deeply to be read from here"
    else:
        place = _PLACE.search(str(error))
        what = f"does not fit {_called(kind)[:100]}{f', at {place[1]}' if place else ''}"
    return InvalidInput(
        f"the value for {shown(key)} {what}",
        details={"field": "type", "key": key, "type": _called(kind)},
        hint="get it without a type to see what it is, or ask for the type that it was set as",
    )


def _called(kind: Any) -> str:
    return kind.__qualname__ if isinstance(kind, type) else str(kind)


def shown(key: str) -> str:
    """A key as errors show it: its start."""
    return repr(key if len(key) <= 60 else f"{key[:60]}...")
