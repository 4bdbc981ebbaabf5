"""The memories of one owner in arrays: however they came about, they answer as if they had been taken in at once."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.filters import Where
from wellkept.recall import image, owner_index, quantized, signals
from wellkept.recall.arrays import Ids, packed, unpacked
from wellkept.recall.candidates import Candidates, joined, none, unlinked
from wellkept.recall.conversations import NOBODY, PAUSE_S
from wellkept.recall.entries import ASKS, SAID_BY_USER, SPOKEN, Entry
from wellkept.recall.owner_index import OwnerIndex, Scored
from wellkept.recall.signals import Question
from wellkept.recall.weights import of as weights_of
from wellkept.testing.builders import START, owner, vector
from wellkept.text import query_text, words

ADA, BOB = owner("ada"), owner("bob")
DIMENSION = 2
WORDS = ("dark", "mode", "tea", "paris", "tabs", "rome")
AUTHORS = (None, "ada", "bob")
MINUTE = 60.0
NOW = Where(now=START)
ENTRIES = st.builds(
    lambda terms, session, marks, author, minutes, expires, importance, rows: Entry(
        id="",
        born=0,
        born_at=0,
        terms=words.pack(words.terms(" ".join(terms))),
        session=session,
        marks=marks,
        author=author,
        occurred=MINUTE * minutes,
        expires=expires,
        importance=importance,
        vector=np.array(rows, "<f4").tobytes() if rows else None,
        dimension=DIMENSION if rows else 0,
        pieces=np.arange(1, len(terms) + 1).astype("<u2").tobytes(),
    ),
    terms=st.lists(st.sampled_from(WORDS), max_size=4),
    session=st.sampled_from([0, 0, 0, 7, -9]),
    marks=st.sampled_from([0, SPOKEN, SPOKEN | SAID_BY_USER, ASKS]),
    author=st.sampled_from(AUTHORS),
    minutes=st.integers(0, 100),
    expires=st.sampled_from([None, None, 10.0, START.timestamp() + 10]),
    importance=st.sampled_from([0.25, 0.5]),
    rows=st.lists(st.tuples(*[st.integers(-2, 2).map(float)] * DIMENSION), max_size=3),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "settle", "image"]), st.lists(st.integers(1, 12), unique=True)),
    min_size=1,
    max_size=12,
)
Values = dict[str, Any]


def name(number: int) -> str:
    return f"m{number}"


def numbered(entry: Entry, number: int) -> Entry:
    return replace(entry, id=name(number), born=number, born_at=number * 1_000)


def fresh(entries: Mapping[int, Entry], dimension: int = DIMENSION) -> OwnerIndex:
    """An index made at once, in the order of recording."""
    index = OwnerIndex(ADA, dimension)
    index.add(entries[number] for number in sorted(entries))
    index.settle()
    return index


def by_id(index: OwnerIndex, found: Scored) -> dict[str, float]:
    return dict(zip(index.ids.of(found.rows), found.scores.tolist(), strict=True))


def gathered(index: OwnerIndex, ids: Iterable[str] | None = None) -> Candidates:
    """The candidates of some memories, or of all."""
    rows = np.flatnonzero(index["alive"]) if ids is None else index.rows(list(ids))
    return index.candidates(rows, rows[:0])


def values_of(found: Candidates, question: Question) -> dict[str, Values]:
    """Every signal of each candidate, by its id."""
    weights = signals.weigh(question.asked, 10, 30, [3] * (len(question.asked.terms) + len(question.asked.patterns)))
    measured = signals.measure(found, question, weights, pool=99, kept=99, model=weights_of("any").model)
    columns = {key: values.tolist() for key, values in measured.values.items()}
    columns["passage"] = measured.passages.tolist()
    return {
        found.key(row)[1]: {key: values[place] for key, values in columns.items()}
        for place, row in enumerate(measured.rows.tolist())
    }


def answers(index: OwnerIndex, known: Iterable[int]) -> list[dict[str, Any]]:
    """What it says to some questions, some of which are for a part of the memories only."""
    asked = query_text.parse("dark tea ada")
    weights = dict.fromkeys(asked.terms, 0.5)
    some = frozenset(name(number) for number in sorted(known)[::3])
    near = quantized.question(vector(1, 2).data)
    found: list[dict[str, Any]] = []
    for where in (NOW, replace(NOW, ids=some), replace(NOW, without=some)):
        found.append(by_id(index, index.nearest(near, where, 99, exact=True)))
        found.append(by_id(index, index.worded(where, weights, 3.0, 99, ())))
        found.append(by_id(index, index.worded(where, weights, 3.0, 99, words.terms("dark"))))
    found.append({str(term): len(rows) for term, (rows, _) in zip(asked.terms, index.having(asked.terms), strict=True)})
    if index.alive:
        found.append({"span": index.span()})
        found.append(values_of(gathered(index), Question(asked=asked, vector=vector(1, 2))))
    return found


def neighbours(index: OwnerIndex) -> dict[int, tuple[int, int, int, int]]:
    """For each memory those before and after it, and the first and the number of those in its conversation."""
    born = [*index["born"].tolist(), 0]  # the last stands for nobody
    alive = np.flatnonzero(index["alive"]).tolist()
    linked = index.conversations
    firsts: dict[int, int] = {}
    for row in sorted(alive, key=lambda row: born[row]):
        firsts.setdefault(int(linked.of.rows[row]), born[row])
    return {
        born[row]: (
            born[linked.before.rows[row]],
            born[linked.after.rows[row]],
            firsts[int(linked.of.rows[row])],
            int(linked.sizes.rows[linked.of.rows[row]]),
        )
        for row in alive
    }


def check_as_fresh(index: OwnerIndex, entries: Mapping[int, Entry]) -> None:
    """Settled once or twice, it says what a new one says."""
    expected = fresh(entries)
    for _ in range(2):
        index.settle()
        assert (index.alive, index.words) == (expected.alive, expected.words)
        assert neighbours(index) == neighbours(expected)
        for ours, theirs in zip(answers(index, entries), answers(expected, entries), strict=True):
            assert ours.keys() == theirs.keys()
            for key, value in theirs.items():
                assert ours[key] == pytest.approx(value, abs=1e-4)


def image_of(index: OwnerIndex) -> OwnerIndex:
    """The index as it is read from its image."""
    read = image.from_parts(index.owner, image.to_parts(index))
    assert read is not None
    return read


@given(steps=STEPS, drawn=st.lists(ENTRIES, min_size=1, max_size=12), few=st.sampled_from([0, 3, 256]))
def test_every_way_leads_to_the_same_index(steps: list[tuple[str, list[int]]], drawn: list[Entry], few: int) -> None:
    """Added, replaced, let go, taken back, sorted in, written and read: the answers are those of a new one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner_index, "_FEW", few)  # how many rows are left unsorted
        index, entries = OwnerIndex(ADA, DIMENSION), dict[int, Entry]()
        turn = 0
        for step, numbers in steps:
            if step == "add":
                turn += 1
                taken = {number: numbered(drawn[(number * turn) % len(drawn)], number) for number in numbers}
                index.add(taken[number] for number in sorted(taken))
                entries |= taken
            elif step == "remove":
                index.remove([name(number) for number in numbers])
                entries = {number: entry for number, entry in entries.items() if number not in numbers}
            elif step == "settle":
                index.settle()
            else:
                index = image_of(index)
        check_as_fresh(index, entries)


