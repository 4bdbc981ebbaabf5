"""From what a caller asks for to the memory that a write leaves: pure functions."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from wellkept import authorization, codec, filters, layers, validation
from wellkept.errors import InvalidInput
from wellkept.fields import CHANGEABLE, COMPARED, SETTABLE
from wellkept.lifecycle import trust
from wellkept.settings.schema import TrustSettings
from wellkept.text import objects, recall_markers
from wellkept.types import ChangedFields, Fact, Memory, MemoryType, NewMemory, Owner, State, Tier

_REMOVED = 1_000
_ALWAYS_SET = ("content", "type", "importance", "tags", "metadata", "occurred_at")
_OPTIONAL: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: check for name, check in SETTABLE.items() if name not in _ALWAYS_SET}
)
"""The fields that a memory may go without, and how each is checked."""

_optional_of = attrgetter(*_OPTIONAL)
_NOTHING = _optional_of(NewMemory(content=""))

_CHECKS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {name: check for name, check in CHANGEABLE.items() if name not in ("content", "tags", "metadata")}
)
"""The fields that an update sets as they are given; content may be an object, tags and metadata are merged."""


def draft(
    new: NewMemory,
    owner: Owner,
    now: datetime,
    memory_id: str,
    session: str | None = None,
    *,
    trusts: TrustSettings = trust.USUAL,
) -> Memory:
    """The first version of a memory, every field checked; said in that session, if it was said and names no other.

    Its trust is what ``trusts`` says of where it came from; the memories that it is derived from may lower it.
    """
    content, data = _content(new.content)
    fields: dict[str, Any] = {
        "id": memory_id,
        "content": content,
        "owner": owner,
        "created_at": now,
        "updated_at": now,
        "occurred_at": now if new.occurred_at is None else validation.moment("occurred_at", new.occurred_at),
        "type": validation.choice("type", MemoryType, new.type),
        "importance": validation.unit("importance", new.importance),
        "tags": validation.tags(new.tags),
        "metadata": validation.metadata(new.metadata),
    }
    if data is not None:
        fields["data"] = data
        if new.role is None and (role := objects.role_of(data)):
            fields["role"] = role
    given = _optional_of(new)
    if given != _NOTHING:  # most memories have few of these or none, and a check that need not be made is the cheapest
        for (name, check), value in zip(_OPTIONAL.items(), given, strict=True):
            if value not in (None, ()):
                fields[name] = check(value)
        if "expires_at" in fields:
            validation.future("expires_at", fields["expires_at"], now)
    fields["trust"] = trust.of(fields, trusts)
    if "tier" in fields:
        fields["tier_set"] = True
    else:
        fields["tier"] = layers.tier_of(owner.layer, fields["type"], State.ACTIVE, is_fact="fact" in fields)
    if "fact" in fields:
        if "key" in fields:
            raise InvalidInput(
                "a fact was given a key",
                details={"field": "key"},
                hint="its subject and predicate are its key",
            )
        fields["key"] = slot_of(fields["fact"], now)
    authorization.check_author(owner, fields.get("access_policy"), fields.get("author"))
    if session is not None and "session" not in fields and _is_said(fields):
        fields["session"] = session
    return codec.make_memory(fields)


def tell(made: Memory, *, embedded: bool) -> None:
    """Note on a new memory what its add has to tell. In place, while nobody else has it: a copy of its forty fields
    takes a quarter of the time of an add in a batch.
    """
    object.__setattr__(made, "embedded", embedded)
    object.__setattr__(made, "merged", False)


def _content(given: object) -> tuple[str, dict[str, Any] | None]:
    """The text of a content without what was recalled into it, and the object that it is, if it is one."""
    if not isinstance(given, Mapping):
        return validation.content(recall_markers.own_words(given)), None
    data = objects.with_texts(validation.content_object(given), recall_markers.strip_recalled)
    return validation.content(objects.rendered(data)), data


def slot_of(fact: Fact, now: datetime) -> str:
    """The key under which a fact is kept: facts that cannot hold together have the same.

    What is of the past already contradicts nothing that holds now.
    """
    parts = [fact.subject, fact.predicate]
    if fact.multiple:
        parts.append(fact.object)
    if fact.valid_until is not None and fact.valid_until <= now:
        parts += [fact.object, str(fact.valid_from), str(fact.valid_until)]
    return f"fact:{codec.checksum(codec.encode_json([folded(part) for part in parts]).decode()).hex()}"


def folded(text: str) -> str:
    """A part of a fact as it is compared: without case, and with single spaces."""
    return " ".join(text.casefold().split())


def _is_said(fields: Mapping[str, Any]) -> bool:
    """Whether a new memory is part of a conversation: what is only known has no neighbours that it was said with."""
    return "author" in fields or "role" in fields or fields["type"] is MemoryType.CONVERSATION


def same_request(left: Memory, right: Memory) -> bool:
    """Whether two drafts ask for the same memory, whenever that was."""
    return all(getattr(left, name) == getattr(right, name) for name in COMPARED) and _same_objects(left, right)


def _same_objects(left: Memory, right: Memory) -> bool:
    """What ``==`` cannot tell: true is not 1."""
    return filters.same_json(dict(left.metadata), dict(right.metadata)) and filters.same_json(left.data, right.data)


_OTHERWISE = ("content", "tags", "add_tags", "remove_tags", "metadata", "remove_metadata")


def check_known(given: Iterable[str], known: Collection[str], verb: str) -> None:
    """Refuse a keyword that a verb does not have."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInput(
            f"{verb} has no field {unknown[0][:40]!r}",
            details={"field": unknown[0][:40]},
            hint=f"it takes {', '.join(known)}",
        )


def updated(memory: Memory, changes: ChangedFields, now: datetime, trusts: TrustSettings = trust.USUAL) -> Memory:
    """The next version of a memory; the memory itself if the changes change nothing."""
    check_known(changes, (*_CHECKS, *_OTHERWISE), "update")
    fields: dict[str, Any] = {name: _CHECKS[name](value) for name, value in changes.items() if name in _CHECKS}
    if "content" in changes:
        fields["content"], fields["data"] = _content(changes["content"])
    if fields.get("expires_at") is not None:
        validation.future("expires_at", fields["expires_at"], now)
    if "derived_from" in fields:  # what a memory was made from stays true
        fields["derived_from"] = _CHECKS["derived_from"]((*memory.derived_from, *fields["derived_from"]))
    if "tier" in fields:
        fields["tier_set"] = fields["tier"] is not None
        fields["tier"] = fields["tier"] or Tier.SEMANTIC
    after = replace(
        memory,
        **fields,
        tags=_tags(memory.tags, changes),
        metadata=_metadata(memory.metadata, changes),
    )
    after = layers.with_tier(replace(after, trust=trust.after_change(memory, after, changes, trusts)))
    authorization.check_author(after.owner, after.access_policy, after.author)
    same = after == memory and _same_objects(after, memory)
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
