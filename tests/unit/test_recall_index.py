"""The index in RAM: however it came about, it answers as one that was made at once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recollect.recall.columns import Array
from recollect.recall.index import Index
from recollect.recall.parts import Part
from recollect.recall.probes import Candidates
from recollect.recall.search import candidates
from recollect.testing.agreement import check_same

from recollect.recall import index as indexing
from recollect.recall.conversations import NOBODY, PAUSE_S
from recollect.recall.entries import ASKS, SAID_BY_USER, SPOKEN, Entry
from recollect.testing.builders import probe, vector
from recollect.text import query_text, words

DIMENSION = 2
WORDS = ("dark", "mode", "tea", "paris", "tabs", "rome")
AUTHORS = (None, "ada", "bob")
MINUTE = 60.0
ENTRIES = st.builds(
    lambda terms, session, marks, author, minutes, expires, importance, rows: Entry(
        number=0,
        terms=words.pack(words.terms(" ".join(terms))),
        session=session,
        marks=marks,
        author=author,
        occurred=MINUTE * minutes,
        expires=expires,
        importance=importance,
        vector=np.array(rows, "<f4").tobytes() if rows else None,
        pieces=np.arange(1, len(terms) + 1).astype("<u2").tobytes(),
    ),
    terms=st.lists(st.sampled_from(WORDS), max_size=4),
    session=st.sampled_from([0, 0, 0, 7, -9]),
    marks=st.sampled_from([0, SPOKEN, SPOKEN | SAID_BY_USER, ASKS]),
    author=st.sampled_from(AUTHORS),
    minutes=st.integers(0, 100),
    expires=st.sampled_from([None, None, 10.0]),
    importance=st.sampled_from([0.25, 0.5]),
    rows=st.lists(st.tuples(*[st.integers(-2, 2).map(float)] * DIMENSION), max_size=3),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "settle", "image"]), st.lists(st.integers(1, 12), unique=True)),
    min_size=1,
    max_size=12,
)
QUESTIONS = (
    probe("dark tea ada", vector(1, 2)),
    probe('"dark mode" tea'),
    probe(near=vector(2, 1)),
)


def fresh(entries: Mapping[int, Entry]) -> Index:
    """An index made at once, in the order of recording."""
    index = Index(DIMENSION)
    index.add(entries[number] for number in sorted(entries))
    index.settle()
    return index


def answers(index: Index, entries: Mapping[int, Entry]) -> list[Candidates]:
    """What it says to some questions, some of which are for a part of the memories only."""
    stored = {number: entry.vector for number, entry in entries.items()}

    def exact(numbers: Array) -> list[bytes]:
        return [stored[number] or b"" for number in numbers.tolist()]

    wild = [np.array(sorted(entries)[::2], np.int64)]
    allowed = np.array(sorted(entries)[::3], np.int64)
    parts = [Part(index=index), Part(index=index, allowed=allowed)]
    found = [candidates([part], asked, 5.0, exact) for part in parts for asked in QUESTIONS]
    beginning = replace(QUESTIONS[0], asked=query_text.parse("dark te*"))
    return [*found, candidates([Part(index=index, wild=wild)], beginning, 20.0, exact)]


def neighbours(index: Index) -> dict[int, tuple[int, int, int, int]]:
    """For each memory those before and after it, and the first and the number of those in its conversation."""
    number = [*index["number"].tolist(), 0]  # the last stands for nobody
    alive = np.flatnonzero(index["alive"]).tolist()
    firsts: dict[int, int] = {}
    for row in sorted(alive, key=lambda row: number[row]):
        firsts.setdefault(int(index.conversation[row]), number[row])
    return {
        number[row]: (
            number[index.before[row]],
            number[index.after[row]],
            firsts[int(index.conversation[row])],
            int(index.sizes[index.conversation[row]]),
        )
        for row in alive
    }


def check_as_fresh(index: Index, entries: Mapping[int, Entry]) -> None:
    """Settled once or twice, it says what a new one says."""
    expected = fresh(entries)
    index.settle()
    _check_as(index, expected, entries)
    index.settle()
    _check_as(index, expected, entries)


def _check_as(index: Index, expected: Index, entries: Mapping[int, Entry]) -> None:
    assert (index.alive, index.words) == (expected.alive, expected.words)
    assert neighbours(index) == neighbours(expected)
    for ours, theirs in zip(answers(index, entries), answers(expected, entries), strict=True):
        check_same(ours, theirs, 1e-4)


def image_of(index: Index) -> Index:
    """The index as it is read from its image: its arrays are bytes on the way."""
    arrays, authors = index.parts()
    read = {name: np.frombuffer(bytearray(array.tobytes()), array.dtype) for name, array in arrays.items()}
    return Index.restored(read, index.dimension, authors)


@given(steps=STEPS, drawn=st.lists(ENTRIES, min_size=1, max_size=12), few=st.sampled_from([0, 3, 256]))
def test_every_way_leads_to_the_same_index(steps: list[tuple[str, list[int]]], drawn: list[Entry], few: int) -> None:
    """Added, replaced, let go, taken back, sorted in, written and read: the answers are those of a new one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "_FEW", few)  # how many rows are left unsorted
        index, entries = Index(DIMENSION), dict[int, Entry]()
        turn = 0
        for step, numbers in steps:
            if step == "add":
                turn += 1
                taken = {number: replace(drawn[(number * turn) % len(drawn)], number=number) for number in numbers}
                index.add(taken[number] for number in sorted(taken))
                entries |= taken
            elif step == "remove":
                index.remove(numbers)
                entries = {number: entry for number, entry in entries.items() if number not in numbers}
            elif step == "settle":
                index.settle()
            else:
                index = image_of(index)
        check_as_fresh(index, entries)


