"""How memories are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.types.memory import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayPolicy:
    """How memories fade.

    ``half_life_hours`` is the time in which a memory fades by half, whatever its type; ``None`` leaves each type its
    own: the one in ``by_type_hours`` (where ``None`` means that the type never fades), or else the usual one. Unless
    ``by_type_hours`` says otherwise, preferences and corrections never fade. ``min_decay_factor`` is what remains at
    least.

    >>> DecayPolicy(by_type_hours={MemoryType.EVENT: 24}).min_decay_factor
    0.1
    """

    enabled: bool = True
    half_life_hours: float | None = None
    min_decay_factor: float = 0.1
    by_type_hours: Mapping[MemoryType, float | None] = field(default_factory=dict)
