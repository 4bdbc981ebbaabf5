"""The public values: frozen, slotted, and free of any third-party type."""

from recollect.types.fields import ChangedFields, NewFields
from recollect.types.memory import (
    KnowledgePointer,
    Memory,
    MemoryType,
    NewMemory,
    Operation,
    PointerType,
    Source,
    SourceType,
    State,
    Vector,
    Version,
)
from recollect.types.owners import Identity, Layer, Owner
from recollect.types.query import Filter, Hit, Page, Ranking, Results, Sort
from recollect.types.reports import (
    ConversionReport,
    Diagnosis,
    Finding,
    Health,
    LayerSize,
    OperationCompleted,
    Removal,
    Stats,
    Status,
    TagUsage,
)
from recollect.types.sessions import DecayPolicy, SessionConfig, SessionStats

__all__ = [
    "ChangedFields",
    "ConversionReport",
    "DecayPolicy",
    "Diagnosis",
    "Filter",
    "Finding",
    "Health",
    "Hit",
    "Identity",
    "KnowledgePointer",
    "Layer",
    "LayerSize",
    "Memory",
    "MemoryType",
    "NewFields",
    "NewMemory",
    "Operation",
    "OperationCompleted",
    "Owner",
    "Page",
    "PointerType",
    "Ranking",
    "Removal",
    "Results",
    "SessionConfig",
    "SessionStats",
    "Sort",
    "Source",
    "SourceType",
    "State",
    "Stats",
    "Status",
    "TagUsage",
    "Vector",
    "Version",
]
