"""Verbs of the policies of consolidation and of ended sessions: consolidation, endings, each with set and clear."""

from dataclasses import dataclass, replace
from typing import Any

from wellkept import fields
from wellkept.errors import PlanRestriction
from wellkept.operations.conditions import LAYERS, MANY
from wellkept.operations.maintenance import Nothing
from wellkept.operations.retention import Clear, Cleared, age_field, age_text
from wellkept.operations.upkeep import layer_field, owner_in
from wellkept.operations.verb import Caller, Example, Verb, option, result
from wellkept.types import ConsolidationPolicy, Layer, Owner, SessionEndPolicy
from wellkept.types.bounds import Bounds

_COUNT = Bounds(minimum=0, maximum=2**31)
_MANUAL = "Apply the policy only by hand, never by itself."
_SCHEDULE = "When the policy is applied by itself: a cron expression in UTC, such as '0 3 * * *'."


# -- consolidation ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidating:
    """A consolidation policy, and whose it is."""

    owner: Owner | None = result("Whose policy it is; null for that of the whole database.")
    threshold: float = result("How near memories must be in meaning, from 0 to 1.", bounds=fields.UNIT)
    trigger: int = result("The number of memories from which an owner's are consolidated.", bounds=_COUNT)
    layers: tuple[Layer, ...] = result("The layers whose memories are consolidated.", bounds=LAYERS)
    automatic: bool = result("Whether the policy is applied by itself.")
    schedule: str = result("The cron expression that says when, in UTC.", bounds=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicies:
    """All consolidation policies."""

    policies: tuple[Consolidating, ...] = result("The policies, that of the whole database first.", bounds=MANY)


def _consolidating(owner: Owner | None, policy: ConsolidationPolicy) -> Consolidating:
    return Consolidating(
        owner=owner,
        threshold=policy.threshold,
        trigger=policy.trigger,
        layers=policy.layers,
        automatic=policy.automatic,
        schedule=policy.schedule,
    )


def _ordered(found: dict[Owner | None, Any]) -> list[tuple[Owner | None, Any]]:
    return sorted(found.items(), key=lambda pair: (pair[0] is not None, str(pair[0])))


def _consolidation(caller: Caller, _: Nothing) -> ConsolidationPolicies:
    found = _ordered(dict(caller.memories.upkeep.consolidation_policies()))
    return ConsolidationPolicies(policies=tuple(_consolidating(owner, policy) for owner, policy in found))


CONSOLIDATION = Verb(
    name="consolidation",
    input=Nothing,
    output=ConsolidationPolicies,
    run=_consolidation,
    method="Upkeep.consolidation_policies",
    description="Without a policy nothing is merged. wellkept upkeep plan --job consolidation shows what would be.",
    examples=(Example(line="wellkept consolidation", says="all policies"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetConsolidation:
    """The policy, and whose it is."""

    layer: Layer | None = layer_field()
    threshold: float = option(
        "How near memories must be in meaning, from 0.5 to 1: 0 is the nearness of unrelated texts.",
        ConsolidationPolicy().threshold,
        bounds=fields.UNIT,
    )
    trigger: int = option("Leave owners with fewer memories alone.", ConsolidationPolicy().trigger, bounds=_COUNT)
    layers: tuple[Layer, ...] = option(
        "Consolidate memories of this layer; by default, of all but session.", (), bounds=LAYERS, flag="only-layer"
    )
    manual: bool = option(_MANUAL, False)
    schedule: str | None = option(_SCHEDULE, bounds=fields.LINE)


def _set_consolidation(caller: Caller, given: SetConsolidation) -> Consolidating:
    told: dict[str, Any] = {
        name: value for name in ("layers", "schedule") if (value := getattr(given, name)) not in (None, ())
    }
    policy = replace(
        ConsolidationPolicy(threshold=given.threshold, trigger=given.trigger, automatic=not given.manual), **told
    )
    owner, upkeep = owner_in(caller, given.layer), caller.memories.upkeep
    upkeep.set_consolidation(policy, owner=owner)
    return _consolidating(owner, upkeep.consolidation(owner=owner) or policy)


CONSOLIDATION_SET = Verb(
    name="consolidation.set",
    input=SetConsolidation,
    output=Consolidating,
    run=_set_consolidation,
    method="Upkeep.set_consolidation",
    errors=(PlanRestriction,),
    creates=True,
    description="It takes the place of the one before. Memories that say the same become one; the originals are"
    " superseded and stay reachable. Turns of conversations, events, and pinned, held, keyed or sensitive memories"
    " stay as they are.",
    examples=(
        Example(line="wellkept consolidation set", says="for everybody, every day at midnight UTC"),
        Example(line="wellkept consolidation set --layer user --trigger 100 --manual", says="one user's, by hand"),
    ),
)


def _clear_consolidation(caller: Caller, given: Clear) -> Cleared:
    return Cleared(cleared=caller.memories.upkeep.clear_consolidation(owner=owner_in(caller, given.layer)))


CONSOLIDATION_CLEAR = Verb(
    name="consolidation.clear",
    input=Clear,
    output=Cleared,
    run=_clear_consolidation,
    method="Upkeep.clear_consolidation",
    examples=(Example(line="wellkept consolidation clear", says="nothing is merged by itself any more"),),
)


# -- the end of sessions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """A policy for the end of sessions, and whose it is."""

    owner: Owner | None = result("Whose policy it is; null for that of the whole database.")
    promote_importance: float | None = result("The importance from which memories go to the user.", bounds=fields.UNIT)
    promote_uses: int | None = result("The number of reads from which memories go to the user.", bounds=_COUNT)
    delete_after: str | None = result("How long after the end the rest is kept; null: for ever.", bounds=fields.ID)
    permanent: bool = result("Whether the rest is then erased; otherwise it is forgotten.")
    automatic: bool = result("Whether the policy is applied by itself.")
    schedule: str = result("The cron expression that says when, in UTC.", bounds=fields.LINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """All policies for the end of sessions."""

    policies: tuple[Ending, ...] = result("The policies, that of the whole database first.", bounds=MANY)


def _ending(owner: Owner | None, policy: SessionEndPolicy) -> Ending:
    return Ending(
        owner=owner,
        promote_importance=policy.promote_importance,
        promote_uses=policy.promote_uses,
        delete_after=age_text(policy.delete_after),
        permanent=policy.permanent,
        automatic=policy.automatic,
        schedule=policy.schedule,
    )


def _endings(caller: Caller, _: Nothing) -> Endings:
    found = _ordered(dict(caller.memories.upkeep.session_end_policies()))
    return Endings(policies=tuple(_ending(owner, policy) for owner, policy in found))


ENDINGS = Verb(
    name="endings",
    input=Nothing,
    output=Endings,
    run=_endings,
    method="Upkeep.session_end_policies",
    description="Without a policy all memories of a session stay when it is closed.",
    examples=(Example(line="wellkept endings", says="all policies"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetEnding:
    """The policy, and whose it is."""

    layer: Layer | None = layer_field()
    promote_importance: float | None = option(
        "Copy memories of at least this importance to the user.", bounds=fields.UNIT, flag="promote"
    )
    promote_uses: int | None = option(
        "Copy memories that were read at least so often to the user.", bounds=Bounds(minimum=1, maximum=2**31)
    )
    delete_after: str | None = age_field("Forget the rest so long after the end; 0d is at once", "delete-after")
    permanent: bool = option("Erase the rest instead of forgetting it; this cannot be undone.", False)
    manual: bool = option(_MANUAL, False)
    schedule: str | None = option(_SCHEDULE, bounds=fields.LINE)


def _set_ending(caller: Caller, given: SetEnding) -> Ending:
    names = ("promote_importance", "promote_uses", "delete_after", "schedule")
    told: dict[str, Any] = {name: value for name in names if (value := getattr(given, name)) is not None}
    policy = replace(SessionEndPolicy(permanent=given.permanent, automatic=not given.manual), **told)
    owner, upkeep = owner_in(caller, given.layer), caller.memories.upkeep
    upkeep.set_session_end(policy, owner=owner)
    return _ending(owner, upkeep.session_end(owner=owner) or policy)


ENDINGS_SET = Verb(
    name="endings.set",
    input=SetEnding,
    output=Ending,
    run=_set_ending,
    method="Upkeep.set_session_end",
    errors=(PlanRestriction,),
    creates=True,
    description="It takes the place of the one before, and is applied when a session is closed. What is not named"
    " happens not: without --delete-after everything stays. Pinned and held memories stay.",
    examples=(
        Example(line="wellkept endings set --promote 0.8", says="what is important goes to the user, the rest stays"),
        Example(line="wellkept endings set --promote-uses 5 --delete-after 7d --layer user", says="one user's"),
    ),
)


def _clear_ending(caller: Caller, given: Clear) -> Cleared:
    return Cleared(cleared=caller.memories.upkeep.clear_session_end(owner=owner_in(caller, given.layer)))


ENDINGS_CLEAR = Verb(
    name="endings.clear",
    input=Clear,
    output=Cleared,
    run=_clear_ending,
    method="Upkeep.clear_session_end",
    examples=(Example(line="wellkept endings clear", says="everything stays when a session ends"),),
)
