"""Plans as values: what each includes, how they are named, and what no plan is."""

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.refusals import error_of, refusal
from wellkept import entitlements
from wellkept.entitlements import PLANS, Feature, Plan
from wellkept.errors import ConfigurationError, PlanRestriction

MB = 1024**2


@pytest.mark.req("L12")
@pytest.mark.parametrize(
    ("plan", "limit", "features"),
    [
        (Plan.CORE, 0, set()),
        (Plan.WRITERPRO, 100 * MB, {Feature.LONG_TERM_MEMORY, Feature.PERSISTED_SNAPSHOTS}),
        (Plan.TEAMS, 1024 * MB, set(Feature)),
        (Plan.ENTERPRISE, None, set(Feature)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_four_plans(plan: Plan, limit: int | None, features: set[Feature]) -> None:
    assert plan.limit_bytes == limit
    assert {feature for feature in Feature if plan.allows(feature)} == features
    for feature in Feature:
        if feature in features:
            entitlements.check(plan, feature)
        else:
            with pytest.raises(PlanRestriction):
                entitlements.check(plan, feature)


@pytest.mark.req("L12")
def test_a_restriction_names_plan_feature_and_upgrade() -> None:
    upgrades = {
        Feature.LONG_TERM_MEMORY: "WriterPro",
        Feature.PERSISTED_SNAPSHOTS: "WriterPro",
        Feature.SEMANTIC_SEARCH: "Teams",
        Feature.ADVANCED_COMPACTION: "Teams",
        Feature.RETENTION_POLICIES: "Teams",
    }
    answers = {}
    for feature in upgrades:
        error = error_of(entitlements.check, Plan.CORE, feature)
        answers[feature] = error and (type(error), error.details, error.hint, error.message.partition("has no ")[0])
    assert answers == {
        feature: (
            PlanRestriction,
            {"plan": "Core", "feature": feature.value, "upgrade": upgrade},
            f"upgrade to {upgrade}",
            "the plan Core ",
        )
        for feature, upgrade in upgrades.items()
    }
    assert issubclass(PlanRestriction, PermissionError)


def test_without_a_plan_everything_is_allowed() -> None:
    for feature in Feature:
        entitlements.check(None, feature)


@given(st.sampled_from(PLANS), st.data())
def test_plans_are_known_by_name_however_it_is_written(plan: Plan, data: st.DataObject) -> None:
    cases = data.draw(st.lists(st.booleans(), min_size=len(plan.name), max_size=len(plan.name)))
    spelt = "".join(c.upper() if upper else c.lower() for c, upper in zip(plan.name, cases, strict=True))
    assert entitlements.named(spelt) is plan
    assert entitlements.named(plan) is plan


def test_no_name_is_no_plan() -> None:
    assert entitlements.named(None) is None


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as raised:
        entitlements.named("gold")
    assert raised.value.details == {"field": "plan"}
    assert "'gold'" in raised.value.message
    for name in ("core", "writerpro", "teams", "enterprise"):
        assert f"'{name}'" in raised.value.hint


def test_what_is_no_plan_is_refused() -> None:
    values: tuple[Any, ...] = (7, b"teams", Plan, ["teams"], True)
    errors = {repr(value): error_of(entitlements.named, value) for value in values}
    wrong = {
        value: error
        for value, error in errors.items()
        if not isinstance(error, ConfigurationError) or "not one" not in str(error)
    }
    assert wrong == {}


def test_a_plan_that_makes_no_sense_is_refused() -> None:
    plans: list[tuple[dict[str, Any], str]] = [
        ({"name": ""}, "plan.name"),
        ({"name": " "}, "plan.name"),
        ({"name": "a\nb"}, "plan.name"),
        ({"name": 7}, "plan.name"),
        ({"name": "x", "features": "semantic_search"}, "plan.features"),
        ({"name": "x", "features": ["telepathy"]}, "plan.features"),
        ({"name": "x", "features": [None]}, "plan.features"),
        ({"name": "x", "features": 3}, "plan.features"),
        ({"name": "x", "limit_bytes": -1}, "plan.limit_bytes"),
        ({"name": "x", "limit_bytes": 1.5}, "plan.limit_bytes"),
        ({"name": "x", "limit_bytes": True}, "plan.limit_bytes"),
        ({"name": "x", "limit_bytes": "1 GB"}, "plan.limit_bytes"),
    ]
    refusals = {str(fields): refusal(Plan, **fields).partition(": ")[2] for fields, _ in plans}
    assert refusals == {str(fields): f"ConfigurationError of {field}" for fields, field in plans}


def test_an_unknown_feature_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Plan.TEAMS.allows("telepathy")  # type: ignore[arg-type]
    assert all(feature.value in raised.value.hint for feature in Feature)


def test_a_plan_is_a_value() -> None:
    plan = Plan(name="Trial", features=["semantic_search", Feature.SEMANTIC_SEARCH], limit_bytes=5)
    assert plan == Plan(name="Trial", features={Feature.SEMANTIC_SEARCH}, limit_bytes=5)
    assert plan.features == {Feature.SEMANTIC_SEARCH}
    assert hash(plan) == hash(pickle.loads(pickle.dumps(plan)))
    with pytest.raises(FrozenInstanceError):
        plan.limit_bytes = 7  # type: ignore[misc]  # that is the point


@given(used=st.integers(0, 10**12), limit=st.integers(1, 10**12))
def test_the_warning_begins_at_eighty_percent(used: int, limit: int) -> None:
    assert entitlements.warns(used, limit) is (used * 5 >= limit * 4)


def test_a_plan_of_ones_own_names_its_own_upgrade() -> None:
    full = Plan(name="Full", features=list(Feature))
    notes = Plan(name="Notes", features=["long_term_memory"], upgrade=full)
    free = Plan(name="Free", upgrade=notes)
    for feature, upgrade in ((Feature.LONG_TERM_MEMORY, "Notes"), (Feature.SEMANTIC_SEARCH, "Full")):
        with pytest.raises(PlanRestriction) as raised:
            entitlements.check(free, feature)
        assert raised.value.hint == f"upgrade to {upgrade}"
        assert raised.value.details["upgrade"] == upgrade


def test_a_plan_without_a_bigger_one_does_not_advertise_somebody_elses() -> None:
    with pytest.raises(PlanRestriction) as raised:
        entitlements.check(Plan(name="Only"), Feature.SEMANTIC_SEARCH)
    assert raised.value.details == {"plan": "Only", "feature": "semantic_search", "upgrade": None}
    assert "semantic_search" in raised.value.hint
    assert not any(plan.name in str(raised.value) for plan in PLANS)


def test_an_upgrade_is_a_plan() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Plan(name="Trial", upgrade="teams")  # type: ignore[arg-type]  # what is refused
    assert raised.value.details["field"] == "plan.upgrade"
