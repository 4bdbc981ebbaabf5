"""Scores, as pure functions."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import ranking, words
from recollect.ranking import Signals
from recollect.testing import builders
from recollect.testing.strategies import contents

NUMBERS = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)  # as vectors are stored
PAIRS = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2))
SCORES = st.none() | st.floats(-2, 2)


@given(PAIRS)
def test_cosine_is_the_cosine(pair: tuple[Sequence[float], Sequence[float]]) -> None:
    left, right = pair
    found = ranking.cosine(left, right)
    lengths = math.hypot(*left) * math.hypot(*right)
    products = [x * y for x, y in zip(left, right, strict=True)]
    expected = math.fsum(products) / lengths if lengths else 0.0
    assert found == pytest.approx(expected, abs=1e-6)
    assert abs(found) <= 1 + 1e-9
    assert found == pytest.approx(ranking.cosine(right, left))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 0], [0, 5], 0.0),
        ([2, 0], [5, 0], 1.0),
        ([1, 1], [-3, -3], -1.0),
        ([3, 4], [4, 3], 0.96),
        ([0, 0], [1, 0], 0.0),
        ([3e38, 0], [3e38, 3e38], math.sqrt(0.5)),
        ([1e-38, 0], [1e-38, 1e-38], math.sqrt(0.5)),
    ],
)
def test_cosines_by_hand(left: list[float], right: list[float], expected: float) -> None:
    assert ranking.cosine(left, right) == pytest.approx(expected)


def test_bm25_prefers_rare_words_short_texts_and_repetition() -> None:
    rare, common = ranking.bm25("tea rome", ["tea here", "rome here", "tea there", "tea again"])[1::-1]
    assert rare > common
    short, long = ranking.bm25("tea", ["green tea", "green tea with a lot of other words around it"])
    assert short > long > 0
    once, twice = ranking.bm25("tea", ["tea x y z", "tea tea y z"])
    assert twice > once


def test_bm25_by_hand() -> None:
    weight = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = 1.2 * (1 - 0.75 + 0.75 * 1 / 1.5)
    assert ranking.bm25("tea", ["tea", "green cake"]) == pytest.approx([weight * 2.2 / (1 + norm), 0.0])


@given(contents(), st.lists(contents(), max_size=5))
def test_bm25_scores_what_shares_a_word(query: str, texts: list[str]) -> None:
    scores = ranking.bm25(query, texts)
    assert len(scores) == len(texts)
    for text, score in zip(texts, scores, strict=True):
        assert (score > 0) == bool(set(words.asked(query)) & set(words.terms(text)))
    assert scores == ranking.bm25(f"{query} {query}", texts)


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("dark mode", "Dark theme", 0.5),
        ("tea tea", "TEA", 1.0),
        ("tea", "cake", 0.0),
        ("?!", "tea", 0.0),
        ("w x y z", "z", 0.25),
    ],
)
def test_coverage_is_the_share_of_the_words(query: str, text: str, share: float) -> None:
    assert ranking.coverage(query, text) == share


@pytest.mark.req("L4")
@given(st.lists(st.tuples(SCORES, SCORES, st.sampled_from([0.1, 0.5, 1.0])), max_size=8))
def test_fusing_gives_an_order_from_best_to_worst(raw: list[tuple[float | None, float | None, float]]) -> None:
    signals = [
        Signals(memory=builders.memory(importance=importance), similarity=similarity, keyword=keyword)
        for similarity, keyword, importance in raw
    ]
    fused = ranking.fuse(signals)
    assert sorted(memory.id for _, _, memory in fused) == sorted(one.memory.id for one in signals)
    kinds = {"similarity": any(one[0] is not None for one in raw), "keyword": any(one[1] is not None for one in raw)}
    by_id = {one.memory.id: one for one in signals}
    for score, reasons, memory in fused:
        assert set(reasons) == {name for name, present in kinds.items() if present}
        assert 0 <= score <= 1
        for name, value in reasons.items():
            assert value == min(1.0, max(0.0, getattr(by_id[memory.id], name) or 0.0))
        assert score == pytest.approx(sum(reasons.values()) / (len(reasons) or 1))
    places = [(-score, -memory.importance, memory.id) for score, _, memory in fused]
    assert places == sorted(places)


@pytest.mark.req("L4")
def test_hits_are_ranked_from_one_and_explained_on_request() -> None:
    fused = ranking.fuse([Signals(memory=builders.memory(str(n)), keyword=n / 10) for n in (1, 3, 2)])
    plain = ranking.hits(fused, limit=2, explain=False)
    assert [(hit.rank, hit.memory.content, hit.score, dict(hit.reasons)) for hit in plain] == [
        (1, "3", 0.3, {}),
        (2, "2", 0.2, {}),
    ]
    assert [dict(hit.reasons) for hit in ranking.hits(fused, limit=9, explain=True)] == [
        {"keyword": 0.3},
        {"keyword": 0.2},
        {"keyword": 0.1},
    ]
