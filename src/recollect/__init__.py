"""Recollect: the memory engine for AI agents. One embedded file, no server, no network, no LLM.

>>> import recollect
>>> with recollect.open("ram:") as memories:
...     ada = memories.view(user="ada")
...     _ = ada.add("Prefers dark mode", type="preference")
...     [hit.memory.content for hit in ada.search("dark mode")]
['Prefers dark mode']
"""

from typing import TYPE_CHECKING

from recollect import exports
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

if TYPE_CHECKING:
    from recollect import aio as aio
    from recollect.entitlements import Plan
    from recollect.memories.agent import AgentMemory, AgentSnapshot, AgentStats
    from recollect.transfer.conversion import convert
    from recollect.memories.database import Memories, open
    from recollect.memories.session import Session, SessionPreferences
    from recollect.memories.sessions import Sessions
    from recollect.memories.view import View
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


# Everybody needs errors. The rest is imported when it is first used: most of a start is Python making classes.
if not TYPE_CHECKING:  # who checks types sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "": "aio entitlements types",
            "memories.agent": "AgentMemory AgentSnapshot AgentStats",
            "transfer.conversion": "convert",
            "memories.database": "Memories open",
            "memories.session": "Session SessionPreferences",
            "memories.sessions": "Sessions",
            "memories.view": "View",
            "entitlements": "Plan",
            "types": "CompactionReport ConversionReport DecayPolicy Diagnosis DroppedMemory Filter Finding Health Hit"
            " Identity KnowledgePointer Layer LayerSize Memory MemoryType NewMemory Operation"
            " OperationCompleted Owner Page PointerType Ranking Removal Results SessionConfig SessionStats"
            " Sort Source SourceType State Stats Status TagUsage Vector Version",
        },
    )
