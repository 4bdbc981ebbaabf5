"""The job at the end of sessions: what mattered is promoted to the user, the rest stays, or goes when its time comes.

A policy that deletes takes whole sessions, so it is the number of a user's sessions that the breaker looks at: one that
was set by mistake would otherwise take all that ever ended.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from wellkept import codec, filters, layers
from wellkept.engine import run_log
from wellkept.engine.core import Engine
from wellkept.engine.holds import Holds
from wellkept.lifecycle import ended_sessions
from wellkept.types import (
    Layer,
    Owner,
    OwnerShare,
    SessionEndPolicy,
    Stored,
    UpkeepAction,
    UpkeepJob,
    UpkeepPlan,
    UpkeepStep,
)
from wellkept.upkeep import planning, policies
from wellkept.upkeep.planning import Asked, Looked


def plan(engine: Engine, asked: Asked) -> UpkeepPlan:
    """What the policies do now to the sessions that have ended."""

    def look(owner: Owner, policy: SessionEndPolicy, known: Holds, now: datetime) -> Looked:
        ended = asked.ended(owner) if owner.layer is Layer.SESSION else None
        if ended is None:
            return Looked()
        found = list(map(engine.accesses.dressed, engine.journal.scan({owner})))
        held = known.over(owner)
        left = [one for one in found if asked.again or not _stays(one, ended)]
        chosen = [one for one in left if held(one) is None and ended_sessions.matters(one, policy, now)]
        steps = list(_promotions(engine, owner, chosen, policy)) if chosen else []
        after = policy.delete_after
        if after is not None and ended + filters.relative(after) <= now:
            steps += ended_sessions.deletions(left, policy, held, ended)
        share = planning.share(owner, len(found), steps)
        return Looked(steps=steps, shares=[share], newest=planning.newest(found))

    made = planning.plan(engine, UpkeepJob.SESSION_END, asked, policies.SESSION_END, look)
    return replace(made, sessions=tuple(_of_users(engine, made.steps)))


def _stays(stored: Stored, ended: datetime) -> bool:
    """Whether somebody took the end of a session back for this memory; a later end is another one."""
    return run_log.taken_back(stored) and codec.from_micros(stored.recorded_at) > ended


def _promotions(
    engine: Engine, owner: Owner, chosen: Sequence[Stored], policy: SessionEndPolicy
) -> Iterator[UpkeepStep]:
    """The steps that copy memories to the user, as far as none did before."""
    known = _promoted(engine, owner)
    fresh = [one for one in chosen if one.id not in known]
    for one, id in zip(fresh, engine.new_ids(engine.clock(), len(fresh)), strict=True):
        yield ended_sessions.promotion(one, policy, id)


def _promoted(engine: Engine, owner: Owner) -> set[str]:
    """What the memories of a user are derived from, whatever became of them: nothing is promoted twice."""
    user = layers.user_of(owner)
    stored: Iterable[Stored] = () if user is None else engine.journal.scan({user})
    return {source for one in stored for source in one.facets.get("derived_from", ())}


def _of_users(engine: Engine, steps: Iterable[UpkeepStep]) -> Iterator[OwnerShare]:
    """How many of the sessions of each user go."""
    going = {step.owner for step in steps if step.action is not UpkeepAction.PROMOTE}
    if not going:
        return
    of_user = Counter(owner.ids[0] for owner in going)
    every = Counter(owner.ids[0] for owner in engine.journal.owners() if owner.layer is Layer.SESSION)
    for user, taken in sorted(of_user.items()):
        yield OwnerShare(owner=Owner(Layer.USER, (user,)), memories=every[user], taken=taken, erased=0, bytes_freed=0)
