"""Long texts as passages."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import chunking

SIZES = st.integers(1, 12)
ALPHABET = ["a", "b", "é", "e\u0301", "\n", " ", "\t", "\r\n", ". ", "! ", ".", "\u3002", "\u00a0", "😀", "\ud83d"]
TEXTS = st.lists(st.sampled_from(ALPHABET), max_size=60).map("".join) | st.text(max_size=60)


def pieces(text: str, size: int = 800) -> list[str]:
    return [text[start:end] for start, end in chunking.split(text, size)]


@given(TEXTS, SIZES)
@example("\n" * 20, 3)
@example("a" + " " * 20 + "b", 3)
@example("e" + "\u0301" * 40, 5)
def test_passages_are_short_and_in_order_and_leave_nothing_out(text: str, size: int) -> None:
    spans = chunking.split(text, size)
    at = 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        assert end - start <= size
        assert not text[at:start].strip()
        assert text[start:end].strip()
        at = end
    assert not text[at:].strip()


@given(TEXTS)
def test_a_short_text_is_one_passage(text: str) -> None:
    assert chunking.split(text, 1000) == (((0, len(text)),) if text.strip() else ())


@given(TEXTS, SIZES)
def test_passages_of_a_longer_text_have_no_space_around_them(text: str, size: int) -> None:
    if len(text) > size:
        assert all(piece == piece.strip() for piece in pieces(text, size))


@given(TEXTS, SIZES)
def test_a_paragraph_that_fits_stays_whole(text: str, size: int) -> None:
    found = chunking.split(text, size)
    at = 0
    for line in text.split("\n"):
        paragraph = line.strip()
        start = at + len(line) - len(line.lstrip())
        if paragraph and len(line.lstrip()) <= size:
            assert any(left <= start and start + len(paragraph) <= right for left, right in found)
        at += len(line) + 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(10, 30))
def test_a_sentence_that_fits_stays_whole(lengths: list[int], size: int) -> None:
    text = " ".join("a" * length + "." for length in lengths)
    found = pieces(text, size)
    assert " ".join(found) == text
    assert all(piece.endswith(".") for piece in found)
    for piece, following in pairwise(found):
        assert len(piece) + 1 + len(following.split()[0]) > size  # it would not have fitted


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(9, 30), st.sampled_from(" \t\u00a0"))
def test_a_word_that_fits_stays_whole(lengths: list[int], size: int, space: str) -> None:
    text = space.join("a" * length for length in lengths)
    found = pieces(text, size)
    assert space.join(found) == text
    for piece, following in pairwise(found):
        assert len(piece) + 1 + len(following.split()[0]) > size


BREAKS: tuple[tuple[str, int, list[str]], ...] = (
    ("", 5, []),
    (" \n ", 2, []),
    (" a ", 3, [" a "]),
    ("one\n\ntwo\nthree", 10, ["one\n\ntwo", "three"]),
    ("Title\nOne is here. Two is here.", 19, ["Title\nOne is here.", "Two is here."]),
    ("Title\nOne is not so short. Two.", 19, ["Title", "One is not so", "short. Two."]),
    ("Really? Yes! And; so on.", 9, ["Really?", "Yes! And;", "so on."]),
    ("version 3.11 works", 11, ["version", "3.11 works"]),
    ("茶。茶茶。茶", 3, ["茶。", "茶茶。", "茶"]),
    ("茶茶茶。茶", 3, ["茶茶茶", "。茶"]),
    ("abcdefgh", 3, ["abc", "def", "gh"]),
    ("ab cdefgh", 3, ["ab", "cde", "fgh"]),
    ("abe\u0301d", 3, ["ab", "e\u0301d"]),
    ("a👩\u200d💻b", 3, ["a", "👩\u200d💻", "b"]),
    ("a👍\U0001f3fdb", 2, ["a", "👍\U0001f3fd", "b"]),
    ("a\ud83d\ude00b", 2, ["a", "\ud83d\ude00", "b"]),
    ("e\u0301\u0301", 2, ["e\u0301", "\u0301"]),
)


def test_where_passages_break() -> None:
    with Cases() as cases:
        for text, size, found in BREAKS:
            with cases.case(text, size):
                assert pieces(text, size) == found


def test_a_passage_has_room_for_something() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chunking.split("a", 0)


def test_very_long_texts_come_to_an_end() -> None:
    """Were the time to grow with the square of the length, this would take minutes."""
    with Cases() as cases:
        for text in (
            "a" * 10**7,
            " " * 10**7,
            "a\n" * 10**6,
            ("a" + " " * 999) * 2000,
            "a" + "\u0301" * 10**6,
            "a. " * 10**6,
        ):
            with cases.case(text):
                spans = chunking.split(text)
                assert all(0 < end - start <= 800 for start, end in spans)
                assert sum(end - start for start, end in spans) >= len(text) - sum(map(text.count, " \n"))
