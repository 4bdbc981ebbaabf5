"""Undo: everything back to what it was before a run, or nothing changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from wellkept import codec, events, layers
from wellkept.engine import holds, revisions, run_log
from wellkept.engine.core import Engine
from wellkept.engine.run_log import Done
from wellkept.errors import Conflict
from wellkept.types import Operation, Owner, State, Stored, Undone, UpkeepAction, Write
from wellkept.upkeep import runs, writes
from wellkept.upkeep.counting import counting

_BACK: Mapping[State, Operation] = {
    State.ACTIVE: Operation.RESTORED,
    State.ARCHIVED: Operation.ARCHIVED,
    State.FORGOTTEN: Operation.FORGOTTEN,
    State.SUPERSEDED: Operation.UPDATED,
}


@dataclass(slots=True)
class _Undoing:
    """What takes a run back: writes by owner, what they bring back and remove, the memories that stay erased, and those
    that somebody changed since.
    """

    engine: Engine
    run_id: str
    now: datetime
    writes: dict[Owner, list[Write]] = field(default_factory=dict)
    brought: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """What the history says of the versions that an undo makes."""
        return run_log.reason(self.run_id, "undo")

    def look(self, owner: Owner, steps: list[Done]) -> None:
        """Take the steps of an owner back, as far as everything is still as the run left it."""
        found = {one.id: one for one in self.engine.journal.get({owner}, [one.memory_id for one in steps])}
        for step in steps:
            if step.action is not UpkeepAction.PROMOTE:
                self._take_back(owner, step, found.get(step.memory_id))
        self._remove(owner, [one.into for one in steps if one.action is UpkeepAction.MERGE])
        self._remove(layers.user_of(owner), [one.into for one in steps if one.action is UpkeepAction.PROMOTE])

    def _take_back(self, owner: Owner, step: Done, stored: Stored | None) -> None:
        if stored is None:
            self.erased.append(step.memory_id)  # by the run, or by somebody since: either way for good
        elif step.action is UpkeepAction.ERASE or stored.version == step.version:
            return  # the run ended before it came here
        elif self._made(stored, step.version + 1):
            self.writes.setdefault(owner, []).append(self._before(step, stored))
            self.brought.append(step.memory_id)
        elif stored.reason != self.reason:
            self.changed.append(step.memory_id)

    def _made(self, stored: Stored, version: int) -> bool:
        """Whether a memory is as the run left it, in this version: nobody changed it since, or all of it was taken
        back.
        """
        if stored.version == version:
            return run_log.made_by(stored, self.run_id)
        if stored.version < version or stored.reason == self.reason:
            return False
        last = counting(self.engine.journal.history(stored.owner, stored.id))[-1:]
        return any(one.version == version and run_log.made_by(one, self.run_id) for one in last)

    def spare(self) -> None:
        """Leave alone what would be replaced once more by a memory that was erased since: nothing would stand."""
        for owner, made in self.writes.items():
            spared = {write.id for write in made if write.facets.get("superseded_by") in self.erased}
            self.writes[owner] = [write for write in made if write.id not in spared]
            self.brought = [id for id in self.brought if id not in spared]

    def _before(self, step: Done, stored: Stored) -> Write:
        """The version that is as the memory was before the run."""
        if step.action is UpkeepAction.MERGE:
            return writes.superseding(self.engine, stored, None, self.now, self.reason)
        operation = _BACK[step.state]
        if step.action is UpkeepAction.QUARANTINE or step.state is State.SUPERSEDED:  # a key may have gone with it
            return writes.as_before(self.engine, stored, step.version, operation, self.now, reason=self.reason)
        return revisions.moved(self.engine, stored, step.state, self.now, operation=operation, reason=self.reason)[1]

    def _remove(self, owner: Owner | None, made: list[str | None]) -> None:
        """Erase what the run made: it says nothing that its sources do not say."""
        wanted = list(dict.fromkeys(id for id in made if id is not None))
        for stored in () if owner is None or not wanted else self.engine.journal.get({owner}, wanted):
            if not self._made(stored, 1):
                self.changed.append(stored.id)
                continue
            write = revisions.erasing(self.engine, stored, self.now, self.reason)
            self.writes.setdefault(stored.owner, []).append(write)
            self.removed.append(stored.id)


def undo(engine: Engine, run_id: str) -> Undone:
    """Bring everything back to what it was before a run, or change nothing. What was erased stays erased."""
    run = run_log.get(engine, run_id)
    if run.undone_at is not None:
        raise Conflict(
            f"the run {run_id!r} was undone at {run.undone_at:%Y-%m-%d %H:%M} UTC",
            details={"run": run_id},
            hint="there is nothing left to undo",
        )
    with runs.alone(engine) as lease:
        back = _Undoing(engine, run_id, engine.clock())
        for name, steps in run_log.steps_of(engine, run_id).items():
            back.look(codec.decode_owner(name), steps)
        back.spare()
        if back.changed:
            raise run_log.changed("the run", back.changed)
        for group in runs.in_groups(engine, back.writes.items()):
            some = [write for these in group.values() for write in these]
            some.sort(key=lambda write: "key" in write.facets)  # what lets a key go comes first
            holds.append(engine, some, guards=lease.guards())
            _announce(engine, some, back.now)
        run_log.update(engine, replace(run, undone_at=back.now))
    return Undone(run_id=run_id, ids=tuple(back.brought), erased=tuple(back.erased), removed=tuple(back.removed))


def _announce(engine: Engine, made: Sequence[Write], now: datetime) -> None:
    for write in made if engine.bus.handlers else ():
        if write.operation is not Operation.ERASED and write.facets["state"] == State.ACTIVE:
            engine.bus.emit(events.MemoryRestored(at=now, memory_id=write.id, owner=write.owner))
