"""Snapshots of a window: a versioned plain form for any JSON encoder, and its validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect import validation
from recollect.errors import InvalidInput
from recollect.window.items import TOKENS_MAX, ContextItem, Role, checked_item

FORMAT = 1
"""The format version. A release reads its own and all earlier ones."""

_ITEM_FIELDS = tuple(name for name in ContextItem.__dataclass_fields__ if name != "summary_of")


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
        items = tuple(_item(one) for one in validation.several("snapshot.items", value.get("items")))
        return checked(
            cls(max_tokens=value.get("max_tokens"), items=items, numbered=value.get("numbered"))  # type: ignore[arg-type]  # checked
        )


def checked(value: object) -> WindowSnapshot:
    """A validated snapshot; ``InvalidInput`` names the field that is wrong.

    >>> checked(WindowSnapshot(max_tokens=0))
    Traceback (most recent call last):
    recollect.errors.InvalidInput: snapshot.max_tokens must be ...
    """
    if not isinstance(value, WindowSnapshot):
        raise _wrong("snapshot", f"must be a WindowSnapshot, not {type(value).__name__}", "pass window.snapshot()")
    _check_format(value.format)
    items = tuple(checked_item(item, "snapshot.items") for item in validation.several("snapshot.items", value.items))
    if len({item.id for item in items}) != len(items):
        raise _wrong("snapshot.items.id", "is not unique", "restore an unmodified snapshot")
    return WindowSnapshot(
        max_tokens=validation.integer("snapshot.max_tokens", value.max_tokens, 1, TOKENS_MAX),
        items=items,
        numbered=validation.integer("snapshot.numbered", value.numbered, 0, TOKENS_MAX),
    )


def _check_format(found: object) -> None:
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise _wrong("snapshot.format", "is missing or not a positive integer", "pass the output of plain()")
    if found > FORMAT:
        raise InvalidInput(
            f"snapshot.format is {found}, this release reads up to {FORMAT}",
            details={"field": "snapshot.format", "format": found, "limit": FORMAT},
            hint="it was made by a newer release: upgrade",
        )


def _plain(item: ContextItem) -> dict[str, Any]:
    summary = {"summary_of": list(item.summary_of)} if item.summary_of else {}  # most items are not summaries
    return {
        "id": item.id,
        "role": item.role.value,
        "content": item.content,
        "tokens": item.tokens,
        "created_at": item.created_at.isoformat(),
        "priority": item.priority,
        "pinned": item.pinned,
        "source": item.source,
        **summary,
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
    fields["summary_of"] = tuple(validation.several("snapshot.items.summary_of", value.get("summary_of", ())))
    return ContextItem(**fields)


def _moment(value: object) -> datetime:
    try:
        return datetime.fromisoformat(value)  # type: ignore[arg-type]  # the TypeError is the test
    except (TypeError, ValueError):
        raise _wrong("snapshot.items.created_at", "is not an ISO 8601 time", "pass the output of plain()") from None


def _wrong(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{field} {what}", details={"field": field}, hint=hint)
