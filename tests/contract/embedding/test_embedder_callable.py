"""Any function as an embedder."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wellkept
from wellkept.embedders.callable import CallableEmbedder
from wellkept.errors import ConfigurationError, EmbeddingFailed
from wellkept.ports import Embedder
from wellkept.testing.cases import Cases


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


@pytest.mark.req("L1")
@pytest.mark.parametrize(
    "function",
    [
        lengths,
        lambda texts: (row for row in lengths(texts)),
        lambda texts: tuple(lengths(texts)),
        lambda texts: np.array(lengths(texts), np.float32),
    ],
)
def test_rows_come_in_any_form(function: Callable[[list[str]], Any]) -> None:
    embedder = CallableEmbedder(function, name="lengths")
    assert isinstance(embedder, Embedder)
    assert [list(row) for row in embedder.embed(("a", "abc"))] == [[1, 1], [3, 1]]
    assert list(embedder.embed([])) == []
    with wellkept.open("ram:", embedder=embedder) as memories:
        view = memories.view(user="ada")
        memory = view.get(view.add("abc").id, include_vector=True)
    assert memory is not None
    assert memory.vector is not None
    assert (memory.vector.embedder, list(memory.vector.values)) == ("lengths", [3, 1])


@pytest.mark.req("L2")
def test_batches() -> None:
    asked: list[list[str]] = []

    def function(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return lengths(texts)

    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    for batch, sizes in ((None, [5]), (2, [2, 2, 1]), (5, [5]), (9, [5])):
        asked.clear()
        rows = CallableEmbedder(function, name="lengths", batch=batch).embed(texts)
        assert rows == lengths(texts)
        assert [len(one) for one in asked] == sizes


def test_the_dimension_is_given_or_learned() -> None:
    calls: list[int] = []

    def function(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        return lengths(texts)

    assert CallableEmbedder(function, name="lengths", dimension=7).dimension == 7
    assert calls == []
    asking = CallableEmbedder(function, name="lengths")
    assert (asking.dimension, asking.dimension) == (2, 2)
    assert calls == [1]
    learning = CallableEmbedder(function, name="lengths")
    learning.embed(["a", "b"])
    assert learning.dimension == 2
    assert calls == [1, 2]
    assert repr(learning) == "CallableEmbedder(name='lengths', dimension=2)"


WRONG_ROWS: tuple[Callable[[list[str]], Any], ...] = (
    lambda texts: lengths(texts)[1:],
    lambda texts: [*lengths(texts), [0.0, 1.0]],
    lambda texts: [],
    lambda texts: None,
    lambda texts: 1.0,
    # As many rows as texts in all, but each batch has the wrong ones.
    lambda texts: lengths(texts) + ([[0.0, 1.0]] if "secret" in texts else []),
)


@pytest.mark.req("H10", "L2")
def test_the_wrong_number_of_rows_is_refused() -> None:
    with Cases() as cases:
        for number, function in enumerate(WRONG_ROWS):
            with cases.case(number):
                with pytest.raises(EmbeddingFailed) as caught:
                    CallableEmbedder(function, name="lengths", batch=2).embed(["secret", "b", "c", "d"])
                assert caught.value.details == {"embedder": "lengths"}
                assert "secret" not in str(caught.value)


async def waiting(texts: list[str]) -> list[list[float]]:
    return lengths(texts)


BAD_SETTINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("function", {"function": None}),
    ("function", {"function": waiting}),
    ("name", {"name": ""}),
    ("name", {"name": "two\nlines"}),
    ("name", {"name": 7}),
    ("dimension", {"dimension": 0}),
    ("batch", {"batch": -1}),
    ("batch", {"batch": True}),
    ("batch", {"batch": 2.0}),
)


@pytest.mark.req("H10")
def test_settings_are_checked() -> None:
    with Cases() as cases:
        for field, settings in BAD_SETTINGS:
            with cases.case(field, settings):
                with pytest.raises(ConfigurationError) as caught:
                    CallableEmbedder(**{"function": lengths, "name": "lengths", **settings})
                assert caught.value.details == {"field": field}
                assert caught.value.hint


def test_what_the_function_raises_is_passed_on() -> None:
    def failing(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        CallableEmbedder(failing, name="failing").embed(["a"])
