"""What can be taken back, and what was brought up to date."""

from dataclasses import dataclass
from datetime import datetime

from wellkept.types.memory import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What ``refresh`` did: the ids of memories with a new pointer, with a new text, and of those whose file is gone.

    >>> Refreshed(refreshed=("m1",), rewritten=(), missing=(), current=3, dry_run=False).current
    3
    """

    refreshed: tuple[str, ...]
    rewritten: tuple[str, ...]
    missing: tuple[str, ...]
    current: int
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoable:
    """A write or a run that ``undo`` can take back, or why it cannot. A write is everything that one call wrote.

    ``run_id`` is that of a run of upkeep. ``blocked`` says what stands in the way: an erasure, or a later change.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     view = memories.view(user="ada")
    ...     _ = view.add("Likes tea")
    ...     [last] = view.undoable()
    >>> last.operations, len(last.memory_ids), last.blocked
    ((<Operation.ADDED: 'added'>,), 1, None)
    """

    id: str
    at: datetime
    operations: tuple[Operation, ...]
    memory_ids: tuple[str, ...]
    reason: str | None = None
    run_id: str | None = None
    blocked: str | None = None
