"""The verb that changes a memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wellkept import fields
from wellkept.errors import Conflict, ContentTooLong, EmbeddingFailed, InvalidInput, NotFound, RateLimited
from wellkept.operations.memory_fields import OptionalFields
from wellkept.operations.verb import Caller, Example, Verb, argument, memory_field, option
from wellkept.types import Memory, MemoryType
from wellkept.types.bounds import Bounds

_MERGED = ("add_tags", "remove_tags", "remove_metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(OptionalFields):
    """What to change; fields that are left out keep their values."""

    id: str = argument("The id of the memory.", bounds=fields.ID)
    content: str | Mapping[str, Any] | None = memory_field(
        "content", description="The new content; it is embedded again."
    )
    type: MemoryType | None = memory_field("type")
    importance: float | None = memory_field("importance")
    tags: tuple[str, ...] | None = memory_field("tags", description="Tags that replace all tags of the memory.")
    add_tags: tuple[str, ...] = option("Tags to add.", (), bounds=fields.TAGS, flag="add-tag")
    remove_tags: tuple[str, ...] = option("Tags to remove.", (), bounds=fields.TAGS, flag="remove-tag")
    metadata: Mapping[str, Any] = memory_field("metadata", {}, description="Custom fields to set; the others stay.")
    remove_metadata: tuple[str, ...] = option(
        "Names of custom fields to remove.", (), bounds=Bounds(max_length=1_000, each=fields.ID), flag="remove-meta"
    )
    references: tuple[str, ...] | None = memory_field(
        "references", description="Ids that replace all references of the memory."
    )
    derived_from: tuple[str, ...] = memory_field(
        "derived_from", (), description="Ids of memories that this one was made from as well."
    )
    clear: tuple[str, ...] = option(
        "Fields to empty, such as title or expires_at.",
        (),
        bounds=Bounds(max_length=len(fields.CLEARABLE), each=Bounds(words=fields.CLEARABLE)),
    )
    if_version: int | None = option(
        "Change the memory only if it is still at this version.", bounds=fields.MEMORY["version"].bounds
    )


def _update(caller: Caller, given: Update) -> Memory:
    names = [name for name in (*fields.CHANGEABLE, *_MERGED) if hasattr(given, name)]
    changes = {name: value for name in names if (value := getattr(given, name)) not in (None, (), {})}
    for name in ("tags", "references"):
        if getattr(given, name) == ():  # given and empty: none are to be left
            changes[name] = ()
    for name in given.clear:
        if name in changes:
            raise InvalidInput(
                f"the field {name!r} is both set and cleared",
                operation="update",
                details={"field": "clear"},
                hint="do one of the two",
            )
        changes[name] = None
    if not changes:
        raise InvalidInput(
            "no change was given",
            operation="update",
            details={"field": "id", "memory_id": given.id},
            hint="pass what to change, such as content or importance",
        )
    return caller.view.update(given.id, if_version=given.if_version, dangling=given.dangling, **changes)


UPDATE = Verb(
    name="update",
    input=Update,
    output=Memory,
    run=_update,
    method="View.update",
    errors=(NotFound, Conflict, ContentTooLong, EmbeddingFailed, RateLimited),
    examples=(
        Example(line="wellkept update $ID --content 'Lives in Rome'", says="the new content is embedded again"),
        Example(line="wellkept update $ID --add-tag home --importance 0.9", says="one more tag, and more important"),
        Example(line="wellkept update $ID --clear title --if-version 3", says="only if it is still at version 3"),
    ),
)
