"""The verbs about facts and about what replaced what."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wellkept import fields
from wellkept.errors import Conflict, EmbeddingFailed, InvalidLayer, NotFound, RateLimited
from wellkept.operations.conditions import MANY, Position, as_of_field, layers_field
from wellkept.operations.conditions import RESULTS as LIMIT
from wellkept.operations.verb import Caller, Example, Verb, argument, memory_field, option, result
from wellkept.types import Layer, Lineage, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The facts that were found."""

    memories: tuple[Memory, ...] = result("The facts that were found, the most certain first.", bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """Which facts to find: by any of their parts, as they held at one time and were known at another."""

    subject: str | None = option("Only facts about this subject.", bounds=fields.LINE, short="s")
    predicate: str | None = option("Only facts with this predicate.", bounds=fields.LINE, short="p")
    object: str | None = option("Only facts with this object.", bounds=fields.LINE, short="o")
    kind: str | None = option("Only facts of this kind.", bounds=fields.LINE)
    valid_at: datetime | None = option("Facts that held at this time; by default, those that hold now.")
    as_of: datetime | Position | None = as_of_field()
    include_superseded: bool = option("Include replaced facts, whenever they held.", False, flag="superseded")
    layers: tuple[Layer, ...] = layers_field()
    limit: int = option("The largest number of facts.", 100, bounds=LIMIT, short="n")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFact:
    """A fact to remember."""

    subject: str = argument("What the fact is about.", bounds=fields.LINE)
    predicate: str = argument("What it says of the subject, such as 'lives in'.", bounds=fields.LINE)
    object: str = argument("The value, such as Rome.", bounds=fields.LINE)
    kind: str | None = option("The kind of fact, in your own words.", bounds=fields.LINE)
    confidence: float | None = memory_field("confidence")
    valid_from: datetime | None = option("Since when it holds; by default, since now.")
    valid_until: datetime | None = option("Until when it holds.")
    multiple: bool = option("The subject can have several objects at a time.", False)
    content: str | None = option("The text of the memory; by default, the fact in words.", bounds=fields.CONTENT)
    layer: Layer | None = option("The layer that owns the fact; by default, the most specific one.", short="l")
    importance: float = memory_field("importance", fields.MEMORY["importance"].default)
    tags: tuple[str, ...] = memory_field("tags", ())
    metadata: Mapping[str, Any] = memory_field("metadata", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Which memory to trace."""

    id: str = argument("The id of the memory.", bounds=fields.ID)


def _find(caller: Caller, given: Find) -> Found:
    every = {one.name: getattr(given, one.name) for one in dataclasses.fields(given)}
    return Found(memories=tuple(caller.view.facts.find(**{**every, "layers": given.layers or None})))


def _add(caller: Caller, given: AddFact) -> Memory:
    return caller.view.facts.add(**{one.name: getattr(given, one.name) for one in dataclasses.fields(given)})


def _lineage(caller: Caller, given: Trace) -> Lineage:
    return caller.view.lineage(given.id)


FACTS = Verb(
    name="facts",
    input=Find,
    output=Found,
    run=_find,
    method="Facts.find",
    errors=(InvalidLayer,),
    examples=(
        Example(line="wellkept facts --subject Ada", says="what holds now, the most certain first"),
        Example(line="wellkept facts -s Ada -p 'lives in' --superseded", says="with what was replaced"),
        Example(line="wellkept facts --valid-at 2020-01-01 --as-of 2030-01-07", says="what held then, as known later"),
    ),
)

FACTS_ADD = Verb(
    name="facts.add",
    input=AddFact,
    output=Memory,
    run=_add,
    method="Facts.add",
    errors=(InvalidLayer, Conflict, EmbeddingFailed, RateLimited),
    creates=True,
    description="A new object for a subject and predicate supersedes the old one, unless there can be multiple.",
    examples=(
        Example(line="wellkept facts add Ada 'lives in' Berlin --confidence 0.9", says="replaces the former home"),
        Example(line="wellkept facts add Ada speaks German --multiple", says="beside other languages"),
    ),
)

LINEAGE = Verb(
    name="lineage",
    input=Trace,
    output=Lineage,
    run=_lineage,
    method="View.lineage",
    errors=(NotFound,),
    examples=(Example(line="wellkept lineage $ID", says="what it replaced, and what replaced it"),),
)
