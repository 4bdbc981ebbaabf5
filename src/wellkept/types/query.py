"""Filters of listings and searches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from wellkept.types.memory import SourceType
from wellkept.types.representation import hiding
from wellkept.types.words import MemoryTypes, SourceTypeName, Tiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions on memories; all given conditions must hold.

    Tags are hierarchical: ``security`` also matches ``security.authentication``. ``within`` is relative to now:
    a ``timedelta`` or a text such as ``"7d"``, ``"12h"``, ``"last week"``. ``text`` matches contents with all of its
    words, in any order, ignoring case; ``*`` and ``?`` in a word are wildcards. ``references`` matches the memories
    reachable from the given ids through references, in at most ``max_depth`` steps; ``keyed`` those with one of the
    keys. ``include_archived``, ``include_superseded`` and ``include_quarantined`` add memories in these states,
    ``include_forgotten`` those in any state, and expired ones.

    >>> Filter(types=["decision"], tags=["security"], within="7d").within
    '7d'
    """

    types: MemoryTypes | None = None
    tiers: Tiers | None = None
    tags: Iterable[str] | None = None
    any_tags: Iterable[str] | None = None
    no_tags: Iterable[str] | None = None
    min_importance: float | None = None
    min_trust: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    within: timedelta | str | None = None
    content_contains: str | None = None
    text: str | None = None
    authors: Iterable[str] | None = None
    source_type: SourceType | SourceTypeName | None = None
    has_pointer: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keyed: Iterable[str] | None = None
    references: Iterable[str] | None = None
    max_depth: int = 1
    include_forgotten: bool = False
    include_archived: bool = False
    include_superseded: bool = False
    include_quarantined: bool = False

    __repr__ = hiding("tags", "any_tags", "no_tags", "content_contains", "text", "authors", "metadata", "keyed")
