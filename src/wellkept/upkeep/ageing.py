"""The ageing of working memory: entries that were not set for too long are removed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from wellkept import filters
from wellkept.types import RetentionPolicy

if TYPE_CHECKING:
    from wellkept.working import Entry, WorkingMemory


def remove_old(working: WorkingMemory, policy: RetentionPolicy, now: datetime) -> int:
    """Remove the entries of all levels that are past the policy's age and not exempt; how many."""
    if policy.working_age is None:
        return 0
    oldest = now - filters.relative(policy.working_age)
    removed = 0
    for level, entries in ((working, working.all()), *((one, one.local_entries()) for one in working.active_scopes())):
        for key, entry in entries.items():
            if entry.timestamp <= oldest and not _is_exempt(entry, policy):
                removed += level.remove(key)
    return removed


def _is_exempt(entry: Entry, policy: RetentionPolicy) -> bool:
    important = policy.exempt_importance is not None and entry.importance >= policy.exempt_importance
    pinned = entry.metadata.get("pinned") is True
    return important or pinned or any(filters.tagged(entry.tags, wanted) for wanted in policy.exempt_tags)
