"""Items of a context window, recalled memories, and their validation."""

import math
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from wellkept import validation
from wellkept.errors import InvalidInput
from wellkept.types import Hit, Layer
from wellkept.types.memory import DEFAULT_IMPORTANCE, DEFAULT_TRUST
from wellkept.types.representation import hiding

DEFAULT_PRIORITY = DEFAULT_IMPORTANCE
TOKENS_MAX = 2**53
"""The largest token limit: above this, JSON readers lose precision."""


class Role(StrEnum):
    """The role of a message.

    >>> Role("assistant") is Role.ASSISTANT
    True
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


RoleName = Literal["system", "user", "assistant", "tool"]
"""The value of a :class:`Role`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One item of the next LLM call: an instruction, a turn, a tool result.

    ``tokens`` is counted once, when the item is created. ``priority`` is from 0 to 1. ``source`` is the id of the
    memory with the same content, if any: that memory is not recalled as well, and not stored again when the item is
    dropped. ``summary_of`` of a summary has the ids of the memories that hold the summarised originals. What is
    ``sensitive`` is encrypted in snapshots, and as a memory; unless a caller says so or not, its text decides.

    >>> from datetime import UTC
    >>> ContextItem(
    ...     id="1", role=Role.USER, content="Hi", tokens=1, created_at=datetime(2026, 1, 7, tzinfo=UTC)
    ... ).pinned
    False
    """

    id: str
    role: Role
    content: str
    tokens: int
    created_at: datetime
    priority: float = DEFAULT_PRIORITY
    pinned: bool = False
    source: str | None = None
    summary_of: tuple[str, ...] = ()
    sensitive: bool | None = None

    __repr__ = hiding("content")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """A memory to be included in a prompt: its content and origin.

    >>> from datetime import UTC
    >>> RecalledMemory(
    ...     id="018b", content="Likes tea", occurred_at=datetime(2026, 1, 7, tzinfo=UTC), layer=Layer.USER
    ... ).score
    0.0
    """

    id: str
    content: str
    occurred_at: datetime
    layer: Layer
    author: str | None = None
    score: float = 0.0
    trust: float = DEFAULT_TRUST

    __repr__ = hiding("content", "author")

    @classmethod
    def of(cls, hit: Hit) -> "RecalledMemory":
        """The recalled memory of a search hit.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     view = memories.view(user="ada")
        ...     _ = view.add("Likes tea", author="Ada")
        ...     RecalledMemory.of(view.search("tea").hits[0]).author
        'Ada'
        """
        memory = hit.memory
        return cls(
            id=memory.id,
            content=memory.content,
            occurred_at=memory.occurred_at,
            layer=memory.layer,
            author=memory.author,
            score=hit.score,
            trust=memory.trust,
        )


def checked_item(value: object, field: str = "item") -> ContextItem:
    """A validated item; ``InvalidInput`` names the field that is wrong.

    >>> checked_item("Hi")
    Traceback (most recent call last):
    wellkept.errors.InvalidInput: item must be a ContextItem, not str (make it with ContextWindow.add)
    """
    if not isinstance(value, ContextItem):
        raise _wrong_kind(field, ContextItem, value, "make it with ContextWindow.add")
    validation.line(f"{field}.id", value.id, validation.ID_CHARACTERS)
    role = validation.choice(f"{field}.role", Role, value.role)
    validation.content(value.content, f"{field}.content")
    validation.integer(f"{field}.tokens", value.tokens, 0, TOKENS_MAX)
    created_at = validation.moment(f"{field}.created_at", value.created_at)
    priority = validation.unit(f"{field}.priority", value.priority)
    validation.flag(f"{field}.pinned", value.pinned)
    validation.optional_line(f"{field}.source", value.source, validation.ID_CHARACTERS)
    if value.sensitive is not None:
        validation.flag(f"{field}.sensitive", value.sensitive)
    sources: object = value.summary_of
    if not isinstance(sources, tuple) or not all(isinstance(id, str) for id in sources):
        raise _wrong_kind(f"{field}.summary_of", tuple, sources, "pass the ids of memories")
    if role is value.role and created_at is value.created_at and priority is value.priority:
        return value  # avoids a copy: most items are normalised already, and a prompt has hundreds
    return replace(value, role=role, created_at=created_at, priority=priority)


def checked_items(field: str, values: object) -> list[ContextItem]:
    """Validated items, in order.

    >>> checked_items("recent", [])
    []
    """
    return [checked_item(value, field) for value in validation.batch(field, values)]


def checked_memories(values: object) -> list[RecalledMemory]:
    """Validated recalled memories, in order.

    Their content may be any text: unsafe characters are replaced when the prompt is written, so that one bad memory
    does not fail the whole prompt.

    >>> checked_memories([])
    []
    """
    return [_checked_memory(value) for value in validation.batch("recalled", values)]


def _checked_memory(value: object) -> RecalledMemory:
    if not isinstance(value, RecalledMemory):
        raise _wrong_kind("recalled", RecalledMemory, value, "pass RecalledMemory.of(hit)")
    if not isinstance(value.content, str):
        raise _wrong_kind("recalled.content", str, value.content, "pass the content of the memory")
    author = value.author
    if author is not None and not isinstance(author, str):
        raise _wrong_kind("recalled.author", str, author, "pass the author of the memory")
    validation.line("recalled.id", value.id, validation.ID_CHARACTERS)
    occurred_at = validation.moment("recalled.occurred_at", value.occurred_at)
    layer = validation.choice("recalled.layer", Layer, value.layer)
    score = _finite("recalled.score", value.score)
    validation.unit("recalled.trust", value.trust)
    if occurred_at is value.occurred_at and layer is value.layer and score is value.score:
        return value
    return replace(value, occurred_at=occurred_at, layer=layer, score=score)


def _finite(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{field} must be a finite number", details={"field": field}, hint="pass the score of a hit")
    return float(value)


def _wrong_kind(field: str, kind: type, value: object, hint: str) -> InvalidInput:
    return InvalidInput(
        f"{field} must be a {kind.__name__}, not {type(value).__name__}", details={"field": field}, hint=hint
    )
