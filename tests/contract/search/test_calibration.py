"""What cosines mean: declared, or measured with any embedder."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, EmbeddingFailed
from wellkept.recall.calibration import ENOUGH, LEAST_SPAN, PAIRS, PLAIN, Calibration, estimate, measure

COSINES = st.floats(-1.001, 1.001)


@given(COSINES, COSINES, COSINES, COSINES)
def test_similarities_are_clipped_and_keep_the_order(low: float, high: float, one: float, two: float) -> None:
    if not low < high:
        return
    scale = Calibration(low=low, high=high)
    assert scale.of(low) == 0
    assert scale.of(high) == 1
    similarities = [scale.of(cosine) for cosine in sorted((one, two))]
    assert 0 <= similarities[0] <= similarities[1] <= 1


@pytest.mark.req("H10")
@pytest.mark.parametrize(("low", "high"), [(0.5, 0.5), (0.6, 0.5), (math.nan, 1), (0, math.nan), (0, math.inf)])
def test_a_scale_needs_two_ends(low: float, high: float) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Calibration(low=low, high=high)
    assert caught.value.details == {"field": "calibration"}
    assert caught.value.hint


def mixed(noise: float, common: float) -> Callable[[Sequence[str]], list[list[float]]]:
    """An embedder that knows which question belongs to which statement, as far as the noise lets it.

    ``common`` is a part that all vectors share: it makes the cosines of unrelated texts as high as one likes.
    """
    partner = {text: f"{number}" for number, pair in enumerate(PAIRS) for text in pair}

    def direction(seed: str) -> list[float]:
        chance = random.Random(seed)
        numbers = [chance.gauss(0, 1) for _ in range(256)]
        return [number / math.hypot(*numbers) for number in numbers]

    def embed(texts: Sequence[str]) -> list[list[float]]:
        shared = direction("shared")
        return [
            [
                topic + noise * own + common * all_
                for topic, own, all_ in zip(direction(partner[text]), direction(text), shared, strict=True)
            ]
            for text in texts
        ]

    return embed


@pytest.mark.req("N8")
@pytest.mark.parametrize(("noise", "common"), [(0.5, 0.0), (0.5, 1.5), (1.0, 0.5), (0.2, 3.0)])
def test_similarities_mean_the_same_whatever_the_embedder(noise: float, common: float) -> None:
    embed = mixed(noise, common)
    scale = measure(embed)
    # Topic, own and common directions are all but orthogonal, so the cosines follow from their lengths.
    length = 1 + noise**2 + common**2
    assert scale.low == pytest.approx(common**2 / length, abs=0.03)
    assert scale.high == pytest.approx((1 + common**2) / length, abs=0.05)


def test_about_a_quarter_of_the_matches_is_as_good_as_can_be() -> None:
    embed = mixed(1.0, 1.0)
    scale = measure(embed)
    similarities = []
    for question, statement in PAIRS:
        left, right = embed([question, statement])
        cosine = sum(x * y for x, y in zip(left, right, strict=True)) / math.hypot(*left) / math.hypot(*right)
        similarities.append(scale.of(cosine))
    assert sum(similarity > 1 - 1e-9 for similarity in similarities) in (5, 6)
    assert min(similarities) > 0.5


def test_one_batch_of_different_texts() -> None:
    asked: list[Sequence[str]] = []

    def embed(texts: Sequence[str]) -> list[Any]:
        asked.append(texts)
        return HashingEmbedder().embed(texts)

    first, second = measure(embed), measure(embed)
    assert first == second
    assert first.high > first.low + LEAST_SPAN
    assert [len(set(texts)) for texts in asked] == [2 * len(PAIRS)] * 2


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1.0, PLAIN), (-2.5, PLAIN), (0.0, Calibration(low=0, high=1)), (math.nan, PLAIN), (math.inf, PLAIN)],
)
def test_an_embedder_that_says_nothing_leaves_the_cosine_as_it_is(number: float, expected: Calibration) -> None:
    assert measure(lambda texts: [[number] * 8] * len(texts)) == expected


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_chance_is_not_stretched_to_a_match(common: float) -> None:
    scale = measure(mixed(50.0, 50.0 * common))
    assert scale.high == 1
    assert scale.low == pytest.approx(common / (1 + common), abs=0.05)


@pytest.mark.req("H10")
@pytest.mark.parametrize(
    "embed",
    [
        lambda texts: [],
        lambda texts: [[1.0, 2.0]] * (len(texts) - 1),
        lambda texts: [[1.0, 2.0]] * (len(texts) + 1),
        lambda texts: [[1.0, 2.0]] * (len(texts) - 1) + [[1.0]],
    ],
)
def test_what_is_no_embedder_is_refused(embed: Callable[[Sequence[str]], list[list[float]]]) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        measure(embed)
    assert caught.value.hint


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0, 2.0])
def test_an_estimate_agrees_with_the_measure(common: float) -> None:
    """Where unrelated texts lie is seen in any vectors; where a match lies is the same share of the way to 1."""
    embed = mixed(1.0, common)
    rows = embed([text for pair in PAIRS for text in pair])
    found, measured = estimate(rows), measure(embed)
    assert found is not None
    assert found.low == pytest.approx(max(0.0, measured.low), abs=0.05)
    assert found.high == pytest.approx(measured.high, abs=0.2)


def test_an_estimate_needs_enough_vectors_and_some_difference() -> None:
    rows = HashingEmbedder().embed([f"text {number}" for number in range(ENOUGH)])
    assert estimate(rows[1:]) is None
    assert estimate(rows) is not None
    assert estimate([[1.0, 0.0]] * ENOUGH) == PLAIN
    assert estimate([[0.0, 0.0]] * ENOUGH) == Calibration(low=0.0, high=0.6)
