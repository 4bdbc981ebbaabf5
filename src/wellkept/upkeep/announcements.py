"""What handlers and the log hear of upkeep."""

from collections.abc import Sequence

from wellkept import codec, events, logs
from wellkept.engine.core import Engine
from wellkept.types import Operation, UpkeepAction, UpkeepJob, UpkeepRun, UpkeepStep, Write

_TAKING = frozenset({UpkeepJob.RETENTION, UpkeepJob.SESSION_END})


def applied(engine: Engine, writes: Sequence[Write], steps: Sequence[UpkeepStep]) -> None:
    """Announce what the writes of some steps did."""
    if not engine.bus.handlers:
        return
    written = {write.id: write for write in writes}
    merged: dict[str, list[str]] = {}
    for step in steps:
        write = written[step.into if step.action is UpkeepAction.PROMOTE and step.into else step.memory_id]
        at, owner = codec.from_micros(write.recorded_at), write.owner
        if step.action is UpkeepAction.MERGE and step.into is not None:
            merged.setdefault(step.into, []).append(step.memory_id)
        elif step.action is UpkeepAction.PROMOTE:
            engine.bus.emit(events.MemoryPromoted(at=at, memory_id=write.id, owner=owner, source_id=step.memory_id))
        elif step.action is UpkeepAction.RESTORE:
            engine.bus.emit(events.MemoryRestored(at=at, memory_id=write.id, owner=owner))
        elif step.action is UpkeepAction.QUARANTINE:
            engine.bus.emit(events.MemoryQuarantined(at=at, memory_id=write.id, owner=owner, reason=write.reason))
        elif step.action is UpkeepAction.ARCHIVE:
            engine.bus.emit(events.MemoryArchived(at=at, memory_id=write.id, owner=owner, reason=write.reason))
        else:
            permanent = write.operation is Operation.ERASED
            engine.bus.emit(
                events.MemoryForgotten(at=at, memory_id=write.id, owner=owner, permanent=permanent, reason=write.reason)
            )
    for id, sources in merged.items():
        at = codec.from_micros(written[id].recorded_at)
        engine.bus.emit(events.MemoriesMerged(at=at, memory_id=id, owner=written[id].owner, source_ids=tuple(sources)))


def completed(engine: Engine, run: UpkeepRun) -> None:
    """Announce the end of a run."""
    completed_at = run.completed_at or run.started_at
    deleted = run.forgotten + run.erased
    logs.upkeep_completed(run.job.value, run.id, deleted + run.merged, run.bytes_freed, len(run.errors))
    if engine.bus.handlers and run.job in _TAKING:
        engine.bus.emit(
            events.RetentionCleanupCompleted(
                at=completed_at,
                run_id=run.id,
                entries_deleted=deleted,
                snapshots_deleted=run.snapshots_removed,
                bytes_freed=run.bytes_freed,
                duration_ms=(completed_at - run.started_at).total_seconds() * 1_000,
                automatic=run.automatic,
            )
        )
