"""Counting tokens: the fallback, the vocabularies, and counters that callers bring."""

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import ConfigurationError, InvalidInput
from wellkept.testing.cases import Cases
from wellkept.text import tokens


@pytest.mark.req("C1")
@given(st.text())
def test_the_fallback_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    assert tokens.by_characters(text) == math.ceil(len(text) / 4)


def vocabulary(absent: Callable[[str], NoReturn], name: str = "o200k_base") -> tokens.TokenCounter:
    if find_spec("splintr") is None:
        absent("wellkept[tokens] is not installed")
    return tokens.bpe_counter(name)


# Counted by two other implementations of the same vocabulary.
COUNTED = [
    ("", 0),
    ("hello world, it's me", 5),
    ("\u00dcn\u00ef \u65e5\u672c\u8a9e text \U0001f389", 8),
    ("<|endoftext|> hi <|im_start|>", 14),
    ("a\x00b", 3),
    ("x" * 100_000, 12_500),
    ("\u202eabc", 2),
    ("The quick brown fox. " * 500, 2_501),
]


@pytest.mark.req("C1")
def test_a_vocabulary_counts_as_the_model_does(absent: Callable[[str], NoReturn]) -> None:
    with Cases() as cases:
        for text, count in COUNTED:
            with cases.case(text):
                assert vocabulary(absent)(text) == count


def test_another_vocabulary_counts_otherwise(absent: Callable[[str], NoReturn]) -> None:
    text = "\u0443\u043a\u0440\u0430\u0457\u043d\u0441\u044c\u043a\u0430 \u043c\u043e\u0432\u0430 " * 20
    assert vocabulary(absent, "cl100k_base")(text) > vocabulary(absent)(text)


def test_an_unknown_vocabulary_is_refused(absent: Callable[[str], NoReturn]) -> None:
    vocabulary(absent)
    with pytest.raises(ConfigurationError, match="no vocabulary is named") as caught:
        tokens.bpe_counter("nope" * 100)
    assert len(str(caught.value)) < 200
    assert caught.value.hint


NO_TEXTS: tuple[Any, ...] = (
    None,
    7,
    b"o200k_base",
)


def test_the_name_of_a_vocabulary_is_text() -> None:
    with Cases() as cases:
        for encoding in NO_TEXTS:
            with cases.case(encoding), pytest.raises(ConfigurationError, match="encoding must be text"):
                tokens.bpe_counter(encoding)


def test_a_meter_asks_once_for_each_text() -> None:
    asked: list[str] = []

    def counter(text: str) -> int:
        asked.append(text)
        return 7

    meter = tokens.Meter(counter)
    assert [meter("a"), meter("b"), meter("a"), meter("")] == [7, 7, 7, 0]
    assert asked == ["a", "b"]


NO_COUNTS: tuple[Any, ...] = (
    -1,
    1.5,
    None,
    "3",
    True,
    float("nan"),
)


def test_a_counter_is_held_to_its_word() -> None:
    with Cases() as cases:
        for answer in NO_COUNTS:
            with cases.case(answer):
                with pytest.raises(ConfigurationError, match="the token counter returned") as caught:
                    tokens.Meter(lambda text, answer=answer: answer)("secret content")
                assert "secret" not in str(caught.value)


NO_COUNTERS: tuple[Any, ...] = (
    None,
    4,
    "o200k_base",
)


def test_what_cannot_be_called_is_no_counter() -> None:
    with Cases() as cases:
        for counter in NO_COUNTERS:
            with cases.case(counter):
                with pytest.raises(InvalidInput) as caught:
                    tokens.Meter(counter)
                assert caught.value.details["field"] == "counter"
