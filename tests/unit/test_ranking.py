"""Scores, as pure functions of signals."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.recall import ranking
from recollect.recall.ranking import WITH_VECTORS, WORDS_ALONE, Array, Model, Scores

MODELS = (WITH_VECTORS, WORDS_ALONE)
NAMES = sorted({*WITH_VECTORS.weights, *WORDS_ALONE.weights})
VALUES = st.floats(-1, 1, width=32)


def odds_of(score: float) -> float:
    """The log-odds that a score stands for."""
    return math.log(score / (1 - score))


@st.composite
def signals(draw: st.DrawFn, least: int = 0) -> dict[str, Array]:
    """Values of some signals for some candidates; among them one that no model knows."""
    count = draw(st.integers(least, 5))
    names = draw(st.sets(st.sampled_from([*NAMES, "unheard of"]), min_size=1))
    rows = {name: draw(st.lists(VALUES, min_size=count, max_size=count)) for name in sorted({*names, "similarity"})}
    return {name: np.array(values, np.float32) for name, values in rows.items()}


@given(found=signals(), model=st.sampled_from(MODELS))
def test_a_score_is_the_weighted_sum_of_its_signals(found: dict[str, Array], model: Model) -> None:
    scores = ranking.best(found, model)
    count = len(found["similarity"])
    assert len(scores.values) == count
    for place in range(count):
        known = {name: weight * float(found[name][place]) for name, weight in model.weights.items() if name in found}
        expected = model.base + sum(known.values())
        assert 0 < scores.values[place] < 1
        assert odds_of(float(scores.values[place])) == pytest.approx(expected, abs=1e-4)


@given(found=signals(least=1), model=st.sampled_from(MODELS))
def test_the_reasons_add_up_to_the_score(found: dict[str, Array], model: Model) -> None:
    scores = ranking.best(found, model)
    for place, score in enumerate(scores.values.tolist()):
        reasons = scores.reasons(place)
        assert set(reasons) <= {"base", *model.weights}
        assert 1 / (1 + math.exp(-sum(reasons.values()))) == pytest.approx(score, abs=1e-3)
        assert all(found[name][place] for name in reasons if name != "base"), "what is nothing is no reason"


@pytest.mark.parametrize("model", MODELS)
@given(found=signals(least=1), more=st.floats(0.1, 1), name=st.sampled_from(NAMES))
def test_more_of_a_signal_moves_the_score_the_way_it_weighs(
    model: Model, found: dict[str, Array], more: float, name: str
) -> None:
    assume(name in model.weights)
    values = found.get(name, np.zeros(len(found["similarity"]), np.float32))
    before = ranking.best(found | {name: values}, model).values
    after = ranking.best(found | {name: values + np.float32(more)}, model).values
    assert ((after - before) * model.weights[name] > 0).all()


def test_nothing_found_has_no_scores() -> None:
    for model in MODELS:
        assert len(ranking.best({}, model).values) == 0
        assert len(ranking.best({"similarity": np.zeros(0), "words": np.zeros(0)}, model).values) == 0
    assert len(ranking.similarity({}).values) == 0


@pytest.mark.parametrize("model", MODELS)
def test_the_first_look_weighs_what_is_quick_to_find(model: Model) -> None:
    """Everything but the words that a memory says or means: finding those is what the first look saves."""
    assert "words" in model.weights
    assert "words" not in model.first
    assert set(model.first) - {"keyword"} <= set(model.weights)
    assert ("similarity" in model.weights) is ("similarity" in model.first) is (model is WITH_VECTORS)


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


@pytest.mark.parametrize("score", [0.0, 1.0])
@pytest.mark.parametrize("odds", [-700.0, -1.0, 0.0, 1.0, 700.0])
def test_certainty_can_be_moved_too(score: float, odds: float) -> None:
    assert 0 <= ranking.moved(score, odds) <= 1


@given(values=st.lists(st.floats(0, 1), max_size=5))
def test_the_best_hit_is_always_shown(values: list[float]) -> None:
    least = ranking.least(Scores(np.array(values), {}))
    assert 0 <= least <= ranking.LEAST
    assert not values or max(values) >= least


def test_scores_are_values() -> None:
    scores = Scores(np.array([0.5]), {"base": np.array([0.0]), "words": np.array([0.123456])})
    assert scores.reasons(0) == {"words": 0.1235}
