"""Whether the store seems to hold an answer, judged by the best memory that stands alone and the best turn."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.recall import gate, weights
from wellkept.recall.gate import Evidence
from wellkept.testing.cases import Cases

GATES = [one.gate for one in weights.known().values()]
USUAL = weights.of("any").gate
CHANCES = st.floats(-1, 12)


def seen(
    best: float = 5.0, similarity: float = 0.7, memories: int = 300, unseen_name: float = 0.0, heard: float = 0.8
) -> Evidence:
    return Evidence(best=best, similarity=similarity, size=math.log(memories), unseen_name=unseen_name, heard=heard)


@pytest.mark.req("N8")
@given(first=CHANCES, second=CHANCES)
def test_a_better_match_never_makes_an_answer_less_likely(first: float, second: float) -> None:
    low, high = sorted((first, second))
    for judge, kind in product(GATES, ("alone", "linked")):
        assert getattr(judge, kind)(seen(best=low)) <= getattr(judge, kind)(seen(best=high)), judge


@pytest.mark.req("N8")
def test_a_good_match_is_an_answer_and_a_poor_one_is_none() -> None:
    with Cases() as cases:
        for judge in GATES:
            with cases.case(judge):
                poor = seen(best=0.3, similarity=0.1, unseen_name=1.0, heard=0.2)
                good = seen(best=9.0, similarity=1.0, heard=1.0)
                assert gate.known((good, None), judge) > 0.8
                assert gate.known((None, good), judge) > 0.75
                assert gate.known((poor, poor), judge) < judge.least


@pytest.mark.req("N8")
def test_the_same_match_says_less_among_more_memories() -> None:
    with Cases() as cases:
        for judge in GATES:
            with cases.case(judge):
                for kind in ("alone", "linked"):
                    chances = [getattr(judge, kind)(seen(memories=size)) for size in (10, 300, 3_000)]
                    assert chances == sorted(chances, reverse=True)
                    assert chances[0] > chances[-1] or judge is weights.of(None).gate, (
                        "words say the same among any number"
                    )
                assert judge.alone(seen(unseen_name=1.0)) < judge.alone(seen())


@pytest.mark.req("N8")
def test_each_memory_is_judged_beside_its_like() -> None:
    """A fact in a store of conversations is judged as a fact: its score lacks the signals of a conversation."""
    similar, linked = np.array([0.4, 0.9, 0.2]), np.array([False, True, True])
    alone, turn = gate.evidence(np.array([4.0, 3.0, 8.0]), similar, linked, memories=700, unseen_name=False, heard=0.5)
    assert alone == Evidence(best=4.0, similarity=0.4, size=math.log(700), unseen_name=0.0, heard=0.5)
    assert turn == Evidence(best=8.0, similarity=0.9, size=math.log(700), unseen_name=0.0, heard=0.5)
    fact = gate.known((seen(best=3.5, similarity=0.6), None), USUAL)
    assert fact > USUAL.least
    assert gate.known((seen(best=3.5, similarity=0.6), seen(best=0.0, similarity=0.0)), USUAL) == fact


@pytest.mark.req("N8")
def test_nothing_found_is_nothing_known() -> None:
    nothing = np.zeros(0)
    assert gate.evidence(nothing, nothing, np.zeros(0, np.bool_), memories=0, unseen_name=True, heard=0.0) == (
        None,
        None,
    )
    assert gate.known((None, None), USUAL) == 0.0


@given(best=st.floats(-1e9, 1e9), similarity=st.floats(-1, 2))
def test_a_chance_lies_between_0_and_1(best: float, similarity: float) -> None:
    for judge in GATES:
        assert 0 <= judge.alone(seen(best=best, similarity=similarity)) <= 1


@pytest.mark.req("N8")
def test_words_that_nobody_says_make_an_answer_no_likelier() -> None:
    with Cases() as cases:
        for judge in GATES:
            with cases.case(judge):
                for kind in ("alone", "linked"):
                    assert getattr(judge, kind)(seen(heard=0.2)) <= getattr(judge, kind)(seen(heard=0.9))


@pytest.mark.req("N8")
def test_a_store_smaller_than_any_that_was_fitted_is_judged_as_the_smallest() -> None:
    judge = weights.of("wellkept-words-1").gate
    assert gate.known((seen(memories=1), None), judge) == gate.known((seen(memories=judge.fewest), None), judge)
