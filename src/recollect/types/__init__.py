"""The public values: frozen, slotted, and free of any third-party type."""

from typing import TYPE_CHECKING

from recollect import exports

if TYPE_CHECKING:
    from recollect.types.grants import Grant, Need
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
    from recollect.types.typed_dicts import ChangedFields, NewFields
    from recollect.types.versions import Version

__all__ = [
    "ChangedFields",
    "CompactionReport",
    "ConversionReport",
    "DecayPolicy",
    "Diagnosis",
    "DroppedMemory",
    "Filter",
    "Finding",
    "Grant",
    "Health",
    "Hit",
    "Identity",
    "KnowledgePointer",
    "Layer",
    "LayerSize",
    "Memory",
    "MemoryType",
    "Need",
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

if not TYPE_CHECKING:  # who checks types sees the imports above
    __getattr__, __dir__ = exports.on_demand(
        __name__,
        {
            "typed_dicts": "ChangedFields NewFields",
            "grants": "Grant Need",
            "hits": "Hit Results",
            "memory": "KnowledgePointer Memory MemoryType Operation PointerType Source SourceType State Vector",
            "new": "NewMemory",
            "orders": "Ranking Sort",
            "owners": "Identity Layer Owner",
            "pages": "Page",
            "policies": "DecayPolicy",
            "query": "Filter",
            "reports": "ConversionReport Diagnosis Finding Health LayerSize OperationCompleted Removal Stats Status"
            " TagUsage",
            "sessions": "CompactionReport DroppedMemory SessionConfig SessionStats",
            "versions": "Version",
        },
    )
