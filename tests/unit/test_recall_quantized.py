"""Comparing vectors: codes stand for directions, the best are found without sorting, and signs lose nothing of note."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.filters import Where
from wellkept.recall import owner_index, quantized, signals
from wellkept.recall.arrays import Array, best
from wellkept.recall.entries import Entry
from wellkept.recall.owner_index import OwnerIndex, Scored
from wellkept.recall.weights import of as weights_of
from wellkept.testing.builders import START, owner, vector
from wellkept.text import query_text, words

NOW = Where(now=START)
DIMENSION = 48


def rows(seed: int, count: int) -> Array:
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype("<f4")


def cosines(left: Array, right: Array) -> Array:
    wide = [some.astype(np.float64) / np.linalg.norm(some, axis=-1, keepdims=True) for some in (left, right)]
    return np.asarray(wide[0] @ wide[1].T)


def indexed(texts: Sequence[str], vectors: Sequence[Array]) -> OwnerIndex:
    """An index of plain facts, some of which have several passages; their ids are their places."""
    dimension = vectors[0].shape[-1]
    index = OwnerIndex(owner("ada"), dimension)
    index.add(
        Entry(
            id=str(place),
            born=place + 1,
            born_at=place,
            terms=words.pack(words.terms(text)),
            session=0,
            marks=0,
            author=None,
            occurred=0.0,
            expires=None,
            importance=0.5,
            vector=passages.tobytes() or None,
            dimension=dimension,
        )
        for place, (text, passages) in enumerate(zip(texts, vectors, strict=True))
    )
    index.settle()
    return index


def first(found: Scored) -> tuple[int, float]:
    """The row that comes first, and its score."""
    place = int(np.argmax(found.scores))
    return int(found.rows[place]), float(found.scores[place])


@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_codes_stand_for_cosines(seed: int, count: int) -> None:
    many, one = rows(seed, count), rows(seed + 1, 1)
    codes = quantized.encode(many)
    asked = quantized.question(one[0].tobytes())
    found = asked.cosines(asked.products(codes, quantized.weights(codes)))
    assert np.abs(found - cosines(one, many)[0]).max() < 0.02
    assert np.abs(quantized.between(quantized.encode(one), codes) - cosines(one, many)).max() < 0.02
    # Whole numbers, whatever stands for zero: the order is exactly that of the codes.
    plain = (codes.astype(np.int64) - quantized.ZERO) @ (asked.code.astype(np.int64) - quantized.ZERO)
    assert np.rint(found * quantized.SCALE**2).astype(np.int64).tolist() == plain.tolist()


@given(
    values=st.lists(st.integers(-3, 200), min_size=1, max_size=30),
    times=st.integers(1, 60),
    count=st.integers(0, 12),
    seed=st.integers(0, 2**32),
)
def test_the_best_are_the_best_however_many_there_are(values: list[int], times: int, count: int, seed: int) -> None:
    many = np.random.default_rng(seed).permutation(np.repeat(np.array(values, np.float64), times))
    places = best(many, count)
    assert len(set(places.tolist())) == len(places) == min(count, len(many))
    assert sorted(many[places].tolist()) == sorted(many.tolist())[len(many) - len(places) :]


def test_of_very_many_passages_signs_choose_and_their_memories_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some memories have no vector, some have several: what is found must be the memory of the passage that agrees."""
    flat = rows(5, 3_000)
    spread = [flat[start : start + size] for start, size in zip(range(0, 2_990, 2), [2, 0, 1] * 499, strict=False)]
    index = indexed(["x"] * len(spread), spread)
    wanted = vector(*(spread[900][1] + 0.1 * flat[7]).tolist())
    asked = quantized.question(wanted.data)
    before = first(index.nearest(asked, NOW, 5))
    monkeypatch.setattr(quantized, "MANY", 100)
    monkeypatch.setattr(quantized, "WIDE", DIMENSION)
    monkeypatch.setattr(quantized, "_FEWEST", 50)
    after = first(index.nearest(asked, NOW, 5))
    assert after == before
    assert after[0] == 900
    found = index.candidates(np.array([900]), np.zeros(0, np.int64))
    assert signals.nearest_passages(found, np.array([0]), wanted).tolist() == [1]


