"""Statistics over memories, as a pure function: what every journal's own counting must agree with."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from wellkept import codec, filters
from wellkept.types import MemoryType, State, Stats, Stored, TagUsage

TOP_TAGS = 20


def tally(memories: Iterable[Stored], now: datetime) -> Stats:
    """Count the memories of a view. Expired ones count as forgotten; the bytes of archived ones count for nothing."""
    active = used = 0
    away: Counter[State] = Counter()
    by_type: Counter[MemoryType] = Counter()
    tags: Counter[str] = Counter()
    created: list[int] = []
    visible = filters.matching(filters.Where(now=now))
    for one in memories:
        used += footprint(one)
        if not visible(one):
            state = State(one.facets["state"])
            away[State.FORGOTTEN if state is State.ACTIVE else state] += 1  # it has expired
            continue
        active += 1
        by_type[MemoryType(one.facets["type"])] += 1
        tags.update(one.facets.get("tags", ()))
        created.append(one.facets["created_at"])
    return Stats(
        active=active,
        forgotten=away[State.FORGOTTEN],
        archived=away[State.ARCHIVED],
        superseded=away[State.SUPERSEDED],
        quarantined=away[State.QUARANTINED],
        bytes_used=used,
        by_type=dict(sorted(by_type.items())),
        top_tags=top(tags.items()),
        oldest=codec.from_micros(min(created)) if created else None,
        newest=codec.from_micros(max(created)) if created else None,
    )


def top(tags: Iterable[tuple[str, int]]) -> tuple[TagUsage, ...]:
    """The most used tags, ties in alphabetical order."""
    ranked = sorted(tags, key=lambda one: (-one[1], one[0]))[:TOP_TAGS]
    return tuple(TagUsage(tag=tag, count=count) for tag, count in ranked)


def footprint(stored: Stored) -> int:
    """The bytes that a memory counts for, its vector included if that was read; what is archived counts for nothing."""
    if stored.facets.get("state") == State.ARCHIVED:
        return 0
    return int(stored.facets["bytes"]) + (len(stored.vector.data) if stored.vector else 0)
