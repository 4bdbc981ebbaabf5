"""Policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.types.memory import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayPolicy:
    """How the relevance of memories decays over time.

    ``half_life_hours`` applies to all types that decay; if it is ``None``, each type has its own half-life: that of
    ``by_type_hours`` (``None`` there: the type does not decay), else the default. Preferences and corrections do not
    decay unless they are in ``by_type_hours``. ``min_decay_factor`` is the lower bound.

    >>> DecayPolicy(by_type_hours={MemoryType.EVENT: 24}).min_decay_factor
    0.1
    """

    enabled: bool = True
    half_life_hours: float | None = None
    min_decay_factor: float = 0.1
    by_type_hours: Mapping[MemoryType, float | None] = field(default_factory=dict)
