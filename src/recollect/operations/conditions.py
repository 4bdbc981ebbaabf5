"""Which memories a verb is about: the conditions that several inputs share."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from recollect.operations.verb import option
from recollect.types import Filter, Layer, MemoryType, SourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What must hold of a memory; every condition given must."""

    types: tuple[MemoryType, ...] = option("only of this type", (), flag="type", short="t")
    tags: tuple[str, ...] = option("only with this tag, or one below it", (), flag="tag", short="T")
    any_tags: tuple[str, ...] = option("only with one of these tags", (), flag="any-tag")
    no_tags: tuple[str, ...] = option("without this tag", (), flag="no-tag")
    min_importance: float | None = option("only if it counts for so much")
    created_after: datetime | None = option("only if recorded then or later", flag="after")
    created_before: datetime | None = option("only if recorded earlier", flag="before")
    occurred_after: datetime | None = option("only if it happened then or later")
    occurred_before: datetime | None = option("only if it happened earlier")
    within: str | None = option("only if recorded in this span, such as 7d or 'last week'", short="w")
    content_contains: str | None = option("only with this text in it, whatever the case", flag="contains")
    text: str | None = option("only with all of these words, in any order; secur* is every word that begins so")
    authors: tuple[str, ...] = option("only by this author", (), flag="author")
    source_type: SourceType | None = option("only from there")
    has_pointer: bool | None = option("only with a pointer to a document, or only without")
    metadata: Mapping[str, Any] = option("only with this field of your own", {}, flag="meta", short="m")
    references: tuple[str, ...] = option("only what this id refers to", (), flag="reached-from")
    max_depth: int = option("how many references to follow", 1, flag="depth")

    def filter(self) -> Filter:
        """The conditions as the engine takes them."""
        names = {one.name for one in fields(Filter)}
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name in names}
        return Filter(**{name: value for name, value in given.items() if value != ()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed(Conditions):
    """Which memories to look at, of which layers, and when."""

    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")
    include_forgotten: bool = option("forgotten ones as well", False, flag="forgotten")
    as_of: datetime | int | None = option("as it was then: a time, or a sequence of the journal")

    def wanted(self) -> Mapping[str, Any]:
        """The arguments that all verbs with conditions share."""
        return {"filter": self.filter(), "layers": self.layers or None, "as_of": self.as_of}
