"""Runs: a plan applied, owner by owner.

What a run is about to do is recorded before it begins. The steps of an owner are in one transaction that checks every
version; small owners share one, unless that fails.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from wellkept import layers, logs
from wellkept.engine import holds, quotas, run_log
from wellkept.engine.core import Engine
from wellkept.errors import Conflict, Held, UpkeepRefused, WellkeptError
from wellkept.lifecycle import breaker
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.types import (
    Guard,
    Layer,
    Operation,
    Owner,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
    UpkeepRun,
    UpkeepStep,
    Write,
)
from wellkept.upkeep import announcements, writes

BATCH = 1_000
"""How many memories are written in one transaction, if they belong to several owners."""

T = TypeVar("T")
Steps = Sequence[UpkeepStep]

_LEASE = "upkeep"
_TTL_MS = 60_000
_HARMLESS = frozenset({UpkeepAction.QUARANTINE, UpkeepAction.RESTORE})  # a hold keeps memories from going
_NAMED = 10  # owners that an error lists


def apply(
    engine: Engine, plan: UpkeepPlan, working: Callable[[], int], *, max_share: float, trust_clock: bool
) -> UpkeepRun:
    """Apply a plan, once. ``working`` removes entries of working memory, and returns how many."""
    if plan.clock_doubt is not None and not trust_clock:
        raise _doubtful(plan.clock_doubt)
    too_much = _too_much(plan, max_share)
    if too_much:
        raise UpkeepRefused(
            "; ".join(list(too_much.values())[:_NAMED]),
            details={"owners": len(too_much), "max_share": max_share},
            hint="nothing was taken; look at the plan, then raise max_share if that is what you want",
        )
    with alone(engine) as lease:
        return _run(engine, plan, working, lease)


def apply_automatically(engine: Engine, plan: UpkeepPlan, working: Callable[[], int], lease: "Lease") -> UpkeepRun:
    """Apply a plan that nobody looked at: owners of whom it would take too much are left out, and all of them if the
    clock is doubtful. The run says so.
    """
    if plan.clock_doubt is not None:
        refused = _doubtful(plan.clock_doubt)
        logs.upkeep_failed(plan.job.value, None, None, refused)
        nothing = replace(plan, steps=(), owners=(), errors=(*plan.errors, refused.message))
        return _run(engine, nothing, lambda: 0, lease, automatic=True)
    too_much = _too_much(plan, MAX_SHARE)
    left_out = set(too_much)
    if plan.job is UpkeepJob.SESSION_END:
        left_out = {one.owner for one in plan.owners if layers.user_of(one.owner) in too_much}
    kept = replace(
        plan,
        steps=tuple(step for step in plan.steps if step.owner not in left_out),
        owners=tuple(one for one in plan.owners if one.owner not in left_out),
        errors=(*plan.errors, *too_much.values()),
    )
    return _run(engine, kept, working, lease, automatic=True)


def _doubtful(why: str) -> UpkeepRefused:
    return UpkeepRefused(
        f"the clock is doubtful: {why}",
        details={"clock_doubt": why},
        hint="nothing was taken; correct the clock, or pass trust_clock=True if it is right",
    )


def _run(
    engine: Engine,
    plan: UpkeepPlan,
    working: Callable[[], int],
    lease: "Lease",
    *,
    automatic: bool = False,
) -> UpkeepRun:
    """Record what is about to be done, do it, and record how it went."""
    by_owner = _by_owner(plan.steps)
    run = UpkeepRun(id=plan.id, job=plan.job, started_at=engine.clock(), automatic=automatic, notes=plan.notes)
    run_log.begin(engine, run, by_owner)
    done = _applied(engine, plan, run, by_owner, lease)
    run = replace(
        done,
        working_removed=working(),
        owners_processed=done.owners_processed + len(plan.owners) - len(by_owner),
        errors=(*plan.errors, *done.errors),
        completed_at=engine.clock(),
    )
    run_log.finish(engine, run)
    announcements.completed(engine, run)
    return run


def _by_owner(steps: Iterable[UpkeepStep]) -> dict[Owner, list[UpkeepStep]]:
    found: dict[Owner, list[UpkeepStep]] = {}
    for step in steps:
        found.setdefault(step.owner, []).append(step)
    return found


def check_unchanged(engine: Engine, plan: UpkeepPlan) -> None:
    """Refuse a plan that was applied before, or whose memories changed since it was made."""
    run = run_log.find(engine, plan.id)
    if run is not None:
        raise Conflict(
            f"the plan {plan.id!r} was applied at {run.started_at:%Y-%m-%d %H:%M} UTC",
            details={"plan": plan.id},
            hint="make a new plan",
        )
    changed: list[str] = []
    for owner, steps in _by_owner(plan.steps).items():
        found = engine.journal.get({owner}, [step.memory_id for step in steps], payload=False)
        versions = {one.id: one.version for one in found}
        changed += [step.memory_id for step in steps if versions.get(step.memory_id) != step.version]
    if changed:
        raise run_log.changed("the plan was made", changed)


def _too_much(plan: UpkeepPlan, max_share: float) -> dict[Owner, str]:
    """The owners of whom a plan takes too much, each with a line that says how much. Where sessions end, all of a
    session goes, and it is their number that counts.
    """
    ending = plan.job is UpkeepJob.SESSION_END
    shares, counted = (plan.sessions, "sessions") if ending else (plan.owners, "memories")
    return {
        one.owner: f"{named(one.owner)}: {one.taken} of {one.memories} {counted} would go,"
        f" {100 * one.share:.0f} % where {100 * max_share:.0f} % are allowed"
        for one in shares
        if breaker.trips(one.taken, one.memories, max_share)
    }


@contextmanager
def alone(engine: Engine) -> Iterator["Lease"]:
    """Be the only one to run upkeep, in all processes."""
    lease = Lease(engine)
    try:
        yield lease
    finally:
        lease.release()


class Lease:
    """The right to run upkeep, prolonged as the run goes on. Its token guards every write."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._holder = engine.new_ids(engine.clock(), 1)[0]
        self._taken_at = 0.0
        self._take()

    def _take(self) -> None:
        self._taken_at = time.monotonic()
        leases = self._engine.store.capabilities.leases
        self._lease = self._engine.records.lease(_LEASE, self._holder, _TTL_MS) if leases else None
        if leases and self._lease is None:
            raise Conflict(
                "another process runs upkeep at this moment",
                details={"lease": _LEASE},
                hint="wait until it has ended; wellkept upkeep runs shows what it did",
            )

    def guards(self) -> list[Guard]:
        """The guard of the next write."""
        if 1_000 * (time.monotonic() - self._taken_at) > _TTL_MS / 3:
            self._take()
        return [] if self._lease is None else [Guard(lease=_LEASE, token=self._lease.token)]

    def release(self) -> None:
        """Give it back."""
        if self._lease is not None:
            self._engine.records.release(self._lease)


