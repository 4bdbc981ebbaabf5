"""Recollect: the memory engine for AI agents. One embedded file, no server, no network, no LLM.

>>> import recollect
>>> with recollect.open("ram:") as memories:
...     ada = memories.view(user="ada")
...     _ = ada.add("Prefers dark mode", type="preference")
...     [hit.memory.content for hit in ada.search("dark mode")]
['Prefers dark mode']
"""

from typing import TYPE_CHECKING, Any

from recollect.errors import (
    ConfigurationError,
    Conflict,
    ContentTooLong,
    EmbedderMismatch,
    EmbeddingFailed,
    InvalidInput,
    InvalidLayer,
    LimitReached,
    LockTimeout,
    MissingIdentifier,
    NotACopy,
    NotAStore,
    NotFound,
    PlanRestriction,
    QueryTooLong,
    QuotaExceeded,
    RateLimited,
    RecollectError,
    SchemaTooNew,
    ScopeDisposed,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    Unauthorized,
)
from recollect.plans import Plan
from recollect.types import (
    CompactionReport,
    ConversionReport,
    DecayPolicy,
    Diagnosis,
    DroppedMemory,
    Filter,
    Finding,
    Health,
    Hit,
    Identity,
    KnowledgePointer,
    Layer,
    LayerSize,
    Memory,
    MemoryType,
    NewMemory,
    Operation,
    OperationCompleted,
    Owner,
    Page,
    PointerType,
    Ranking,
    Removal,
    Results,
    SessionConfig,
    SessionStats,
    Sort,
    Source,
    SourceType,
    State,
    Stats,
    Status,
    TagUsage,
    Vector,
    Version,
)

if TYPE_CHECKING:
    from recollect import aio as aio
    from recollect.memories import Memories, View, convert, open
    from recollect.memories.agent import AgentMemory, AgentSnapshot, AgentStats
    from recollect.memories.session import Session, SessionPreferences
    from recollect.memories.sessions import Sessions

__version__ = "0.1.0"

__all__ = [
    "AgentMemory",
    "AgentSnapshot",
    "AgentStats",
    "CompactionReport",
    "ConfigurationError",
    "Conflict",
    "ContentTooLong",
    "ConversionReport",
    "DecayPolicy",
    "Diagnosis",
    "DroppedMemory",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "Filter",
    "Finding",
    "Health",
    "Hit",
    "Identity",
    "InvalidInput",
    "InvalidLayer",
    "KnowledgePointer",
    "Layer",
    "LayerSize",
    "LimitReached",
    "LockTimeout",
    "Memories",
    "Memory",
    "MemoryType",
    "MissingIdentifier",
    "NewMemory",
    "NotACopy",
    "NotAStore",
    "NotFound",
    "Operation",
    "OperationCompleted",
    "Owner",
    "Page",
    "Plan",
    "PlanRestriction",
    "PointerType",
    "QueryTooLong",
    "QuotaExceeded",
    "Ranking",
    "RateLimited",
    "RecollectError",
    "Removal",
    "Results",
    "SchemaTooNew",
    "ScopeDisposed",
    "Session",
    "SessionConfig",
    "SessionPreferences",
    "SessionStats",
    "Sessions",
    "Sort",
    "Source",
    "SourceType",
    "State",
    "Stats",
    "Status",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "TagUsage",
    "Unauthorized",
    "Vector",
    "Version",
    "View",
    "convert",
    "open",
]


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first used: values and errors alone cost a tenth of its time."""
    if name in ("AgentMemory", "AgentSnapshot", "AgentStats"):
        from recollect.memories import agent  # lazy: who only stores and searches needs none of it

        return getattr(agent, name)
    if name in ("Session", "SessionPreferences"):
        from recollect.memories import session  # lazy: as above

        return getattr(session, name)
    if name == "Sessions":
        from recollect.memories.sessions import Sessions  # lazy: as above

        return Sessions
    if name in ("Memories", "View", "convert", "open"):
        from recollect import memories  # lazy: brings in msgspec

        return getattr(memories, name)
    if name == "aio":
        import recollect.aio  # lazy: brings in asyncio

        return recollect.aio
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
