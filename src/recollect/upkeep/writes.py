"""The writes that the steps of a plan come down to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect import codec, layers
from recollect.engine import embedding, revisions, run_log, sensitive
from recollect.engine.core import Engine
from recollect.engine.embedding import Made
from recollect.engine.sealing import unseal
from recollect.errors import InvalidInput
from recollect.lifecycle import consolidation, ended_sessions
from recollect.text import plurals
from recollect.types import Memory, Operation, State, Stored, UpkeepAction, UpkeepPlan, UpkeepStep, Write

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
        made += [self._write(step, stored, now) for step, stored in found]
        return made

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
        write = revisions.written(memory, Operation.ADDED, None, stamp, micros, made=made)
        return write._replace(reason=reason)


def superseding(engine: Engine, stored: Stored, by: str | None, now: datetime, reason: str) -> Write:
    """A memory as superseded by another one; as active again without one."""
    state = State.ACTIVE if by is None else State.SUPERSEDED
    after = replace(unseal(stored), state=state, superseded_by=by, version=stored.version + 1, updated_at=now)
    operation = Operation.RESTORED if by is None else Operation.UPDATED
    return revisions.changed(engine, after, operation, stored, now, keeps_vector=True, reason=reason)
