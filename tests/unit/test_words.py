"""Text as terms."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import words

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


def test_words_are_folded_and_free_of_punctuation() -> None:
    assert words.words("Dark-mode, STRASSE & Straße! a_b 42") == ["dark", "mode", "strasse", "strasse", "a", "b", "42"]
    assert words.words("Café Ångström") == ["cafe", "angstrom"]
    assert words.words("… — !") == []


@pytest.mark.parametrize(
    ("one", "other"), [("prefers", "preferred"), ("cities", "city"), ("Indentation", "indent"), ("Café", "cafe")]
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert words.terms(one) == words.terms(other)


def test_other_words_are_other_terms() -> None:
    assert not words.terms("tea").keys() & words.terms("team").keys()


@given(TEXTS, TEXTS)
def test_terms_of_two_texts_add_up(left: str, right: str) -> None:
    assert words.terms(f"{left} {right}") == Counter(words.terms(left)) + Counter(words.terms(right))


def test_a_query_asks_for_its_telling_words() -> None:
    assert words.asked("What is the theme of the user?") == list(words.terms("theme user"))
    assert words.asked("who am I") == list(words.terms("who am i"))
    assert words.asked("tea and tea") == list(words.terms("tea"))
    assert words.asked("?!") == []


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.integers(1, 1000), max_size=20))
def test_packed_terms_are_sorted_and_counted(found: dict[int, int]) -> None:
    packed, size = words.pack(Counter(found)), len(found)
    terms = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, 4 * size, 4)]
    assert terms == sorted(found)
    assert list(packed[4 * size :]) == [min(255, found[term]) for term in terms]
