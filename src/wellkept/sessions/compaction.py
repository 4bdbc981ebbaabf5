"""Making room in a session: what has expired is archived, then verbose metadata of old memories, then what hardly
counts any more, the least relevant first.

Nothing is erased unless a caller asks for a purge: then everything that was forgotten, has expired or was archived goes
for good. Each compaction is a run of upkeep: it is recorded before it begins, ``memories.upkeep.undo`` takes it back,
and it takes no more at once than the breaker allows. What is held stays.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import prod
from typing import NamedTuple

from wellkept import events, logs, statistics
from wellkept.engine import holds, run_log
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.engine.revisions import changed, erasing, moved
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, StoreError, UpkeepRefused, WellkeptError
from wellkept.lifecycle import breaker, decay
from wellkept.sessions import verbosity
from wellkept.types import (
    CompactionReport,
    DecayPolicy,
    DroppedMemory,
    Memory,
    Operation,
    Owner,
    SessionConfig,
    State,
    Stored,
    UpkeepAction,
    UpkeepJob,
    UpkeepRun,
    UpkeepStep,
    Write,
)

REASON = "compaction"
"""What the journal and the events say of memories that compaction took."""

IRRELEVANT = 0.05
"""Below this relevance a memory may be archived. What counts more stays: then there is no room left."""

CLEARED = 0.8
"""How much of what starts a compaction may be full after it: one that stops at once would soon start again."""


class Chosen(NamedTuple):
    """What a compaction takes: memories to archive, memories to erase, and those to condense, each in its order."""

    archived: list[DroppedMemory]
    erased: list[DroppedMemory]
    condensed: list[DroppedMemory]


def chosen(
    sized: Iterable[tuple[Memory, int]],
    policy: DecayPolicy,
    now: datetime,
    target_bytes: int | None,
    spared: frozenset[str] = frozenset(),
    *,
    purge: bool = False,
    most: int | None = None,
) -> Chosen:
    """What goes: what has expired is archived, then as much verbose metadata of old memories and of what is irrelevant
    as the target asks for. A purge erases everything forgotten, expired or archived before.

    Without a target nothing irrelevant needs to go. What is pinned (``metadata={"pinned": True}``) stays. At most so
    many as ``most`` says are archived.
    """
    archived: list[DroppedMemory] = []
    erased: list[DroppedMemory] = []
    doubtful: list[tuple[DroppedMemory, datetime]] = []
    verbose: list[tuple[DroppedMemory, datetime]] = []
    left = 0
    for memory, size in sized:
        left += size
        if memory.id in spared or memory.metadata.get("pinned") is True or memory.state is State.QUARANTINED:
            continue
        factors = decay.relevance(memory, now, policy)
        relevance = prod(factors.values())
        one = DroppedMemory(id=memory.id, reason="irrelevant", relevance=relevance, bytes_used=size)
        expired = memory.expires_at is not None and memory.expires_at <= now
        if purge and (memory.state is not State.ACTIVE or expired):
            reason = "expired" if memory.state is State.ACTIVE else memory.state.value
            erased.append(replace(one, reason=reason))
        elif memory.state is not State.ACTIVE:
            continue  # what was forgotten can be restored, and what was archived counts for nothing
        elif expired:
            archived.append(replace(one, reason="expired"))
        else:
            if (gain := verbosity.freed(memory, factors["decay"])) > 0:
                verbose.append((replace(one, reason="verbose", bytes_used=gain), memory.created_at))
            if relevance < IRRELEVANT:
                doubtful.append((one, memory.created_at))
    left -= sum(one.bytes_used for one in (*archived, *erased))
    condensed: dict[str, DroppedMemory] = {}
    for one, _ in sorted(verbose, key=lambda found: (found[1], found[0].id)):
        if target_bytes is None or left <= target_bytes:
            break
        condensed[one.id] = one
        left -= one.bytes_used
    for one, _ in sorted(doubtful, key=lambda found: (found[0].relevance, found[1], found[0].id)):
        if target_bytes is None or left <= target_bytes or (most is not None and len(archived) >= most):
            break
        archived.append(one)
        partly = condensed.pop(one.id, None)
        left -= one.bytes_used - (partly.bytes_used if partly else 0)
    return Chosen(archived[:most], erased, list(condensed.values()))


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
    max_share: float = breaker.MAX_SHARE,
) -> CompactionReport:
    """Compact a session because somebody asked for it; refused if too much would be archived at once."""
    asked = _Asked(config=config, target_bytes=target(config), purge=purge, max_share=max_share)
    return _compact(engine, owner, asked, dry_run=True) if dry_run else _logged(engine, owner, asked)


def make_room(
    engine: Engine, owner: Owner, config: SessionConfig, needed_bytes: int, spared: frozenset[str]
) -> CompactionReport:
    """Compact a session so that a number of bytes fits; what is to be written is spared."""
    asked = _Asked(config=config, target_bytes=target(config, needed_bytes), spared=spared, automatic=True)
    return _logged(engine, owner, asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a compaction is asked for. One that nobody asked for takes less rather than being refused."""

    config: SessionConfig
    target_bytes: int | None
    spared: frozenset[str] = frozenset()
    purge: bool = False
    automatic: bool = False
    max_share: float = breaker.MAX_SHARE


