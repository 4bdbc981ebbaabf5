"""The embedder without a model."""

import math
from array import array

from hypothesis import given
from hypothesis import strategies as st

from wellkept.embedders.hashing import HashingEmbedder
from wellkept.ports import Embedder


def _cosine(left: "array[float]", right: "array[float]") -> float:
    return sum(x * y for x, y in zip(left, right, strict=True))  # the embedder's rows are one unit long


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=4), st.sampled_from([1, 2, 64]))
def test_one_unit_vector_per_text_and_always_the_same(texts: list[str], dimension: int) -> None:
    embedder = HashingEmbedder(dimension)
    assert isinstance(embedder, Embedder)
    assert embedder.name == f"hashing-{dimension}"
    rows = embedder.embed(texts)
    assert len(rows) == len(texts)
    for row in rows:
        assert len(row) == embedder.dimension
        assert math.isclose(math.hypot(*row), 1, rel_tol=1e-6)
    assert rows == HashingEmbedder(dimension).embed(texts)


def test_shared_words_make_texts_similar() -> None:
    dark, mode, rome = HashingEmbedder().embed(["I like dark mode", "DARK mode!", "Lives in Rome"])
    assert _cosine(dark, mode) > 0.6
    assert abs(_cosine(dark, rome)) < 0.3
