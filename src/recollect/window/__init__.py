"""The context window: what goes into the next call of a language model, counted in tokens."""

from recollect.text.recalled import is_recalled, strip_recalled
from recollect.window.compaction import (
    AsyncSummariser,
    Compaction,
    CompactionReceipt,
    Strategy,
    StrategyName,
    Summariser,
    asummarised_by,
    compact,
    extractive_summary,
    least_important_first,
    oldest_first,
    summarised_by,
)
from recollect.window.composing import compose
from recollect.window.composition import Composition, LeftOut, Part, Placed, Reason, Receipt
from recollect.window.context import ContextWindow
from recollect.window.items import ContextItem, RecalledMemory, Role, RoleName
from recollect.window.keeping import Keep, Kept
from recollect.window.snapshot import WindowSnapshot

__all__ = [
    "AsyncSummariser",
    "Compaction",
    "CompactionReceipt",
    "Composition",
    "ContextItem",
    "ContextWindow",
    "Keep",
    "Kept",
    "LeftOut",
    "Part",
    "Placed",
    "Reason",
    "RecalledMemory",
    "Receipt",
    "Role",
    "RoleName",
    "Strategy",
    "StrategyName",
    "Summariser",
    "WindowSnapshot",
    "asummarised_by",
    "compact",
    "compose",
    "extractive_summary",
    "is_recalled",
    "least_important_first",
    "oldest_first",
    "strip_recalled",
    "summarised_by",
]
