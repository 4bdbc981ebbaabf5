"""From what a caller asks for to the memory that a write leaves: pure functions."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from recollect import codec, filters, validation
from recollect.errors import InvalidInput
from recollect.fields import CHANGEABLE, COMPARED, SETTABLE
from recollect.text import recall_markers
from recollect.types import ChangedFields, Memory, MemoryType, NewMemory, Owner

_REMOVED = 1_000
_ALWAYS_SET = ("content", "type", "importance", "tags", "metadata", "occurred_at")
_OPTIONAL: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: check for name, check in SETTABLE.items() if name not in _ALWAYS_SET}
)
"""The fields that a memory may go without, and how each is checked."""

_optional_of = attrgetter(*_OPTIONAL)
_NOTHING = _optional_of(NewMemory(content=""))

_CHECKS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        **{name: check for name, check in CHANGEABLE.items() if name not in ("tags", "metadata")},
        "content": lambda value: validation.content(recall_markers.own_words(value)),
    }
)
"""The fields that an update sets; tags and metadata are merged instead."""


def in_own_words(new: NewMemory) -> NewMemory:
    """A new memory without what was recalled into its content."""
    content = recall_markers.own_words(new.content)
    return new if content is new.content else replace(new, content=content)


def draft(new: NewMemory, owner: Owner, now: datetime, memory_id: str, session: str | None = None) -> Memory:
    """The first version of a memory, every field checked; said in that session, if it was said and names no other."""
    fields: dict[str, Any] = {
        "id": memory_id,
        "content": validation.content(new.content),
        "owner": owner,
        "created_at": now,
        "updated_at": now,
        "occurred_at": now if new.occurred_at is None else validation.moment("occurred_at", new.occurred_at),
        "type": validation.choice("type", MemoryType, new.type),
        "importance": validation.unit("importance", new.importance),
        "tags": validation.tags(new.tags),
        "metadata": validation.metadata(new.metadata),
    }
    given = _optional_of(new)
    if given != _NOTHING:  # most memories have few of these or none, and a check that need not be made is the cheapest
        for (name, check), value in zip(_OPTIONAL.items(), given, strict=True):
            if value not in (None, ()):
                fields[name] = check(value)
        if "expires_at" in fields:
            validation.future("expires_at", fields["expires_at"], now)
    if session is not None and "session" not in fields and _is_said(fields):
        fields["session"] = session
    return codec.make_memory(fields)


def _is_said(fields: Mapping[str, Any]) -> bool:
    """Whether a new memory is part of a conversation: what is only known has no neighbours that it was said with."""
    return "author" in fields or "role" in fields or fields["type"] is MemoryType.CONVERSATION


def same_request(left: Memory, right: Memory) -> bool:
    """Whether two drafts ask for the same memory, whenever that was."""
    return all(getattr(left, name) == getattr(right, name) for name in COMPARED) and _same_metadata(left, right)


def _same_metadata(left: Memory, right: Memory) -> bool:
    """What ``==`` cannot tell: true is not 1."""
    return filters.same_json(dict(left.metadata), dict(right.metadata))


_MERGED = ("tags", "add_tags", "remove_tags", "metadata", "remove_metadata")


def check_known(given: Iterable[str], known: Collection[str], verb: str) -> None:
    """Refuse a keyword that a verb does not have."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInput(
            f"{verb} has no field {unknown[0][:40]!r}",
            details={"field": unknown[0][:40]},
            hint=f"it takes {', '.join(known)}",
        )


def updated(memory: Memory, changes: ChangedFields, now: datetime) -> Memory:
    """The next version of a memory; the memory itself if the changes change nothing."""
    check_known(changes, (*_CHECKS, *_MERGED), "update")
    fields = {name: _CHECKS[name](value) for name, value in changes.items() if name in _CHECKS}
    if fields.get("expires_at") is not None:
        validation.future("expires_at", fields["expires_at"], now)
    after = replace(
        memory,
        **fields,
        tags=_tags(memory.tags, changes),
        metadata=_metadata(memory.metadata, changes),
    )
    same = after == memory and _same_metadata(after, memory)
    return memory if same else replace(after, version=memory.version + 1, updated_at=now)


def _tags(tags: tuple[str, ...], changes: ChangedFields) -> tuple[str, ...]:
    removed = set(validation.tags(changes.get("remove_tags", ()), "remove_tags"))
    added = validation.tags(changes.get("add_tags", ()), "add_tags")
    kept = validation.tags(changes["tags"]) if "tags" in changes else tags
    return validation.tags((*(tag for tag in kept if tag not in removed), *added))


def _metadata(metadata: Mapping[str, Any], changes: ChangedFields) -> dict[str, Any]:
    merged = {**metadata, **validation.metadata(changes.get("metadata", {}))}
    for name in validation.lines("remove_metadata", changes.get("remove_metadata", ()), _REMOVED):
        merged.pop(name, None)
    return validation.metadata(merged)