@given(drawn=st.lists(ENTRIES, max_size=8), gone=st.sets(st.integers(1, 8)))
def test_an_image_is_the_index(drawn: list[Entry], gone: set[int]) -> None:
    entries = {number: replace(entry, number=number) for number, entry in enumerate(drawn, 1)}
    index = fresh(entries)
    index.remove(gone)
    entries = {number: entry for number, entry in entries.items() if number not in gone}
    check_as_fresh(image_of(index), entries)
    again, _ = image_of(index).parts()
    first, _ = index.parts()
    assert {name: array.tolist() for name, array in again.items()} == {
        name: array.tolist() for name, array in first.items()
    }


@given(drawn=st.lists(ENTRIES, max_size=8), more=st.lists(ENTRIES, max_size=4))
def test_an_index_goes_on_from_its_image(drawn: list[Entry], more: list[Entry]) -> None:
    entries = {number: replace(entry, number=number) for number, entry in enumerate(drawn, 1)}
    index = image_of(fresh(entries))
    later = {number: replace(entry, number=number) for number, entry in enumerate(more, len(drawn) + 1)}
    for entry in later.values():
        index.add([entry])
        index.settle()
    check_as_fresh(index, entries | later)


def said(number: int, text: str, **fields: Any) -> Entry:
    """An entry of a spoken memory."""
    given: dict[str, Any] = {
        "session": 0,
        "marks": SPOKEN,
        "author": None,
        "occurred": 0.0,
        "expires": None,
        "importance": 0.5,
        "vector": None,
        "pieces": None,
    }
    return Entry(number=number, terms=words.pack(words.terms(text)), **(given | fields))


def raw(index: Index) -> bytes:
    """All that an image of the index would hold."""
    arrays, authors = index.parts()
    return b"".join(array.tobytes() for array in arrays.values()) + repr(authors).encode()