@given(drawn=st.lists(ENTRIES, max_size=8), gone=st.sets(st.integers(1, 8)))
def test_an_image_is_the_index(drawn: list[Entry], gone: set[int]) -> None:
    entries = {number: numbered(entry, number) for number, entry in enumerate(drawn, 1)}
    index = fresh(entries)
    index.remove([name(number) for number in gone])
    entries = {number: entry for number, entry in entries.items() if number not in gone}
    check_as_fresh(image_of(index), entries)
    assert image.to_parts(image_of(index)) == image.to_parts(index)


@given(drawn=st.lists(ENTRIES, max_size=8), more=st.lists(ENTRIES, max_size=4))
def test_an_index_goes_on_from_its_image(drawn: list[Entry], more: list[Entry]) -> None:
    entries = {number: numbered(entry, number) for number, entry in enumerate(drawn, 1)}
    index = image_of(fresh(entries))
    later = {number: numbered(entry, number) for number, entry in enumerate(more, len(drawn) + 1)}
    for entry in later.values():
        index.add([entry])
        index.settle()
    check_as_fresh(index, entries | later)


@given(
    ids=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), max_size=9),
    sorted_after=st.integers(0, 9),
)
def test_the_newest_row_of_an_id_is_found(ids: list[str], sorted_after: int) -> None:
    table = Ids()
    for place, one in enumerate(ids):
        if place == sorted_after:
            table.sort()
        table.extend([one])
    newest = {one: row for row, one in enumerate(ids)}
    asked = [*newest, "nothing of the kind", "\u00e9" * 200]
    assert table.rows(asked).tolist() == [newest.get(one, -1) for one in asked]
    assert table.of(np.arange(len(ids))) == ids == unpacked(packed(ids))


