"""Sessions as values: how one is configured, and what it says of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recollect.types.memory import MemoryType

SESSION_BYTES = 10 * 1024 * 1024
"""What the memories of a session may take, unless its configuration says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayPolicy:
    """How memories fade.

    ``half_life_hours`` is the time in which a memory fades by half, whatever its type; ``None`` leaves each type its
    own. Preferences and corrections never fade. ``min_decay_factor`` is what remains at least.

    >>> DecayPolicy(half_life_hours=24).min_decay_factor
    0.1
    """

    enabled: bool = True
    half_life_hours: float | None = None
    min_decay_factor: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """What can be set for one session: how its memories fade, and how many bytes they may take (``None``: any).

    >>> SessionConfig(decay=DecayPolicy(enabled=False)).limit_bytes
    10485760
    """

    decay: DecayPolicy = field(default_factory=DecayPolicy)
    limit_bytes: int | None = SESSION_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStats:
    """What a session holds, and when it was made, used and closed.

    ``by_type`` counts the active memories, ``bytes_used`` all that is kept, forgotten ones included.

    >>> import recollect
    >>> with recollect.open("ram:", embedder=None) as memories:
    ...     session = memories.view(user="ada").sessions.create("monday")
    ...     _ = session.view.add("Use OAuth", type="decision")
    ...     stats = session.stats()
    >>> stats.id, stats.entries, dict(stats.by_type)[MemoryType.DECISION], stats.closed_at
    ('monday', 1, 1, None)
    """

    id: str
    created_at: datetime
    last_accessed: datetime
    closed_at: datetime | None = None
    deleted_at: datetime | None = None
    entries: int = 0
    forgotten: int = 0
    by_type: Mapping[MemoryType, int] = field(default_factory=dict)
    bytes_used: int = 0
    bytes_limit: int | None = None
    oldest: datetime | None = None
    newest: datetime | None = None

    @property
    def percent_used(self) -> float:
        """How much of the limit is used, in percent; 0 without a limit."""
        return 100.0 * self.bytes_used / self.bytes_limit if self.bytes_limit else 0.0
