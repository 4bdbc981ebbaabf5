"""The verb that adds."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from recollect.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidInput, InvalidLayer, RateLimited
from recollect.operations.sources import source_of
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import KnowledgePointer, Layer, Memory, MemoryType, NewMemory, SourceType
from recollect.types.memory import DEFAULT_IMPORTANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The memories as they were stored, in the order given."""

    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """What to remember; the other fields hold for every content."""

    content: tuple[str, ...] = argument("what to remember, one memory each", takes=Takes.WORDS)
    layer: Layer | None = option("whose it is; without it, the most specific layer that the identity has", short="l")
    type: MemoryType = option("what kind of thing it is", MemoryType.FACT, short="t")
    importance: float = option("what it counts for, from 0 to 1", DEFAULT_IMPORTANCE, short="i")
    tags: tuple[str, ...] = option("a tag; dots make a hierarchy, as in security.tokens", (), flag="tag", short="T")
    metadata: Mapping[str, Any] = option("a field of your own", {}, flag="meta", short="m")
    key: str | None = option("makes it idempotent: the same key and content are stored once")
    title: str | None = option("a title")
    description: str | None = option("a description")
    author: str | None = option("who said it")
    role: str | None = option("as what the author said it, such as user or assistant")
    language: str | None = option("the language it is in, such as en")
    type_name: str | None = option("a type of your own, beside the eight")
    references: tuple[str, ...] = option("the id of a memory that it refers to", (), flag="reference", short="r")
    occurred_at: datetime | None = option("when it was said or happened, if not now", flag="occurred")
    expires_at: datetime | None = option("when it ends", flag="expires", ahead=True)
    confidence: float | None = option("how sure it is, from 0 to 1")
    relevance: float | None = option("how relevant it is, from 0 to 1")
    decay_factor: float | None = option("how much of it has faded, from 0 to 1")
    source_type: SourceType | None = option("where it came from")
    source_reference: str | None = option("the message, call or file it came in")
    pointer: KnowledgePointer | None = option("the document that it summarises")


_ELSEWHERE = ("content", "source_type", "source_reference")


def _add(caller: Caller, given: Add) -> Added:
    if given.key is not None and len(given.content) > 1:
        raise InvalidInput(
            f"one key was given for {len(given.content)} contents",
            operation="add",
            details={"field": "key"},
            hint="a key stands for one memory: add them one by one, or without a key",
        )
    kept = {one.name: getattr(given, one.name) for one in fields(Add) if one.name not in _ELSEWHERE}
    source = source_of(given.source_type, given.source_reference)
    news = [NewMemory(content=content, source=source, **kept) for content in given.content]
    return Added(memories=tuple(caller.view.add_many(news)))


ADD = Verb(
    name="add",
    input=Add,
    output=Added,
    run=_add,
    needs=Needs.WRITE,
    errors=(InvalidLayer, ContentTooLong, Conflict, EmbeddingFailed, RateLimited),
    creates=True,
    description="Several contents are stored together: all of them, or none.",
    examples=(
        Example(line="recollect add Prefers dark mode --type preference --tag ui", says="the words are one memory"),
        Example(line="cat notes.txt | recollect add -", says="one memory for each line"),
        Example(line="recollect add - --whole --title Minutes < notes.txt", says="the whole text as one memory"),
        Example(line="recollect add 'Use tabs' --project api --layer project", says="for everybody in the project"),
    ),
)