def test_nothing_of_what_was_removed_is_in_an_image() -> None:
    one = said(1, "kept words", author="ada", vector=np.array([1, 0], "<f4").tobytes())
    secret = said(
        2,
        "zeppelin hangar",
        author="secret author",
        session=123_456_789_012,
        vector=np.array([0.6, 0.8], "<f4").tobytes(),
        pieces=np.array([4711, 4712], "<u2").tobytes(),
    )
    index = Index(DIMENSION)
    index.add([one, secret])
    [first, second] = words.terms("zeppelin hangar")
    marks = [
        first.to_bytes(4, "little"),
        second.to_bytes(4, "little"),
        b"secret author",
        (123_456_789_012).to_bytes(8, "little"),
        (4711).to_bytes(2, "little") + (4712).to_bytes(2, "little"),
    ]
    vectors = index.parts()[0]["vectors"].tobytes()
    assert all(mark in raw(index) for mark in marks)
    index.remove([2])
    assert [mark for mark in marks if mark in raw(index)] == []
    assert index.parts()[0]["vectors"].tobytes() == vectors[: len(vectors) // 2]
    index.add([replace(secret, number=3)])
    index.add([said(3, "harmless", author="bob")])
    assert [mark for mark in marks if mark in raw(index)] == []


def conversations(*entries: Entry) -> list[list[int]]:
    """The numbers of memories that belong together, when they came one by one."""
    index = Index(DIMENSION)
    for entry in entries:
        index.add([entry])
        index.settle()
    together: dict[int, list[int]] = {}
    for number, (_, _, first, _) in sorted(neighbours(index).items()):
        together.setdefault(first, []).append(number)
    assert neighbours(index) == neighbours(fresh({entry.number: entry for entry in entries}))
    return list(together.values())


@pytest.mark.parametrize(
    ("seconds", "together"),
    [
        ([0, PAUSE_S], [[1, 2]]),
        ([0, PAUSE_S + 1], [[1], [2]]),
        ([0, 1200, 2400, 3600], [[1, 2, 3, 4]]),
        ([0, 4000, 4001, 9000], [[1], [2, 3], [4]]),
        ([4000, 3000, 0], [[1, 2], [3]]),
    ],
)
def test_a_pause_ends_a_conversation(seconds: list[float], together: list[list[int]]) -> None:
    entries = [said(number, "x", occurred=float(at)) for number, at in enumerate(seconds, 1)]
    assert conversations(*entries) == together


def test_what_nobody_said_and_what_names_its_session_belong_to_no_other() -> None:
    entries = [
        said(1, "x"),
        said(2, "x", marks=0),
        said(3, "x", session=5),
        said(4, "x"),
        said(5, "x", session=5, occurred=1e9, marks=0),
        said(6, "x", session=6),
    ]
    assert conversations(*entries) == [[1, 4], [2], [3, 5], [6]]


@pytest.mark.parametrize("after_an_image", [False, True])
def test_a_conversation_goes_on_behind_an_aside(after_an_image: bool) -> None:
    """Something said in a session of its own does not interrupt, nor does it take what is said next."""
    index = fresh({1: said(1, "x"), 2: said(2, "x", session=5, occurred=3 * PAUSE_S)})
    if after_an_image:
        index = image_of(index)
    index.add([said(3, "x", occurred=3 * PAUSE_S), said(4, "x", session=5)])
    index.settle()
    assert neighbours(index) == {1: (0, 0, 1, 1), 2: (0, 4, 2, 2), 3: (0, 0, 3, 1), 4: (2, 0, 2, 2)}


def test_neighbours_close_up_when_one_goes_and_part_when_the_pause_is_too_long() -> None:
    entries = {n: said(n, "x", occurred=MINUTE * minute) for n, minute in enumerate([0, 10, 20, 45], 1)}
    index = fresh(entries)
    index.remove([2])
    index.settle()
    assert neighbours(index) == {1: (0, 3, 1, 3), 3: (1, 4, 1, 3), 4: (3, 0, 1, 3)}
    index.remove([3])
    index.settle()
    assert neighbours(index) == {1: (0, 0, 1, 1), 4: (0, 0, 4, 1)}
    index.add([entries[3]])
    index.settle()
    assert neighbours(index) == {1: (0, 3, 1, 3), 3: (1, 4, 1, 3), 4: (3, 0, 1, 3)}


@pytest.mark.parametrize("first", ["restored", "changed"])
def test_what_comes_back_stands_where_it_stood(first: str) -> None:
    """One by one, and not behind what was recorded after it."""
    entries = {number: said(number, f"word{number}", session=5) for number in range(1, 21)}
    index = fresh(entries)
    index.remove([4, 8])
    index.settle()
    index.add([entries[4] if first == "restored" else entries[2]])
    index.settle()
    index.add([entries[8]])
    index.settle()
    assert neighbours(index)[8] == (7, 9, 1, 20 if first == "restored" else 19)
    check_as_fresh(index, entries if first == "restored" else {n: entries[n] for n in entries if n != 4})


@pytest.mark.parametrize("times", [1, 255, 256, 2_000])
def test_sorting_terms_in_changes_no_score(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even of a word that somebody repeated without end."""
    entries = {1: said(1, "tea " * times), 2: said(2, "tea and more"), 3: said(3, "nothing", occurred=1e6)}
    index = fresh(entries)
    before = answers(index, entries)
    assert index.recent.since == 0
    monkeypatch.setattr(indexing, "_FEW", 0)
    index.settle()
    assert index.recent.since == len(index)
    for ours, theirs in zip(answers(index, entries), before, strict=True):
        check_same(ours, theirs, 1e-6)


def test_a_phrase_stands_at_the_border_of_a_term() -> None:
    """Terms are bytes in a row: the end of one and the beginning of the next may look like another one."""
    phrase = (0xAABBCCDD, 0x11223344)
    across = [0xCCDD0000, 0x3344AABB, 0x00001122]
    swapped = [phrase[1], phrase[0]]
    texts = {1: [*across, *swapped], 2: [*across, *phrase], 3: swapped, 4: list(phrase)}
    assert words.pack(phrase) in words.pack(across)
    index = Index(0)
    index.add(replace(said(number, ""), terms=words.pack(terms)) for number, terms in texts.items())
    index.settle()
    both = query_text.Asked(terms=phrase, words=("a", "b"), phrases=(phrase,), prefixes=(), names=())
    asked = replace(probe("x"), asked=both)
    found = candidates([Part(index=index)], asked, 0.0, lambda _: [])
    assert sorted(found.numbers.tolist()) == [2, 4]


def test_a_removed_row_is_nobody() -> None:
    """It is found neither by its number, nor by its words, nor by its vector, nor as a neighbour."""
    near = np.array([1, 0], "<f4").tobytes()
    entries = {n: said(n, f"word{n}", vector=near) for n in (1, 2, 3)}
    index = fresh(entries)
    index.remove([2, 2, 99])
    assert index.rows(np.array([1, 2, 3, 99])).tolist() == [0, 2]
    index.settle()
    assert index.after[0] == 2
    assert index.before[2] == 0
    assert index.before[0] == index.after[2] == NOBODY
    found = candidates([Part(index=index)], probe("word2", vector(1, 0)), 0.0, lambda n: [near] * len(n))
    assert sorted(found.numbers.tolist()) == [1, 3]
    assert found.signals["keyword"].tolist() == [0, 0]


def test_an_empty_index_answers_with_nothing() -> None:
    index = Index(0)
    index.add([])
    index.remove([1])
    index.settle()
    assert len(image_of(index)) == 0
    assert sum(map(len, answers(index, {}))) == 0


def test_more_vectors_than_are_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With very many, signs choose first; the nearest must still be among them."""
    chance = np.random.default_rng(5)
    rows = chance.normal(size=(3_000, 64)).astype("<f4")
    index = Index(64)
    index.add(said(n, "x", vector=row.tobytes(), marks=0) for n, row in enumerate(rows, 1))
    index.settle()
    asked = probe(near=vector(*(rows[1234] + 0.1 * rows[7]).tolist()), pool=5)

    def nearest() -> list[int]:
        found = candidates([Part(index=index)], asked, 0.0, lambda n: [rows[one - 1].tobytes() for one in n])
        best: int = int(found.numbers[int(np.argmax(found.signals["similarity"]))])
        return [best, len(found)]

    before = nearest()
    monkeypatch.setattr("recollect.recall.quantized.MANY", 100)
    monkeypatch.setattr("recollect.recall.quantized._FEWEST", 50)
    assert nearest() == before == [1235, 5]
    index.remove([1235])
    index.add([said(5_000, "x", vector=rows[1234].tobytes(), marks=0)])
    index.remove(range(1, 1_000))
    index.settle()
    left = candidates([Part(index=index)], asked, 0.0, lambda n: [rows[one % 5_000].tobytes() for one in n])
    assert 5_000 in left.numbers.tolist()
    assert min(left.numbers.tolist()) >= 1_000
