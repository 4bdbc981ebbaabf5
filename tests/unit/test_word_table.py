"""How the built-in embedder looks words up, and what it computes without numpy."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.embedders.word_table import Vocabulary, WordTableEmbedder


@cache
def embedder() -> WordTableEmbedder:
    return WordTableEmbedder()


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_without_numpy_the_numbers_are_the_same(texts: list[str]) -> None:
    rows = [embedder()._vocabulary.of_text(text) for text in texts]
    plain = np.array([np.frombuffer(row, np.float32) for row in embedder()._summed(rows)])
    np.testing.assert_array_max_ulp(plain, embedder().embed(texts), maxulp=1)


class LookUps(dict[str, int]):
    """Counts how often a word or a piece is looked up."""

    count = 0

    def get(self, *args: Any) -> Any:
        self.count += 1
        return super().get(*args)

    def __contains__(self, key: object) -> bool:
        self.count += 1
        return super().__contains__(key)


@pytest.mark.parametrize("unit", [".abc:def", "日本語を話す", "aB3,", "xqzj"])
def test_unspaced_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    counted = LookUps(dict(embedder()._vocabulary._numbers))
    chance = random.Random(7)
    text = "".join(chance.sample(unit, 1)[0] for _ in range(20_000))
    Vocabulary(counted).of_text(text)
    assert counted.count < 8 * len(text)
