"""Working memory: the in-process key-value state of one running agent, with nested scopes."""

from recollect.working.entry import Entry, Limits
from recollect.working.scopes import WorkingScope
from recollect.working.search import Match, Meaning
from recollect.working.snapshots import ScopeSnapshot, WorkingSnapshot
from recollect.working.working_memory import WorkingMemory, WorkingStats

__all__ = [
    "Entry",
    "Limits",
    "Match",
    "Meaning",
    "ScopeSnapshot",
    "WorkingMemory",
    "WorkingScope",
    "WorkingSnapshot",
    "WorkingStats",
]
