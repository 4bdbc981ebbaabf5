"""What upkeep asks about sessions, and what the end of a session leads to."""

from datetime import datetime

from wellkept import logs
from wellkept.engine.core import Engine
from wellkept.entitlements import Feature
from wellkept.errors import Conflict, StoreCorrupt, UpkeepRefused
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.sessions import description as descriptions
from wellkept.sessions.description import Description
from wellkept.sessions.records import KIND
from wellkept.types import DecayPolicy, Layer, Owner, UpkeepJob, UpkeepRun
from wellkept.upkeep import ended_sessions, policies, runs
from wellkept.upkeep.planning import Asked, Progress, Summariser


def asked(
    engine: Engine, owner: Owner | None = None, summariser: Summariser | None = None, progress: Progress | None = None
) -> Asked:
    """What a plan is asked for: an owner, or all."""

    def fading(whose: Owner) -> DecayPolicy:
        try:
            described = _described(engine, whose)
        except StoreCorrupt:
            return DecayPolicy(enabled=False)  # nothing goes while nobody knows by what
        return engine.defaults.decay if described is None else described.settings(engine.defaults).decay

    def ended(whose: Owner) -> datetime | None:
        try:
            described = _described(engine, whose)
        except StoreCorrupt:
            return None
        return None if described is None else described.closed_at

    wanted = None if owner is None else [owner]
    return Asked(fading=fading, ended=ended, wanted=wanted, summariser=summariser, progress=progress)


def _described(engine: Engine, owner: Owner) -> Description | None:
    if owner.layer is not Layer.SESSION:
        return None
    record = engine.records.get(Owner(Layer.USER, owner.ids[:1]), KIND, owner.ids[-1])
    return None if record is None else descriptions.decode(record.body, owner.ids[-1])


def end(engine: Engine, session: Owner) -> UpkeepRun | None:
    """Apply the policy of a session that was closed, as far as it is due now; the run, if there was anything to do.

    What cannot be done now is left to the next run: closing a session does not fail because of it.
    """
    try:
        if policies.SESSION_END.over(engine, session) is None or not engine.allows(Feature.RETENTION_POLICIES):
            return None
        plan = ended_sessions.plan(engine, asked(engine, session))
        return runs.apply(engine, plan, lambda: 0, max_share=MAX_SHARE, trust_clock=False) if plan.steps else None
    except (Conflict, StoreCorrupt, UpkeepRefused) as error:
        logs.upkeep_failed(UpkeepJob.SESSION_END.value, Layer.SESSION, None, error)
        return None