def _logged(engine: Engine, owner: Owner, asked: _Asked) -> CompactionReport:
    """Compact a session; the log hears when it begins and when it has ended."""
    started = time.perf_counter()
    automatic = asked.automatic
    logs.session_compacting(owner.ids[-1], automatic=automatic)
    report = _compact(engine, owner, asked)
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


def _compact(engine: Engine, owner: Owner, asked: _Asked, *, dry_run: bool = False) -> CompactionReport:
    """Archive and erase what goes, in one batch, and let the store tidy up; look again if a writer was faster."""
    for _ in range(ATTEMPTS):
        now = engine.clock()
        found = {one.id: one for one in engine.journal.scan({owner}, vectors=True)}
        going, before = _going(engine, owner, asked, found, now)
        run_id = engine.new_ids(now, 1)[0] if (going.archived or going.erased) and not dry_run else None
        report = _report(owner, asked.config, going, before, run_id, dry_run=dry_run)
        if dry_run:
            return report
        _check_share(report, len(found), asked)
        try:
            condensing = [_condensing(engine, found[one.id], now) for one in going.condensed]
            if run_id is not None:
                _apply(engine, _steps(going, found), found, run_id, condensing, automatic=asked.automatic)
            elif condensing:
                holds.append(engine, condensing)
        except Conflict:
            continue
        if report.count or report.condensed or not asked.automatic:
            engine.store.compact({owner})
            reasons = {one.id: _reason(found[one.id]) or REASON for one in going.erased}
            _tell(engine, owner, report, reasons, now, automatic=asked.automatic)
        return report
    raise Conflict(
        "the session kept changing while it was compacted",
        details={"session_id": owner.ids[-1]},
        hint="try again when there are fewer writers",
    )


def _going(
    engine: Engine, owner: Owner, asked: _Asked, found: Mapping[str, Stored], now: datetime
) -> tuple[Chosen, int]:
    """What a compaction takes, and how many bytes the session has."""
    sized = [(unseal(one), statistics.footprint(one)) for one in found.values()]
    held = holds.read(engine).over(owner)
    spared = asked.spared | {one.id for one in found.values() if held(one) is not None}
    most = breaker.allowed(len(found), asked.max_share) if asked.automatic else None
    going = chosen(sized, asked.config.decay, now, asked.target_bytes, spared, purge=asked.purge, most=most)
    return going, sum(size for _, size in sized)


def _condensing(engine: Engine, stored: Stored, now: datetime) -> Write:
    """A version without verbose metadata. They stay in the version before, and count no longer, as what is archived."""
    memory = unseal(stored)
    metadata, gain = verbosity.terse(memory.metadata)
    after = replace(memory, metadata=metadata, version=stored.version + 1, updated_at=now)
    write = changed(engine, after, Operation.UPDATED, stored, now, keeps_vector=True, reason=REASON)
    return write._replace(facets={**write.facets, "bytes": int(stored.facets["bytes"]) - gain})


def _reason(stored: Stored) -> str | None:
    """Why a memory was forgotten: it is erased for that reason."""
    return stored.reason if stored.operation is Operation.FORGOTTEN else None


