"""The jobs of upkeep, each once: what it goes by, and how it makes a plan. A new job is a line here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from wellkept.engine.core import Engine
from wellkept.types import UpkeepJob, UpkeepPlan
from wellkept.upkeep import consolidation, ended_sessions, policies, retention
from wellkept.upkeep.planning import Asked
from wellkept.upkeep.policies import Policies


class Job(NamedTuple):
    """A job: the policies that say when it is due and what it does, and the function that makes its plan."""

    policies: Policies[Any]
    plan: Callable[[Engine, Asked], UpkeepPlan]


JOBS: Mapping[UpkeepJob, Job] = MappingProxyType(
    {
        UpkeepJob.RETENTION: Job(policies.RETENTION, retention.plan),
        UpkeepJob.CONSOLIDATION: Job(policies.CONSOLIDATION, consolidation.plan),
        UpkeepJob.SESSION_END: Job(policies.SESSION_END, ended_sessions.plan),
    }
)
"""All jobs that are applied by plan and on a schedule. Compaction is no such job: it makes room when it is needed."""
