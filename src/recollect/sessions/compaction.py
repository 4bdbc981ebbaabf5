"""Making room in a session: what has expired or hardly counts any more is archived, the least relevant first.

Nothing is erased unless a caller asks for a purge: then everything that was forgotten, has expired or was archived goes
for good.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from math import prod
from typing import NamedTuple

from recollect import events, logs, statistics
from recollect.engine.core import ATTEMPTS, Engine
from recollect.engine.revisions import erasure, moved
from recollect.engine.sealing import unseal
from recollect.errors import Conflict
from recollect.lifecycle import decay
from recollect.types import (
    CompactionReport,
    DecayPolicy,
    DroppedMemory,
    Memory,
    Operation,
    Owner,
    SessionConfig,
    State,
    Stored,
    Write,
)

REASON = "compaction"
"""What the journal and the events say of memories that compaction took."""

IRRELEVANT = 0.05
"""Below this relevance a memory may be archived. What counts more stays: then there is no room left."""

CLEARED = 0.8
"""How much of what starts a compaction may be full after it: one that stops at once would soon start again."""


class Chosen(NamedTuple):
    """What a compaction takes: memories to archive, and memories to erase, each in its order."""

    archived: list[DroppedMemory]
    erased: list[DroppedMemory]


def chosen(
    sized: Iterable[tuple[Memory, int]],
    policy: DecayPolicy,
    now: datetime,
    target_bytes: int | None,
    spared: frozenset[str] = frozenset(),
    *,
    purge: bool = False,
) -> Chosen:
    """What goes: what has expired, and as much of what is irrelevant as the target asks for, is archived. A purge
    erases everything forgotten, expired or archived before.

    Without a target nothing irrelevant needs to go. What is pinned (``metadata={"pinned": True}``) stays.
    """
    archived: list[DroppedMemory] = []
    erased: list[DroppedMemory] = []
    doubtful: list[tuple[DroppedMemory, datetime]] = []
    left = 0
    for memory, size in sized:
        left += size
        if memory.id in spared or memory.metadata.get("pinned") is True:
            continue
        relevance = prod(decay.relevance(memory, now, policy).values())
        one = DroppedMemory(id=memory.id, reason="irrelevant", relevance=relevance, bytes_used=size)
        expired = memory.expires_at is not None and memory.expires_at <= now
        if purge and (memory.state is not State.ACTIVE or expired):
            reason = "expired" if memory.state is State.ACTIVE else memory.state.value
            erased.append(replace(one, reason=reason))
        elif memory.state is not State.ACTIVE:
            continue  # what was forgotten can be restored, and what was archived counts for nothing
        elif expired:
            archived.append(replace(one, reason="expired"))
        elif relevance < IRRELEVANT:
            doubtful.append((one, memory.created_at))
    left -= sum(one.bytes_used for one in (*archived, *erased))
    for one, _ in sorted(doubtful, key=lambda found: (found[0].relevance, found[1], found[0].id)):
        if target_bytes is None or left <= target_bytes:
            break
        archived.append(one)
        left -= one.bytes_used
    return Chosen(archived, erased)


def target(config: SessionConfig, needed_bytes: int = 0) -> int | None:
    """How many bytes a session may have after a compaction, so that what is needed fits behind them."""
    if config.limit_bytes is None:
        return None
    return min(int(config.limit_bytes * config.compaction_threshold * CLEARED), config.limit_bytes - needed_bytes)


def compact(
    engine: Engine,
    owner: Owner,
    config: SessionConfig,
    *,
    dry_run: bool = False,
    purge: bool = False,
) -> CompactionReport:
    """Compact a session because somebody asked for it."""
    wanted = target(config)
    if dry_run:
        return _compact(engine, owner, config, wanted, frozenset(), dry_run=True, purge=purge)
    return _logged(engine, owner, config, wanted, frozenset(), automatic=False, purge=purge)


def make_room(
    engine: Engine, owner: Owner, config: SessionConfig, needed_bytes: int, spared: frozenset[str]
) -> CompactionReport:
    """Compact a session so that a number of bytes fits; what is to be written is spared."""
    return _logged(engine, owner, config, target(config, needed_bytes), spared, automatic=True)


def _logged(
    engine: Engine,
    owner: Owner,
    config: SessionConfig,
    target_bytes: int | None,
    spared: frozenset[str],
    *,
    automatic: bool,
    purge: bool = False,
) -> CompactionReport:
    """Compact a session; the log hears when it begins and when it has ended."""
    started = time.perf_counter()
    logs.session_compacting(owner.ids[-1], automatic=automatic)
    report = _compact(engine, owner, config, target_bytes, spared, automatic=automatic, purge=purge)
    logs.session_compacted(
        report.session_id,
        archived=len(report.archived),
        erased=len(report.erased),
        bytes_before=report.bytes_before,
        bytes_after=report.bytes_after,
        duration_ms=(time.perf_counter() - started) * 1000,
        automatic=automatic,
    )
    return report


def _compact(
    engine: Engine,
    owner: Owner,
    config: SessionConfig,
    target_bytes: int | None,
    spared: frozenset[str],
    *,
    dry_run: bool = False,
    purge: bool = False,
    automatic: bool = False,
) -> CompactionReport:
    """Archive and erase what goes, in one batch, and let the store tidy up; look again if a writer was faster."""
    for _ in range(ATTEMPTS):
        now = engine.clock()
        found = {one.id: one for one in engine.journal.scan({owner}, vectors=True)}
        sized = [(unseal(one), statistics.footprint(one)) for one in found.values()]
        going = chosen(sized, config.decay, now, target_bytes, spared, purge=purge)
        report = _report(owner, config, going, sum(size for _, size in sized), dry_run=dry_run)
        if dry_run:
            return report
        try:
            if report.count:
                engine.journal.append(
                    [
                        *(_archiving(engine, found[one.id], now) for one in going.archived),
                        *(erasure(engine, found[one.id], now, REASON)[1] for one in going.erased),
                    ]
                )
        except Conflict:
            continue
        if report.count or not automatic:
            engine.store.compact({owner})
            _tell(engine, owner, report, now, automatic=automatic)
        return report
    raise Conflict(
        "the session kept changing while it was compacted",
        details={"session_id": owner.ids[-1]},
        hint="try again when there are fewer writers",
    )


def _archiving(engine: Engine, stored: Stored, now: datetime) -> Write:
    return moved(engine, stored, State.ARCHIVED, now, operation=Operation.ARCHIVED, reason=REASON)[1]


def _report(owner: Owner, config: SessionConfig, going: Chosen, before: int, *, dry_run: bool) -> CompactionReport:
    return CompactionReport(
        session_id=owner.ids[-1],
        archived=tuple(going.archived),
        erased=tuple(going.erased),
        bytes_before=before,
        bytes_after=before - sum(one.bytes_used for one in (*going.archived, *going.erased)),
        bytes_limit=config.limit_bytes,
        dry_run=dry_run,
    )


def _tell(engine: Engine, owner: Owner, report: CompactionReport, now: datetime, *, automatic: bool) -> None:
    if not engine.bus.handlers:
        return
    for one in report.archived:
        engine.bus.emit(events.MemoryArchived(at=now, memory_id=one.id, owner=owner, reason=REASON))
    for one in report.erased:
        engine.bus.emit(events.MemoryForgotten(at=now, memory_id=one.id, owner=owner, permanent=True, reason=REASON))
    engine.bus.emit(
        events.SessionCompacted(
            at=now,
            owner=owner,
            session_id=report.session_id,
            archived=len(report.archived),
            erased=len(report.erased),
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            automatic=automatic,
        )
    )