def _check_share(report: CompactionReport, memories: int, asked: _Asked) -> None:
    taken = len(report.archived)
    if not asked.automatic and breaker.trips(taken, memories, asked.max_share):
        raise UpkeepRefused(
            f"session {report.session_id}: {taken} of {memories} memories would be archived,"
            f" {100 * taken / memories:.0f} % where {100 * asked.max_share:.0f} % are allowed",
            details={"session_id": report.session_id, "max_share": asked.max_share},
            hint="nothing was changed; look at it with dry_run=True, then raise max_share if that is what you want",
        )


def _steps(going: Chosen, found: Mapping[str, Stored]) -> list[UpkeepStep]:
    """What goes as the steps of a run."""
    chosen_for = [(UpkeepAction.ARCHIVE, one) for one in going.archived]
    chosen_for += [(UpkeepAction.ERASE, one) for one in going.erased]
    return [
        UpkeepStep(
            memory_id=one.id,
            owner=found[one.id].owner,
            version=found[one.id].version,
            state=State(found[one.id].facets["state"]),
            action=action,
            reason=one.reason,
            bytes_used=one.bytes_used,
        )
        for action, one in chosen_for
    ]


def _apply(
    engine: Engine,
    steps: Sequence[UpkeepStep],
    found: Mapping[str, Stored],
    run_id: str,
    condensing: Sequence[Write],
    *,
    automatic: bool,
) -> None:
    """Write the steps as a run that can be undone; one that was refused leaves no trace. After an error of the store
    nobody knows whether it took place: it stays on record, as one that was killed does.
    """
    now = engine.clock()
    reason = run_log.reason(run_id, REASON)
    run = UpkeepRun(id=run_id, job=UpkeepJob.COMPACTION, started_at=now, automatic=automatic)
    run_log.begin(engine, run, {steps[0].owner: steps})
    try:
        writes = [_write(engine, step, found[step.memory_id], now, reason) for step in steps]
        holds.append(engine, [*condensing, *writes])
    except StoreError:
        raise
    except WellkeptError:
        run_log.drop(engine, run_id)
        raise
    done = replace(
        run,
        completed_at=engine.clock(),
        archived=sum(step.action is UpkeepAction.ARCHIVE for step in steps),
        erased=sum(step.action is UpkeepAction.ERASE for step in steps),
        bytes_freed=sum(step.bytes_freed for step in steps),
        owners_processed=1,
    )
    run_log.finish(engine, done)


def _write(engine: Engine, step: UpkeepStep, stored: Stored, now: datetime, reason: str) -> Write:
    if step.action is UpkeepAction.ERASE:
        return erasing(engine, stored, now, _reason(stored) or reason)
    return moved(engine, stored, State.ARCHIVED, now, operation=Operation.ARCHIVED, reason=reason)[1]


def _report(
    owner: Owner, config: SessionConfig, going: Chosen, before: int, run_id: str | None, *, dry_run: bool
) -> CompactionReport:
    return CompactionReport(
        session_id=owner.ids[-1],
        archived=tuple(going.archived),
        erased=tuple(going.erased),
        bytes_before=before,
        condensed=tuple(going.condensed),
        bytes_after=before - sum(one.bytes_used for some in going for one in some),
        bytes_limit=config.limit_bytes,
        dry_run=dry_run,
        run_id=run_id,
    )


def _tell(
    engine: Engine,
    owner: Owner,
    report: CompactionReport,
    reasons: Mapping[str, str],
    now: datetime,
    *,
    automatic: bool,
) -> None:
    if not engine.bus.handlers:
        return
    for one in report.archived:
        engine.bus.emit(events.MemoryArchived(at=now, memory_id=one.id, owner=owner, reason=REASON))
    for one in report.erased:
        reason = reasons[one.id]
        engine.bus.emit(events.MemoryForgotten(at=now, memory_id=one.id, owner=owner, permanent=True, reason=reason))
    engine.bus.emit(
        events.SessionCompacted(
            at=now,
            owner=owner,
            session_id=report.session_id,
            archived=len(report.archived),
            erased=len(report.erased),
            condensed=len(report.condensed),
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            automatic=automatic,
        )
    )
