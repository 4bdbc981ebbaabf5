"""The fields of a memory, declared once: type, check, description, bounds, command-line flag, stored form.

The inputs of ``add`` and ``update``, the checks of the engine, the JSON schemas and the command line derive from this
table; tests hold the typed dictionaries and dataclasses, which type checkers must be able to read, to it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any

from wellkept import validation
from wellkept.types import AccessPolicy, Fact, KnowledgePointer, MemoryType, Owner, Source, State, Tier, Vector
from wellkept.types.bounds import UNBOUNDED, Bounds, Property
from wellkept.types.memory import DEFAULT_IMPORTANCE, DEFAULT_TRUST

COUNT_MAX = 2**53 - 1
"""The largest whole number that every program that reads JSON keeps exactly."""

UNIT = Bounds(minimum=0, maximum=1)
COUNT = Bounds(minimum=0, maximum=COUNT_MAX)
LINE = Bounds(max_length=validation.LINE_CHARACTERS)
ID = Bounds(max_length=validation.ID_CHARACTERS)
CONTENT = Bounds(max_length=validation.CONTENT_BYTES)
TAGS = Bounds(max_length=validation.TAGS, each=ID)
REFERENCES = Bounds(max_length=validation.REFERENCES, each=ID)
METADATA = Bounds(max_length=10_000)


class Stored(StrEnum):
    """Where a field is kept: as a facet, which filters, orders and uniqueness rules read, or in the payload."""

    FACET = "facet"
    PAYLOAD = "payload"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryField:
    """One field of a memory.

    ``kind`` is its type in a stored memory, ``default`` what it is when nobody sets it; a default is not written.
    ``check`` returns the stored form of what a caller gave, or raises; a field without a check is set by the engine
    alone. ``changeable`` fields can be set again by ``update``, ``clearable`` ones can be emptied. Two requests with
    the same key are the same request if all ``compared`` fields are equal. A span of time given for the field lies in
    the past, or in the future if ``ahead`` is set.

    >>> MEMORY["importance"].check(1)
    1.0
    """

    name: str
    kind: Any
    description: str
    bounds: Bounds = UNBOUNDED
    check: Callable[[Any], Any] | None = None
    default: Any = None
    flag: str = ""
    short: str = ""
    ahead: bool = False
    changeable: bool = True
    clearable: bool = False
    compared: bool = True
    stored: Stored = Stored.PAYLOAD

    @property
    def described(self) -> Property:
        """The description and the bounds, for schemas."""
        return Property(description=self.description, bounds=self.bounds)


def _line(name: str, description: str, **more: Any) -> MemoryField:
    """A field that holds one line of text or nothing."""
    check = partial(validation.optional_line, name)
    return MemoryField(
        name=name, kind=str | None, description=description, bounds=LINE, check=check, clearable=True, **more
    )


def _unit(name: str, description: str) -> MemoryField:
    """A field that holds a number from 0 to 1 or nothing."""
    check = partial(validation.optional_unit, name)
    return MemoryField(name=name, kind=float | None, description=description, bounds=UNIT, check=check, clearable=True)


_SET_BY_CALLERS = (
    MemoryField(
        name="content",
        kind=str,
        description="What to remember: a text, or a JSON object, which is searched by its text.",
        bounds=CONTENT,
        check=validation.content,
        default=...,
    ),
    MemoryField(
        name="type",
        kind=MemoryType,
        description="What kind of thing the memory is.",
        check=partial(validation.choice, "type", MemoryType),
        default=MemoryType.FACT,
        short="t",
        stored=Stored.FACET,
    ),
    MemoryField(
        name="tier",
        kind=Tier,
        description="How the memory is kept; by default, as its type, layer and state say.",
        check=validation.tier,
        default=Tier.SEMANTIC,
        clearable=True,
        compared=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="importance",
        kind=float,
        description="How important the memory is, from 0 to 1.",
        bounds=UNIT,
        check=partial(validation.unit, "importance"),
        default=DEFAULT_IMPORTANCE,
        short="i",
        stored=Stored.FACET,
    ),
    MemoryField(
        name="tags",
        kind=tuple[str, ...],
        description="Tags of the memory; dots make a hierarchy, as in security.tokens.",
        bounds=TAGS,
        check=validation.tags,
        default=(),
        flag="tag",
        short="T",
        stored=Stored.FACET,
    ),
    MemoryField(
        name="metadata",
        kind=Mapping[str, Any],
        description="Custom fields: names and any JSON values.",
        bounds=METADATA,
        check=validation.metadata,
        default={},
        flag="meta",
        short="m",
        stored=Stored.FACET,
    ),
    _line("title", "A title."),
    MemoryField(
        name="description",
        kind=str | None,
        description="A longer description; it may have several lines.",
        bounds=Bounds(max_length=validation.DESCRIPTION_CHARACTERS),
        check=validation.description,
        clearable=True,
    ),
    _line("language", "The language of the content, such as en."),
    _line("author", "Who said or wrote it.", stored=Stored.FACET),
    _line("role", "The role in which the author said it, such as user or assistant."),
    _line("session", "The conversation in which it was said.", stored=Stored.FACET),
    _line("type_name", "A type of your own, in addition to the built-in one."),
    _unit("confidence", "How certain the memory is, from 0 to 1."),
    _unit("relevance", "How relevant the memory is, from 0 to 1."),
    _unit("decay_factor", "How much of the memory is left as it fades, from 0 to 1; by default, as its type says."),
    MemoryField(
        name="sensitive",
        kind=bool | None,
        description="Whether the memory is sensitive: encrypted, where there are keys. By default, its text decides.",
        check=partial(validation.optional_flag, "sensitive"),
        compared=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="source",
        kind=Source | None,
        description="Where the memory came from.",
        check=validation.source,
        clearable=True,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="pointer",
        kind=KnowledgePointer | None,
        description="The document that the memory summarises.",
        check=validation.pointer,
        clearable=True,
    ),
    MemoryField(
        name="access_policy",
        kind=AccessPolicy | None,
        description="Who may read the memory, among those who may read its layer; by default, all of them.",
        check=validation.access_policy,
        clearable=True,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="references",
        kind=tuple[str, ...],
        description="Ids of the memories that this one refers to.",
        bounds=REFERENCES,
        check=validation.references,
        default=(),
        flag="reference",
        short="r",
    ),
    MemoryField(
        name="key",
        kind=str | None,
        description="A key, unique per owner: adding the same again stores nothing, put changes the memory.",
        bounds=LINE,
        check=partial(validation.optional_line, "key"),
        changeable=False,
        compared=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="fact",
        kind=Fact | None,
        description="What the memory states: subject, predicate and object, and when it holds.",
        check=validation.fact,
        changeable=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="supersedes",
        kind=tuple[str, ...],
        description="Ids of the memories that this one replaces.",
        bounds=REFERENCES,
        check=partial(validation.references, field="supersedes"),
        default=(),
        changeable=False,
        compared=False,
    ),
    MemoryField(
        name="derived_from",
        kind=tuple[str, ...],
        description="Ids of the memories that this one was made from; an update adds to them.",
        bounds=REFERENCES,
        check=partial(validation.references, field="derived_from"),
        default=(),
        stored=Stored.FACET,
    ),
    MemoryField(
        name="trust",
        kind=float,
        description="How far the source can be trusted, from 0 to 1; it follows from the source, and can be lowered.",
        bounds=UNIT,
        check=partial(validation.unit, "trust"),
        default=DEFAULT_TRUST,
        compared=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="occurred_at",
        kind=datetime,
        description="When it was said or happened; by default, when it is recorded.",
        check=partial(validation.moment, "occurred_at"),
        default=...,
        flag="occurred",
        compared=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="expires_at",
        kind=datetime | None,
        description="When the memory ends; from then on it is left out of everything.",
        check=partial(validation.optional_moment, "expires_at"),
        flag="expires",
        ahead=True,
        clearable=True,
        compared=False,
        stored=Stored.FACET,
    ),
)

_SET_BY_THE_ENGINE = (
    MemoryField(name="id", kind=str, description="The id of the memory.", bounds=ID, default=..., stored=Stored.FACET),
    MemoryField(
        name="data",
        kind=Mapping[str, Any] | None,
        description="The JSON object that was given as content, if it was one; the content is then its text.",
        bounds=CONTENT,
    ),
    MemoryField(name="owner", kind=Owner, description="Whom the memory belongs to.", default=..., stored=Stored.FACET),
    MemoryField(
        name="created_at",
        kind=datetime,
        description="When the memory was first recorded.",
        default=...,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="updated_at",
        kind=datetime,
        description="When this version of the memory was recorded.",
        default=...,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="state",
        kind=State,
        description="Whether the memory takes part in recall.",
        default=State.ACTIVE,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="tier_set",
        kind=bool,
        description="Whether a caller set the tier; otherwise it follows from type, layer and state.",
        default=False,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="sources",
        kind=tuple[Source, ...],
        description="All sources that were named, if the same was added more than once.",
        bounds=Bounds(max_length=1_000),
        default=(),
    ),
    MemoryField(
        name="superseded_by",
        kind=str | None,
        description="The id of the memory that replaced this one.",
        bounds=ID,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="forgotten_at",
        kind=datetime | None,
        description="When the memory was forgotten, while it is; null otherwise.",
    ),
    MemoryField(
        name="version",
        kind=int,
        description="The version of the memory; each change adds one.",
        bounds=Bounds(minimum=1, maximum=COUNT_MAX),
        default=1,
        stored=Stored.FACET,
    ),
    MemoryField(
        name="access_count",
        kind=int,
        description="How often the memory was read or found; not part of its history.",
        bounds=COUNT,
        default=0,
    ),
    MemoryField(
        name="last_accessed_at",
        kind=datetime | None,
        description="When the memory was last read or found; not part of its history.",
    ),
    MemoryField(
        name="vector",
        kind=Vector | None,
        description="The embedding of the content; only present if it was asked for.",
    ),
    MemoryField(
        name="embedded",
        kind=bool | None,
        description="Whether this write made an embedding or was given one; only told by the answer to a write.",
    ),
    MemoryField(
        name="merged",
        kind=bool | None,
        description="Whether the same was stored already, word for word; only told by the answer to an addition.",
    ),
)

MEMORY: Mapping[str, MemoryField] = MappingProxyType({one.name: one for one in _SET_BY_CALLERS + _SET_BY_THE_ENGINE})
"""Every field of a memory by its name."""

SETTABLE: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: one.check for name, one in MEMORY.items() if one.check is not None}
)
"""The fields that a new memory may be given, and how each is checked."""

CHANGEABLE: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: check for name, check in SETTABLE.items() if MEMORY[name].changeable}
)
"""The fields that an update may set, and how each is checked."""

CLEARABLE = tuple(name for name, one in MEMORY.items() if one.clearable)
"""The fields that an update may empty."""

COMPARED = tuple(name for name in SETTABLE if MEMORY[name].compared)
"""The fields by which a repeated request with a key is recognised."""
