"""Recall by example: which memories a search may bring, in which order, and what keeps others out."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import filters
from recollect.ports import Query, Store
from recollect.recall.calibration import Calibration
from recollect.recall.probes import Probe
from recollect.testing import strategies
from recollect.testing.builders import (
    START,
    Scored,
    by_words,
    erased,
    forgotten,
    ids_of,
    memory,
    nearest,
    new_id,
    owner,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.strategies import Draft
from recollect.testing.subject import GENERATED, Subject
from recollect.text import words
from recollect.types import MemoryType, Owner

ADA = owner("ada")
BOB = owner("bob")
# Words that no list of stop words holds and no stemmer joins.
WORDS = ("dark", "mode", "tabs", "paris", "coffee", "zürich", "python", "42", "東京")
EXACT = 1e-4
ROUGH = 0.02
"""How far similarities may be off that only choose candidates: vectors may be kept in 8 bits."""
HOSTILE_QUERIES = (
    '"',
    "*",
    "NEAR(",
    "NEAR(dark mode, 2)",
    "AND",
    "dark AND",
    "OR NOT",
    "col:x",
    "content:dark",
    "-",
    "-dark",
    "^",
    "^dark",
    'dark" mode',
    "(dark",
    "dark)",
    "{dark} : mode",
    "dar**",
    "'; DROP TABLE words; --",
    "\U0001f600",
    "\u200d\ufe0f",
    "a\x00b",
    "",
    " \n\t",
    "\\",
    "%",
    "_ark",
    "?",
    "$1",
    " ".join(f"word{number}" for number in range(1000)),
    "dark" * 2000,
)


def contents(found: Sequence[Scored]) -> list[str]:
    """What the memories say, in order."""
    return [scored.memory.content for scored in found]


def signal(store: Store, wanted: Query, asked: Probe, name: str) -> dict[int, float]:
    """The values of one signal, by the numbers of the candidates, in their order."""
    found = store.candidates(wanted, asked)
    return dict(sorted(zip(found.numbers.tolist(), found.signals[name].tolist(), strict=True)))


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of two vectors."""
    return sum(x * y for x, y in zip(left, right, strict=True)) / math.hypot(*left) / math.hypot(*right)


def weight(memories: int, having: int) -> float:
    """What a word counts that so many of the memories have, by BM25 with a hundred memories more that have it not."""
    return math.log(1 + (memories + 100 - having - 0.5) / (having + 1.5))


