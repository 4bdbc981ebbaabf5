"""Verbs of retention policies: retention, retention.set, retention.clear."""

from dataclasses import dataclass, replace
from datetime import timedelta

from wellkept import fields
from wellkept.errors import PlanRestriction
from wellkept.operations.conditions import LAYERS, MANY
from wellkept.operations.maintenance import Nothing
from wellkept.operations.upkeep import layer_field, owner_in
from wellkept.operations.verb import Caller, Example, Verb, option, result
from wellkept.types import Layer, Owner, RetentionPolicy
from wellkept.types.bounds import Bounds

_AGES = ("working_age", "long_term_age", "forgotten_age", "snapshot_age")
_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1)))


def age_field(description: str, flag: str) -> str | None:
    """A field of an input that is a span of time."""
    found: str | None = option(f"{description}, such as 90d.", bounds=fields.ID, flag=flag)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy, and whose it is."""

    owner: Owner | None = result("Whose policy it is; null for that of the whole database.")
    working_age: str | None = result("The age from which entries of working memory go.", bounds=fields.ID)
    long_term_age: str | None = result("The age from which memories are forgotten.", bounds=fields.ID)
    forgotten_age: str | None = result("The age from which forgotten memories are erased.", bounds=fields.ID)
    max_snapshots: int | None = result("How many snapshots are kept.", bounds=fields.COUNT)
    snapshot_age: str | None = result("The age from which snapshots go.", bounds=fields.ID)
    exempt_importance: float | None = result("The importance from which memories stay.", bounds=fields.UNIT)
    exempt_tags: tuple[str, ...] = result("Memories with these tags stay.", bounds=fields.TAGS)
    archive_below: float | None = result("The relevance below which memories are archived.", bounds=fields.UNIT)
    exempt_layers: tuple[Layer, ...] = result("Memories of these layers are not archived.", bounds=LAYERS)
    automatic: bool = result("Whether the policy is applied by itself.")
    schedule: str = result("The cron expression that says when, in UTC.", bounds=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """All policies."""

    policies: tuple[Policy, ...] = result("The policies, that of the whole database first.", bounds=MANY)


def _shown(owner: Owner | None, policy: RetentionPolicy) -> Policy:
    ages = {name: age_text(getattr(policy, name)) for name in _AGES}
    return Policy(
        owner=owner,
        **ages,
        max_snapshots=policy.max_snapshots,
        exempt_importance=policy.exempt_importance,
        exempt_tags=policy.exempt_tags,
        archive_below=policy.archive_below,
        exempt_layers=policy.exempt_layers,
        automatic=policy.automatic,
        schedule=policy.schedule,
    )


def age_text(age: timedelta | str | None) -> str | None:
    """A span of time as short as it can be said exactly: ``90d``."""
    if not isinstance(age, timedelta):
        return age
    for unit, one in _UNITS:
        if age % one == timedelta():
            return f"{age // one}{unit}"
    return f"{age.total_seconds():g}s"


def _retention(caller: Caller, _: Nothing) -> Policies:
    found = caller.memories.upkeep.policies()
    ordered = sorted(found.items(), key=lambda pair: (pair[0] is not None, str(pair[0])))
    return Policies(policies=tuple(_shown(owner, policy) for owner, policy in ordered))


RETENTION = Verb(
    name="retention",
    input=Nothing,
    output=Policies,
    run=_retention,
    method="Upkeep.policies",
    description="Without a policy nothing is ever taken.",
    examples=(Example(line="wellkept retention", says="all policies"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """The policy, and whose it is."""

    layer: Layer | None = layer_field()
    default: bool = option(
        "Start from the default: 365 days, forgotten memories 90 days, 10 snapshots of at most 30 days.", False
    )
    working_age: str | None = age_field("Remove entries of working memory from this age on", "working")
    long_term_age: str | None = age_field("Forget memories that were not written for this long", "long-term")
    forgotten_age: str | None = age_field("Erase memories that were forgotten for this long", "forgotten")
    max_snapshots: int | None = option("Keep at most this many snapshots.", bounds=Bounds(minimum=0, maximum=2**31))
    snapshot_age: str | None = age_field("Remove snapshots from this age on", "snapshots")
    exempt_importance: float | None = option("Memories of at least this importance stay.", bounds=fields.UNIT)
    exempt_tags: tuple[str, ...] = option(
        "Memories with this tag, or one below it, stay.", (), bounds=fields.TAGS, flag="exempt-tag"
    )
    archive_below: float | None = option(
        "Archive memories whose relevance decayed below this, from 0 to 1, and that were not used for 30 days.",
        bounds=fields.UNIT,
    )
    exempt_layers: tuple[Layer, ...] = option(
        "Never archive memories of this layer.", (), bounds=LAYERS, flag="exempt-layer"
    )
    manual: bool = option("Apply the policy only by hand, never by itself.", False)
    schedule: str | None = option(
        "When the policy is applied by itself: a cron expression in UTC, such as '0 3 * * *'.", bounds=fields.LINE
    )


def _set(caller: Caller, given: Set) -> Policy:
    names = (*_AGES, "max_snapshots", "exempt_importance", "exempt_tags", "archive_below", "exempt_layers", "schedule")
    told = {name: value for name in names if (value := getattr(given, name)) not in (None, ())}
    start = RetentionPolicy.default() if given.default else RetentionPolicy()
    owner = owner_in(caller, given.layer)
    upkeep = caller.memories.upkeep
    upkeep.set_retention(replace(start, **told, automatic=not given.manual), owner=owner)
    return _shown(owner, upkeep.retention(owner=owner) or start)


RETENTION_SET = Verb(
    name="retention.set",
    input=Set,
    output=Policy,
    run=_set,
    method="Upkeep.set_retention",
    errors=(PlanRestriction,),
    creates=True,
    description="It takes the place of the one before. An age that is not given takes nothing. Memories that are"
    " pinned or held stay. A session and an agent go by the policy of their user unless they have their own.",
    examples=(
        Example(line="wellkept retention set --default", says="the usual ages, for everybody"),
        Example(line="wellkept retention set --long-term 180d --exempt-tag legal --manual", says="only by hand"),
        Example(line="wellkept retention set --forgotten 30d --schedule '0 3 * * 0' --layer user", says="one user's"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Whose policy."""

    layer: Layer | None = layer_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """Whether there was a policy."""

    cleared: bool = result("Whether there was a policy.")


def _clear(caller: Caller, given: Clear) -> Cleared:
    return Cleared(cleared=caller.memories.upkeep.clear_retention(owner=owner_in(caller, given.layer)))


RETENTION_CLEAR = Verb(
    name="retention.clear",
    input=Clear,
    output=Cleared,
    run=_clear,
    method="Upkeep.clear_retention",
    examples=(Example(line="wellkept retention clear", says="nothing goes by itself any more"),),
)
