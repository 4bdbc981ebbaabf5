"""The job of retention: what the policies archive, forget and erase."""

from datetime import datetime

from wellkept.engine.core import Engine
from wellkept.engine.holds import Holds
from wellkept.lifecycle import decay, retention
from wellkept.types import Owner, RetentionPolicy, UpkeepJob, UpkeepPlan
from wellkept.upkeep import planning, policies
from wellkept.upkeep.planning import Asked, Looked


def plan(engine: Engine, asked: Asked) -> UpkeepPlan:
    """What the retention policies take now."""

    def look(owner: Owner, policy: RetentionPolicy, known: Holds, now: datetime) -> Looked:
        found = list(map(engine.accesses.dressed, engine.journal.scan({owner}, payload=known.read_text)))
        decays = asked.fading(owner) if policy.archive_below is not None else decay.USUAL
        taken = list(retention.steps(found, policy, known.over(owner), now, decays))
        return Looked(steps=taken, shares=[planning.share(owner, len(found), taken)], newest=planning.newest(found))

    return planning.plan(engine, UpkeepJob.RETENTION, asked, policies.RETENTION, look)
