"""The schedule: automatic policies are applied when they are due, by one process; what was missed is made up for."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from wellkept import codec, logs
from wellkept.engine.core import Engine
from wellkept.entitlements import Feature
from wellkept.errors import Conflict, StoreReadOnly, WellkeptError
from wellkept.ports import DamagedRecord, Record, is_set
from wellkept.types import Owner, UpkeepJob, UpkeepRun
from wellkept.types.owners import DATABASE
from wellkept.upkeep import cron, policies, runs
from wellkept.upkeep.jobs import JOBS
from wellkept.upkeep.planning import AHEAD, Asked

_KIND = "schedule"
_PAUSE_S = 30.0  # cron knows minutes
_read_last = codec.reader(dict[str, datetime])


def next_due(engine: Engine) -> datetime | None:
    """When the next automatic policy is due; none if there is no such policy."""
    return min(_dues(engine, _last(engine)[1], engine.clock()).values(), default=None)


def run_due(engine: Engine, asked: Asked, working: Callable[[], int]) -> UpkeepRun | None:
    """Run the first job whose automatic policies are due by now; nothing if none is, or another process does it."""
    if not is_set(engine.journal.settings(), policies.AUTOMATIC) or not engine.allows(Feature.RETENTION_POLICIES):
        return None
    now = engine.clock()
    if not _due(engine, now):
        return None
    try:
        lease = runs.Lease(engine)
    except Conflict:
        return None
    try:
        due = _due(engine, now)  # another process may have been faster
        if not due:
            return None
        job = min((job for job, _ in due), key=list(JOBS).index)
        owners = {owner for one, owner in due if one is job}
        _note(engine, job, owners, now)
        plan = JOBS[job].plan(engine, replace(asked, governed=owners, again=False))
        return runs.apply_automatically(engine, plan, working if job is UpkeepJob.RETENTION else _none, lease)
    finally:
        lease.release()


def _none() -> int:
    return 0


def _due(engine: Engine, now: datetime) -> set[tuple[UpkeepJob, Owner]]:
    """The jobs and the owners whose automatic policy is due."""
    return {which for which, at in _dues(engine, _last(engine)[1], now).items() if at <= now}


def _dues(engine: Engine, last: dict[str, datetime], now: datetime) -> dict[tuple[UpkeepJob, Owner], datetime]:
    """When each automatic policy is due: the first time of its schedule since it was set or applied. What was applied
    in the future was so by a clock that had jumped: to wait for that day would be to wait for years.
    """
    believed = {name: at for name, at in last.items() if at <= now + AHEAD}
    return {
        (name, owner): cron.after(kept.policy.schedule, max(kept.set_at, believed.get(_name(name, owner), kept.set_at)))
        for name, job in JOBS.items()
        for owner, kept in job.policies.every(engine).items()
        if kept.policy.automatic
    }


def _name(job: UpkeepJob, owner: Owner) -> str:
    """What the time of a policy is kept under; for retention, the owner alone, as before there were other jobs."""
    named = codec.encode_owner(owner)
    return named if job is UpkeepJob.RETENTION else f"{job.value} {named}"


def _last(engine: Engine) -> tuple[int, dict[str, datetime]]:
    """When each policy was applied by itself, and the version of the record that says so."""
    record = engine.records.get(DATABASE, _KIND, _KIND)
    if record is None:
        return 0, {}
    return record.version, {} if isinstance(record, DamagedRecord) else _read_last(record.body)


def _note(engine: Engine, job: UpkeepJob, owners: set[Owner], now: datetime) -> None:
    """The policies are applied now. Noted before, so that a run that fails is not repeated at each opening."""
    version, last = _last(engine)
    body = codec.encode_json({**last, **{_name(job, owner): now for owner in owners}})
    engine.records.put(Record(owner=DATABASE, kind=_KIND, name=_KIND, body=body, version=version + 1, updated_at=now))


class Runner:
    """A thread that applies what is due, as long as the process lives."""

    def __init__(self, run: Callable[[], object], pause_s: float = _PAUSE_S) -> None:
        self._run = run
        self._pause_s = pause_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="wellkept-upkeep", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._ended.is_set():
            quietly(self._run, self._ended.is_set)
            self._ended.wait(self._pause_s)

    def stop(self) -> None:
        """End after the run at hand."""
        self._ended.set()
        self._thread.join()


def quietly(run: Callable[[], object | None], ended: Callable[[], bool] = lambda: False) -> None:
    """Run all jobs that are due, for nobody who waits: a failure goes to the log. A file that cannot be written needs
    no upkeep.
    """
    try:
        for _ in JOBS:
            if ended() or run() is None:
                return
    except StoreReadOnly:
        pass
    except WellkeptError as error:
        logs.upkeep_failed("upkeep", None, None, error)