def test_ids_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellkept.recall.arrays._hashes", lambda names: np.zeros(len(names), np.uint64))
    table = Ids()
    table.extend(["a", "b", "c", "a"])
    table.sort()
    assert table.rows(["a", "b", "c", "d"]).tolist() == [3, 1, 2, -1]


def said(number: int, text: str, **fields: Any) -> Entry:
    """An entry of a spoken memory."""
    given: dict[str, Any] = {
        "session": 0,
        "marks": SPOKEN,
        "author": None,
        "occurred": 0.0,
        "expires": None,
        "importance": 0.5,
        "dimension": DIMENSION if fields.get("vector") else 0,
    }
    terms = words.pack(words.terms(text))
    return Entry(id=name(number), born=number, born_at=number, terms=terms, **(given | fields))


@pytest.mark.req("L7")
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
    index = OwnerIndex(ADA, DIMENSION)
    index.add([one, secret])

    def raw() -> bytes:
        return b"".join(image.to_parts(index).values())

    [first, second] = words.terms("zeppelin hangar")
    marks = [
        b"m2",
        first.to_bytes(4, "little"),
        second.to_bytes(4, "little"),
        b"secret author",
        (123_456_789_012).to_bytes(8, "little"),
        (4711).to_bytes(2, "little") + (4712).to_bytes(2, "little"),
        np.array([0.6, 0.8], "<f4").tobytes(),
    ]
    assert all(mark in raw() for mark in marks)
    index.remove(["m2"])
    assert [mark for mark in marks if mark in raw()] == []
    index.add([replace(secret, id="m3", born=3)])
    index.add([said(3, "harmless", author="bob")])
    assert [mark for mark in marks if mark in raw()] == []


def conversations(*entries: Entry) -> list[list[int]]:
    """The numbers of memories that belong together, when they came one by one."""
    index = OwnerIndex(ADA, DIMENSION)
    for entry in entries:
        index.add([entry])
        index.settle()
    together: dict[int, list[int]] = {}
    for number, (_, _, first, _) in sorted(neighbours(index).items()):
        together.setdefault(first, []).append(number)
    assert neighbours(index) == neighbours(fresh({entry.born: entry for entry in entries}))
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
    index.remove(["m2"])
    index.settle()
    assert neighbours(index) == {1: (0, 3, 1, 3), 3: (1, 4, 1, 3), 4: (3, 0, 1, 3)}
    index.remove(["m3"])
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
    index.remove(["m4", "m8"])
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
    monkeypatch.setattr(owner_index, "_FEW", 0)
    index.settle()
    assert index.recent.since == len(index)
    for ours, theirs in zip(answers(index, entries), before, strict=True):
        for key, value in theirs.items():
            assert ours[key] == pytest.approx(value, abs=1e-6)


def test_a_phrase_stands_at_the_border_of_a_term() -> None:
    """Terms are bytes in a row: the end of one and the beginning of the next may look like another one."""
    phrase = (0xAABBCCDD, 0x11223344)
    across = [0xCCDD0000, 0x3344AABB, 0x00001122]
    swapped = [phrase[1], phrase[0]]
    texts = {1: [*across, *swapped], 2: [*across, *phrase], 3: swapped, 4: list(phrase)}
    assert words.pack(phrase) in words.pack(across)
    index = fresh({n: replace(said(n, ""), terms=words.pack(terms)) for n, terms in texts.items()}, 0)
    assert set(by_id(index, index.worded(NOW, {}, 3.0, 9, phrase))) == {"m1", "m2", "m3", "m4"}
    found = gathered(index)
    has = signals.with_phrases(found, [phrase])
    assert [one for one, fits in zip(found.ids, has, strict=True) if fits] == ["m2", "m4"]


def test_a_removed_row_is_nobody() -> None:
    """It is found neither by its id, nor by its words, nor by its vector, nor as a neighbour."""
    near = np.array([1, 0], "<f4").tobytes()
    index = fresh({n: said(n, f"word{n}", vector=near) for n in (1, 2, 3)})
    index.remove(["m2", "m2", "m99"])
    assert index.rows(["m1", "m2", "m3", "m99"]).tolist() == [0, 2]
    index.settle()
    assert index.conversations.after.rows[0] == 2
    assert index.conversations.before.rows[2] == 0
    assert index.conversations.before.rows[0] == index.conversations.after.rows[2] == NOBODY
    assert by_id(index, index.worded(NOW, dict.fromkeys(words.terms("word2"), 1.0), 3.0, 9, ())) == {}
    assert set(by_id(index, index.nearest(quantized.question(near), NOW, 9))) == {"m1", "m3"}


