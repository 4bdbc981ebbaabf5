"""Scores, as pure functions of signals."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.recall import ranking, weights
from wellkept.recall.ranking import Array, Scores
from wellkept.recall.weights import Fitted
from wellkept.testing.cases import Cases

SETS = tuple(weights.known().values())
NAMES = sorted({name for one in SETS for name in one.model.weights} - {ranking.BASE})
VALUES = st.floats(-1, 1, width=32)


def odds_of(score: float) -> float:
    """The log-odds that a score stands for."""
    return math.log(score / (1 - score))


@st.composite
def signals(draw: st.DrawFn, least: int = 0) -> tuple[dict[str, Array], Array]:
    """Values of some signals for some candidates, among them one that no model knows; and which of them are turns."""
    count = draw(st.integers(least, 5))
    names = draw(st.sets(st.sampled_from([*NAMES, "unheard of"]), min_size=1))
    rows = {name: draw(st.lists(VALUES, min_size=count, max_size=count)) for name in sorted({*names, "similarity"})}
    linked = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return {name: np.array(values, np.float32) for name, values in rows.items()}, np.array(linked, np.bool_)


@given(found=signals(), fitted=st.sampled_from(SETS))
def test_a_sum_is_that_of_the_weighted_signals(found: tuple[dict[str, Array], Array], fitted: Fitted) -> None:
    values, linked = found
    sums = ranking.total(ranking.weighed(values, linked, fitted.model.weights))
    for place, turn in enumerate(linked.tolist()):
        known = [
            pair[turn] * (1.0 if name == ranking.BASE else float(values[name][place]))
            for name, pair in fitted.model.weights.items()
            if name == ranking.BASE or name in values
        ]
        assert sums[place] == pytest.approx(sum(known), abs=1e-4)


@pytest.mark.req("N8", "J6")
@given(found=signals(least=1), fitted=st.sampled_from(SETS), known=st.floats(0, 1))
def test_the_reasons_add_up_to_the_score(found: tuple[dict[str, Array], Array], fitted: Fitted, known: float) -> None:
    values, linked = found
    parts = ranking.weighed(values, linked, fitted.model.weights)
    scores = ranking.chances(parts, linked, known, fitted.chance)
    for place, score in enumerate(scores.values.tolist()):
        reasons = scores.reasons(place)
        assert 0 < score < 1
        assert set(reasons) <= {ranking.OTHERS, ranking.KNOWN, *fitted.model.weights}
        assert odds_of(score) == pytest.approx(sum(reasons.values()), abs=1e-3)


@pytest.mark.req("N8")
@given(sums=st.lists(st.floats(-20, 20), min_size=1, max_size=80), fitted=st.sampled_from(SETS), data=st.data())
def test_the_order_of_chances_is_that_of_the_sums(sums: list[float], fitted: Fitted, data: st.DataObject) -> None:
    linked = np.array(data.draw(st.lists(st.booleans(), min_size=len(sums), max_size=len(sums))), np.bool_)
    scores = ranking.chances({"words": np.array(sums)}, linked, 0.7, fitted.chance).values.tolist()
    by_sum = sorted(range(len(sums)), key=lambda place: sums[place])
    for one, other in pairwise(by_sum):
        assert scores[one] <= scores[other] + 1e-9


@pytest.mark.req("N8")
def test_a_memory_is_less_likely_the_answer_where_others_match_as_well() -> None:
    with Cases() as cases:
        for fitted in SETS:
            with cases.case(fitted):
                chances = [
                    ranking.chances(
                        {"words": np.full(count, 8.0)}, np.zeros(count, np.bool_), 0.9, fitted.chance
                    ).values[0]
                    for count in (1, 2, 10, 50)
                ]
                assert chances == sorted(chances, reverse=True)
                many, more = (
                    ranking.chances(
                        {"words": np.full(count, 8.0)}, np.zeros(count, np.bool_), 0.9, fitted.chance
                    ).values[0]
                    for count in (ranking.COMPETING, 4 * ranking.COMPETING)
                )
                assert many == pytest.approx(more), "how many hits are wanted changes no score"


def test_nothing_found_has_no_scores() -> None:
    nobody = np.zeros(0, np.bool_)
    for one in SETS:
        parts = ranking.weighed({"similarity": np.zeros(0)}, nobody, one.model.weights)
        assert len(ranking.chances(parts, nobody, 0.0, one.chance).values) == 0
    assert len(ranking.similarity({}).values) == 0


def test_the_first_look_weighs_what_is_quick_to_find() -> None:
    """Everything but the words that a memory says or means: finding those is what the first look saves."""
    with Cases() as cases:
        for name in weights.known():
            with cases.case(name):
                model = weights.known()[name].model
                assert "words" in model.weights
                assert "words" not in model.first
                assert ("similarity" in model.weights) is ("similarity" in model.first) is (name != weights.WORDS)


@given(values=st.lists(st.floats(-3, 3, width=32), max_size=6))
def test_nearness_alone_is_the_similarity(values: list[float]) -> None:
    scores = ranking.similarity({"similarity": np.array(values, np.float32), "words": np.ones(len(values))})
    assert scores.values.tolist() == pytest.approx([min(1.0, max(0.0, value)) for value in values])
    for place, value in enumerate(scores.values.tolist()):
        assert scores.reasons(place) == ({"similarity": round(value, 4)} if value else {})


# --- reranking ------------------------------------------------------------------------------------


@given(score=st.floats(0.001, 0.999), odds=st.floats(-5, 5))
def test_a_score_is_moved_by_log_odds(score: float, odds: float) -> None:
    moved = ranking.moved(score, odds)
    assert odds_of(moved) == pytest.approx(odds_of(score) + odds, abs=1e-5)
    assert ranking.moved(moved, -odds) == pytest.approx(score, abs=1e-6)


def test_certainty_can_be_moved_too() -> None:
    moved = {pair: ranking.moved(*pair) for pair in product((0.0, 1.0), (-700.0, -1.0, 0.0, 1.0, 700.0))}
    assert {pair: score for pair, score in moved.items() if not 0 <= score <= 1} == {}


@given(values=st.lists(st.floats(0, 1), max_size=5))
def test_the_best_hit_is_always_shown(values: list[float]) -> None:
    least = ranking.least(Scores(np.array(values), {}))
    assert 0 <= least <= ranking.LEAST
    assert not values or max(values) >= least


def test_scores_are_values() -> None:
    scores = Scores(np.array([0.5]), {"base": np.array([0.0]), "words": np.array([0.123456])})
    assert scores.reasons(0) == {"words": 0.1235}