def check_scored(found: Sequence[Scored], limit: int) -> None:
    """What holds of every answer: within the limit, the best first, nothing twice."""
    scores = [scored.score for scored in found]
    assert len(found) <= limit
    assert all(math.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len({scored.memory.id for scored in found}) == len(found)


class Recall(Subject):
    """``candidates`` and ``pick``."""

    # -- who is seen -----------------------------------------------------------------------------

    @pytest.mark.req("L4", "L11")
    def test_what_may_not_be_seen_crowds_nothing_out(self, store: Store) -> None:
        """A store that takes the best first and looks at owners and filters later finds nothing."""
        mine = [memory(f"dark {n}", vector=vector(1, 1), type=MemoryType.EVENT) for n in range(3)]
        nearer: Draft = {"content": "dark", "vector": vector(1, 0)}
        gone = [memory(**nearer) for _ in range(50)]
        put(store, *mine, *(memory(whose=BOB, **nearer) for _ in range(300)))
        put(store, *(memory(**nearer) for _ in range(100)), *gone)
        put(store, *(memory(type=MemoryType.EVENT, expires_at=START, **nearer) for _ in range(50)))
        store.apply([forgotten(one) for one in gone[:25]] + [erased(one) for one in gone[25:]])
        wanted = query(ADA, types=frozenset({MemoryType.EVENT}))
        for found in (
            nearest(store, wanted, vector(1, 0), 3),
            by_words(store, wanted, "dark", 3),
            by_words(store, wanted, "da*", 3),
        ):
            assert sorted(ids_of(one.memory for one in found)) == sorted(ids_of(mine))

    @pytest.mark.req("L4")
    def test_what_has_no_vector_crowds_nothing_out(self, store: Store) -> None:
        """Also where everything points the other way: no vector is not a better one."""
        opposite = memory("opposite", vector=vector(-1, 0))
        put(store, *(memory("without") for _ in range(20)), opposite)
        assert contents(nearest(store, query(ADA), vector(1, 0), 1)) == ["opposite"]

    @pytest.mark.req("L4")
    def test_nearest_follows_every_change(self, store: Store) -> None:
        one, two = memory("one", vector=vector(1, 0)), memory("two", vector=vector(0, 1))
        put(store, one, two)

        def found() -> list[str]:
            return contents(nearest(store, query(ADA), vector(1, 0.1), 5))

        assert found() == ["one", "two"]
        turned = updated(one, write={"keeps_vector": False, "vector": vector(-1, 0)})
        store.apply([turned])
        assert found() == ["two", "one"]
        gone = forgotten(two)
        store.apply([gone])
        assert found() == ["one"]
        store.apply([restored(gone.memory)])
        assert found() == ["two", "one"]
        store.apply([erased(turned.memory)])
        assert found() == ["two"]

    def test_words_follow_every_change(self, store: Store) -> None:
        one = memory("old words")
        put(store, one)

        def count(text: str) -> int:
            return len(by_words(store, query(ADA), text, 5))

        assert (count("old"), count("new"), count("ne*")) == (1, 0, 0)
        changed = updated(one, content="new words")
        store.apply([changed])
        assert (count("old"), count("new"), count("ne*")) == (0, 1, 1)
        gone = forgotten(changed.memory)
        store.apply([gone])
        assert (count("new words"), count("ne*")) == (0, 0)
        back = restored(gone.memory)
        store.apply([back])
        assert (count("new words"), count("ne*")) == (1, 1)
        put(store, memory("new words", expires_at=START))
        assert count("new words") == 1
        store.apply([erased(back.memory)])
        assert (count("new words"), count("ne*")) == (0, 0)

    def test_what_expires_is_found_until_then(self, store: Store) -> None:
        instant = timedelta(microseconds=1)
        put(store, memory("dark", expires_at=START, vector=vector(1, 0)))
        for now, count in ((START - instant, 1), (START, 0), (START + instant, 0)):
            assert len(by_words(store, query(ADA, now=now), "dark", 5)) == count
            assert len(nearest(store, query(ADA, now=now), vector(1, 0), 5)) == count
        assert len(by_words(store, query(ADA, now=START, include_forgotten=True), "dark", 5)) == 1

    def test_forgotten_memories_are_found_when_asked_for(self, store: Store) -> None:
        one, two = memory("dark one", vector=vector(1, 0)), memory("dark two", vector=vector(0, 1))
        put(store, one, two)
        store.apply([forgotten(one)])
        everything = query(ADA, include_forgotten=True)
        assert contents(nearest(store, everything, vector(1, 0), 5)) == ["dark one", "dark two"]
        assert sorted(contents(by_words(store, everything, "dark", 5))) == ["dark one", "dark two"]
        assert contents(by_words(store, query(ADA), "dark", 5)) == ["dark two"]

    def test_a_time_past_is_searched_as_it_was(self, store: Store) -> None:
        one = memory("old words", vector=vector(1, 0))
        [then] = put(store, one, memory("theirs, old", BOB))[:1]
        changed = updated(one, content="new words")
        store.apply([changed])
        past = query(ADA, as_of=then)
        assert contents(by_words(store, past, "old", 5)) == ["old words"]
        assert by_words(store, past, "new", 5) == []
        # The vector of a former version is not kept; that of the newest one counts whenever it is looked at.
        assert nearest(store, past, vector(1, 0), 5) == []
        now = query(ADA, as_of=store.sequence())
        assert contents(nearest(store, now, vector(1, 0), 5)) == ["new words"]
        store.apply([forgotten(changed.memory)])
        assert contents(by_words(store, past, "old", 5)) == ["old words"]
        assert contents(by_words(store, now, "new", 5)) == ["new words"]

    # -- vectors ---------------------------------------------------------------------------------

    @pytest.mark.req("L4")
    def test_without_words_the_similarity_is_the_cosine(self, store: Store) -> None:
        """Exactly, however large or small the numbers are, and on the scale of the calibration."""
        angles = {"same": (3, 4), "near": (4, 3), "across": (-4, 3), "opposite": (-3, -4), "tiny": (3e-38, 4e-38)}
        put(store, *(memory(name, vector=vector(*values)) for name, values in angles.items()))
        put(store, memory("huge", vector=vector(3e38, 3e38)), memory("nothing", vector=vector(0, 0)))
        expected = {"same": 1, "tiny": 1, "huge": 7 / 50**0.5, "near": 0.96, "across": 0, "nothing": 0, "opposite": -1}
        found = nearest(store, query(ADA), vector(0.3, 0.4), 7)
        assert {one.memory.content: one.score for one in found} == pytest.approx(expected, abs=EXACT)
        scale = Calibration(low=0.5, high=0.75)
        scaled = store.candidates(query(ADA), probe(near=vector(3, 4), calibration=scale))
        cosines = sorted((value - 0.5) / 0.25 for value in expected.values())
        assert sorted(scaled.signals["similarity"].tolist()) == pytest.approx(cosines, abs=10 * EXACT)

    @pytest.mark.req("L4")
    @given(rows=st.lists(strategies.vectors(), max_size=30), asked=strategies.vectors(), limit=st.integers(1, 8))
    @GENERATED
    def test_the_nearest_are_the_nearest(
        self, store: Store, rows: list[tuple[float, ...]], asked: tuple[float, ...], limit: int
    ) -> None:
        whose = owner(new_id())
        memories = [memory(whose=whose, vector=vector(*row)) for row in rows]
        put(store, *memories, memory("without", whose))
        found = nearest(store, query(whose), vector(*asked), limit)
        check_scored(found, limit)
        cosines = {one.id: cosine(row, asked) for one, row in zip(memories, rows, strict=True)}
        for one in found:
            assert one.score == pytest.approx(cosines[one.memory.id], abs=EXACT)
        # Which of those that are nearly as near fall to the limit is left to the store; the better ones are not.
        best = sorted(cosines.values(), reverse=True)[:limit]
        assert [one.score for one in found] == pytest.approx(best, abs=2 * ROUGH)

    def test_vectors_add_to_words(self, store: Store) -> None:
        dark, near = memory("dark", vector=vector(0, 1)), memory("near", vector=vector(1, 0))
        first, second, _ = put(store, dark, near, memory("neither"))
        found = signal(store, query(ADA), probe("dark", vector(1, 0)), "similarity")
        assert found == pytest.approx({first: 0, second: 1}, abs=ROUGH)

    # -- words -----------------------------------------------------------------------------------

    @given(
        texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), max_size=10),
        asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        conditions=strategies.conditions(),
        draft=strategies.drafts(),
        limit=st.integers(1, 12),
    )
    @GENERATED
    def test_words_find_what_shares_them(
        self,
        store: Store,
        *,
        texts: list[list[str]],
        asked: list[str],
        conditions: Draft,
        draft: Draft,
        limit: int,
    ) -> None:
        whose = owner(new_id())
        # Said by nobody: a neighbour in a conversation would be found as well.
        alone = draft | {"author": None, "role": None, "session": None}
        memories = [
            # Every second one has generated fields, so that conditions leave some and take some.
            memory(whose=whose, **((alone if n % 2 else {}) | {"content": " ".join(chosen)}))
            for n, chosen in enumerate(texts)
        ]
        put(store, *memories, memory(" ".join(WORDS), BOB))
        wanted = query(whose, **(conditions | {"include_forgotten": False}))
        matching = {
            one.id
            for one in memories
            if filters.matches(one, wanted.where)
            and set(words.terms(words.searchable(one.content, one.title))) & set(words.asked(" ".join(asked)))
        }
        found = by_words(store, wanted, " ".join(asked).upper(), limit)
        check_scored(found, limit)
        assert all(scored.score > 0 for scored in found)
        assert {scored.memory.id for scored in found} <= matching
        assert len(found) == min(limit, len(matching))

    def test_more_words_count_more(self, store: Store) -> None:
        both = memory("prefers dark mode today")
        put(store, memory("dark chocolate is fine"), both, memory("silent mode is fine"))
        put(store, *(memory(f"filler number {number}") for number in range(20)))
        found = by_words(store, query(ADA), "dark mode", 3)
        assert len(found) == 3
        assert found[0].memory == both
        said = signal(store, query(ADA), probe("dark mode"), "words")
        assert list(said.values()) == pytest.approx([0.5, 1, 0.5], abs=EXACT)

    def test_rare_words_count_more(self, store: Store) -> None:
        put(store, *(memory("dark rooms") for _ in range(200)), memory("paris rooms"))
        assert contents(by_words(store, query(ADA), "dark paris", 201))[0] == "paris rooms"

    def test_a_title_and_an_author_are_searched_too(self, store: Store) -> None:
        put(store, memory("one", title="Dark things"), memory("two", author="Dark Vader"), memory("three"))
        for text in ("dark", "dar*"):
            assert sorted(contents(by_words(store, query(ADA), text, 5))) == ["one", "two"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ('"dark mode"', ["dark mode on", "so dark; mode off", "Dark Modes"]),
            ('"mode dark"', ["mode dark"]),
            ('dark "mode on"', ["dark mode on"]),
            ('"dark mode" "mode on"', ["dark mode on"]),
            ('"dark mode off on"', []),
            ('"the dark mode"', []),
        ],
    )
    def test_a_phrase_must_stand_as_it_is(self, store: Store, text: str, expected: list[str]) -> None:
        said = ["dark mode on", "mode dark", "dark", "so dark; mode off", "dark blue mode", "Dark Modes", "light"]
        put(store, *(memory(one, vector=vector(1, 0)) for one in said))
        assert sorted(contents(by_words(store, query(ADA), text, 9))) == sorted(expected)
        # It is asked of what the vectors bring, too.
        asked = probe(text, vector(1, 0))
        memories = store.pick(query(ADA), store.candidates(query(ADA), asked).numbers.tolist())
        assert sorted(one.content for one in memories.values()) == sorted(expected)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("secur*", ["a security hole", "SECURE", "sécurité", "security and privacy"]),
            ("securi* priv*", ["a security hole", "sécurité", "private", "security and privacy"]),
            ("straß*", ["Strassen"]),
            ("se_ur*", []),
            ("insecur*", ["insecure"]),
            ("nowher*", []),
        ],
    )
    def test_the_beginning_of_a_word_finds_it(self, store: Store, text: str, expected: list[str]) -> None:
        said = ["a security hole", "SECURE", "insecure", "sécurité", "private", "security and privacy", "Strassen"]
        put(store, *map(memory, said), memory("secure private", BOB))
        assert sorted(contents(by_words(store, query(ADA), text, 9))) == sorted(expected)

    @pytest.mark.parametrize("text", HOSTILE_QUERIES, ids=lambda text: ascii(text[:20]))
    def test_any_text_is_only_text(self, store: Store, text: str) -> None:
        dark = memory("dark mode content", vector=vector(1, 0))
        hidden = memory("dark mode content", vector=vector(1, 0))
        put(store, dark, hidden, memory("dark mode content", BOB, vector=vector(1, 0)))
        store.apply([forgotten(hidden)])
        found = by_words(store, query(ADA), text, 5)
        check_scored(found, 5)
        assert {scored.memory.id for scored in found} <= {dark.id}
        shares = set(words.asked(text)) & set(words.terms("dark mode content"))
        assert bool(found) == bool(shares)

    @given(text=st.text(st.characters(codec="utf-8", exclude_characters='"\u201c\u201d'), max_size=30))
    @GENERATED
    def test_generated_text_is_only_text(self, store: Store, text: str) -> None:
        """But for quotes, which ask for a phrase."""
        one = memory("dark mode", owner(new_id()))
        put(store, one)
        found = by_words(store, query(one.owner), f"{text} dark", 5)
        assert ids_of(scored.memory for scored in found) == [one.id]
        check_scored(found, 5)

    @given(text=st.text(st.characters(codec="utf-8") | st.sampled_from('"* '), max_size=30))
    @GENERATED
    def test_generated_quotes_and_stars_do_no_harm(self, store: Store, text: str) -> None:
        one = memory("dark mode", owner(new_id()))
        put(store, one)
        check_scored(by_words(store, query(one.owner), text, 5), 5)
        assert contents(by_words(store, query(one.owner), "dark", 5)) == ["dark mode"]

    def test_statistics_are_those_of_all_owners_asked_for(self, store: Store) -> None:
        """A word that is rare with one owner and common with another counts the same for both."""
        put(store, memory("dark rooms"), *(memory("dark rooms", BOB) for _ in range(50)))
        both = by_words(store, query(ADA, BOB), "dark paris", 60)
        assert len(both) == 51
        assert max(one.score for one in both) == pytest.approx(min(one.score for one in both), abs=EXACT)
        # All texts are as long as the mean, so what is left of BM25 is the share of the word's weight.
        dark, paris = weight(51, 51), weight(51, 0)
        assert both[0].score == pytest.approx(dark / (dark + paris), abs=EXACT)
        alone = by_words(store, query(ADA), "dark paris", 60)
        dark, paris = weight(1, 1), weight(1, 0)
        assert alone[0].score == pytest.approx(dark / (dark + paris), abs=EXACT)
        found = store.candidates(query(ADA, BOB), probe("dark paris Ghent"))
        assert found.question == {"memories": 51, "unseen_name": 1}

    # -- limits and picking ----------------------------------------------------------------------

    def test_a_pool_bounds_the_candidates_of_each_kind(self, store: Store) -> None:
        put(store, *(memory(f"dark {n}", vector=vector(1, n / 100)) for n in range(60)))
        for pool in (1, 3, 10):
            assert len(store.candidates(query(ADA), probe("dark", pool=pool))) == pool
            assert pool <= len(store.candidates(query(ADA), probe(near=vector(1, 0), pool=pool))) <= 4 * pool
            both = store.candidates(query(ADA), probe("dark", vector(1, 0), pool=pool))
            assert pool <= len(both) <= 2 * pool
        assert len(store.candidates(query(ADA), probe("dark", vector(1, 0)))) == 60

    def test_every_signal_has_a_value_for_every_candidate(self, store: Store) -> None:
        put(store, *(memory("dark", whose, importance=0.25) for whose in (ADA, BOB)), memory("light", BOB))
        found = store.candidates(query(ADA, BOB), probe("dark", vector(1, 0)))
        assert len(found) == len(found.passages) == 2
        assert all(len(values) == 2 and np.isfinite(values).all() for values in found.signals.values())
        assert found.signals["importance"].tolist() == pytest.approx([-0.25, -0.25])
        assert found.passages.tolist() == [-1, -1]

    def test_memories_are_picked_by_their_numbers(self, store: Store) -> None:
        one, two, theirs = memory("one", vector=vector(1, 0)), memory("two"), memory("theirs", BOB)
        numbers = put(store, one, two, theirs)
        changed, gone = updated(one, content="changed"), forgotten(two)
        store.apply([changed, gone])
        store.touch([one.id], START)

        def picked(*owners: Owner, **fields: Any) -> dict[int, str]:
            found = store.pick(query(*owners, **fields), [*numbers, 999])
            return {number: memory.content for number, memory in found.items()}

        assert picked(ADA) == dict(zip(numbers, ["changed", "two"], strict=False))
        assert picked(ADA, BOB) == dict(zip(numbers, ["changed", "two", "theirs"], strict=True))
        assert picked(BOB) == {numbers[2]: "theirs"}
        assert picked() == {}
        assert picked(ADA, as_of=numbers[1]) == dict(zip(numbers, ["one", "two"], strict=False))
        assert picked(ADA, as_of=0) == {}
        assert store.pick(query(ADA), []) == {}
        whole = store.pick(query(ADA), iter(numbers[:1]), vectors=True)[numbers[0]]
        assert (whole.vector, whole.access_count) == (one.vector, 1)
        assert replace(whole, vector=None, access_count=0, last_accessed_at=None) == changed.memory
        assert store.pick(query(ADA), numbers[:1])[numbers[0]].vector is None