@pytest.mark.parametrize("columns", [160, quantized.WIDE, 384])
def test_of_very_many_the_ten_nearest_are_those_of_the_exact_scan(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In clusters, as sentences lie; at least 999 in 1,000 of them. Narrow vectors are all compared."""
    dice = np.random.default_rng(columns)
    centres = dice.standard_normal((200, columns))
    many = (centres[dice.integers(200, size=20_000)] + 0.7 * dice.standard_normal((20_000, columns))).astype(np.float32)
    asked = many[:100] + 0.5 * dice.standard_normal((100, columns)).astype(np.float32)
    index = indexed(["x"] * len(many), list(many[:, None, :]))
    questions = [quantized.question(one.astype("<f4").tobytes()) for one in asked]
    exact = [index.nearest(one, NOW, 10, exact=False).scores for one in questions]
    monkeypatch.setattr(quantized, "MANY", 10_000)
    assert quantized.by_signs(index.codes.rows) is (columns >= quantized.WIDE)
    found = [index.nearest(one, NOW, 10, exact=False).scores for one in questions]
    share = np.mean([np.mean(some >= least.min()) for some, least in zip(found, exact, strict=True)])
    assert share >= (0.999 if columns >= quantized.WIDE else 1.0)


def test_among_very_many_what_is_found_by_its_words_keeps_its_similarity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signs did not choose it, but it is compared as soon as its words did."""
    monkeypatch.setattr(quantized, "MANY", 100)
    monkeypatch.setattr(quantized, "WIDE", DIMENSION)
    monkeypatch.setattr(quantized, "_FEWEST", 20)
    flat = rows(6, 400)
    flat[17] = -flat[3]
    texts = ["x"] * len(flat)
    texts[17] = "zeppelin"
    index = indexed(texts, list(flat[:, None, :]))
    asked = vector(*flat[3].tolist())
    assert 17 not in index.nearest(quantized.question(asked.data), NOW, 200).rows.tolist()
    [row] = index.worded(NOW, dict.fromkeys(words.terms("zeppelin"), 1.0), 1.0, 200, ()).rows.tolist()
    found = index.candidates(np.array([row]), np.zeros(0, np.int64))
    parsed = query_text.parse("zeppelin")
    question = signals.Question(asked=parsed, vector=asked)
    model = weights_of("any").model
    measured = signals.measure(found, question, signals.weigh(parsed, 400, 400, [1]), pool=9, kept=9, model=model)
    assert measured.values["similarity"].tolist() == pytest.approx([-1], abs=0.02)


def test_nothing_is_compared_with_nothing() -> None:
    asked = quantized.question(rows(1, 1).tobytes())
    none = np.zeros((0, DIMENSION), np.uint8)
    assert len(asked.products(none, quantized.weights(none))) == 0
    assert quantized.between(none, none).shape == (0, 0)


def test_where_vectors_are_crowded_the_nearest_are_among_three_times_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 8 bits some cannot be told apart; of those too many to keep, more are read and compared than asked for."""
    monkeypatch.setattr(owner_index, "EXACT", 10)
    flat = (rows(8, 1) + 0.5 * rows(9, 600)).astype("<f4")
    index = indexed(["x"] * len(flat), list(flat[:, None, :]))
    missed = 0
    for asked in rows(8, 1) + 0.5 * rows(10, 20):
        found = index.nearest(quantized.question(asked.astype("<f4").tobytes()), NOW, 30).rows.tolist()
        truly = np.argsort(-cosines(asked[None, :].astype("<f4"), flat)[0])[:10]
        missed += len(set(truly.tolist()) - set(found))
    assert missed == 0
