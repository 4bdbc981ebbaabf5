"""Snapshots of a window: a versioned plain form for any JSON encoder, and its validation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from wellkept import validation
from wellkept.errors import InvalidInput
from wellkept.snapshot_cipher import MARK, SnapshotCipher
from wellkept.window.items import TOKENS_MAX, ContextItem, Role, checked_item

FORMAT = 1
"""The format version of a snapshot in which nothing is encrypted, so that every release reads it."""

ENCRYPTED_FORMAT = 2
"""The format version of one with something encrypted. A release reads its own and all earlier ones."""

_OPTIONAL = ("summary_of", "sensitive")
_ITEM_FIELDS = tuple(name for name in ContextItem.__dataclass_fields__ if name not in _OPTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSnapshot:
    """The items of a window at one moment.

    ``numbered`` is the last id number assigned, so that none is assigned twice.

    >>> WindowSnapshot.of_plain(WindowSnapshot(max_tokens=100).plain()).max_tokens
    100
    """

    max_tokens: int
    items: tuple[ContextItem, ...] = ()
    numbered: int = 0
    format: int = FORMAT

    def plain(self) -> dict[str, Any]:
        """The snapshot as plain dicts, lists, strings and numbers."""
        return {
            "format": self.format,
            "max_tokens": self.max_tokens,
            "numbered": self.numbered,
            "items": [_plain(item) for item in self.items],
        }

    @classmethod
    def of_plain(cls, value: object) -> "WindowSnapshot":
        """Decode the output of ``plain``; ``InvalidInput`` names the field that is wrong."""
        if not isinstance(value, Mapping):
            raise _wrong("snapshot", f"must be a mapping, not {type(value).__name__}", "pass the output of plain()")
        _check_format(value.get("format"))
        items = tuple(_item(one) for one in validation.batch("snapshot.items", value.get("items")))
        return checked(
            cls(
                max_tokens=value.get("max_tokens"),  # type: ignore[arg-type]  # checked
                items=items,
                numbered=value.get("numbered"),  # type: ignore[arg-type]  # checked
                format=value["format"],
            )
        )


def encrypted(snapshot: WindowSnapshot, cipher: SnapshotCipher) -> WindowSnapshot:
    """The snapshot with what is sensitive encrypted: of such an item, the content and the ids of memories."""
    cipher = cipher.batch()
    covered = [cipher.covers(item.sensitive, partial(_text, item)) for item in snapshot.items]
    if not any(covered):
        return snapshot
    items = (
        _encrypted(item, cipher) if hidden or _is_encrypted(item.content) else item
        for item, hidden in zip(snapshot.items, covered, strict=True)
    )
    return replace(snapshot, items=tuple(items), format=ENCRYPTED_FORMAT)


def opened(snapshot: WindowSnapshot, cipher: SnapshotCipher) -> WindowSnapshot:
    """The snapshot as it was before anything was encrypted."""
    if snapshot.format != ENCRYPTED_FORMAT:
        return snapshot
    cipher = cipher.batch()
    items = (_opened(item, cipher) if _is_encrypted(item.content) else item for item in snapshot.items)
    return replace(snapshot, items=tuple(items), format=FORMAT)


def _text(item: ContextItem) -> str:
    return item.content


def _encrypted(item: ContextItem, cipher: SnapshotCipher) -> ContextItem:
    told = {"content": item.content, "source": item.source, "summary_of": item.summary_of}
    return replace(item, content=cipher.encrypt(told, "item", item.id), source=None, summary_of=())


def _opened(item: ContextItem, cipher: SnapshotCipher) -> ContextItem:
    told = cipher.decrypt(item.content, "item", item.id)
    return replace(item, content=told["content"], source=told["source"], summary_of=tuple(told["summary_of"]))


def checked(value: object) -> WindowSnapshot:
    """A validated snapshot; ``InvalidInput`` names the field that is wrong.

    >>> checked(WindowSnapshot(max_tokens=0))
    Traceback (most recent call last):
    wellkept.errors.InvalidInput: snapshot.max_tokens must be ...
    """
    if not isinstance(value, WindowSnapshot):
        raise _wrong("snapshot", f"must be a WindowSnapshot, not {type(value).__name__}", "pass window.snapshot()")
    _check_format(value.format)
    given = validation.batch("snapshot.items", value.items)
    items = tuple(_checked_item(item, value.format) for item in given)
    if len({item.id for item in items}) != len(items):
        raise _wrong("snapshot.items.id", "is not unique", "restore an unmodified snapshot")
    return WindowSnapshot(
        max_tokens=validation.integer("snapshot.max_tokens", value.max_tokens, 1, TOKENS_MAX),
        items=items,
        numbered=validation.integer("snapshot.numbered", value.numbered, 0, TOKENS_MAX),
        format=value.format,
    )


def _checked_item(item: object, found: int) -> ContextItem:
    """A validated item. One that is encrypted is longer than it was, so its text is not measured yet."""
    if found == FORMAT or not (isinstance(item, ContextItem) and _is_encrypted(item.content)):
        return checked_item(item, "snapshot.items")
    checked_item(replace(item, content=MARK), "snapshot.items")
    return item


def _is_encrypted(text: object) -> bool:
    return isinstance(text, str) and text.startswith(MARK)


def _check_format(found: object) -> None:
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise _wrong("snapshot.format", "is missing or not a positive integer", "pass the output of plain()")
    if found > ENCRYPTED_FORMAT:
        raise InvalidInput(
            f"snapshot.format is {found}, this release reads up to {ENCRYPTED_FORMAT}",
            details={"field": "snapshot.format", "format": found, "limit": ENCRYPTED_FORMAT},
            hint="it was made by a newer release: upgrade",
        )


def _plain(item: ContextItem) -> dict[str, Any]:
    more: dict[str, Any] = {"summary_of": list(item.summary_of)} if item.summary_of else {}  # most items have neither
    if item.sensitive is not None:
        more["sensitive"] = item.sensitive
    return {
        "id": item.id,
        "role": item.role.value,
        "content": item.content,
        "tokens": item.tokens,
        "created_at": item.created_at.isoformat(),
        "priority": item.priority,
        "pinned": item.pinned,
        "source": item.source,
        **more,
    }


def _item(value: object) -> ContextItem:
    if not isinstance(value, Mapping):
        raise _wrong("snapshot.items", f"must be mappings, not {type(value).__name__}", "pass the output of plain()")
    missing = [name for name in _ITEM_FIELDS if name not in value]
    if missing:
        raise _wrong(f"snapshot.items.{missing[0]}", "is missing", "pass the output of plain()")
    fields = {name: value[name] for name in _ITEM_FIELDS}
    fields["role"] = validation.choice("snapshot.items.role", Role, fields["role"])
    fields["created_at"] = _moment(fields["created_at"])
    fields["summary_of"] = tuple(validation.batch("snapshot.items.summary_of", value.get("summary_of", ())))
    fields["sensitive"] = value.get("sensitive")
    return ContextItem(**fields)


def _moment(value: object) -> datetime:
    try:
        return datetime.fromisoformat(value)  # type: ignore[arg-type]  # the TypeError is the test
    except (TypeError, ValueError):
        raise _wrong("snapshot.items.created_at", "is not an ISO 8601 time", "pass the output of plain()") from None


def _wrong(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{field} {what}", details={"field": field}, hint=hint)
