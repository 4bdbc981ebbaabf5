"""Upkeep of a database: policies, plans, runs and holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from wellkept import layers, validation
from wellkept.engine import holds, run_log
from wellkept.engine.core import Audited, Engine, operation
from wellkept.entitlements import Feature
from wellkept.errors import InvalidInput
from wellkept.lifecycle.breaker import MAX_SHARE
from wellkept.memories import session_ends
from wellkept.types import (
    ConsolidationPolicy,
    Filter,
    Hold,
    Layer,
    Need,
    Owner,
    RetentionPolicy,
    SessionEndPolicy,
    Undone,
    UpkeepJob,
    UpkeepJobName,
    UpkeepPlan,
    UpkeepRun,
)
from wellkept.types.owners import DATABASE
from wellkept.upkeep import ageing, policies, runs, schedule, undo
from wellkept.upkeep.jobs import JOBS
from wellkept.upkeep.planning import Progress, Summariser
from wellkept.upkeep.policies import P, Policies
from wellkept.upkeep.schedule import Runner

if TYPE_CHECKING:
    from wellkept.memories.agent import AgentMemory

_RUNS = 1_000
_PLANNED_ELSEWHERE = {
    UpkeepJob.COMPACTION: "session.compact(dry_run=True) shows what a compaction would do",
    UpkeepJob.QUARANTINE: "view.plan_quarantine() shows what a quarantine would take",
}


class Upkeep:
    """Upkeep of an open database, as ``memories.upkeep``. Without a policy nothing is taken.

    An ``owner`` stands for its sessions and agents as well, if it is a user; without one, the whole database is meant.

    >>> from datetime import timedelta
    >>> import wellkept
    >>> from wellkept.types import RetentionPolicy
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     memory = memories.view(user="ada").add("Likes tea")
    ...     memories.upkeep.set_retention(RetentionPolicy(long_term_age=timedelta(microseconds=1), automatic=False))
    ...     run = memories.upkeep.apply(memories.upkeep.plan())
    ...     memories.upkeep.undo(run.id).ids == (memory.id,)
    True
    """

    def __init__(self, engine: Engine, agents: Callable[[], Iterable[AgentMemory]]) -> None:
        self._engine = engine
        self._agents = agents
        self._runner: Runner | None = None

    # -- policies ---------------------------------------------------------------------------------------------

    @operation(Need.ADMIN)
    def set_retention(self, policy: RetentionPolicy, *, owner: Owner | None = None) -> None:
        """Set the retention policy of an owner, or of all owners that have none of their own.

        >>> import wellkept
        >>> from wellkept.types import RetentionPolicy
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.set_retention(RetentionPolicy(long_term_age="2y"))
        ...     memories.upkeep.retention().long_term_age.days
        730
        """
        self._set(policies.RETENTION, policy, owner)

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def retention(self, *, owner: Owner | None = None) -> RetentionPolicy | None:
        """The policy that was set for an owner, or for the database; ``None`` if none was.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.retention() is None
        True
        """
        return policies.RETENTION.get(self._engine, _owner(owner))

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def policies(self) -> dict[Owner | None, RetentionPolicy]:
        """All retention policies by owner; that of the database under ``None``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.policies()
        {}
        """
        return self._every(policies.RETENTION)

    @operation(Need.ADMIN)
    def clear_retention(self, *, owner: Owner | None = None) -> bool:
        """Remove the policy of an owner, or of the database; whether there was one.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.clear_retention()
        False
        """
        return policies.RETENTION.clear(self._engine, _owner(owner))

    @operation(Need.ADMIN)
    def set_consolidation(self, policy: ConsolidationPolicy, *, owner: Owner | None = None) -> None:
        """Set when memories of an owner that say the same become one, or those of all owners without an own policy.

        >>> import wellkept
        >>> from wellkept.types import ConsolidationPolicy
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.set_consolidation(ConsolidationPolicy(trigger=2, automatic=False))
        ...     view = memories.view(user="ada")
        ...     old = [view.add("Prefers dark mode").id, view.add("Prefers the dark mode").id]
        ...     run = memories.upkeep.run(job="consolidation")
        ...     [merged] = view.list().memories
        >>> merged.content, run.merged, sorted(merged.derived_from) == sorted(old)
        ('Prefers the dark mode', 2, True)
        """
        self._set(policies.CONSOLIDATION, policy, owner)

    @operation(Need.ADMIN)
    def consolidation(self, *, owner: Owner | None = None) -> ConsolidationPolicy | None:
        """The consolidation policy that was set for an owner, or for the database; ``None`` if none was.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.consolidation() is None
        True
        """
        return policies.CONSOLIDATION.get(self._engine, _owner(owner))

    @operation(Need.ADMIN)
    def consolidation_policies(self) -> dict[Owner | None, ConsolidationPolicy]:
        """All consolidation policies by owner; that of the database under ``None``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.consolidation_policies()
        {}
        """
        return self._every(policies.CONSOLIDATION)

    @operation(Need.ADMIN)
    def clear_consolidation(self, *, owner: Owner | None = None) -> bool:
        """Remove the consolidation policy of an owner, or of the database; whether there was one.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.clear_consolidation()
        False
        """
        return policies.CONSOLIDATION.clear(self._engine, _owner(owner))

    @operation(Need.ADMIN)
    def set_session_end(self, policy: SessionEndPolicy, *, owner: Owner | None = None) -> None:
        """Set what becomes of sessions that are closed: of one session, of a user's, or of all.

        >>> import wellkept
        >>> from wellkept.types import SessionEndPolicy
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.set_session_end(SessionEndPolicy(promote_importance=0.8))
        ...     with memories.view(user="ada").sessions.create("monday") as session:
        ...         _ = session.view.add("Is allergic to nuts", importance=0.9)
        ...     [one.content for one in memories.view(user="ada").list()]
        ['Is allergic to nuts']
        """
        if owner is not None and _owner(owner).layer not in (Layer.SESSION, Layer.USER):
            raise InvalidInput(
                f"a {owner.layer} has no sessions that end",
                details={"field": "owner"},
                hint="set the policy for one session, for a user, or for the whole database",
            )
        self._set(policies.SESSION_END, policy, owner)

    @operation(Need.ADMIN)
    def session_end(self, *, owner: Owner | None = None) -> SessionEndPolicy | None:
        """The policy for the end of sessions that was set for an owner, or for the database; ``None`` if none was.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.session_end() is None
        True
        """
        return policies.SESSION_END.get(self._engine, _owner(owner))

    @operation(Need.ADMIN)
    def session_end_policies(self) -> dict[Owner | None, SessionEndPolicy]:
        """All policies for the end of sessions by owner; that of the database under ``None``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.session_end_policies()
        {}
        """
        return self._every(policies.SESSION_END)

    @operation(Need.ADMIN)
    def clear_session_end(self, *, owner: Owner | None = None) -> bool:
        """Remove the policy for the end of sessions of an owner, or of the database; whether there was one.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.clear_session_end()
        False
        """
        return policies.SESSION_END.clear(self._engine, _owner(owner))

    def _every(self, kind: Policies[P]) -> dict[Owner | None, P]:
        kept = kind.every(self._engine)
        return {None if owner == DATABASE else owner: one.policy for owner, one in kept.items()}

    def _set(self, kind: Policies[P], policy: object, owner: Owner | None) -> None:
        self._engine.require(Feature.RETENTION_POLICIES)
        kind.put(self._engine, _owner(owner), kind.checked(policy), self._engine.clock())

    # -- runs -------------------------------------------------------------------------------------------------

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def plan(
        self,
        *,
        job: UpkeepJob | UpkeepJobName = UpkeepJob.RETENTION,
        owner: Owner | None = None,
        summariser: Summariser | None = None,
        progress: Progress | None = None,
    ) -> UpkeepPlan:
        """What the policies of a job would do now, memory by memory. Nothing is changed.

        A ``summariser`` gets the memories that are to be merged, and returns the text of the one that replaces them.
        Where it fails, or its text cannot stand for them, the plan says so in ``notes``, and the longest text is taken.
        ``progress`` is called with the number of owners that were looked at, and of all.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.plan().steps
        ()
        """
        return self._plan(job, owner, summariser, progress)

    def _plan(
        self, job: object, owner: Owner | None, summariser: Summariser | None, progress: Progress | None
    ) -> UpkeepPlan:
        chosen = validation.choice("job", UpkeepJob, job)
        if chosen not in JOBS:
            raise InvalidInput(
                f"{chosen.value} has no policies to plan by",
                details={"field": "job"},
                hint=_PLANNED_ELSEWHERE[chosen],
            )
        for name, given in (("summariser", summariser), ("progress", progress)):
            if given is not None and not callable(given):
                raise InvalidInput(
                    f"{name} is a {type(given).__name__}, which cannot be called",
                    details={"field": name},
                    hint="pass a function",
                )
        whose = None if owner is None else _owner(owner)
        return JOBS[chosen].plan(self._engine, session_ends.asked(self._engine, whose, summariser, progress))

    @operation(Need.ADMIN)
    def apply(self, plan: UpkeepPlan, *, max_share: float = MAX_SHARE, trust_clock: bool = False) -> UpkeepRun:
        """Apply a plan, once, each owner all or none.

        It is a ``Conflict`` if the plan was applied before, or if memories changed since: ``details["changed"]`` has
        their ids. ``UpkeepRefused`` if it would take more than ten memories and more than ``max_share`` of an owner's,
        or if the clock is doubtful and ``trust_clock`` is not set. An owner that fails is named in the run's
        ``errors``; the others are processed.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.apply(memories.upkeep.plan()).forgotten
        0
        """
        if not isinstance(plan, UpkeepPlan):
            raise InvalidInput(
                f"plan is a {type(plan).__name__}, which is no plan",
                details={"field": "plan"},
                hint="pass what memories.upkeep.plan() returned",
            )
        runs.check_unchanged(self._engine, plan)
        return self._apply(plan, max_share, trust_clock=trust_clock)

    @operation(Need.ADMIN)
    def run(
        self,
        *,
        job: UpkeepJob | UpkeepJobName = UpkeepJob.RETENTION,
        owner: Owner | None = None,
        max_share: float = MAX_SHARE,
        trust_clock: bool = False,
        summariser: Summariser | None = None,
        progress: Progress | None = None,
    ) -> UpkeepRun:
        """Make a plan and apply it at once; ``apply`` says when it is refused.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.run().bytes_freed
        0
        """
        return self._apply(self._plan(job, owner, summariser, progress), max_share, trust_clock=trust_clock)

    def _apply(self, plan: UpkeepPlan, max_share: float, *, trust_clock: bool) -> UpkeepRun:
        self._engine.require(Feature.RETENTION_POLICIES)
        share, trusted = validation.unit("max_share", max_share), validation.flag("trust_clock", trust_clock)
        working = self._age_working if plan.job is UpkeepJob.RETENTION else _nothing
        return runs.apply(self._engine, plan, working, max_share=share, trust_clock=trusted)

    def _age_working(self) -> int:
        """Remove old entries from the working memory of the agents in this process; how many. There is no undo."""
        kept, now = policies.RETENTION.every(self._engine), self._engine.clock()
        return sum(
            ageing.remove_old(agent.working, kept[whose].policy, now)
            for agent in (self._agents() if kept else ())
            if (whose := policies.governing(kept, Owner(Layer.AGENT, (agent.user_id, agent.agent_id)))) is not None
        )

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def runs(self, *, limit: int = 20) -> tuple[UpkeepRun, ...]:
        """The last runs, the newest first. A hundred are kept.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     _ = memories.upkeep.run()
        ...     [run.automatic for run in memories.upkeep.runs()]
        [False]
        """
        return tuple(run_log.every(self._engine)[: validation.integer("limit", limit, 1, _RUNS)])

    @operation(Need.ADMIN)
    def undo(self, run_id: str) -> Undone:
        """Bring back what a run took: each memory as it was before. What was erased stays erased.

        It is a ``Conflict``, and nothing is changed, if a memory was edited since the run: ``details["changed"]`` has
        the ids.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.undo(memories.upkeep.run().id).ids
        ()
        """
        validation.text_id(run_id, "run_id", "pass run.id; memories.upkeep.runs() lists them")
        return undo.undo(self._engine, run_id)

    # -- schedule ---------------------------------------------------------------------------------------------

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def next_due(self) -> datetime | None:
        """When the next automatic policy is due; ``None`` if there is no such policy. The past: it is due now.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.next_due() is None
        True
        """
        return schedule.next_due(self._engine)

    @operation(Need.ADMIN, audited=Audited.IF_DONE)
    def run_due(self, *, summariser: Summariser | None = None) -> UpkeepRun | None:
        """Run the first job whose automatic policies are due; ``None`` if none is, or if another process does it.

        Opening a database does this, and so does the thread of ``start``. An owner of whom too much would go is left
        out, and all of them are if the clock is doubtful: ``errors`` of the run says so.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.run_due() is None
        True
        """
        return schedule.run_due(
            self._engine, session_ends.asked(self._engine, summariser=summariser), self._age_working
        )

    def start(self, *, summariser: Summariser | None = None) -> None:
        """Apply policies when they are due, in a thread, until ``stop`` or until the database is closed.

        A ``summariser`` proposes the texts of merged memories, as in ``plan``.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.start()
        """
        if self._runner is None:
            self._runner = Runner(partial(self.run_due, summariser=summariser))

    def stop(self) -> None:
        """End the thread of ``start``, after the run at hand.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.start()
        ...     memories.upkeep.stop()
        """
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()

    # -- holds ------------------------------------------------------------------------------------------------

    @operation(Need.ADMIN)
    def hold(self, filter: Filter | Mapping[str, Any], *, reason: str, owner: Owner | None = None) -> Hold:
        """Hold all memories that match a filter, now and later: upkeep leaves them alone, and nobody can erase them.

        They can still be forgotten and restored. ``Filter()`` holds everything.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memory = memories.view(user="ada").add("Signed the contract", tags=["legal"])
        ...     hold = memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
        ...     try:
        ...         memories.view(user="ada").forget(memory.id, permanent=True)
        ...     except wellkept.errors.Held as error:
        ...         error.details["hold"] == hold.id
        True
        """
        held = None if owner is None else _owner(owner)
        return holds.place(self._engine, filter, reason, held, self._engine.clock())

    @operation(Need.ADMIN, audited=Audited.NEVER)
    def holds(self) -> tuple[Hold, ...]:
        """All holds, the oldest first.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     memories.upkeep.holds()
        ()
        """
        return holds.read(self._engine).every

    @operation(Need.ADMIN)
    def release(self, hold_id: str) -> Hold:
        """Release a hold; what other holds cover stays held.

        >>> import wellkept
        >>> with wellkept.open("ram:", embedder=None) as memories:
        ...     hold = memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
        ...     memories.upkeep.release(hold.id).reason
        'case 17'
        """
        return holds.release(self._engine, hold_id, self._engine.clock())


def _nothing() -> int:
    return 0


def _owner(owner: object) -> Owner:
    """An owner that exists or may come to exist; the whole database without one."""
    return DATABASE if owner is None else layers.checked("owner", owner)
