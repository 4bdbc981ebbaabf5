"""Consolidation: the one memory that takes the place of several that say the same, and who may be merged at all."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellkept.lifecycle import duplicates
from wellkept.lifecycle.retention import is_pinned
from wellkept.types import Memory, MemoryType, State, Stored

_TOLD = frozenset({MemoryType.CONVERSATION.value, MemoryType.EVENT.value})
_KEPT_APART = ("fact", "role", "has_pointer", "expires_at", "access_policy")


def may_merge(stored: Stored) -> bool:
    """Whether a memory may be merged with others at all.

    Turns of conversations and events are kept: what happened twice happened twice. So is what somebody pinned, keeps
    under a key or in a file or from others, what is sensitive, and what expires.
    """
    facets = stored.facets
    return (
        facets["state"] == State.ACTIVE
        and facets["type"] not in _TOLD
        and bool(facets.get("text"))
        and not any(name in facets for name in _KEPT_APART)
        and ("key" not in facets or duplicates.is_mark(facets["key"]))
        and not facets.get("sensitive")
        and (facets.get("key") is None or duplicates.is_mark(facets["key"]))
        and not is_pinned(stored)
    )


def best(sources: Sequence[Memory]) -> Memory:
    """The memory whose words are kept: the longest, of equals the newest.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     view = memories.view(user="ada")
    ...     best([view.add("Likes tea"), view.add("Likes the tea")]).content
    'Likes the tea'
    """
    return max(sources, key=lambda one: (len(one.content), one.occurred_at, one.id))


def merged(sources: Sequence[Memory], content: str, id: str, now: datetime) -> Memory:
    """The memory that takes the place of some: their tags and references together, the highest importance, the lowest
    trust, the time of the newest, and of other fields the newest value.
    """
    ordered = sorted(sources, key=lambda one: (one.occurred_at, one.id))
    chosen, newest = best(sources), ordered[-1]
    metadata: dict[str, Any] = {}
    for one in ordered:
        metadata.update(one.metadata)
    ids = tuple(one.id for one in sorted(sources, key=lambda one: one.id))
    return Memory(
        id=id,
        content=content,
        owner=newest.owner,
        created_at=now,
        updated_at=now,
        occurred_at=newest.occurred_at,
        type=newest.type,
        tier=newest.tier,
        tier_set=newest.tier_set,
        importance=max(one.importance for one in sources),
        tags=tuple(dict.fromkeys(tag for one in ordered for tag in one.tags)),
        metadata=metadata,
        title=_newest(ordered, "title"),
        description=_newest(ordered, "description"),
        language=chosen.language,
        author=newest.author,
        session=newest.session,
        type_name=_newest(ordered, "type_name"),
        confidence=_newest(ordered, "confidence"),
        relevance=_newest(ordered, "relevance"),
        decay_factor=_newest(ordered, "decay_factor"),
        source=_newest(ordered, "source"),
        references=tuple(dict.fromkeys(one for memory in ordered for one in memory.references if one not in ids)),
        supersedes=ids,
        derived_from=ids,
        trust=min(one.trust for one in sources),
    )


def _newest(ordered: Sequence[Memory], name: str) -> Any:
    return next((value for one in reversed(ordered) if (value := getattr(one, name)) is not None), None)
