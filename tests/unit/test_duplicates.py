"""What hits have to do with each other: duplicates, and those that stand before others."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.samples import memory as memory_of
from wellkept.recall import duplicates
from wellkept.recall.duplicates import Found, Said
from wellkept.testing import builders
from wellkept.testing.cases import Cases
from wellkept.testing.strategies import contents
from wellkept.text import words
from wellkept.types import Layer

# Few and alike, so that they often meet.
TEXTS = st.sampled_from(
    ["use tabs here", "Use tabs, here!", "use tabs", "use spaces here", "drink tea at noon", "Drink tea at noon.", "?!"]
)


def found(content: str, layer: Layer = Layer.USER, **fields: str | None) -> Found:
    """A hit that says something."""
    memory = memory_of(content, builders.owner("ada", layer=layer), **fields)
    return Found(memory=memory, score=0.5, reasons={}, passage=-1)


FOUND = st.lists(
    st.builds(found, TEXTS, st.sampled_from(Layer), author=st.sampled_from([None, "ada", "bob"])), max_size=8
)


def said(some: list[Found]) -> list[str]:
    return [one.memory.content for one in some]


# --- agreement ------------------------------------------------------------------------------------


@given(left=contents(), right=contents())
def test_agreement_is_the_cosine_of_word_counts(left: str, right: str) -> None:
    ours, theirs = Counter(words.terms(left)), Counter(words.terms(right))
    lengths = math.hypot(*ours.values()) * math.hypot(*theirs.values())
    expected = sum(ours[term] * theirs[term] for term in ours) / lengths if lengths else 0.0
    agreement = duplicates.agreement(Said(left), Said(right))
    assert agreement == pytest.approx(expected, abs=1e-6)
    assert agreement == duplicates.agreement(Said(right), Said(left))
    assert 0 <= agreement <= 1
    assert duplicates.agreement(Said(left), Said(left)) == (1 if ours else 0)


# --- duplicates -----------------------------------------------------------------------------------


PAIRS: tuple[tuple[str, str, bool], ...] = (
    ("use tabs here", "use tabs here", True),
    ("use tabs here", "Use tabs here!", True),
    ("use tabs here", "here use tabs", True),
    ("use tabs here", "use tabs there", False),
    ("use tabs here", "use tabs here and use them everywhere else as well", False),
    ("?!", "?!", True),
    ("?!", "!?", False),
    ("we do not use tabs in this code base at all", "we do use tabs in this code base at all", False),
    ("the old server in the north room has port 80", "the old server in the north room has port 81", False),
    ("we always do use tabs in this big code base", "we always do use tabs in this great code base", False),
)


@pytest.mark.req("H4")
def test_what_says_the_same_is_said_once() -> None:
    with Cases() as cases:
        for left, right, same in PAIRS:
            with cases.case(left, right):
                first, second = found(left), found(right)
                kept = duplicates.without_duplicates([first, second], 10)
                assert said(kept) == ([left] if same else [left, right])
                assert first.duplicates == ([second.memory.id] if same else [])


def test_the_same_words_of_two_speakers_are_two_things_said() -> None:
    some = [found("I like tea", author=author) for author in ("ada", "bob", None, "bob")]
    kept = duplicates.without_duplicates(some, 10)
    assert [one.memory.author for one in kept] == ["ada", "bob", None]
    assert [one.duplicates for one in kept] == [[], [some[3].memory.id], []]


@pytest.mark.req("H4")
@given(some=FOUND, limit=st.integers(1, 8))
def test_duplicates_are_named_and_nothing_is_lost(some: list[Found], limit: int) -> None:
    kept = duplicates.without_duplicates(some, limit)
    assert len(kept) <= limit
    places = [some.index(one) for one in kept]
    assert places == sorted(places), "the order is left as it was"
    assert kept[:1] == some[:1]
    named = [other for one in kept for other in one.duplicates]
    assert len(set(named)) == len(named)
    assert set(named).isdisjoint(one.memory.id for one in kept)
    if len(kept) < limit:  # otherwise some fall to the limit
        assert {*named, *(one.memory.id for one in kept)} == {one.memory.id for one in some}
    by_id = {one.memory.id: one for one in some}
    for one in kept:
        for other in one.duplicates:
            assert some.index(by_id[other]) > some.index(one)
            assert by_id[other].memory.author == one.memory.author
            ours, theirs = Said(one.memory.content), Said(by_id[other].memory.content)
            assert duplicates.agreement(ours, theirs) >= duplicates.DUPLICATE or not ours.raw


@given(some=FOUND, limit=st.integers(1, 8))
def test_taking_duplicates_out_twice_changes_nothing(some: list[Found], limit: int) -> None:
    once = duplicates.without_duplicates(some, limit)
    names = [list(one.duplicates) for one in once]
    assert duplicates.without_duplicates(some, limit) == once
    assert [one.duplicates for one in once] == names
    assert duplicates.without_duplicates(once, limit) == once


@given(some=FOUND, limit=st.integers(1, 8), spare=st.integers(0, 4))
def test_once_there_are_enough_only_some_more_are_looked_at(some: list[Found], limit: int, spare: int) -> None:
    whole = duplicates.without_duplicates(some, limit)
    named = {one.memory.id: list(one.duplicates) for one in whole}
    kept = duplicates.without_duplicates(some, limit, spare)
    assert [one.memory.id for one in kept] == list(named)
    full = len(kept) == limit
    looked_at = {one.memory.id for one in some[: some.index(kept[-1]) + 1 + spare] if full} if kept else set()
    for one in kept:
        wanted = named[one.memory.id]
        assert one.duplicates == ([other for other in wanted if other in looked_at] if full else wanted)
