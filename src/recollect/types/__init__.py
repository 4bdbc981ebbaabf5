"""The public values: frozen, slotted, and free of any third-party type."""

from recollect.types.fields import ChangedFields, NewFields
from recollect.types.hits import Hit, Results
from recollect.types.memory import (
    KnowledgePointer,
    Memory,
    MemoryType,
    Operation,
    PointerType,
    Source,
    SourceType,
    State,
    Vector,
)
from recollect.types.new import NewMemory
from recollect.types.orders import Ranking, Sort
from recollect.types.owners import Identity, Layer, Owner
from recollect.types.pages import Page
from recollect.types.policies import DecayPolicy
from recollect.types.query import Filter
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
from recollect.types.sessions import CompactionReport, DroppedMemory, SessionConfig, SessionStats
from recollect.types.versions import Version
from recollect.types.words import (
    DurabilityName,
    ExportFormatName,
    LayerName,
    Layers,
    MemoryTypeName,
    MemoryTypes,
    RankingName,
    SortName,
    SourceTypeName,
)

__all__ = [
    "ChangedFields",
    "CompactionReport",
    "ConversionReport",
    "DecayPolicy",
    "Diagnosis",
    "DroppedMemory",
    "DurabilityName",
    "ExportFormatName",
    "Filter",
    "Finding",
    "Health",
    "Hit",
    "Identity",
    "KnowledgePointer",
    "Layer",
    "LayerName",
    "LayerSize",
    "Layers",
    "Memory",
    "MemoryType",
    "MemoryTypeName",
    "MemoryTypes",
    "NewFields",
    "NewMemory",
    "Operation",
    "OperationCompleted",
    "Owner",
    "Page",
    "PointerType",
    "Ranking",
    "RankingName",
    "Removal",
    "Results",
    "SessionConfig",
    "SessionStats",
    "Sort",
    "SortName",
    "Source",
    "SourceType",
    "SourceTypeName",
    "State",
    "Stats",
    "Status",
    "TagUsage",
    "Vector",
    "Version",
]
