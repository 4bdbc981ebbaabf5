"""How much a memory still counts: it fades by half in a time that depends on its type, and never below a floor."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from recollect.types import Memory, MemoryType

FLOOR = 0.1
"""What remains at least."""

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


def factor(memory: Memory, now: datetime) -> float:
    """What is left of a memory, from ``FLOOR`` to 1. A factor that the memory was given itself stands.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Chatted about rain", type="conversation")
    >>> round(factor(memory, memory.created_at + timedelta(days=7)), 3)
    0.5
    """
    if memory.decay_factor is not None:
        return memory.decay_factor
    half_life = HALF_LIVES[memory.type]
    age = max(timedelta(0), now - memory.created_at)
    return 1.0 if half_life is None else max(FLOOR, math.pow(0.5, age / half_life))


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
