"""The kit for an index: what it finds is what comparing every memory finds."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import filters
from wellkept.errors import ConfigurationError
from wellkept.filters import Where
from wellkept.ports import Index, Near
from wellkept.recall.conversations import NOBODY
from wellkept.recall.entries import entry_of
from wellkept.recall.owner_index import K1, B
from wellkept.testing.builders import START_US, Writer, moment, owner, vector, where
from wellkept.testing.strategies import WORDS
from wellkept.testing.subject import GENERATED
from wellkept.text import words
from wellkept.types import Mark, Owner, Owners, Stored, Vector, Write

ADA, BOB = owner("ada"), owner("bob")
BOTH = frozenset({ADA, BOB})
EXACT, ROUGH = 1e-4, 0.03
ALL = 1_000
PATIENCE_S = 30

Drafts = list[dict[str, Any]]
_MICROS = st.sampled_from([START_US + minutes * 60_000_000 for minutes in (-90, -1, 0, 1, 20, 90)])
DRAFTS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.lists(st.sampled_from((*WORDS, "dark", "mode", "tea")), min_size=1, max_size=6).map(" ".join),
            "vector": st.none() | st.tuples(*[st.integers(-3, 3).map(float)] * 4).filter(any),
            "occurred_at": _MICROS,
        },
        optional={
            "title": st.sampled_from(("dark tea", "Mode")),
            "author": st.sampled_from(("ada", "bob tea")),
            "role": st.sampled_from(("user", "assistant")),
            "session": st.sampled_from(("monday", "tuesday")),
            "expires_at": _MICROS,
            "importance": st.sampled_from((0.25, 1.0)),
        },
    ),
    max_size=12,
)
WHERES = st.sampled_from(
    (
        where(),
        where(now=moment(120)),
        where(occurred_after=moment(0)),
        where(occurred_before=moment(0)),
        where(ids=frozenset({"0", "3", "7", "nothing"})),
        where(without=frozenset({"0", "1", "nothing"}), occurred_after=moment(-60)),
        where(ids=frozenset()),
    )
)
"""Conditions that every index heeds."""


def as_stored(write: Write, seq: int) -> Stored:
    """A write as a journal gives it back, with its vector."""
    return Stored(
        owner=write.owner,
        id=write.id,
        version=write.version,
        seq=seq,
        born=seq,
        born_at=write.recorded_at,
        recorded_at=write.recorded_at,
        operation=write.operation,
        stamp=write.stamp,
        replaced=write.replaced,
        reason=None,
        facets=write.facets,
        payload=write.payload,
        vector=write.vector,
        write_id=write.write_id or write.stamp,
    )


def memories(drafts: Drafts, whose: Owner = ADA) -> list[Stored]:
    """Memories with the ids 0, 1, 2 and so on."""
    writes, made = Writer(), []
    for number, draft in enumerate(drafts):
        facets = dict(draft)
        values = facets.pop("vector", None)
        brought = None if values is None else vector(*values)
        made.append(as_stored(writes.add(whose, id=str(number), **facets, write={"vector": brought}), number + 1))
    return made


def terms_of(one: Stored) -> list[int]:
    """The terms that a keyword search looks at."""
    return list(map(int, np.frombuffer(entry_of(one).terms, "<u4")))


def cosine(one: Vector, other: Vector) -> float:
    """The similarity of two vectors; of passages, the best."""
    (asked,) = other.rows
    length = math.hypot(*asked)
    return max(_product(row, asked) / (math.hypot(*row) * length) for row in one.rows)


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def bm25(one: Stored, weights: Mapping[int, float], mean_length: float) -> float:
    """The definition of a memory's score under given weights."""
    said = terms_of(one)
    norm = K1 * (1 - B + B * len(said) / mean_length)
    times = Counter(said)
    return sum(weight * times[term] * (K1 + 1) / (times[term] + norm) for term, weight in weights.items())


def check_best(found: Sequence[Near], wanted: Mapping[tuple[Owner, str], float], limit: int, within: float) -> None:
    """The best come first, none is missing, and each has its score; equal ones may come in any order."""
    assert len({(one.owner, one.id) for one in found}) == len(found) == min(limit, len(wanted))
    best = sorted(wanted.values(), reverse=True)
    for place, one in enumerate(found):
        assert wanted[one.owner, one.id] == pytest.approx(one.score, abs=within)
        assert one.score == pytest.approx(best[place], abs=2 * within)


