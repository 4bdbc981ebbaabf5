"""Working memory: the in-process key-value state of one running agent, with nested scopes."""

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
