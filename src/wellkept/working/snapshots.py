"""Snapshots of working memory: values with a JSON form, and their validation."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from wellkept import codec, validation
from wellkept.errors import InvalidInput, LimitReached
from wellkept.snapshot_cipher import MARK, SnapshotCipher
from wellkept.types import MemoryType
from wellkept.working.entry import (
    Attributes,
    Entry,
    KeyState,
    Limits,
    Slot,
    checked_key,
    checked_name,
    checked_size,
    encode_metadata,
    quoted,
)

FORMAT_VERSION = 1
"""The version of a snapshot in which nothing is encrypted, so that every release reads it."""

ENCRYPTED_VERSION = 2
"""The version of one with something encrypted. A release reads its own version and all earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSnapshot:
    """A scope with its own entries. Without ``parent_id``, its parent is the root level.

    >>> ScopeSnapshot(id="1", name="plan").parent_id is None
    True
    """

    id: str
    name: str
    parent_id: str | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSnapshot:
    """An agent's whole working memory at one moment. Each scope comes after its parent.

    >>> from datetime import UTC
    >>> snapshot = WorkingSnapshot(agent_id="debugger", user_id="ada", taken_at=datetime(2026, 1, 7, tzinfo=UTC))
    >>> WorkingSnapshot.from_json(snapshot.to_json()) == snapshot
    True
    """

    agent_id: str
    user_id: str
    taken_at: datetime
    entries: tuple[Entry, ...] = ()
    scopes: tuple[ScopeSnapshot, ...] = ()
    version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """The snapshot as JSON."""
        return codec.encode_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "WorkingSnapshot":
        """Decode the output of ``to_json``; anything else raises ``InvalidInput``."""
        try:
            return codec.decode_as(text, cls)
        except (ValueError, TypeError, RecursionError):
            raise _wrong("is not the JSON form of a snapshot", "pass the output of to_json") from None


def _wrong(what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"the snapshot {what}", operation="restore", details={"field": "snapshot"}, hint=hint)


Slots = dict[str, Slot]

_CONCEALED = ("key", "content", "type_name", "tags", "metadata")


def encrypted(snapshot: WorkingSnapshot, cipher: SnapshotCipher) -> WorkingSnapshot:
    """The snapshot with what is sensitive encrypted: of such an entry, the key, value, tags and metadata. Its id stands
    for its key. If everything is encrypted, the names of scopes are too.
    """
    cipher = cipher.batch()
    entries = _encrypted(snapshot.entries, "", cipher)
    scopes = tuple(
        replace(
            scope,
            name=cipher.encrypt({"name": scope.name}, "scope", scope.id) if cipher.everything else scope.name,
            entries=_encrypted(scope.entries, scope.id, cipher),
        )
        for scope in snapshot.scopes
    )
    if (entries, scopes) == (snapshot.entries, snapshot.scopes):
        return snapshot
    return replace(snapshot, entries=entries, scopes=scopes, version=ENCRYPTED_VERSION)


def _encrypted(entries: Iterable[Entry], scope_id: str, cipher: SnapshotCipher) -> tuple[Entry, ...]:
    return tuple(
        _concealed(entry, scope_id, cipher) if cipher.covers(entry.sensitive, partial(_texts, entry)) else entry
        for entry in entries
    )


def _concealed(entry: Entry, scope_id: str, cipher: SnapshotCipher) -> Entry:
    told = {name: getattr(entry, name) for name in _CONCEALED}
    content = cipher.encrypt(told, "entry", scope_id, entry.id)
    return replace(entry, key=entry.id, content=content, type_name="", tags=(), metadata={})


def _texts(entry: Entry) -> object:
    """What a person could read of an entry."""
    return [{entry.key: entry.value}, entry.tags, entry.metadata]


