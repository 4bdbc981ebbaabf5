"""What happened, as typed values (``kinds``), and the bus that tells those who asked (``bus``).

The kinds are imported when one of them is named: most processes listen to nothing.
"""

from typing import TYPE_CHECKING

from recollect import exports
from recollect.events.bus import EventBus

if TYPE_CHECKING:
    from recollect.events.kinds import (
        ContextCompacted,
        ContextComposed,
        Event,
        MemoryForgotten,
        MemoryRestored,
        MemoryRetrieved,
        MemoryStored,
        MemoryUpdated,
        QuotaWarning,
        SearchCompleted,
        SessionCompacted,
        SnapshotCreated,
        SnapshotRestored,
        WorkingMemoryCleared,
        WorkingMemoryRemoved,
        WorkingMemorySet,
        WorkingScopeCreated,
        WorkingScopeDisposed,
    )

__all__ = [  # noqa: RUF022  # the order of the reference
    "Event",
    "MemoryStored",
    "MemoryRetrieved",
    "MemoryUpdated",
    "MemoryForgotten",
    "MemoryRestored",
    "SearchCompleted",
    "QuotaWarning",
    "SessionCompacted",
    "WorkingMemorySet",
    "WorkingMemoryRemoved",
    "WorkingMemoryCleared",
    "WorkingScopeCreated",
    "WorkingScopeDisposed",
    "ContextComposed",
    "ContextCompacted",
    "SnapshotCreated",
    "SnapshotRestored",
    "EventBus",
]

if not TYPE_CHECKING:  # who checks types sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "kinds": "Event MemoryStored MemoryRetrieved MemoryUpdated MemoryForgotten MemoryRestored"
            " SearchCompleted QuotaWarning SessionCompacted WorkingMemorySet WorkingMemoryRemoved"
            " WorkingMemoryCleared WorkingScopeCreated WorkingScopeDisposed ContextComposed"
            " ContextCompacted SnapshotCreated SnapshotRestored",
        },
    )
