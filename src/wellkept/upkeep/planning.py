"""Plans: what a run would do to which memory. Making one changes nothing."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wellkept import codec, layers
from wellkept.engine import holds, run_log
from wellkept.engine.core import Engine
from wellkept.engine.holds import Holds
from wellkept.errors import WellkeptError
from wellkept.types import (
    DecayPolicy,
    Layer,
    Memory,
    Merge,
    Owner,
    OwnerShare,
    Stored,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
    UpkeepStep,
)
from wellkept.upkeep import policies, runs
from wellkept.upkeep.policies import P, Policies

GAP = timedelta(days=730)
"""A database that nobody wrote to for longer is improbable; a clock that jumped is not."""

AHEAD = timedelta(hours=1)
"""How far the clocks of machines that share a database may differ."""

Summariser = Callable[[Sequence[Memory]], str]
"""Proposes the text of a merged memory, from its sources."""

Progress = Callable[[int, int], None]
"""Is told how many owners were looked at, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a plan is asked for: the owners ``wanted`` with their sessions and agents, or all; of these, only those
    whose policy is that of one of the ``governed``, if there are any. ``fading`` says how an owner's memories decay,
    ``ended`` when a session ended, if it did. What somebody took back is done ``again`` only if somebody asks for it.
    """

    fading: Callable[[Owner], DecayPolicy]
    ended: Callable[[Owner], datetime | None]
    wanted: Collection[Owner] | None = None
    governed: Collection[Owner] | None = None
    summariser: Summariser | None = None
    progress: Progress | None = None
    again: bool = True


@dataclass(slots=True)
class Looked:
    """What a job found at one owner."""

    steps: list[UpkeepStep] = field(default_factory=list)
    shares: list[OwnerShare] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    newest: int = 0

    def took(self, other: "Looked") -> None:
        """Add what was found at another owner."""
        self.steps += other.steps
        self.shares += other.shares
        self.merges += other.merges
        self.notes += other.notes
        self.newest = max(self.newest, other.newest)


Look = Callable[[Owner, P, Holds, datetime], Looked]


def plan(engine: Engine, job: UpkeepJob, asked: Asked, kind: Policies[P], look: "Look[P]") -> UpkeepPlan:
    """What the policies of a kind do now: ``look`` says it of one owner."""
    engine.accesses.flush()
    now = engine.clock()
    kept = kind.every(engine)
    known = holds.read(engine)
    found, errors = Looked(), list[str]()
    owners = list(_governed(_candidates(engine, asked) if kept else (), kept, asked))
    for number, (owner, whose) in enumerate(owners):
        try:
            found.took(look(owner, kept[whose].policy, known, now))
        except WellkeptError as error:  # a damaged owner must not keep the others from being processed
            errors.append(runs.failed(owner, error))
        if asked.progress is not None:
            asked.progress(number + 1, len(owners))
    newest = codec.from_micros(found.newest) if found.newest else None
    return UpkeepPlan(
        id=engine.new_ids(now, 1)[0],
        job=job,
        made_at=now,
        steps=tuple(found.steps),
        owners=tuple(found.shares),
        errors=tuple(errors),
        clock_doubt=_doubt(now, newest, run_log.last_started(engine)),
        merges=tuple(found.merges),
        notes=tuple(found.notes),
    )


def _candidates(engine: Engine, asked: Asked) -> Iterable[Owner]:
    """The owners to look through: all of them, unless sessions are wanted, which have none below them."""
    wanted = asked.wanted
    if wanted is not None and all(owner.layer is Layer.SESSION for owner in wanted):
        return wanted
    return engine.journal.owners()


def _governed(
    owners: Iterable[Owner], kept: dict[Owner, policies.Kept[P]], asked: Asked
) -> Iterable[tuple[Owner, Owner]]:
    """The owners that are asked for, each with the one whose policy holds."""
    for owner in owners:
        whose = policies.governing(kept, owner)
        if whose is None or (asked.governed is not None and whose not in asked.governed):
            continue
        if asked.wanted is None or any(layers.belongs(owner, one) for one in asked.wanted):
            yield owner, whose


def share(owner: Owner, memories: int, taken: Iterable[UpkeepStep]) -> OwnerShare:
    """How much of an owner some steps take."""
    going = [step for step in taken if step.action not in (UpkeepAction.RESTORE, UpkeepAction.PROMOTE)]
    merged = [step.into for step in going if step.action is UpkeepAction.MERGE]
    return OwnerShare(
        owner=owner,
        memories=memories,
        taken=len(going) - len(set(merged)),
        erased=sum(step.action is UpkeepAction.ERASE for step in going),
        bytes_freed=sum(step.bytes_freed for step in going),
    )


def newest(found: Iterable[Stored]) -> int:
    """When the newest of some memories was recorded."""
    return max((one.recorded_at for one in found), default=0)


def _doubt(now: datetime, newest: datetime | None, last_run: datetime | None) -> str | None:
    """Why the clock is doubtful, if it is: what was recorded lies in its future, or improbably long ago."""
    for what, at in (("the newest memory was recorded", newest), ("the last run began", last_run)):
        if at is not None and at > now + AHEAD:
            return f"it is {now:%Y-%m-%d %H:%M} UTC by the clock, but {what} at {at:%Y-%m-%d %H:%M}"
    known = [at for at in (newest, last_run) if at is not None]
    if known and now - max(known) > GAP:
        return f"it is {now:%Y-%m-%d} by the clock, but nothing was recorded since {max(known):%Y-%m-%d}"
    return None
