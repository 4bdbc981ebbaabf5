"""How much a memory still counts: it fades by half in a time that depends on its type, and never below a floor."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from recollect.types import DecayPolicy, Memory, MemoryType, Owner

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


_HALF_LIFE_SECONDS = MappingProxyType({kind: span.total_seconds() for kind, span in HALF_LIVES.items() if span})
_HOUR_SECONDS = 3_600.0
_DAY_SECONDS = 86_400.0


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
    seconds = _HALF_LIFE_SECONDS.get(memory.type) if policy is USUAL else _seconds(memory.type, policy)
    if seconds is None or not policy.enabled:
        return 1.0
    left = math.pow(0.5, _since(memory.created_at, now) / seconds)
    return left if left > policy.min_decay_factor else policy.min_decay_factor


def _seconds(kind: MemoryType, policy: DecayPolicy) -> float | None:
    """The half-life of a type; none if it never fades."""
    if kind in policy.by_type_hours:
        own = policy.by_type_hours[kind]
        seconds = None if own is None else _HOUR_SECONDS * own
    else:
        seconds = _HALF_LIFE_SECONDS.get(kind)
    if seconds is None or policy.half_life_hours is None:
        return seconds
    return _HOUR_SECONDS * policy.half_life_hours


def recency(memory: Memory, now: datetime) -> float:
    """A bonus for what was used lately, from 1.5 down to 1: half of it is gone after a day.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    >>> recency(memory, memory.created_at), recency(memory, memory.created_at + timedelta(days=1))
    (1.5, 1.25)
    """
    used = memory.last_accessed_at or memory.created_at
    return 1.0 + 0.5 * math.pow(0.5, _since(used, now) / _DAY_SECONDS)


def _since(moment: datetime, now: datetime) -> float:
    """Whole seconds, which take a third of the time to tell; none if the clock went back."""
    age = now - moment
    return age.days * _DAY_SECONDS + age.seconds if age.days >= 0 else 0.0


def irrelevance(now: datetime, policy: DecayPolicy = USUAL) -> Callable[[Memory], float]:
    """What an order by relevance goes by where nothing was asked, for thousands of memories: smaller for the relevant.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea", importance=0.8)
    >>> irrelevance(memory.created_at)(memory) == -math.prod(relevance(memory, memory.created_at).values())
    True
    """
    half_lives = {kind: _seconds(kind, policy) if policy.enabled else None for kind in MemoryType}
    floor, power = policy.min_decay_factor, math.pow

    def value(memory: Memory) -> float:  # in one piece: calls would take longer than all the rest
        age = now - memory.created_at
        since = age.days * _DAY_SECONDS + age.seconds if age.days >= 0 else 0.0
        left = memory.decay_factor
        if left is None:
            half_life = half_lives[memory.type]
            left = 1.0 if half_life is None else power(0.5, since / half_life)
            if left < floor:  # noqa: PLR1730  # a call takes as long as the power
                left = floor
        if memory.last_accessed_at is not None:
            since = _since(memory.last_accessed_at, now)
        return -(memory.importance * left * (1.0 + 0.5 * power(0.5, since / _DAY_SECONDS)))

    return value


class Irrelevance:
    """The same for the memories of several owners, which fade as the policy of each says.

    Of a memory that is neither changed nor used, it never becomes smaller as time goes on. So a store that keeps what
    it was has a bound of what it is later.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    >>> times = [memory.created_at + timedelta(days=days) for days in (0, 1)]
    >>> now, later = (Irrelevance(at, {memory.owner: USUAL})(memory) for at in times)
    >>> now < later
    True
    """

    def __init__(self, now: datetime, policies: Mapping[Owner, DecayPolicy]) -> None:
        self.now, self.policies = now, policies
        by_owner = {owner: irrelevance(now, policy) for owner, policy in policies.items()}
        self.of: Callable[[Memory], float] = lambda memory: by_owner[memory.owner](memory)
        if len({id(policy) for policy in policies.values()}) == 1:  # as in most views
            self.of = next(iter(by_owner.values()))

    def __call__(self, memory: Memory) -> float:
        """That of one memory; for many, ``of`` is quicker."""
        return self.of(memory)


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
