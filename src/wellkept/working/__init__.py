"""Working memory: the in-process key-value state of one running agent, with nested scopes."""

from wellkept.working.entry import Entry, Limits
from wellkept.working.scopes import WorkingScope
from wellkept.working.search import Match, Meaning
from wellkept.working.snapshots import ScopeSnapshot, WorkingSnapshot
from wellkept.working.working_memory import WorkingMemory, WorkingStats

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
