"""The writes that the steps of a plan come down to."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime

from wellkept import codec, layers
from wellkept.engine import embedding, revisions, run_log, sensitive
from wellkept.engine.core import Engine
from wellkept.engine.embedding import Made
from wellkept.engine.sealing import unseal
from wellkept.errors import InvalidInput
from wellkept.lifecycle import consolidation, ended_sessions
from wellkept.text import plurals
from wellkept.types import Memory, Operation, Owner, State, Stored, UpkeepAction, UpkeepPlan, UpkeepStep, Write

_STATES: Mapping[UpkeepAction, tuple[State, Operation]] = {
    UpkeepAction.ARCHIVE: (State.ARCHIVED, Operation.ARCHIVED),
    UpkeepAction.FORGET: (State.FORGOTTEN, Operation.FORGOTTEN),
    UpkeepAction.RESTORE: (State.ACTIVE, Operation.RESTORED),
    UpkeepAction.QUARANTINE: (State.QUARANTINED, Operation.QUARANTINED),
}
Found = tuple[UpkeepStep, Stored]


class Making:
    """Makes the writes of a plan: one for each step, and one more for each memory that steps lead to."""

    def __init__(self, engine: Engine, plan: UpkeepPlan) -> None:
        self._engine = engine
        self._run_id = plan.id
        self._texts = {one.id: one.content for one in plan.merges}

    def of(self, found: Sequence[Found]) -> list[Write]:
        """The writes of some steps, in their order; a new memory stands before what it replaces."""
        now = self._engine.clock()
        made: list[Write] = []
        merges: dict[str, list[Stored]] = {}
        for step, stored in found:
            if step.action is UpkeepAction.MERGE and step.into is not None:
                merges.setdefault(step.into, []).append(stored)
        for id, sources in merges.items():
            made.append(self._merged(id, sources, now))
        leaving = {
            (stored.owner, stored.facets.get("key")) for step, stored in found if step.action is UpkeepAction.QUARANTINE
        }
        standing = {
            (stored.owner, stored.id): standing_again(self._engine, stored, leaving)
            for step, stored in found
            if step.action is UpkeepAction.RESTORE and step.state is State.SUPERSEDED
        }
        keys = {(one.owner, one.key) for one in standing.values() if one.key is not None}
        for step, stored in found:
            back = standing.get((stored.owner, stored.id))
            if back is not None:
                reason = run_log.reason(self._run_id, step.reason)
                made.append(_next(self._engine, stored, back, Operation.RESTORED, now, reason=reason))
            elif step.action is UpkeepAction.QUARANTINE and (stored.owner, stored.facets.get("key")) in keys:
                made.append(self._without_key(step, stored, now))
            else:
                made.append(self._write(step, stored, now))
        return made

    def _without_key(self, step: UpkeepStep, stored: Stored, now: datetime) -> Write:
        """A memory in quarantine that leaves its key to the one that it had replaced."""
        state, operation = _STATES[step.action]
        reason = run_log.reason(self._run_id, step.reason)
        return _next(
            self._engine, stored, replace(unseal(stored), state=state, key=None), operation, now, reason=reason
        )

    def _write(self, step: UpkeepStep, stored: Stored, now: datetime) -> Write:
        reason = run_log.reason(self._run_id, step.reason)
        if step.action is UpkeepAction.ERASE:
            return revisions.erasing(self._engine, stored, now, reason)
        if step.action is UpkeepAction.PROMOTE:
            return self._promoted(step, stored, now, reason)
        if step.action is UpkeepAction.MERGE:
            return superseding(self._engine, stored, step.into, now, reason)
        state, operation = _STATES[step.action]
        return revisions.moved(self._engine, stored, state, now, operation=operation, reason=reason)[1]

    def _merged(self, id: str, sources: Sequence[Stored], now: datetime) -> Write:
        memories = [unseal(one) for one in sources]
        if id not in self._texts:
            raise InvalidInput(
                "the plan does not say what a merge says", details={"field": "plan"}, hint="pass a plan as it was made"
            )
        memory = sensitive.judged(self._engine, consolidation.merged(memories, self._texts[id], id, now))
        return self._added(
            memory, memories, now, run_log.reason(self._run_id, f"merges {plurals.memories(len(sources))}")
        )

    def _promoted(self, step: UpkeepStep, stored: Stored, now: datetime, reason: str) -> Write:
        source, user = unseal(stored), layers.user_of(stored.owner)
        assert step.into is not None and user is not None  # noqa: S101, PT018  # of a session's; for the type checker
        return self._added(ended_sessions.promoted(source, user, step.into, now), [source], now, reason)

    def _added(self, memory: Memory, sources: Sequence[Memory], now: datetime, reason: str) -> Write:
        """The first version of a memory; what says the same as a source has its vector."""
        alike = next((one for one in sources if embedding.texts_of(one) == embedding.texts_of(memory)), None)
        if alike is not None and alike.vector is not None:
            made = Made(alike.vector)
        else:
            made = embedding.embed(self._engine, [memory], [memory.owner])[0]
        micros = codec.to_micros(now)
        stamp = self._engine.stamps.stamp(micros)
        write = revisions.written(self._engine, memory, Operation.ADDED, None, stamp, micros=micros, made=made)
        return write._replace(reason=reason)


def superseding(engine: Engine, stored: Stored, by: str | None, now: datetime, reason: str) -> Write:
    """A memory as superseded by another one; as active again without one."""
    state = State.ACTIVE if by is None else State.SUPERSEDED
    after = replace(unseal(stored), state=state, superseded_by=by, version=stored.version + 1, updated_at=now)
    operation = Operation.RESTORED if by is None else Operation.UPDATED
    return revisions.changed(engine, after, operation, stored, now, keeps_vector=True, reason=reason)


def standing_again(engine: Engine, stored: Stored, leaving: Set[tuple[Owner, str | None]]) -> Memory:
    """A superseded memory as it stands when nothing has replaced it: a fact holds again, and has the key back that is
    ``leaving`` what replaced it.
    """
    memory = unseal(stored)
    versions = [unseal(one) for one in engine.journal.history(stored.owner, stored.id)]
    before = next((one for one in reversed(versions) if one.superseded_by is None), memory)
    key = before.key if (stored.owner, before.key) in leaving else memory.key
    return replace(memory, state=State.ACTIVE, superseded_by=None, fact=before.fact, key=key)


def as_before(
    engine: Engine, stored: Stored, version: int, operation: Operation, now: datetime, *, reason: str
) -> Write:
    """A memory as one of its versions had it."""
    [former] = [one for one in engine.journal.history(stored.owner, stored.id) if one.version == version]
    return _next(engine, stored, unseal(former), operation, now, reason=reason)


def _next(engine: Engine, stored: Stored, memory: Memory, operation: Operation, now: datetime, *, reason: str) -> Write:
    after = replace(memory, version=stored.version + 1, updated_at=now)
    return revisions.changed(engine, after, operation, stored, now, keeps_vector=True, reason=reason)
