"""Texts that say the same in other words, and texts that only look alike."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.same_pairs import LOOK_ALIKES, SAME, UNDECIDED
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.recall import proposals, sameness
from wellkept.testing.cases import Cases
from wellkept.testing.strategies import contents


@pytest.fixture(scope="module")
def embedder() -> WordTableEmbedder:
    return WordTableEmbedder()


def nearness(embedder: WordTableEmbedder, left: str, right: str) -> float:
    """How near two texts are in meaning: 0 is the nearness of unrelated texts, 1 that of equal ones."""
    (one, other) = (list(map(float, row)) for row in embedder.embed([left, right]))
    product = sum(a * b for a, b in zip(one, other, strict=True))
    cosine = product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
    low = embedder.calibration.low
    return (cosine - low) / (1 - low)


def said(pair: tuple[str, str], near: float | None, least: float = sameness.SAME) -> bool:
    return sameness.same(sameness.read(pair[0]), sameness.read(pair[1]), near, least)


@pytest.mark.req("H4", "H8", "N4")
def test_the_labelled_pairs_are_told_apart(embedder: WordTableEmbedder) -> None:
    joined = [pair for pair in SAME if said(pair, nearness(embedder, *pair))]
    wrong = [pair for pair in (*LOOK_ALIKES, *UNDECIDED) if said(pair, nearness(embedder, *pair))]
    assert wrong == [], "precision 1: a wrong merge takes a memory out of recall"
    assert len(joined) >= 20, "two thirds of those that say the same"


@pytest.mark.req("H8")
def test_no_vector_joins_what_differs_in_what_matters() -> None:
    with Cases() as cases:
        for pair in LOOK_ALIKES:
            with cases.case(*pair):
                assert not said(pair, 1.0, least=0.5)
                assert not said((pair[1], pair[0]), 1.0, least=0.5)


@pytest.mark.req("H8")
def test_a_lower_threshold_does_not_join_what_one_word_tells_apart(embedder: WordTableEmbedder) -> None:
    with Cases() as cases:
        for pair in UNDECIDED:
            with cases.case(*pair):
                assert not said(pair, nearness(embedder, *pair), least=0.5)


@given(left=contents(), right=contents(), near=st.none() | st.floats(-1, 1))
def test_sameness_goes_both_ways_and_includes_the_text_itself(left: str, right: str, near: float | None) -> None:
    assert said((left, left), None)
    assert said((left, right), near) == said((right, left), near)


@given(texts=st.lists(contents(), min_size=1, max_size=4))
def test_equal_texts_differ_in_no_word(texts: list[str]) -> None:
    assert sameness.differing([texts[0], texts[0]]) == ()
    assert len(set(sameness.differing(texts))) == len(sameness.differing(texts))


# -- proposals --------------------------------------------------------------------------------------------------

SOURCES = ("The API uses port 8080", "API uses the port 8080")


POOR_PROPOSALS: tuple[tuple[object, str], ...] = (
    (None, "is a NoneType, not a text"),
    (b"port 8080", "is a bytes, not a text"),
    (" ", "is empty, or longer than its sources together"),
    ("port 8080 " * 20, "is empty, or longer than its sources together"),
    ("The API uses a port", "leaves out a number"),
    ("The API uses port 8080 and 9090", "has a number that no source has"),
    ("The API does not use port 8080", "denies what its sources say, or the other way round"),
    ("The API of Contoso uses port 8080", "has a name that no source has"),
    ("uses port 8080 abcdefghijklmnopqrstuvwxyz", "has a long string that no source has"),
)


@pytest.mark.req("H8")
def test_a_proposal_that_cannot_stand_for_its_sources_is_refused() -> None:
    with Cases() as cases:
        for answer, wrong in POOR_PROPOSALS:
            with cases.case(answer):
                assert proposals.fault(answer, SOURCES) == wrong


@pytest.mark.parametrize("answer", ["The API uses port 8080", "Port 8080 is used by the API"])
def test_a_good_proposal_is_taken(answer: str) -> None:
    assert proposals.fault(answer, SOURCES) is None


def test_sources_are_not_repeated_in_a_fault() -> None:
    sources: Sequence[str] = ("The key is hunter22",)
    fault = proposals.fault("The key is hunter33", sources)
    assert fault is not None
    assert "hunter" not in fault
