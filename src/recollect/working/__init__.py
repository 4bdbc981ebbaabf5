"""Working memory: keys and values of one agent while it runs, in process, with scopes that come and go."""

from recollect.working.entries import Entry, Limits
from recollect.working.memory import WorkingMemory, WorkingStats
from recollect.working.scopes import WorkingScope
from recollect.working.snapshots import ScopeSnapshot, WorkingSnapshot

__all__ = [
    "Entry",
    "Limits",
    "ScopeSnapshot",
    "WorkingMemory",
    "WorkingScope",
    "WorkingSnapshot",
    "WorkingStats",
]
