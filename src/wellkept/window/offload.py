"""Offload of removed items to long-term memory. The window knows no store: a ``Keep`` function is injected."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wellkept.window.compaction import Compaction
from wellkept.window.items import ContextItem


@dataclass(frozen=True, slots=True)
class Kept:
    """For each item the ids of the memories that hold its content; ``not_kept`` says why some have none.

    >>> Kept({"1": ("018b",)}).not_kept is None
    True
    """

    memory_ids: Mapping[str, tuple[str, ...]]
    not_kept: str | None = None


Keep = Callable[[Sequence[ContextItem]], Kept]
"""Stores items as memories and returns their ids. If it raises, nothing is removed from the window."""


def remembered(items: Iterable[ContextItem]) -> dict[str, tuple[str, ...]]:
    """The memory ids that items carry already: their source, or the memories that a summary covers.

    >>> remembered([])
    {}
    """
    known = ((item.id, item.summary_of or (() if item.source is None else (item.source,))) for item in items)
    return {id: memory_ids for id, memory_ids in known if memory_ids}


def unkept(items: Sequence[ContextItem], why: str) -> Kept:
    """The ids that are known without storing anything, for windows without a long-term memory.

    >>> unkept([], "no memory").not_kept is None
    True
    """
    known = remembered(items)
    return Kept(known, why if len(known) < len(items) else None)


def settled(done: Compaction, kept: Kept) -> Compaction:
    """The compaction with memory ids added to its receipt and to its summary.

    >>> from wellkept.window.compaction import oldest_first
    >>> settled(oldest_first([], 10), Kept({})).receipt.memory_ids
    {}
    """
    receipt = replace(done.receipt, memory_ids=dict(kept.memory_ids), not_kept=kept.not_kept)
    covered = tuple(dict.fromkeys(id for item in done.removed for id in kept.memory_ids.get(item.id, ())))
    items = tuple(replace(item, summary_of=covered) if item.id == receipt.summary_id else item for item in done.items)
    return Compaction(items, done.removed, receipt)
