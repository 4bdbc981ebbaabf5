"""The log of upkeep: what a run is about to do is recorded before it begins, so that it can be undone, also if it was
killed in the middle.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from wellkept import codec
from wellkept.engine.core import Engine
from wellkept.engine.journal import BOOKKEEPING, EngineRecords
from wellkept.errors import Conflict, NotFound
from wellkept.ports import Record, Records, sound
from wellkept.types import Need, Owner, State, Stored, UpkeepAction, UpkeepRun, UpkeepStep
from wellkept.types.owners import DATABASE

_RUN, _STEPS = "run", "steps"
_KEPT = 100  # runs


class Done(NamedTuple):
    """A step as it is recorded for an undo; ``into`` is the memory that it made, if it made one."""

    memory_id: str
    version: int
    action: UpkeepAction
    state: State
    into: str | None = None


_read_steps = codec.reader(dict[str, list[Done]])
_read_run = codec.reader(UpkeepRun)


def running(engine: Engine, need: Need, owners: Iterable[Owner]) -> Engine:
    """The engine for a run over memories of these owners, if the caller may do that: a run takes a lease, and treats
    all memories alike, whoever may read them.
    """
    engine.check(need, owners)
    return engine.acting(BOOKKEEPING)


def _records(engine: Engine) -> Records:
    return EngineRecords(engine.shared, BOOKKEEPING)


def begin(engine: Engine, run: UpkeepRun, by_owner: Mapping[Owner, Sequence[UpkeepStep]]) -> None:
    """Record what is about to be done. A second run of the same plan is a conflict here."""
    steps = {
        codec.encode_owner(owner): [Done(one.memory_id, one.version, one.action, one.state, one.into) for one in some]
        for owner, some in by_owner.items()
    }
    _put(engine, _STEPS, run.id, codec.encode_json(steps), 1)
    _put(engine, _RUN, run.id, codec.encode_json(run), 1)


def finish(engine: Engine, run: UpkeepRun) -> None:
    """Record how a run went, and drop the oldest runs: their ids rise with time."""
    update(engine, run)
    kept: Iterable[Record] = _records(engine).list({DATABASE}, _RUN)
    for record in list(kept)[:-_KEPT]:
        drop(engine, record.name)


def update(engine: Engine, run: UpkeepRun) -> None:
    """Record a run anew."""
    record = _records(engine).get(DATABASE, _RUN, run.id)
    _put(engine, _RUN, run.id, codec.encode_json(run), record.version + 1 if record else 1)


def drop(engine: Engine, run_id: str) -> None:
    """Forget a run, such as one that did nothing after all."""
    for kind in (_STEPS, _RUN):
        _records(engine).drop(DATABASE, kind, run_id)


def _put(engine: Engine, kind: str, name: str, body: bytes, version: int) -> None:
    now = engine.clock()
    _records(engine).put(Record(owner=DATABASE, kind=kind, name=name, body=body, version=version, updated_at=now))


def find(engine: Engine, run_id: str) -> UpkeepRun | None:
    """A run by its id."""
    record = _records(engine).get(DATABASE, _RUN, run_id)
    return None if record is None else _read_run(record.body)


def get(engine: Engine, run_id: str) -> UpkeepRun:
    """A run by its id; ``NotFound`` without one."""
    found = find(engine, run_id)
    if found is None:
        raise NotFound(
            f"there is no run {run_id[:64]!r}", details={"run": run_id[:64]}, hint="wellkept upkeep runs lists them"
        )
    return found


def every(engine: Engine) -> list[UpkeepRun]:
    """All runs that are kept, the newest first."""
    return [_read_run(record.body) for record in reversed(sound(_records(engine).list({DATABASE}, _RUN)))]


def last_started(engine: Engine) -> datetime | None:
    """When the last run began that looked at somebody: one that was refused for its clock says nothing about it."""
    return max((run.started_at for run in every(engine) if run.owners_processed), default=None)


def steps_of(engine: Engine, run_id: str) -> dict[str, list[Done]]:
    """The steps of a run by owner."""
    record = _records(engine).get(DATABASE, _STEPS, run_id)
    if record is None:
        raise NotFound(
            f"the steps of the run {run_id[:64]!r} are no longer kept",
            details={"run": run_id[:64]},
            hint="restore single memories instead",
        )
    return _read_steps(record.body)


def memories_of(engine: Engine, run_id: str) -> dict[Owner, list[str]]:
    """The ids of the memories that a run changed or was about to, by owner."""
    kept = steps_of(engine, run_id)
    return {codec.decode_owner(name): [step.memory_id for step in steps] for name, steps in kept.items()}


def is_withheld(engine: Engine, changed: Mapping[Owner, Sequence[str]]) -> bool:
    """Whether an access policy withholds any of the memories of a run from the caller: then it is not the caller's to
    take back.
    """
    withheld = engine.journal.withheld(changed.keys())
    return any((owner, id) in withheld for owner, ids in changed.items() for id in ids)


def reason(run_id: str, why: str) -> str:
    """What the history says of a version that a run made."""
    return f"{why} (run {run_id})"


def made_by(stored: Stored, run_id: str) -> bool:
    """Whether a version was made by a run."""
    return stored.reason is not None and stored.reason.endswith(reason(run_id, ""))


def taken_back(stored: Stored) -> bool:
    """Whether a memory is as it is because somebody took a run back."""
    return stored.reason is not None and stored.reason.startswith("undo (run ")


def changed(since: str, ids: Sequence[str], named: int = 10) -> Conflict:
    """The refusal to go on with memories that somebody changed."""
    more = f" and {len(ids) - named} more" if len(ids) > named else ""
    return Conflict(
        f"changed since {since}: {', '.join(ids[:named])}{more}",
        details={"changed": ", ".join(ids), "count": len(ids)},
        hint="nothing was changed; look at these memories, then decide",
    )
