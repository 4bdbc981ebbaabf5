"""The benchmarks judge search, so their own arithmetic is held to its definitions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import quality_metrics
from benchmarks.quality_data import ADVERSARIAL, LONGMEMEVAL, Question
from benchmarks.quality_metrics import Answer, Asked

SCORES = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=12)


def answer(turns: tuple[str, ...], gold: str = "a", *, score: float = 0.5, adversarial: bool = False) -> Answer:
    question = Question(
        name="q",
        text="?",
        category=ADVERSARIAL if adversarial else "single-hop",
        turns=frozenset(gold),
        sessions=frozenset("s" + one for one in gold),
    )
    sessions = tuple("s" + turn for turn in turns)
    return Answer(question=question, turns=turns, sessions=sessions, score=score, milliseconds=1.0)


@given(higher=SCORES, lower=SCORES)
def test_auc_counts_pairs(higher: list[float], lower: list[float]) -> None:
    won = sum(1.0 if up > down else 0.5 if up == down else 0.0 for up in higher for down in lower)
    assert quality_metrics.auc(higher, lower) == pytest.approx(won / (len(higher) * len(lower)))


def test_auc_of_nothing_is_no_number() -> None:
    assert math.isnan(quality_metrics.auc([], [0.5]))


def test_recall_is_the_share_of_what_was_wanted() -> None:
    assert quality_metrics.recall(frozenset("ab"), ["x", "a", "b"], 2) == 0.5
    assert quality_metrics.recall(frozenset("ab"), ["b", "a"], 10) == 1.0


def test_sessions_are_ranked_by_their_best_turn() -> None:
    table = quality_metrics.quality(LONGMEMEVAL, [answer(("x", "a", "x", "b"), "ab"), answer(("x",), "ab")])
    assert (table["overall"]["any@5"], table["overall"]["all@5"]) == (0.5, 0.5)
    assert table["overall"]["recall@5"] == 0.5


def test_adversarial_questions_count_for_silence_only() -> None:
    own = [answer(("a",), score=0.9), answer(("x",), score=0.2, adversarial=True)]
    silent = [answer((), score=0.0), answer((), score=0.0, adversarial=True)]
    figures = quality_metrics.knowing(Asked(own=own, own_default=silent, foreign=own[1:], foreign_default=silent[1:]))
    assert figures["points of recall@10 lost by the threshold"] == 1.0
    assert figures["foreign questions left empty"] == figures["adversarial questions left empty"] == 1.0
    assert figures["AUC against adversarial"] == 1.0
