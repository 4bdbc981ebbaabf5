"""Text as terms."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.text import words

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
    assert words.terms("tea") != words.terms("team")


@given(TEXTS, TEXTS)
def test_terms_of_two_texts_add_up(left: str, right: str) -> None:
    assert words.terms(f"{left} {right}") == words.terms(left) + words.terms(right)


@given(TEXTS)
def test_packed_terms_are_in_order(text: str) -> None:
    packed = words.pack(words.terms(text))
    numbers = [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), words.TERM_BYTES)]
    assert numbers == words.terms(text)
    assert len(numbers) == len(words.tokens(text))


def test_terms_are_the_same_in_every_process() -> None:
    assert words.terms("Prefers tea") == [zlib.crc32(b"prefer"), zlib.crc32(b"tea")]


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_plain_text_has_the_terms_of_its_words(text: str) -> None:
    assert words.terms(text) == words.terms(f"{text} é")[:-1]  # the other way of splitting
