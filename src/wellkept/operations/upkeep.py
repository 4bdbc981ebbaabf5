"""Verbs of upkeep: upkeep, upkeep.plan, upkeep.run, upkeep.runs, upkeep.undo."""

from dataclasses import dataclass
from datetime import datetime

from wellkept import fields, layers
from wellkept.errors import Conflict, NotFound, PlanRestriction, UpkeepRefused
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.operations.conditions import MANY
from wellkept.operations.maintenance import Nothing
from wellkept.operations.verb import Caller, Example, Verb, argument, option, result
from wellkept.types import Layer, Owner, Undone, UpkeepAction, UpkeepJob, UpkeepPlan, UpkeepRun
from wellkept.types.bounds import Bounds

_RUNS = Bounds(minimum=1, maximum=1_000)


def owner_in(caller: Caller, layer: Layer | None) -> Owner | None:
    """The owner of the caller's identity in a layer; none for the whole database."""
    return None if layer is None else layers.owner_of(caller.view.identity, layer)


def layer_field() -> Layer | None:
    """The field of an input that names one owner by its layer."""
    found: Layer | None = option(
        "Only the owner in this layer, by the ids of the caller; without it, the whole database.", flag="layer"
    )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How upkeep stands."""

    policies: int = result("How many policies are set, of all jobs.", bounds=fields.COUNT)
    holds: int = result("How many holds are placed.", bounds=fields.COUNT)
    next_due: datetime | None = result("When the next automatic policy is due; null without one.")
    last_run: UpkeepRun | None = result("The last run, if there was one.")


def _upkeep(caller: Caller, _: Nothing) -> Overview:
    upkeep = caller.memories.upkeep
    last = upkeep.runs(limit=1)
    return Overview(
        policies=len(upkeep.policies()) + len(upkeep.consolidation_policies()) + len(upkeep.session_end_policies()),
        holds=len(upkeep.holds()),
        next_due=upkeep.next_due(),
        last_run=last[0] if last else None,
    )


UPKEEP = Verb(
    name="upkeep",
    input=Nothing,
    output=Overview,
    run=_upkeep,
    method="Upkeep.policies",
    description="Upkeep applies policies: see retention, consolidation and endings. Nothing is taken without one.",
    examples=(Example(line="wellkept upkeep", says="policies, holds, the last run"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which job, and for whom."""

    layer: Layer | None = layer_field()
    job: UpkeepJob = option("The job: retention, consolidation or session_end.", UpkeepJob.RETENTION, short="j")


def _plan(caller: Caller, given: Plan) -> UpkeepPlan:
    owner = owner_in(caller, given.layer)
    return caller.memories.upkeep.plan(job=given.job, owner=owner, progress=caller.progress)


UPKEEP_PLAN = Verb(
    name="upkeep.plan",
    input=Plan,
    output=UpkeepPlan,
    run=_plan,
    method="Upkeep.plan",
    examples=(
        Example(line="wellkept upkeep plan", says="what a run would take, and why; nothing is changed"),
        Example(line="wellkept upkeep plan --job consolidation", says="what would be merged, with differing words"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Plan):
    """For whom, and how much may go."""

    max_share: float = option(
        "The largest share of an owner's memories that may go at once, from 0 to 1.", MAX_SHARE, bounds=fields.UNIT
    )
    trust_clock: bool = option("Run although the clock seems to have jumped.", False)


def _run(caller: Caller, given: Run) -> UpkeepRun:
    owner = owner_in(caller, given.layer)
    return caller.memories.upkeep.run(
        job=given.job,
        owner=owner,
        max_share=given.max_share,
        trust_clock=given.trust_clock,
        progress=caller.progress,
    )


def _taken_away(caller: Caller, given: Run) -> str:
    plan = _plan(caller, given)
    words = (
        (UpkeepAction.ARCHIVE, "archive"),
        (UpkeepAction.FORGET, "forget"),
        (UpkeepAction.ERASE, "erase for good"),
        (UpkeepAction.MERGE, "merge"),
    )
    counts = ((plan.count(action), how) for action, how in words)
    return ", ".join(f"{how} {count} {'memory' if count == 1 else 'memories'}" for count, how in counts if count)


def _no_errors(answer: UpkeepRun) -> bool:
    return not answer.errors


UPKEEP_RUN = Verb(
    name="upkeep.run",
    input=Run,
    output=UpkeepRun,
    run=_run,
    method="Upkeep.run",
    errors=(Conflict, UpkeepRefused, PlanRestriction),
    asks=_taken_away,
    agrees=_no_errors,
    interrupted="the owners that were processed stay so; wellkept upkeep undo takes it back",
    description="Applies the policies of a job now. It is refused if it would take too much of an owner's memories.",
    examples=(
        Example(line="wellkept upkeep run --yes", says="without being asked"),
        Example(line="wellkept upkeep run --job consolidation --yes", says="merge what says the same"),
        Example(line="wellkept upkeep run --layer user --max-share 0.5 --yes", says="for one user, up to half of it"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The last runs."""

    runs: tuple[UpkeepRun, ...] = result("The last runs, the newest first.", bounds=MANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """How many."""

    limit: int = option("The largest number of runs.", 20, bounds=_RUNS, short="n")


def _runs(caller: Caller, given: List) -> Runs:
    return Runs(runs=caller.memories.upkeep.runs(limit=given.limit))


UPKEEP_RUNS = Verb(
    name="upkeep.runs",
    input=List,
    output=Runs,
    run=_runs,
    method="Upkeep.runs",
    examples=(Example(line="wellkept upkeep runs", says="what each took, and whether it was undone"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Which run."""

    id: str | None = argument(
        "The id of the run; without it, the last one that was not undone.", None, bounds=fields.ID
    )


def _undo(caller: Caller, given: Undo) -> Undone:
    upkeep = caller.memories.upkeep
    id = given.id or next((one.id for one in upkeep.runs(limit=100) if one.undone_at is None), None)
    if id is None:
        raise NotFound("there is no run to undo", hint="wellkept upkeep runs lists them")
    return upkeep.undo(id)


UPKEEP_UNDO = Verb(
    name="upkeep.undo",
    input=Undo,
    output=Undone,
    run=_undo,
    method="Upkeep.undo",
    errors=(Conflict, NotFound),
    description="Brings back every memory that a run took or merged, as it was, or nothing if one was edited since."
    " What was erased stays erased.",
    examples=(Example(line="wellkept upkeep undo", says="the last run"),),
)
