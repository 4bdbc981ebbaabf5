"""What is added twice word for word: how it is recognised, and what one memory keeps of both."""

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import replace
from operator import attrgetter
from typing import Any

from wellkept import codec, validation
from wellkept.text import periods
from wellkept.types import Memory, MemoryType, Source

_MARK = "\x01"
_DIGEST = 16
_SOURCES = 1_000
_told_apart = attrgetter(
    *"content data session title description language type_name confidence relevance decay_factor".split(),
    *"pointer expires_at sensitive access_policy".split(),
)


def is_mark(key: object) -> bool:
    """Whether a stored key was made here: a caller's key has no control characters.

    >>> is_mark("style"), is_mark(None)
    (False, False)
    """
    return isinstance(key, str) and key.startswith(_MARK)


def mark_of(memory: Memory, *, timed: bool) -> str | None:
    """The key under which a memory is found when the same is added again; none if it always stays by itself.

    That are turns of a conversation, which were said as often as they were said, and memories with a key of their own,
    or that say what they replace or were made from. ``timed``: the caller said when it happened. Memories that differ
    in anything that cannot be joined have different keys.
    """
    if memory.key is not None or memory.supersedes or memory.derived_from or _is_said(memory):
        return None
    parts: list[Any] = [memory.type.value, *_told_apart(memory)]
    if memory.metadata:
        parts.append(codec.encode_sorted(dict(memory.metadata)).decode())
    if memory.tier_set:
        parts.append(["tier", memory.tier])
    if timed:
        parts.append(["at", codec.to_micros(memory.occurred_at)])
    elif (told := periods.told(memory.content, at=memory.occurred_at)) is not None:  # tomorrow is another day each day
        parts.append(["about", *told])
    digest = hashlib.blake2b(codec.encode_json(parts), digest_size=_DIGEST).digest()
    return _MARK + urlsafe_b64encode(digest).rstrip(b"=").decode()


def _is_said(memory: Memory) -> bool:
    return memory.author is not None or memory.role is not None or memory.type is MemoryType.CONVERSATION


def fits(memory: Memory, mark: str) -> bool:
    """Whether a memory is still what it was marked as."""
    return mark in (mark_of(memory, timed=False), mark_of(memory, timed=True))


def joined(memory: Memory, again: Memory) -> Memory:
    """A stored memory with what the same added again knows beside it; the memory itself if that is nothing.

    Both sources stand behind it, so it is trusted as the better one.
    """
    after = replace(
        memory,
        tags=validation.tags((*memory.tags, *again.tags)),
        references=validation.references((*memory.references, *again.references)),
        importance=max(memory.importance, again.importance),
        trust=max(memory.trust, again.trust),
        sources=_sources(memory, again),
    )
    return memory if after == memory else after


def _sources(memory: Memory, again: Memory) -> tuple[Source, ...]:
    known = memory.sources or ((memory.source,) if memory.source is not None else ())
    if again.source is None or again.source in known or len(known) >= _SOURCES:
        return memory.sources
    return (*known, again.source)
