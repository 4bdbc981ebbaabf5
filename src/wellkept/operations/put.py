"""The verb that sets what a key stands for."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellkept import fields
from wellkept.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidLayer, RateLimited
from wellkept.operations.memory_fields import OptionalFields
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, memory_field, option
from wellkept.types import Layer, Memory, MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(OptionalFields):
    """What the key stands for; fields that are left out keep their values."""

    key: str = argument("The key of the memory.", bounds=fields.LINE)
    content: str | Mapping[str, Any] = argument(
        "What to remember: a text, or a JSON object, which is searched by its text.",
        bounds=fields.CONTENT,
        takes=Takes.WORDS,
    )
    layer: Layer | None = option(
        "The layer that owns the memory; by default, the most specific one that the identity has.", short="l"
    )
    type: MemoryType | None = memory_field("type")
    importance: float | None = memory_field("importance")
    tags: tuple[str, ...] | None = memory_field("tags")
    metadata: Mapping[str, Any] = memory_field("metadata", {}, description="Custom fields to set; the others stay.")
    references: tuple[str, ...] | None = memory_field("references")
    derived_from: tuple[str, ...] | None = memory_field("derived_from")


def _put(caller: Caller, given: Put) -> Memory:
    names = [one.name for one in dataclasses.fields(given) if one.name not in ("key", "content")]
    rest = {name: value for name in names if (value := getattr(given, name)) not in (None, {})}
    return caller.view.put(given.key, given.content, **rest)


PUT = Verb(
    name="put",
    input=Put,
    output=Memory,
    run=_put,
    method="View.put",
    errors=(InvalidLayer, ContentTooLong, Conflict, EmbeddingFailed, RateLimited),
    creates=True,
    description="The versions before stay in the history. A memory that was forgotten lives again as a new version.",
    examples=(
        Example(line="wellkept put style Indent with tabs", says="added, or a new version of what has the key"),
        Example(line="wellkept put style 'Use spaces' --project api --layer project", says="each owner has its keys"),
    ),
)
