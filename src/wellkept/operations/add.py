"""The verb that adds."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellkept import fields
from wellkept.errors import (
    Conflict,
    ContentTooLong,
    EmbeddingFailed,
    InvalidInput,
    InvalidLayer,
    NotFound,
    RateLimited,
)
from wellkept.operations.conditions import MANY
from wellkept.operations.memory_fields import OptionalFields
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, memory_field, option, result
from wellkept.types import Duplicates, Fact, Layer, Memory, MemoryType, NewMemory
from wellkept.types.bounds import Bounds

_MOST = 100_000
_MANY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The memories as they were stored, in the order given."""

    memories: tuple[Memory, ...] = result("The memories as they were stored, in the order given.", bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(OptionalFields):
    """What to remember; the other fields apply to every content."""

    content: tuple[str | Mapping[str, Any], ...] = argument(
        "What to remember: texts, or JSON objects, which are searched by their text.",
        takes=Takes.WORDS,
        bounds=Bounds(max_length=_MOST, each=fields.CONTENT),
    )
    layer: Layer | None = option(
        "The layer that owns the memory; by default, the most specific one that the identity has.", short="l"
    )
    type: MemoryType = memory_field("type", MemoryType.FACT)
    importance: float = memory_field("importance", fields.MEMORY["importance"].default)
    tags: tuple[str, ...] = memory_field("tags", ())
    metadata: Mapping[str, Any] = memory_field("metadata", {})
    references: tuple[str, ...] = memory_field("references", ())
    key: str | None = memory_field("key")
    fact: Fact | None = memory_field("fact")
    supersedes: tuple[str, ...] = memory_field("supersedes", ())
    derived_from: tuple[str, ...] = memory_field("derived_from", ())
    duplicates: Duplicates = option(
        "What to do if the owner has the same, word for word: one memory with both sources, another one, or an error.",
        Duplicates.MERGE,
    )


def _add(caller: Caller, given: Add) -> Added:
    alone = next((name for name in ("key", "fact") if getattr(given, name)), None)
    if alone is not None and len(given.content) > 1:
        raise InvalidInput(
            f"one {alone} was given for {len(given.content)} contents",
            operation="add",
            details={"field": alone},
            hint=f"a {alone} belongs to one memory: add them one by one, or without it",
        )
    names = [one.name for one in dataclasses.fields(given) if one.name not in ("content", "dangling", "duplicates")]
    rest = {name: getattr(given, name) for name in names}
    news = [NewMemory(content=content, **rest) for content in given.content]
    if caller.progress is not None and len(news) >= _MANY:
        caller.progress(0, len(news))  # all are stored at once, so there are no steps to tell
    return Added(memories=tuple(caller.view.add_many(news, dangling=given.dangling, duplicates=given.duplicates)))


ADD = Verb(
    name="add",
    input=Add,
    output=Added,
    run=_add,
    method="View.add_many",
    errors=(InvalidLayer, ContentTooLong, Conflict, NotFound, EmbeddingFailed, RateLimited),
    creates=True,
    description="Several contents are stored together: all of them, or none. On a command line, quoted texts are one"
    " memory each, and words without quotes are one memory together.",
    examples=(
        Example(line="wellkept add Prefers dark mode --type preference --tag ui", says="the words are one memory"),
        Example(line="wellkept add 'Likes tea' 'Lives in Rome'", says="quoted texts are one memory each"),
        Example(line="cat notes.txt | wellkept add -", says="one memory for each line"),
        Example(line="wellkept add - --whole --title Minutes < notes.txt", says="the whole text as one memory"),
        Example(line="""wellkept add --structured '{"decision": "Use tabs"}'""", says="a JSON object is kept as data"),
        Example(line="wellkept add 'Use tabs' --project api --layer project", says="for everybody in the project"),
    ),
)
