"""A snapshot of working memory: a value that can be written as JSON, and what is checked when it comes back."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from recollect import codec, validation
from recollect.errors import InvalidInput, LimitReached
from recollect.types import MemoryType
from recollect.working.entries import (
    About,
    Entry,
    Limits,
    Lineage,
    Slot,
    checked_key,
    checked_size,
    encode_metadata,
    shown,
)

FORMAT_VERSION = 1
"""Raised when an older release could not read what a newer one writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSnapshot:
    """A scope with its own entries. Without a parent, it stands on the agent's own level.

    >>> ScopeSnapshot(id="1", name="plan").parent_id is None
    True
    """

    id: str
    name: str
    parent_id: str | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSnapshot:
    """All of an agent's working memory at one moment. Each scope stands after its parent.

    >>> from datetime import UTC
    >>> snapshot = WorkingSnapshot(agent_id="debugger", taken_at=datetime(2026, 1, 7, tzinfo=UTC))
    >>> WorkingSnapshot.from_json(snapshot.to_json()) == snapshot
    True
    """

    agent_id: str
    taken_at: datetime
    entries: tuple[Entry, ...] = ()
    scopes: tuple[ScopeSnapshot, ...] = ()
    version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The snapshot as a JSON text."""
        return codec.encode_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "WorkingSnapshot":
        """The snapshot that ``to_json`` wrote."""
        try:
            return codec.decode_as(text, cls)
        except (ValueError, TypeError, RecursionError):
            raise _wrong("is not JSON of a snapshot", "pass what to_json returned") from None


def _wrong(what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"the snapshot {what}", operation="restore", details={"field": "snapshot"}, hint=hint)


Slots = dict[str, Slot]


def checked(snapshot: object, agent_id: str, limits: Limits, now: datetime) -> dict[str | None, Slots]:
    """The slots of each level by the id of its scope, ``None`` for the agent's own. What has expired is left out."""
    if not isinstance(snapshot, WorkingSnapshot):
        raise _wrong(f"must be a WorkingSnapshot, not {type(snapshot).__name__}", "read it with from_json")
    if snapshot.version != FORMAT_VERSION:
        raise _wrong(f"has version {snapshot.version}, this release reads {FORMAT_VERSION}", "upgrade")
    if snapshot.agent_id != agent_id:
        raise _wrong("belongs to another agent", "restore it into the working memory of the agent that made it")
    levels: dict[str | None, Slots] = {None: _slots(snapshot.entries, limits, now)}
    for scope in snapshot.scopes:
        validation.line("snapshot.scopes.id", scope.id)
        validation.line("snapshot.scopes.name", scope.name)
        if scope.id in levels or scope.parent_id not in levels:
            raise _wrong("has a scope twice, or before its parent", "restore it as it was taken")
        levels[scope.id] = _slots(scope.entries, limits, now)
    _fits("entries", sum(len(slots) for slots in levels.values()), limits.entries)
    _fits("scopes", len(snapshot.scopes), limits.scopes)
    return levels


def _fits(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise LimitReached(
            f"the snapshot has {count} {what}, the limit is {limit}",
            operation="restore",
            details={"field": "snapshot", what: count, "limit": limit},
            hint=f"raise limits.{what}",
        )


def _slots(entries: Iterable[Entry], limits: Limits, now: datetime) -> Slots:
    slots: Slots = {}
    for entry in entries:
        key = checked_key(entry.key)
        if key in slots:
            raise _wrong(f"has the key {shown(key)} twice on one level", "restore it as it was taken")
        slot = checked_size(key, _slot(key, entry), limits.entry_bytes)
        if not slot.expired(now):
            slots[key] = slot
    return slots


def _slot(key: str, entry: Entry) -> Slot:
    """The slot that an entry was made from; a snapshot from outside may hold anything."""
    try:
        codec.decode_json(entry.content)
        content = entry.content.encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise _wrong(f"has no JSON for the key {shown(key)}", "restore it as it was taken") from None
    slot = Slot(
        content,
        validation.line("snapshot.type_name", entry.type_name, validation.CONTENT_BYTES),
        validation.moment("snapshot.timestamp", entry.timestamp),
        validation.optional_moment("snapshot.expires_at", entry.expires_at),
        About(
            validation.choice("snapshot.type", MemoryType, entry.type),
            validation.unit("snapshot.importance", entry.importance),
            validation.tags(entry.tags, "snapshot.tags"),
            encode_metadata(entry.metadata, "snapshot.metadata"),
        ),
    )
    lineage = slot.lineage = Lineage(slot.timestamp, validation.line("snapshot.id", entry.id))
    lineage.access_count = validation.integer("snapshot.access_count", entry.access_count, 0, 2**63 - 1)
    lineage.last_accessed_at = validation.optional_moment("snapshot.last_accessed_at", entry.last_accessed_at)
    return slot