def _applied(
    engine: Engine, plan: UpkeepPlan, run: UpkeepRun, by_owner: Mapping[Owner, Steps], lease: Lease
) -> UpkeepRun:
    """Each owner all or none; one that fails does not stop the others."""
    making = writes.Making(engine, plan)
    done: list[UpkeepStep] = []
    errors: list[str] = []
    processed = 0
    groups = list(in_groups(engine, by_owner.items()))
    while groups:
        group = groups.pop(0)
        try:
            made = _write_group(engine, making, group, lease)
        except WellkeptError as error:
            if len(group) > 1:  # one of them: each by itself
                groups[:0] = [{owner: steps} for owner, steps in group.items()]
                continue
            [owner] = group
            errors.append(failed(owner, error))
            agent_id = owner.ids[-1] if owner.layer is Layer.AGENT else None
            logs.upkeep_failed(run.job.value, owner.layer, agent_id, error)
            continue
        processed += len(group)
        steps = [step for some in group.values() for step in some]
        announcements.applied(engine, made, steps)
        done += steps
    freed = sum(step.bytes_freed for step in done)
    if freed:
        engine.store.compact({step.owner for step in done if step.bytes_freed})
    counts = Counter(step.action for step in done)
    return replace(
        run,
        forgotten=counts[UpkeepAction.FORGET],
        erased=counts[UpkeepAction.ERASE],
        archived=counts[UpkeepAction.ARCHIVE],
        restored=counts[UpkeepAction.RESTORE],
        quarantined=counts[UpkeepAction.QUARANTINE],
        merged=counts[UpkeepAction.MERGE],
        promoted=counts[UpkeepAction.PROMOTE],
        bytes_freed=freed,
        owners_processed=processed,
        errors=tuple(errors),
    )


def in_groups(engine: Engine, found: Iterable[tuple[Owner, Sequence[T]]]) -> Iterator[dict[Owner, Sequence[T]]]:
    """Owners that are written in one transaction: a commit takes as long as fifty memories."""
    most = BATCH if engine.store.capabilities.batches else 1
    group: dict[Owner, Sequence[T]] = {}
    for owner, some in found:
        group[owner] = some
        if sum(map(len, group.values())) >= most:
            yield group
            group = {}
    if group:
        yield group


def _write_group(engine: Engine, making: writes.Making, group: Mapping[Owner, Steps], lease: Lease) -> list[Write]:
    """The steps of some owners, all or none: what changed or is held by now refuses them."""
    known = holds.read(engine)
    steps = [step for some in group.values() for step in some]
    found = {
        (one.owner, one.id): one
        for one in engine.journal.get(
            group.keys(), [step.memory_id for step in steps], vectors=any(step.into for step in steps)
        )
    }
    changed = []
    for owner, some in group.items():
        held = known.over(owner)
        for step in some:
            stored = found.get((owner, step.memory_id))
            if stored is None or stored.version != step.version:
                changed.append(step.memory_id)
            elif step.action not in _HARMLESS and (hold := held(stored)) is not None:
                raise Held(f"memory {stored.id!r} is held by {hold.id}: {hold.reason}", details={"hold": hold.id})
    if changed:
        raise run_log.changed("the plan was made", changed)
    made = making.of([(step, found[step.owner, step.memory_id]) for step in steps])
    limits = quotas.of_plan(engine, made) if any(step.into for step in steps) else []
    for batch in _batches(engine, made):
        engine.journal.append(batch, quotas=limits, guards=[*lease.guards(), known.guard])
    return made


def _batches(engine: Engine, made: list[Write]) -> list[list[Write]]:
    """What is appended at once: everything, or where a store writes one owner at a time, what is added first."""
    if engine.store.capabilities.batches:
        return [made]
    by_owner: dict[Owner, list[Write]] = {}
    for write in sorted(made, key=lambda one: one.operation is not Operation.ADDED):
        by_owner.setdefault(write.owner, []).append(write)
    return list(by_owner.values())


def named(owner: Owner) -> str:
    """An owner for people: ``user ada``."""
    return f"{owner.layer.value} {'/'.join(owner.ids)}"


def failed(owner: Owner, error: WellkeptError) -> str:
    """The line of an owner that could not be processed."""
    return f"{named(owner)}: {error.code}: {error.message}"
