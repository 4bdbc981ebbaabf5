"""Plans: the features of a database and its storage limit, as the application defines them.

A plan is a value. Without one every feature is allowed and nothing is limited. The limit holds for each
agent: its memories, its user's and those of the user's sessions together, forgotten ones included. Each project, team,
org and company has the limit for itself.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal

from wellkept.errors import ConfigurationError, PlanRestriction

WARNING_PERCENT = 80
"""From this usage on, every write that can grow it emits a ``QuotaWarning``."""

_MB = 1024**2


class Feature(StrEnum):
    """The features that a plan can include.

    >>> Feature.SEMANTIC_SEARCH.value
    'semantic_search'
    """

    LONG_TERM_MEMORY = "long_term_memory"
    PERSISTED_SNAPSHOTS = "persisted_snapshots"
    SEMANTIC_SEARCH = "semantic_search"
    ADVANCED_COMPACTION = "advanced_compaction"
    RETENTION_POLICIES = "retention_policies"


FeatureName = Literal[
    "long_term_memory", "persisted_snapshots", "semantic_search", "advanced_compaction", "retention_policies"
]
"""The value of a :class:`Feature`."""

_WORDS = {
    Feature.LONG_TERM_MEMORY: "long-term memory",
    Feature.PERSISTED_SNAPSHOTS: "snapshots that are kept in the database",
    Feature.SEMANTIC_SEARCH: "search by meaning",
    Feature.ADVANCED_COMPACTION: "compaction by summary",
    Feature.RETENTION_POLICIES: "retention policies",
}


def _feature(value: object) -> Feature:
    try:
        return Feature(value)  # type: ignore[arg-type]  # the ValueError is the test
    except ValueError:
        known = ", ".join(repr(one.value) for one in Feature)
        raise _wrong("plan.features", f"no feature is named {str(value)[:40]!r}", f"use {known}") from None


def _wrong(field: str, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(what, details={"field": field}, hint=hint)


def _check(name: object, features: object, limit: object, upgrade: object) -> None:
    """Validate the fields of a plan."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise _wrong("plan.name", "the name of a plan must be printable text", "pass name='Trial'")
    if isinstance(features, str) or not isinstance(features, Collection):
        raise _wrong("plan.features", "the features of a plan must be a collection", "pass a list of them")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise _wrong("plan.limit_bytes", "the limit of a plan must be a number of bytes", "pass 0 or more, or None")
    if upgrade is not None and not isinstance(upgrade, Plan):
        raise _wrong("plan.upgrade", "the upgrade of a plan must be a plan", "pass the next bigger Plan, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The allowed features, and the bytes that an agent's memories may take; ``limit_bytes=None``: no limit.

    ``features`` are members of ``wellkept.entitlements.Feature`` or their values. ``upgrade`` is the next bigger plan:
    a refusal names the nearest one that includes what was asked for. ``Plan.CORE``, ``WRITERPRO``, ``TEAMS`` and
    ``ENTERPRISE`` are an example of such a list; ``wellkept.open`` knows them by name.

    >>> full = Plan(name="Full", features=list(Feature))
    >>> trial = Plan(name="Trial", features=["long_term_memory"], limit_bytes=1_000_000, upgrade=full)
    >>> trial.allows("long_term_memory"), trial.allows("semantic_search"), full.allows("semantic_search")
    (True, False, True)
    """

    name: str
    features: Collection[Feature | FeatureName] = ()
    limit_bytes: int | None = None
    upgrade: "Plan | None" = field(default=None, repr=False)

    CORE: ClassVar["Plan"]
    WRITERPRO: ClassVar["Plan"]
    TEAMS: ClassVar["Plan"]
    ENTERPRISE: ClassVar["Plan"]

    def __post_init__(self) -> None:
        _check(self.name, self.features, self.limit_bytes, self.upgrade)
        object.__setattr__(self, "features", frozenset(_feature(one) for one in self.features))

    def allows(self, feature: Feature | FeatureName) -> bool:
        """Whether the plan includes a feature."""
        return _feature(feature) in self.features

    def with_feature(self, feature: Feature) -> "Plan | None":
        """The nearest bigger plan that includes a feature, if there is one.

        >>> Plan.CORE.with_feature(Feature.SEMANTIC_SEARCH).name
        'Teams'
        """
        bigger = self.upgrade
        while bigger is not None and feature not in bigger.features:
            bigger = bigger.upgrade
        return bigger


_PAID = (Feature.LONG_TERM_MEMORY, Feature.PERSISTED_SNAPSHOTS)
Plan.ENTERPRISE = Plan(name="Enterprise", features=tuple(Feature))
Plan.TEAMS = Plan(name="Teams", features=tuple(Feature), limit_bytes=1024 * _MB, upgrade=Plan.ENTERPRISE)
Plan.WRITERPRO = Plan(name="WriterPro", features=_PAID, limit_bytes=100 * _MB, upgrade=Plan.TEAMS)
Plan.CORE = Plan(name="Core", limit_bytes=0, upgrade=Plan.WRITERPRO)

PLANS = (Plan.CORE, Plan.WRITERPRO, Plan.TEAMS, Plan.ENTERPRISE)
"""The plans of the example, smallest first."""


def named(value: object) -> Plan | None:
    """Resolve a plan: ``None``, a ``Plan``, or the name of a built-in plan, case-insensitive.

    >>> named("writerpro") is Plan.WRITERPRO
    True
    """
    if value is None or isinstance(value, Plan):
        return value
    if not isinstance(value, str):
        raise _wrong("plan", f"plan is a {type(value).__name__}, which is not one", "pass a Plan or its name")
    wanted = value.strip().casefold()
    for plan in PLANS:
        if plan.name.casefold() == wanted:
            return plan
    known = ", ".join(repr(plan.name.casefold()) for plan in PLANS)
    raise _wrong("plan", f"no plan is named {value[:40]!r}", f"use one of {known}, or a Plan of your own")


def check(plan: Plan | None, feature: Feature) -> None:
    """Raise ``PlanRestriction`` unless the plan includes the feature. Without a plan everything is included.

    >>> check(None, Feature.SEMANTIC_SEARCH)
    >>> check(Plan.CORE, Feature.LONG_TERM_MEMORY)
    Traceback (most recent call last):
    ...
    wellkept.errors.PlanRestriction: the plan Core has no long-term memory (upgrade to WriterPro)
    """
    if plan is None or feature in plan.features:
        return
    bigger = plan.with_feature(feature)
    raise PlanRestriction(
        f"the plan {plan.name} has no {_WORDS[feature]}",
        details={"plan": plan.name, "feature": feature.value, "upgrade": bigger and bigger.name},
        hint=f"upgrade to {bigger.name}" if bigger else f"open the database with a plan that includes {feature.value}",
    )


def warns(used: int, limit: int) -> bool:
    """Whether the usage has reached the warning threshold.

    >>> warns(79, 100), warns(80, 100)
    (False, True)
    """
    return 100 * used >= WARNING_PERCENT * limit
