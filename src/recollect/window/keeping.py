"""Where the originals of what a window lets go remain. The window knows no store: it is given a function that keeps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.window.compaction import Compaction
from recollect.window.items import ContextItem


@dataclass(frozen=True, slots=True)
class Kept:
    """For each item, the ids of the memories that hold what it says; ``not_kept`` is why some have none.

    >>> Kept({"1": ("018b",)}).not_kept is None
    True
    """

    memory_ids: Mapping[str, tuple[str, ...]]
    not_kept: str | None = None


Keep = Callable[[Sequence[ContextItem]], Kept]
"""Sees to it that items are in memories, and says in which. If it raises, nothing leaves the window."""


def remembered(items: Iterable[ContextItem]) -> dict[str, tuple[str, ...]]:
    """The memories of those items that come from one, or sum up what is in several.

    >>> remembered([])
    {}
    """
    known = ((item.id, item.summary_of or (() if item.source is None else (item.source,))) for item in items)
    return {id: memory_ids for id, memory_ids in known if memory_ids}


def unkept(items: Sequence[ContextItem], why: str) -> Kept:
    """What is known without keeping anything: a keeper for a window that has no memories behind it.

    >>> unkept([], "no memory").not_kept is None
    True
    """
    known = remembered(items)
    return Kept(known, why if len(known) < len(items) else None)


def settled(done: Compaction, kept: Kept) -> Compaction:
    """A compaction whose receipt names the memories, and whose summary knows them as well.

    >>> from recollect.window.compaction import oldest_first
    >>> settled(oldest_first([], 10), Kept({})).receipt.memory_ids
    {}
    """
    receipt = replace(done.receipt, memory_ids=dict(kept.memory_ids), not_kept=kept.not_kept)
    lineage = tuple(dict.fromkeys(id for item in done.removed for id in kept.memory_ids.get(item.id, ())))
    items = tuple(replace(item, summary_of=lineage) if item.id == receipt.summary_id else item for item in done.items)
    return Compaction(items, done.removed, receipt)