def test_an_empty_index_answers_with_nothing() -> None:
    index = OwnerIndex(ADA, 0)
    index.add([])
    index.remove(["m1"])
    index.settle()
    assert len(image_of(index)) == 0
    assert sum(map(len, answers(index, ()))) == len(query_text.parse("dark tea ada").terms)
    assert len(gathered(index)) == len(none()) == len(joined([none(), gathered(index)])) == 0
    assert values_of(none(), Question(asked=query_text.parse("dark"), vector=vector(1, 2))) == {}


def test_the_first_vector_decides_on_the_dimension_and_others_are_left_out() -> None:
    """An index that was loaded before there were vectors; and one that follows before it hears of another embedder."""
    index = fresh({1: said(1, "x")}, 0)
    index.add([said(2, "y", vector=np.array([1, 0], "<f4").tobytes())])
    index.add([said(3, "z", vector=np.array([1, 0, 0], "<f4").tobytes(), dimension=3)])
    index.settle()
    assert set(by_id(index, index.nearest(quantized.question(vector(1, 0).data), NOW, 9))) == {"m2"}


@pytest.mark.parametrize("few", [2, 256])
def test_candidates_bring_their_neighbours(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_index, "_FEW", few)
    index = fresh({n: said(n, f"word{n}", session=1 + n % 2, author="ada") for n in range(1, 10)})
    rows = index.rows(["m3", "m4"])
    found = index.candidates(rows, rows[:0])
    ids = found.ids
    assert ids[: found.count] == ["m3", "m4"]
    assert {ids[row] for row in found.before[:2]} == {"m1", "m2"}
    assert {ids[row] for row in found.after[:2]} == {"m5", "m6"}
    assert (found.before[2:] == NOBODY).all()
    near = index.candidates(rows[:1], rows[1:])
    assert near.ids[: near.count] == ["m2", "m3", "m6"]
    apart = unlinked(found, {"m1", "m6"})
    assert [int(apart.before[0]), int(apart.after[1])] == [NOBODY, NOBODY]
    assert [ids[apart.after[0]], ids[apart.before[1]]] == ["m5", "m2"]


@given(ours=st.lists(ENTRIES, min_size=1, max_size=6), theirs=st.lists(ENTRIES, min_size=1, max_size=6))
def test_owners_together_have_the_signals_that_each_has_alone(ours: list[Entry], theirs: list[Entry]) -> None:
    question = Question(asked=query_text.parse("dark tea ada bob"), vector=vector(1, 2))
    parts, alone = [], dict[tuple[Any, str], Values]()
    for whose, drawn in ((ADA, ours), (BOB, theirs)):
        index = OwnerIndex(whose, DIMENSION)
        index.add(numbered(entry, number) for number, entry in enumerate(drawn, 1))
        index.settle()
        picked = index.rows([name(number) for number in range(1, len(drawn) + 1, 2)])
        parts.append(index.candidates(picked, picked[:0]))
        alone |= {(whose, one): values for one, values in values_of(parts[-1], question).items()}
    found = joined(parts)
    weights = signals.weigh(question.asked, 10, 30, [3] * len(question.asked.terms))
    together = signals.measure(found, question, weights, pool=99, kept=99, model=weights_of("any").model)
    assert {found.key(row) for row in together.rows.tolist()} == set(alone)
    for place, row in enumerate(together.rows.tolist()):
        values = alone[found.key(row)]
        assert together.passages[place] == values["passage"]
        assert {key: column[place] for key, column in together.values.items()} == pytest.approx(
            {key: value for key, value in values.items() if key != "passage"}, abs=1e-5
        )


def test_more_vectors_than_are_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With very many, signs choose first; the nearest must still be among them."""
    chance = np.random.default_rng(5)
    rows = chance.normal(size=(3_000, 64)).astype("<f4")
    entries = {n: said(n, "x", vector=row.tobytes(), marks=0, dimension=64) for n, row in enumerate(rows, 1)}
    index = fresh(entries, 64)
    asked = quantized.question((rows[1234] + 0.1 * rows[7]).astype("<f4").tobytes())

    def nearest() -> dict[str, float]:
        return by_id(index, index.nearest(asked, NOW, 5))

    before = nearest()
    monkeypatch.setattr(quantized, "MANY", 100)
    monkeypatch.setattr(quantized, "_FEWEST", 50)
    after = nearest()
    assert max(after, key=after.__getitem__) == max(before, key=before.__getitem__) == "m1235"
    assert len(after) == len(before) == 5
    index.remove(["m1235"])
    index.add([replace(entries[1235], id="m5000", born=5_000)])
    index.remove([name(number) for number in range(1, 1_000)])
    index.settle()
    left = nearest()
    assert "m5000" in left
    assert min(int(one[1:]) for one in left) >= 1_000