class IndexConformance(ABC):
    """Everything that an index must do, as pytest tests: subclass it and say how to open yours, empty.

    >>> from wellkept.indexes.ram import RamIndex
    >>> class TestRamIndex(IndexConformance):
    ...     def open_index(self) -> Index:
    ...         return RamIndex()
    >>> kit = TestRamIndex()
    >>> kit.test_what_was_dropped_must_be_loaded_again(kit.open_index())
    """

    @abstractmethod
    def open_index(self) -> Index:
        """An empty index."""

    @pytest.fixture
    def index(self) -> Index:
        """An empty index."""
        return self.open_index()

    def _check(self, index: Index, known: Sequence[Stored], owners: Owners, asked: Where, limit: int) -> None:
        """Everything that can be asked of some owners."""
        fits = filters.matching(asked)
        alive = [one for one in known if one.owner in owners]
        eligible = [one for one in alive if fits(one)]
        question = vector(1, 2, -1, 0.5)
        near = index.nearest(owners, asked, question, limit)
        wanted = {(one.owner, one.id): cosine(one.vector, question) for one in eligible if one.vector}
        check_best(near.found, wanted, limit, EXACT if near.exact else ROUGH)
        terms = [words.term(word) for word in ("dark", "tea", "strasse", "nothing")]
        self._check_corpus(index, alive, owners, terms)
        weights = dict(zip(terms, (1.5, 0.5, 2.0, 1.0), strict=True))
        scores = {(one.owner, one.id): bm25(one, weights, 4.0) for one in eligible}
        found = index.worded(owners, asked, weights, 4.0, limit)
        check_best(found, {key: score for key, score in scores.items() if score > 0}, limit, EXACT)
        required = words.term("mode")
        having = {(one.owner, one.id) for one in eligible if required in terms_of(one)}
        found = index.worded(owners, asked, weights, 4.0, limit, required=[required])
        check_best(found, {key: scores[key] for key in having}, limit, EXACT)

    def _check_corpus(self, index: Index, alive: Sequence[Stored], owners: Owners, terms: Sequence[int]) -> None:
        corpus = index.corpus(owners, terms)
        said = [terms_of(one) for one in alive]
        assert (corpus.memories, corpus.words) == (len(alive), sum(map(len, said)))
        assert dict(corpus.having) == {term: sum(term in one for one in said) for term in terms}
        times = [one.facets["occurred_at"] / 1e6 for one in alive]
        assert (corpus.first, corpus.last) == ((min(times), max(times)) if times else (None, None))

    @pytest.mark.req("L4")
    @given(first=DRAFTS, second=DRAFTS, asked=WHERES, limit=st.sampled_from([1, 3, ALL]))
    @GENERATED
    def test_what_is_found_is_what_comparing_everything_finds(
        self, first: Drafts, second: Drafts, asked: Where, limit: int
    ) -> None:
        index = self.open_index()
        ours, theirs = memories(first), memories(second, BOB)
        index.load(ADA, iter(ours), 4, Mark(len(ours)))
        index.load(BOB, iter(theirs), 4, Mark(len(theirs)))
        assert index.followed(ADA) == Mark(len(ours))
        for owners in ({ADA}, {BOB}, BOTH, frozenset[Owner]()):
            self._check(index, [*ours, *theirs], frozenset(owners), asked, limit)

    @given(
        drafts=DRAFTS,
        steps=st.lists(st.tuples(DRAFTS, st.sets(st.integers(0, 14))), max_size=3),
        asked=WHERES,
    )
    @GENERATED
    def test_an_index_that_followed_is_one_that_was_loaded(
        self, drafts: Drafts, steps: list[tuple[Drafts, set[int]]], asked: Where
    ) -> None:
        index, known = self.open_index(), {one.id: one for one in memories(drafts)}
        index.load(ADA, known.values(), 4, Mark(1))
        for number, (changed, leaving) in enumerate(steps, start=2):
            new, gone = memories(changed), [str(place) for place in sorted(leaving) if place >= len(changed)]
            known |= {one.id: one for one in new}
            known = {id: one for id, one in known.items() if id not in gone}
            for _ in range(2):  # a follower that was interrupted does it again
                index.follow(ADA, new, gone, Mark(number))
            assert index.followed(ADA) == Mark(number)
        self._check(index, list(known.values()), frozenset({ADA}), asked, ALL)
        index.load(ADA, known.values(), 4, Mark(9, 1))
        assert index.followed(ADA) == Mark(9, 1)
        self._check(index, list(known.values()), frozenset({ADA}), asked, ALL)

    def test_one_database_at_a_time_is_served(self, index: Index) -> None:
        index.serve("one")
        index.load(ADA, memories([{"text": "tea"}]), 4, Mark(1))
        for database in ("one", "another"):
            with pytest.raises(ConfigurationError):
                index.serve(database)
        index.close()
        index.close()
        index.serve("another")
        assert index.followed(ADA) is None
        assert index.corpus({ADA}, ()).memories == 0

    def test_the_best_passage_of_a_long_text_counts(self, index: Index) -> None:
        long = Vector.joined([vector(1, 0), vector(0, 1)], [(0, 10), (10, 20)])
        several = memories([{"text": text} for text in ("long", "short", "without")])
        several = [
            one._replace(vector=brought) for one, brought in zip(several, (long, vector(1, 1), None), strict=True)
        ]
        index.load(ADA, several, 2, Mark(3))
        found = index.nearest({ADA}, where(), vector(0, 2), ALL).found
        assert [one.id for one in found] == ["0", "1"]
        assert [one.score for one in found] == pytest.approx([1.0, math.sqrt(0.5)], abs=ROUGH)

    @given(drafts=DRAFTS, picked=st.sets(st.integers(0, 14)))
    @GENERATED
    def test_candidates_carry_what_ranking_reads(self, drafts: Drafts, picked: set[int]) -> None:
        index, known = self.open_index(), memories(drafts)
        theirs = memories(drafts[:2], BOB)
        index.load(ADA, known, 4, Mark(len(known)))
        index.load(BOB, theirs, 4, Mark(len(theirs)))
        by_key = {(one.owner, one.id): one for one in (*known, *theirs)}
        asked = [(ADA, str(place)) for place in sorted(picked)] + [(BOB, "0"), (BOB, "9"), (owner("eve"), "0")]
        found = index.candidates(asked)
        keys = [(found.owners[found.owner[row]], one) for row, one in enumerate(found.ids)]
        assert len(set(keys)) == len(keys)
        assert set(keys[: found.count]) == {key for key in asked if key in by_key}
        end = 0
        for row, key in enumerate(keys):
            facets, said = by_key[key].facets, terms_of(by_key[key])
            start, end = end, end + int(found.length[row])
            assert found.terms[start:end].tolist() == said
            assert found.importance[row] == pytest.approx(facets["importance"])
            assert found.occurred[row] == facets["occurred_at"] / 1e6
            assert found.expires[row] == facets.get("expires_at", math.inf) / 1e6
            assert (found.born[row], found.born_at[row]) == (by_key[key].born, by_key[key].born_at)

    @given(drafts=DRAFTS, minutes=st.tuples(st.integers(-100, 100), st.integers(0, 60)))
    @GENERATED
    def test_what_occurred_in_a_stretch_of_time_is_found(self, drafts: Drafts, minutes: tuple[int, int]) -> None:
        index, known = self.open_index(), memories(drafts)
        index.load(ADA, known, 4, Mark(len(known)))
        start = START_US / 1e6 + 60 * minutes[0]
        end = start + 60 * minutes[1]
        eligible = [one for one in known if filters.matches(one, where())]
        expected = {one.id for one in eligible if start <= one.facets["occurred_at"] / 1e6 <= end}
        found = index.dated(BOTH, where(), start, end, ALL)
        assert expected <= {memory_id for _, memory_id in found} <= {one.id for one in eligible}
        assert len(index.dated(BOTH, where(), start, end, 1)) == min(1, len(found))

    def test_a_date_that_a_text_tells_of_is_found(self, index: Index) -> None:
        index.load(ADA, memories([{"text": "The flight leaves on 27 March 2031"}, {"text": "tea"}]), 4, Mark(2))
        day = datetime(2031, 3, 27, tzinfo=UTC).timestamp()
        assert index.dated(BOTH, where(), day, day + 86_400, ALL) == [(ADA, "0")]
        assert index.dated(BOTH, where(ids=frozenset({"1"})), day, day + 86_400, ALL) == []

    def test_neighbours_of_a_conversation_come_with_it(self, index: Index) -> None:
        known = memories([{"text": f"turn {number}", "session": "a b a a".split()[number]} for number in range(4)])
        index.load(ADA, known, 4, Mark(4))
        found = index.candidates([(ADA, "2")])
        assert (found.count, found.ids[0]) == (1, "2")
        assert (found.ids[found.before[0]], found.ids[found.after[0]]) == ("0", "3")
        assert found.size[0] == 3
        (alone,) = (index.candidates([(ADA, "1")]),)
        assert (alone.before[0], alone.after[0], len(alone.ids)) == (NOBODY, NOBODY, 1)
        beside = index.candidates([], beside=[(ADA, "2")])
        assert sorted(beside.ids[: beside.count]) == ["0", "3"]
        index.follow(ADA, [], ["0", "3"], Mark(5))
        assert len(index.candidates([(ADA, "2")]).ids) == 1

    def test_what_was_dropped_must_be_loaded_again(self, index: Index) -> None:
        for whose in BOTH:
            assert index.followed(whose) is None
            index.load(whose, memories([{"text": "dark"}], whose), 4, Mark(1))
        index.drop([ADA])
        assert (index.followed(ADA), index.followed(BOB)) == (None, Mark(1))
        index.follow(ADA, memories([{"text": "dark"}]), [], Mark(2))
        assert index.followed(ADA) is None
        assert index.corpus(BOTH, []).memories == 1
        index.drop()
        assert index.followed(BOB) is None
        assert index.corpus(BOTH, []).memories == 0

    def test_loading_one_owner_keeps_nobody_from_searching_another(self, index: Index) -> None:
        index.load(BOB, memories([{"text": "dark"}], BOB), 4, Mark(1))
        with ThreadPoolExecutor(1) as pool:

            def slowly() -> Iterator[Stored]:
                yield from memories([{"text": "tea"}])
                search = pool.submit(index.worded, {BOB}, where(), {words.term("dark"): 1.0}, 1.0, 3)
                assert len(search.result(timeout=PATIENCE_S)) == 1

            index.load(ADA, slowly(), 4, Mark(1))
        assert index.corpus(BOTH, []).memories == 2