def opened(snapshot: object, subject: tuple[str, str], cipher: SnapshotCipher) -> WorkingSnapshot:
    """The snapshot as it was before anything was encrypted. The ``subject`` is the agent and the user to which it must
    belong; another one, or no snapshot, raises ``InvalidInput``.
    """
    if not isinstance(snapshot, WorkingSnapshot):
        raise _wrong(f"must be a WorkingSnapshot, not {type(snapshot).__name__}", "read it with from_json")
    if snapshot.version not in (FORMAT_VERSION, ENCRYPTED_VERSION):
        raise _wrong(f"has version {snapshot.version}, this release reads up to {ENCRYPTED_VERSION}", "upgrade")
    if (snapshot.agent_id, snapshot.user_id) != subject:
        hint = "restore it into the working memory of the same agent and user"
        raise _wrong("belongs to another agent or to another user", hint)
    if snapshot.version == FORMAT_VERSION:
        return snapshot
    cipher = cipher.batch()
    return replace(
        snapshot,
        entries=_opened(snapshot.entries, "", cipher),
        scopes=tuple(
            replace(
                scope,
                name=cipher.decrypt(scope.name, "scope", scope.id)["name"] if _is_encrypted(scope.name) else scope.name,
                entries=_opened(scope.entries, scope.id, cipher),
            )
            for scope in snapshot.scopes
        ),
        version=FORMAT_VERSION,
    )


def _opened(entries: Iterable[Entry], scope_id: str, cipher: SnapshotCipher) -> tuple[Entry, ...]:
    return tuple(_revealed(entry, scope_id, cipher) if _is_encrypted(entry.content) else entry for entry in entries)


def _revealed(entry: Entry, scope_id: str, cipher: SnapshotCipher) -> Entry:
    told = cipher.decrypt(entry.content, "entry", scope_id, entry.id)
    return replace(entry, **{**told, "tags": tuple(told["tags"])})


def _is_encrypted(text: object) -> bool:
    return isinstance(text, str) and text.startswith(MARK)


def checked(snapshot: WorkingSnapshot, limits: Limits, now: datetime) -> dict[str | None, Slots]:
    """The slots of each level by scope id, ``None`` for the root level, without expired entries.

    Raises ``InvalidInput`` for a malformed snapshot and ``LimitReached`` for one above the limits.
    """
    levels: dict[str | None, Slots] = {None: _slots(snapshot.entries, limits, now)}
    for scope in snapshot.scopes:
        validation.line("snapshot.scopes.id", scope.id)
        checked_name("snapshot.scopes.name", scope.name)
        if scope.id in levels or scope.parent_id not in levels:
            raise _wrong("has a duplicate scope, or a scope before its parent", "restore an unmodified snapshot")
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
            hint=f"raise limits.{what}, in the settings or by agent(limits=)",
        )


def _slots(entries: Iterable[Entry], limits: Limits, now: datetime) -> Slots:
    slots: Slots = {}
    for entry in entries:
        key = checked_key(entry.key)
        if key in slots:
            raise _wrong(f"has the key {quoted(key)} more than once on one level", "restore an unmodified snapshot")
        slot = checked_size(key, _slot(key, entry), limits.entry_bytes)
        if not slot.expired(now):
            slots[key] = slot
    return slots


def _slot(key: str, entry: Entry) -> Slot:
    """Validate an entry and turn it into a slot: a snapshot may come from anywhere."""
    try:
        codec.decode_json(entry.content)
        content = entry.content.encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise _wrong(f"has no JSON for the key {quoted(key)}", "restore an unmodified snapshot") from None
    slot = Slot(
        content,
        validation.line("snapshot.type_name", entry.type_name, validation.CONTENT_BYTES),
        validation.moment("snapshot.timestamp", entry.timestamp),
        validation.optional_moment("snapshot.expires_at", entry.expires_at),
        Attributes(
            validation.choice("snapshot.type", MemoryType, entry.type),
            validation.unit("snapshot.importance", entry.importance),
            validation.tags(entry.tags, "snapshot.tags"),
            encode_metadata(entry.metadata, "snapshot.metadata"),
            None if entry.sensitive is None else validation.flag("snapshot.sensitive", entry.sensitive),
        ),
    )
    key_state = slot.key_state = KeyState(slot.timestamp, validation.line("snapshot.id", entry.id))
    key_state.access_count = validation.integer("snapshot.access_count", entry.access_count, 0, 2**63 - 1)
    key_state.last_accessed_at = validation.optional_moment("snapshot.last_accessed_at", entry.last_accessed_at)
    return slot
