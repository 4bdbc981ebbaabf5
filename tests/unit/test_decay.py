"""How memories fade."""

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.refusals import refusal
from tests.support.samples import memory
from tests.unit.test_sealing import sealed
from wellkept.lifecycle import decay
from wellkept.testing.builders import START, owner
from wellkept.types import DecayPolicy, MemoryType

AGES = st.timedeltas(timedelta(0), timedelta(days=400))
TYPES = st.sampled_from(MemoryType)
FADING = [kind for kind in MemoryType if decay.HALF_LIVES[kind] is not None]


@pytest.mark.req("J7")
def test_every_type_has_a_half_life_or_none() -> None:
    assert set(decay.HALF_LIVES) == set(MemoryType)
    assert set(MemoryType) - set(FADING) == {MemoryType.CORRECTION, MemoryType.PREFERENCE}
    days = {MemoryType.CONVERSATION: 7, MemoryType.FINDING: 14, MemoryType.DECISION: 30}
    assert {kind: decay.HALF_LIVES[kind] for kind in days} == {kind: timedelta(n) for kind, n in days.items()}
    assert decay.USUAL.min_decay_factor == 0.1


@pytest.mark.req("J7")
def test_half_is_left_after_the_half_life_of_the_type() -> None:
    wrong = {}
    for kind in FADING:
        half_life = decay.HALF_LIVES[kind]
        assert half_life is not None
        one = memory(type=kind)
        left = [decay.factor(one, START + times * half_life) for times in (0, 1, 2, 3)]
        at_last = decay.factor(one, START + 100 * half_life)
        if left != pytest.approx([1, 0.5, 0.25, 0.125]) or at_last != decay.USUAL.min_decay_factor:
            wrong[kind] = left, at_last
    assert wrong == {}


@pytest.mark.req("J7")
@given(kind=TYPES, ages=st.lists(AGES, min_size=2, max_size=2).map(sorted))
def test_what_is_older_counts_no_more(kind: MemoryType, ages: list[timedelta]) -> None:
    newer, older = (decay.factor(memory(type=kind), START + age) for age in ages)
    assert decay.USUAL.min_decay_factor <= older <= newer <= 1
    if kind not in FADING:
        assert older == newer == 1


@pytest.mark.req("J7")
@given(kind=TYPES, age=AGES)
def test_the_curve_that_is_shown_is_the_one_that_memories_follow(kind: MemoryType, age: timedelta) -> None:
    hours = age / timedelta(hours=1)
    shown = decay.factor_at(hours, decay.half_life_hours(kind))
    assert shown == pytest.approx(decay.factor(memory(type=kind), START + age), rel=1e-6)


@given(kind=TYPES, given_factor=st.floats(0, 1), age=AGES)
def test_a_factor_that_a_memory_was_given_stands(kind: MemoryType, given_factor: float, age: timedelta) -> None:
    assert decay.factor(memory(type=kind, decay_factor=given_factor), START + age) == given_factor


@given(age=AGES)
def test_a_clock_that_went_back_makes_nothing_count_more_than_new(age: timedelta) -> None:
    one = memory(type=MemoryType.EVENT, last_accessed_at=START)
    assert decay.factor(one, START - age) == 1
    assert decay.recency(one, START - age) == 1.5


@given(used=AGES, since=AGES)
def test_recency_counts_from_the_last_use(used: timedelta, since: timedelta) -> None:
    at = START + used
    touched, untouched = memory(last_accessed_at=at), memory()
    assert 1 <= decay.recency(touched, at + since) <= 1.5
    assert decay.recency(touched, at + since) == pytest.approx(decay.recency(untouched, START + since))
    assert decay.recency(touched, at + since) >= decay.recency(untouched, at + since)


def test_half_of_the_bonus_is_gone_after_a_day() -> None:
    left = [decay.recency(memory(), START + timedelta(days=days)) for days in (0, 1, 2, 365)]
    assert left == pytest.approx([1.5, 1.25, 1.125, 1])


@given(kind=TYPES, age=AGES, used=st.none() | AGES, importance=st.floats(0, 1), fades=st.booleans())
def test_the_worth_of_a_memory_is_the_product_of_its_parts(
    kind: MemoryType, age: timedelta, used: timedelta | None, importance: float, fades: bool
) -> None:
    policy = DecayPolicy(enabled=fades, half_life_hours=2_000.0)  # ages of some days fade, none comes to the floor soon
    one = memory(type=kind, importance=importance, last_accessed_at=None if used is None else START + used)
    parts = decay.relevance(one, START + age, policy)
    assert -decay.irrelevance_of(START + age, {one.owner: policy})(sealed(one)) == math.prod(parts.values())


@given(
    kind=TYPES,
    left=st.none() | st.floats(0, 1),
    used=st.none() | AGES,
    ages=st.lists(st.timedeltas(timedelta(days=-1), timedelta(days=400)), min_size=2, max_size=2).map(sorted),
    policy=st.builds(
        DecayPolicy,
        enabled=st.booleans(),
        half_life_hours=st.none() | st.floats(0.1, 1e12),
        min_decay_factor=st.floats(0, 1),
        by_type_hours=st.just({MemoryType.PREFERENCE: 1.0}),
    ),
)
def test_a_memory_that_is_left_alone_never_counts_more_later(
    kind: MemoryType, left: float | None, used: timedelta | None, ages: list[timedelta], policy: DecayPolicy
) -> None:
    last = None if used is None else START + used
    one = memory(type=kind, importance=0.7, decay_factor=left, last_accessed_at=last)
    first, second = (decay.irrelevance_of(START + at, {one.owner: policy})(sealed(one)) for at in ages)
    assert first <= second + 1e-12


def test_the_memories_of_each_owner_fade_as_its_policy_says() -> None:
    ada, bob = memory(), memory(whose=owner("bob"))
    policies = {ada.owner: DecayPolicy(enabled=False), bob.owner: DecayPolicy(half_life_hours=1)}
    now = START + timedelta(days=1)
    order = decay.irrelevance_of(now, policies)
    for one in (ada, bob):
        assert -order(sealed(one)) == math.prod(decay.relevance(one, now, policies[one.owner]).values())
    assert order(sealed(ada)) < order(sealed(bob))


@pytest.mark.req("H7")
def test_a_daily_rate_that_is_none_is_refused() -> None:
    rates: tuple[Any, ...] = (-1, 0, 1, 2, math.nan, "fast")
    refusals = {repr(rate): refusal(DecayPolicy.from_daily_rate, rate).partition(": ")[2] for rate in rates}
    assert refusals == dict.fromkeys(refusals, "InvalidInput of rate")
