"""Quarantine: plans that take what came from a place out of recall, and what becomes of it: released, or erased."""

from collections import Counter
from collections.abc import Mapping, Sequence

from wellkept.engine import run_log
from wellkept.engine.core import Engine
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, InvalidInput, NotFound, StoreCorrupt
from wellkept.lifecycle import quarantine
from wellkept.lifecycle.quarantine import Origin
from wellkept.types import (
    Need,
    Owner,
    Owners,
    OwnerShare,
    State,
    Stored,
    Undone,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
    UpkeepRun,
    UpkeepStep,
)
from wellkept.upkeep import runs, undo

EVERYTHING = 1.0
"""The share of an owner's memories that may go: whoever names a source wants all of it gone, and can undo it."""


def plan(engine: Engine, owners: Owners, given: Origin) -> UpkeepPlan:
    """What came from there, and what was made from it. Nothing is changed."""
    origin = quarantine.checked(given)
    fits = quarantine.came_from(origin)

    def is_direct(stored: Stored) -> bool:
        if not quarantine.may_come_from(stored, origin):
            return False
        try:
            return fits(unseal(stored))
        except StoreCorrupt:  # doctor tells of it; it is in no answer anyway
            return False

    found = list(engine.journal.scan(owners))
    _check_known(origin, found)
    return _plan(engine, found, quarantine.steps(found, is_direct))


def _check_known(origin: Origin, found: list[Stored]) -> None:
    """Refuse an id that nobody has here: whoever wrote it believes that its memory is gone."""
    unknown = sorted(set(origin.ids or ()) - {one.id for one in found})
    if unknown:
        raise NotFound(
            f"no memory {unknown[0][:64]!r} is visible here",
            details={"memory_id": unknown[0][:64]},
            hint="nothing was changed; it may be erased or somebody else's",
        )


def apply(engine: Engine, planned: UpkeepPlan) -> UpkeepRun:
    """Apply a plan of this module, once."""
    if getattr(planned, "job", None) is not UpkeepJob.QUARANTINE:
        raise InvalidInput(
            "plan is no plan of a quarantine", details={"field": "plan"}, hint="pass what plan_quarantine returned"
        )
    erases = any(step.action is UpkeepAction.ERASE for step in planned.steps)
    need, owners = Need.ERASE if erases else Need.WRITE, {step.owner for step in planned.steps}
    database = run_log.running(engine, need, owners)
    runs.check_unchanged(engine, planned)  # as the caller sees it: what may not be read cannot be changed
    return runs.apply(database, planned, lambda: 0, max_share=EVERYTHING, trust_clock=True)


def check_reach(owners: Owners, planned: UpkeepPlan) -> None:
    """Refuse a plan over memories that a view does not have."""
    if any(step.owner not in owners for step in getattr(planned, "steps", ())):
        raise InvalidInput(
            "the plan is about memories of others", details={"field": "plan"}, hint="make it with the same view"
        )


def last(engine: Engine, owners: Owners) -> str:
    """The id of the last quarantine of these owners that was not released."""
    for run in run_log.every(engine):
        standing = run.job is UpkeepJob.QUARANTINE and run.quarantined and run.undone_at is None
        if standing and _is_within(engine, owners, run_log.memories_of(engine, run.id)):
            return run.id
    raise NotFound("there is no quarantine here", hint="wellkept quarantine takes memories out of recall")


def release(engine: Engine, owners: Owners, run_id: str) -> Undone:
    """Let everything go that a run put into quarantine: each memory is what it was before."""
    wanted = _of_run(engine, owners, run_id)
    database = run_log.running(engine, Need.WRITE, wanted)
    if not any(engine.journal.get({owner}, ids, payload=False) for owner, ids in wanted.items()):
        raise Conflict(
            f"everything that the quarantine {run_id[:64]!r} took was erased",
            details={"run": run_id[:64]},
            hint="there is nothing left to release",
        )
    return undo.undo(database, run_id)


def erase(engine: Engine, owners: Owners, run_id: str) -> UpkeepRun:
    """Erase what a run put into quarantine and is still there, with all versions."""
    wanted = _of_run(engine, owners, run_id)
    found = [
        one
        for owner in owners
        if owner in wanted
        for one in engine.journal.get({owner}, wanted[owner])
        if one.facets["state"] == State.QUARANTINED
    ]
    steps = [quarantine.step(one, f"quarantined by {run_id}", UpkeepAction.ERASE) for one in found]
    return apply(engine, _plan(engine, found, steps))


def _of_run(engine: Engine, owners: Owners, run_id: str) -> dict[Owner, list[str]]:
    """The memories of a quarantine; a run of another job, or over memories of others, is none that can be found."""
    run = run_log.get(engine, run_id)
    wanted = run_log.memories_of(engine, run_id)
    if run.job is not UpkeepJob.QUARANTINE or not _is_within(engine, owners, wanted):
        raise NotFound(
            f"there is no quarantine {run_id[:64]!r} here",
            details={"run": run_id[:64]},
            hint="pass the id of the run that quarantine() returned",
        )
    return wanted


def _is_within(engine: Engine, owners: Owners, wanted: Mapping[Owner, Sequence[str]]) -> bool:
    """Whether all memories of a run are of these owners, and none is withheld from the caller."""
    return all(owner in owners for owner in wanted) and not run_log.is_withheld(engine, wanted)


def _plan(engine: Engine, found: list[Stored], steps: list[UpkeepStep]) -> UpkeepPlan:
    now = engine.clock()
    return UpkeepPlan(
        id=engine.new_ids(now, 1)[0],
        job=UpkeepJob.QUARANTINE,
        made_at=now,
        steps=tuple(steps),
        owners=tuple(_shares(found, steps)),
    )


def _shares(found: list[Stored], steps: list[UpkeepStep]) -> list[OwnerShare]:
    memories = Counter(one.owner for one in found)
    taken: dict[Owner, list[UpkeepStep]] = {}
    for one in steps:
        if one.action is UpkeepAction.RESTORE:
            continue
        taken.setdefault(one.owner, []).append(one)
    return [
        OwnerShare(
            owner=owner,
            memories=memories[owner],
            taken=len(some),
            erased=sum(one.action is UpkeepAction.ERASE for one in some),
            bytes_freed=sum(one.bytes_freed for one in some),
        )
        for owner, some in taken.items()
    ]
