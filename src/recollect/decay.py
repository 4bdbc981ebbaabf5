"""How much a memory still counts: it fades by half in a time that depends on its type, and never below a floor."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from recollect.types import DecayPolicy, Memory, MemoryType

USUAL = DecayPolicy()
"""How memories fade unless their session says otherwise."""

HALF_LIVES: Mapping[MemoryType, timedelta | None] = MappingProxyType(
    {
        MemoryType.CONVERSATION: timedelta(days=7),
        MemoryType.EVENT: timedelta(days=14),
        MemoryType.FINDING: timedelta(days=14),
        MemoryType.INSIGHT: timedelta(days=30),
        MemoryType.DECISION: timedelta(days=30),
        MemoryType.FACT: timedelta(days=30),
        MemoryType.CORRECTION: None,
        MemoryType.PREFERENCE: None,
    }
)
"""The time in which a memory fades by half; what people prefer, and what they corrected, does not fade."""


_HOUR = timedelta(hours=1)


def factor(memory: Memory, now: datetime, policy: DecayPolicy = USUAL) -> float:
    """What is left of a memory, from the policy's floor to 1. A factor that the memory was given itself stands.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Chatted about rain", type="conversation")
    >>> round(factor(memory, memory.created_at + timedelta(days=7)), 3)
    0.5
    """
    if memory.decay_factor is not None:
        return memory.decay_factor
    hours = _hours(memory.type, policy)
    if hours is None or not policy.enabled:
        return 1.0
    age = max(timedelta(0), now - memory.created_at) / _HOUR
    return max(policy.min_decay_factor, math.pow(0.5, age / hours))


def _hours(kind: MemoryType, policy: DecayPolicy) -> float | None:
    """The half-life of a type; none if it never fades."""
    if kind in policy.by_type_hours:
        own = policy.by_type_hours[kind]
    else:
        usual = HALF_LIVES[kind]
        own = None if usual is None else usual / _HOUR
    return own if own is None else policy.half_life_hours or own


def recency(memory: Memory, now: datetime) -> float:
    """A bonus for what was used lately, from 1.5 down to 1: half of it is gone after a day.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    >>> recency(memory, memory.created_at), recency(memory, memory.created_at + timedelta(days=1))
    (1.5, 1.25)
    """
    used = memory.last_accessed_at or memory.created_at
    return 1.0 + 0.5 * math.pow(0.5, max(timedelta(0), now - used) / timedelta(days=1))


def relevance(memory: Memory, now: datetime, policy: DecayPolicy = USUAL, *, match: float = 1.0) -> dict[str, float]:
    """The factors of a memory's relevance; their product is the relevance itself, up to 1.5.

    ``match`` is how well it fits what was asked: 1 where nothing was.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea", importance=0.8)
    >>> relevance(memory, memory.created_at)
    {'importance': 0.8, 'decay': 1.0, 'recency': 1.5, 'match': 1.0}
    """
    return {
        "importance": memory.importance,
        "decay": factor(memory, now, policy),
        "recency": recency(memory, now),
        "match": match,
    }
