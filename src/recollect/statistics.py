"""Statistics over memories, as a pure function: what every store's own counting must agree with."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from recollect import codec, filters, types
from recollect.types import Memory, MemoryType

TOP_TAGS = 20


def tally(memories: Iterable[Memory], now: datetime) -> "types.Stats":
    """Count the memories of a view. Forgotten and expired ones count as forgotten, and their bytes as used."""
    active = forgotten = used = 0
    by_type: Counter[MemoryType] = Counter()
    tags: Counter[str] = Counter()
    oldest: datetime | None = None
    newest: datetime | None = None
    for memory in memories:
        used += footprint(memory)
        if not filters.visible(memory, now):
            forgotten += 1
            continue
        active += 1
        by_type[memory.type] += 1
        tags.update(memory.tags)
        oldest = min(oldest or memory.created_at, memory.created_at)
        newest = max(newest or memory.created_at, memory.created_at)
    return types.Stats(
        active=active,
        forgotten=forgotten,
        bytes_used=used,
        by_type=dict(sorted(by_type.items())),
        top_tags=top(tags.items()),
        oldest=oldest,
        newest=newest,
    )


def top(tags: Iterable[tuple[str, int]]) -> "tuple[types.TagUsage, ...]":
    """The most used tags, ties in alphabetical order."""
    ranked = sorted(tags, key=lambda one: (-one[1], one[0]))[:TOP_TAGS]
    return tuple(types.TagUsage(tag=tag, count=count) for tag, count in ranked)


def footprint(memory: Memory) -> int:
    """The bytes that a memory counts for: content and other fields as encoded, and its vector."""
    vector = len(memory.vector.data) if memory.vector else 0
    return footprint_of(memory.content, codec.encode_body(memory), vector)


def footprint_of(content: str, body: bytes, vector_bytes: int) -> int:
    """The same of parts that are encoded already."""
    size = len(content) if content.isascii() else len(content.encode())
    return size + len(body) + vector_bytes
