"""Exponential decay with a half-life per memory type and a floor, and the relevance derived from it."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from wellkept import codec
from wellkept.types import DecayPolicy, Memory, MemoryType, Owner, Stored

USUAL = DecayPolicy()
"""The default policy, unless a session has its own."""

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
"""The half-life of each type; ``None``: preferences and corrections do not decay."""


_HALF_LIFE_SECONDS = MappingProxyType({kind: span.total_seconds() for kind, span in HALF_LIVES.items() if span})
_HOUR_SECONDS = 3_600.0
_DAY_SECONDS = 86_400.0
_SECOND = 1_000_000  # microseconds


def factor(memory: Memory, now: datetime, policy: DecayPolicy = USUAL) -> float:
    """The decay factor of a memory, from the policy's floor to 1. The memory's own ``decay_factor`` takes precedence.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Chatted about rain", type="conversation")
    >>> round(factor(memory, memory.created_at + timedelta(days=7)), 3)
    0.5
    """
    if memory.decay_factor is not None:
        return memory.decay_factor
    seconds = _HALF_LIFE_SECONDS.get(memory.type) if policy is USUAL else _seconds(memory.type, policy)
    if seconds is None or not policy.enabled:
        return 1.0
    left = math.pow(0.5, _since(memory.created_at, now) / seconds)
    return left if left > policy.min_decay_factor else policy.min_decay_factor


def half_life_hours(kind: MemoryType, policy: DecayPolicy = USUAL) -> float | None:
    """The half-life of a type under a policy; ``None`` if it does not decay.

    >>> half_life_hours(MemoryType.CONVERSATION), half_life_hours(MemoryType.PREFERENCE)
    (168.0, None)
    """
    seconds = _seconds(kind, policy) if policy.enabled else None
    return None if seconds is None else seconds / _HOUR_SECONDS


def factor_at(hours: float, half_life: float | None, policy: DecayPolicy = USUAL) -> float:
    """The decay factor after some hours, for a half-life in hours.

    >>> factor_at(24, 24), factor_at(1e6, 24), factor_at(1e6, None)
    (0.5, 0.1, 1.0)
    """
    return 1.0 if half_life is None else max(policy.min_decay_factor, math.pow(0.5, hours / half_life))


def _seconds(kind: MemoryType, policy: DecayPolicy) -> float | None:
    """The half-life of a type in seconds; ``None`` if it does not decay."""
    if kind in policy.by_type_hours:
        own = policy.by_type_hours[kind]
        seconds = None if own is None else _HOUR_SECONDS * own
    else:
        seconds = _HALF_LIFE_SECONDS.get(kind)
    if seconds is None or policy.half_life_hours is None:
        return seconds
    return _HOUR_SECONDS * policy.half_life_hours


HIGHEST = 1.5
"""The relevance of a memory that is as important as can be, new, and matches fully."""


def recency(memory: Memory, now: datetime) -> float:
    """A bonus for recent use: from 1.5 down to 1, with a half-life of one day.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    >>> recency(memory, memory.created_at), recency(memory, memory.created_at + timedelta(days=1))
    (1.5, 1.25)
    """
    used = memory.last_accessed_at or memory.created_at
    return 1.0 + 0.5 * math.pow(0.5, _since(used, now) / _DAY_SECONDS)


def _since(moment: datetime, now: datetime) -> float:
    """Whole seconds (three times as fast as ``total_seconds``); 0 if the clock went back."""
    age = now - moment
    return age.days * _DAY_SECONDS + age.seconds if age.days >= 0 else 0.0


def irrelevance_of(now: datetime, policies: Mapping[Owner, DecayPolicy]) -> Callable[[Stored], float]:
    """The sort key of a listing by relevance: the negative relevance, under the decay policy of each owner.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea", importance=0.8)
    ...     [stored] = memories._engine.journal.scan({memory.owner})
    >>> irrelevance_of(memory.created_at, {memory.owner: USUAL})(stored) == -math.prod(
    ...     relevance(memory, memory.created_at).values()
    ... )
    True
    """
    by_owner = {owner: _irrelevance(codec.to_micros(now), policy) for owner, policy in policies.items()}
    if len({id(policy) for policy in policies.values()}) == 1:  # the common case
        return next(iter(by_owner.values()))
    return lambda stored: by_owner[stored.owner](stored)


def _irrelevance(now: int, policy: DecayPolicy) -> Callable[[Stored], float]:
    half_lives = {kind.value: _seconds(kind, policy) if policy.enabled else None for kind in MemoryType}
    floor, power = policy.min_decay_factor, math.pow

    def value(stored: Stored) -> float:  # inlined: function calls would dominate the cost
        try:
            facets = stored.facets
            since = (now - facets["created_at"]) // _SECOND
            left: float | None = facets.get("decay_factor")
            if left is None:
                half_life = half_lives[facets["type"]]
                left = 1.0 if half_life is None else power(0.5, max(0, since) / half_life)
                if left < floor:  # noqa: PLR1730  # a call of max() costs as much as the power
                    left = floor
            if stored.last_accessed_at is not None:
                since = (now - stored.last_accessed_at) // _SECOND
            importance: float = facets["importance"]
            return -(importance * left * (1.0 + 0.5 * power(0.5, max(0, since) / _DAY_SECONDS)))
        except (KeyError, TypeError):  # damaged: whoever reads the memory is told
            return 0.0

    return value


def relevance(memory: Memory, now: datetime, policy: DecayPolicy = USUAL, *, match: float = 1.0) -> dict[str, float]:
    """The factors of a memory's relevance; the relevance is their product, at most 1.5.

    ``match`` is the quality of the match with the query, 1 without a query.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
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
