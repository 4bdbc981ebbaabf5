"""The context window: the items of the next LLM call under a token limit, composed and compacted."""

from wellkept.text.recall_markers import is_recalled, strip_recalled
from wellkept.window.compaction import (
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
from wellkept.window.composition import Composition, LeftOut, Part, Placed, Reason, Receipt
from wellkept.window.context import ContextWindow
from wellkept.window.items import ContextItem, RecalledMemory, Role, RoleName
from wellkept.window.offload import Keep, Kept
from wellkept.window.prompt_assembly import compose
from wellkept.window.snapshot import WindowSnapshot

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
