"""Sessions: configuration, statistics and compaction reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wellkept.types.memory import MemoryType
from wellkept.types.policies import DecayPolicy

SESSION_BYTES = 10 * 1024 * 1024
"""The default limit of a session's memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """The configuration of a session: decay policy, and storage limit (``None``: unlimited).

    A write that would exceed ``compaction_threshold`` of the limit compacts the session first, unless
    ``auto_compact`` is off.

    >>> SessionConfig(decay=DecayPolicy(enabled=False)).limit_bytes
    10485760
    """

    decay: DecayPolicy = field(default_factory=DecayPolicy)
    limit_bytes: int | None = SESSION_BYTES
    auto_compact: bool = True
    compaction_threshold: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStats:
    """Statistics of a session: its memories, and when it was created, used and closed.

    ``by_type`` counts active memories; ``bytes_used`` includes forgotten ones, but not archived ones. ``damaged`` are
    stored lines that cannot be read and are skipped.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
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
    archived: int = 0
    by_type: Mapping[MemoryType, int] = field(default_factory=dict)
    bytes_used: int = 0
    bytes_limit: int | None = None
    oldest: datetime | None = None
    newest: datetime | None = None
    damaged: int = 0

    @property
    def percent_used(self) -> float:
        """How much of the limit is used, in percent; 0 without a limit."""
        return 100.0 * self.bytes_used / self.bytes_limit if self.bytes_limit else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedMemory:
    """A memory archived or erased by compaction, and why: ``irrelevant``, ``expired``, ``forgotten`` or ``archived``.

    >>> DroppedMemory(id="a", reason="irrelevant", relevance=0.02, bytes_used=120).reason
    'irrelevant'
    """

    id: str
    reason: str
    relevance: float
    bytes_used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """The memories that a session compaction archived and erased, or would (``dry_run``), each in its order.

    Only a purge erases; ``restore`` brings back what was archived, ``memories.upkeep.undo(run_id)`` all of it. Of
    ``condensed`` memories, verbose metadata was archived: it stands in the version before.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     session = memories.view(user="ada").sessions.create("monday")
    ...     memory = session.view.add("Use OAuth")
    ...     _ = session.view.forget(memory.id)
    ...     report = session.compact(purge=True, dry_run=True)
    >>> report.count, report.erased[0].reason, report.bytes_after
    (1, 'forgotten', 0)
    """

    session_id: str
    archived: tuple[DroppedMemory, ...] = ()
    erased: tuple[DroppedMemory, ...] = ()
    condensed: tuple[DroppedMemory, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0
    bytes_limit: int | None = None
    dry_run: bool = False
    run_id: str | None = None

    @property
    def count(self) -> int:
        """How many memories, archived and erased ones together."""
        return len(self.archived) + len(self.erased)
