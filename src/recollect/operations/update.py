"""The verb that changes a memory."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from recollect.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidInput, NotFound, RateLimited
from recollect.operations.sources import source_of
from recollect.operations.verb import Caller, Example, Needs, Verb, argument, option
from recollect.types import KnowledgePointer, Memory, MemoryType, SourceType


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What to change; what is left out stays as it is."""

    id: str = argument("the id of the memory")
    content: str | None = option("new content; it is embedded anew")
    type: MemoryType | None = option("what kind of thing it is", short="t")
    importance: float | None = option("what it counts for, from 0 to 1", short="i")
    tags: tuple[str, ...] | None = option("a tag; those given take the place of all others", flag="tag", short="T")
    add_tags: tuple[str, ...] = option("one more tag", (), flag="add-tag")
    remove_tags: tuple[str, ...] = option("a tag that goes", (), flag="remove-tag")
    metadata: Mapping[str, Any] = option("a field of your own, set beside the others", {}, flag="meta", short="m")
    remove_metadata: tuple[str, ...] = option("a field of your own that goes", (), flag="remove-meta")
    title: str | None = option("a title")
    description: str | None = option("a description")
    author: str | None = option("who said it")
    role: str | None = option("as what the author said it")
    language: str | None = option("the language it is in")
    type_name: str | None = option("a type of your own, beside the eight")
    references: tuple[str, ...] | None = option("an id that it refers to, in place of all others", flag="reference")
    occurred_at: datetime | None = option("when it was said or happened", flag="occurred")
    expires_at: datetime | None = option("when it ends", flag="expires", ahead=True)
    confidence: float | None = option("how sure it is, from 0 to 1")
    relevance: float | None = option("how relevant it is, from 0 to 1")
    decay_factor: float | None = option("how much of it has faded, from 0 to 1")
    source_type: SourceType | None = option("where it came from")
    source_reference: str | None = option("the message, call or file it came in")
    pointer: KnowledgePointer | None = option("the document that it summarises")
    clear: tuple[str, ...] = option("a field to empty, such as title or expires_at", ())
    if_version: int | None = option("only if the memory is still at this version")


_CLEARABLE = frozenset(
    "title description author role language type_name confidence relevance decay_factor source pointer"
    " expires_at session".split()
)


def _update(caller: Caller, given: Update) -> Memory:
    plain = {one.name for one in fields(Update)} - {"id", "if_version", "clear", "source_type", "source_reference"}
    changes = {name: value for name in plain if (value := getattr(given, name)) not in (None, (), {})}
    for name in ("tags", "references"):
        if getattr(given, name) == ():  # given and empty: none shall be left
            changes[name] = ()
    if source := source_of(given.source_type, given.source_reference):
        changes["source"] = source
    changes.update(dict.fromkeys(_cleared(given, set(changes))))
    if not changes:
        raise InvalidInput(
            "nothing to change was given",
            operation="update",
            details={"field": "id", "memory_id": given.id},
            hint="pass what to change, such as content or importance",
        )
    return caller.view.update(given.id, if_version=given.if_version, **changes)


def _cleared(given: Update, changed: set[str]) -> tuple[str, ...]:
    names = tuple(name.replace("-", "_") for name in given.clear)
    for name in names:
        if name not in _CLEARABLE:
            raise InvalidInput(
                f"the field {name[:40]!r} cannot be empty",
                operation="update",
                details={"field": "clear"},
                hint=f"clear one of {', '.join(sorted(_CLEARABLE))}",
            )
        if name in changed:
            raise InvalidInput(
                f"the field {name!r} is both set and cleared",
                operation="update",
                details={"field": "clear"},
                hint="do one of the two",
            )
    return names


UPDATE = Verb(
    name="update",
    input=Update,
    output=Memory,
    run=_update,
    needs=Needs.WRITE,
    errors=(NotFound, Conflict, ContentTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="recollect update $ID --content 'Lives in Rome'", says="the new content is embedded anew"),
        Example(line="recollect update $ID --add-tag home --importance 0.9", says="a tag more, and more important"),
        Example(line="recollect update $ID --clear title --if-version 3", says="only if nobody changed it since"),
    ),
)
