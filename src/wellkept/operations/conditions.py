"""Which memories a verb is about: filters, layers, points in time, searches and pages that several inputs share."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wellkept import fields
from wellkept.filters import MAX_DEPTH
from wellkept.operations.verb import Takes, argument, group, option
from wellkept.types import Filter, Layer, MemoryType, Ranking, Sort, SourceType, Tier
from wellkept.types.bounds import Bounds

Position = str
"""A position in the journals that a caller sees."""

POSITION = Bounds(max_length=100_000)
QUERY = Bounds(max_length=32_768)
RESULTS = Bounds(minimum=1, maximum=1_000)
PAGE = Bounds(minimum=1, maximum=100)
OFFSET = Bounds(minimum=0, maximum=1_000_000_000)
LAYERS = Bounds(max_length=len(Layer))
IDS = Bounds(max_length=10_000, each=fields.ID)
MANY = Bounds(max_length=1_000_000)
MANY_IDS = Bounds(max_length=1_000_000, each=fields.ID)
TEXT = Bounds(max_length=2**31)
_AUTHORS = Bounds(max_length=1_000, each=fields.ID)
_CURSOR = Bounds(max_length=4_096)


def as_of_field() -> Any:
    """The field of an input that names a point in time."""
    return option("Read as of this time, or as of this position of the journal.", bounds=POSITION)


def layers_field() -> Any:
    """The field of an input that names layers."""
    return option("Only memories of these layers.", (), bounds=LAYERS, flag="layer", short="l")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold of a memory. All conditions that are given must hold."""

    types: tuple[MemoryType, ...] = option(
        "Only memories of these types.", (), bounds=Bounds(max_length=len(MemoryType)), flag="type", short="t"
    )
    tiers: tuple[Tier, ...] = option(
        "Only memories of these tiers.", (), bounds=Bounds(max_length=len(Tier)), flag="tier"
    )
    tags: tuple[str, ...] = option(
        "Only memories that have all of these tags, or tags below them.",
        (),
        bounds=fields.TAGS,
        flag="tag",
        short="T",
    )
    any_tags: tuple[str, ...] = option(
        "Only memories that have at least one of these tags.", (), bounds=fields.TAGS, flag="any-tag"
    )
    no_tags: tuple[str, ...] = option(
        "Only memories that have none of these tags.", (), bounds=fields.TAGS, flag="no-tag"
    )
    min_importance: float | None = option("Only memories of at least this importance.", bounds=fields.UNIT)
    min_trust: float | None = option("Only memories whose source is trusted at least so far.", bounds=fields.UNIT)
    created_after: datetime | None = option("Only memories recorded at this time or later.", flag="after")
    created_before: datetime | None = option("Only memories recorded before this time.", flag="before")
    occurred_after: datetime | None = option("Only what happened at this time or later.")
    occurred_before: datetime | None = option("Only what happened before this time.")
    within: str | None = option(
        "Only memories recorded within this span, such as 7d or 'last week'.", bounds=fields.ID, short="w"
    )
    content_contains: str | None = option(
        "Only memories whose content contains this text, in any case.", bounds=fields.CONTENT, flag="contains"
    )
    text: str | None = option(
        "Only memories whose content has all of these words, in any order; * and ? in them are wildcards.",
        bounds=fields.LINE,
    )
    authors: tuple[str, ...] = option("Only memories by one of these authors.", (), bounds=_AUTHORS, flag="author")
    source_type: SourceType | None = option("Only memories that came from this kind of source.")
    has_pointer: bool | None = option("Only memories with a pointer to a document, or only those without.")
    metadata: Mapping[str, Any] = option(
        "Only memories whose custom fields have these values.", {}, bounds=fields.METADATA, flag="meta", short="m"
    )
    keyed: tuple[str, ...] = option(
        "Only memories that have one of these keys.",
        (),
        bounds=Bounds(max_length=1_000, each=fields.LINE),
        flag="key",
    )
    references: tuple[str, ...] = option(
        "Only memories that are reached from these ids by following references.",
        (),
        bounds=fields.REFERENCES,
        flag="reached-from",
    )
    max_depth: int = option(
        "How many references to follow.", 1, bounds=Bounds(minimum=1, maximum=MAX_DEPTH), flag="depth"
    )

    @property
    def given(self) -> list[str]:
        """The names of the conditions that are set."""
        names = [one.name for one in dataclasses.fields(self) if one.name != "max_depth"]
        return [name for name in names if getattr(self, name) not in (None, (), {})]

    def to_filter(self) -> Filter:
        """The conditions as the engine takes them."""
        every = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return Filter(**{name: value for name, value in every.items() if value != ()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Conditions):
    """What must hold of a memory, and whether forgotten memories count."""

    include_forgotten: bool = option("Include forgotten memories.", False, flag="forgotten")
    include_archived: bool = option("Include archived memories.", False, flag="archived")
    include_superseded: bool = option("Include memories that others replaced.", False, flag="superseded")
    include_quarantined: bool = option("Include memories in quarantine.", False, flag="quarantined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which memories to read, and at which point in time."""

    filter: Selection = group("Which memories to read; without it, all of them.", Selection)
    as_of: datetime | Position | None = as_of_field()

    def arguments(self) -> dict[str, Any]:
        """The fields as methods of the engine take them: all but the query, which they take by position."""
        given = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "query"}
        for name in {"layers", "precedence"} & given.keys():
            given[name] = given[name] or None
        return {**given, "filter": self.filter.to_filter()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedSearch(Scope):
    """What to search for, in which memories, and how to rank what is found."""

    query: str = argument("What to search for, in plain words.", takes=Takes.WORDS, bounds=QUERY)
    limit: int = option("The largest number of results.", 10, bounds=RESULTS, short="n")
    min_score: float | None = option(
        "Only results of at least this score; 0 returns the nearest ones, however far they are.", bounds=fields.UNIT
    )
    ranking: Ranking = option("How results are ranked.", Ranking.BEST)
    asked_at: datetime | None = option("When the question was asked, for words such as yesterday; by default, now.")
    explain: bool = option("Include what each signal added to the score.", False, short="x")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPage(Scope):
    """Which page of which memories, and in which order."""

    limit: int | None = option(
        "The largest number of memories on the page, up to 100; by default 50, 100 with a filter, and 10 in the orders"
        " important and recently_accessed.",
        bounds=PAGE,
        short="n",
    )
    cursor: str | None = option("Continue after the page that returned this cursor.", bounds=_CURSOR)
    offset: int = option("How many memories to skip first.", 0, bounds=OFFSET)
    sort_by: Sort = option("The order of the memories.", Sort.NEWEST, flag="sort", short="s")
