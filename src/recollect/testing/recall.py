"""Recall: the nearest vectors and the matching words, as raw signals for the ranking."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import filters, words
from recollect.ports import Scored, Store
from recollect.testing import strategies
from recollect.testing.builders import (
    START,
    erased,
    forgotten,
    ids_of,
    memory,
    new_id,
    owner,
    plain,
    put,
    query,
    updated,
    vector,
)
from recollect.testing.strategies import Draft
from recollect.testing.subject import GENERATED, Subject
from recollect.types import MemoryType

ADA = owner("ada")
BOB = owner("bob")
# Words that no list of stop words holds and no stemmer joins.
WORDS = ("dark", "mode", "tabs", "paris", "coffee", "zürich", "python", "42", "東京")
TOLERANCE = 1e-5
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
    "dar*",
    "'; DROP TABLE words; --",
    "\U0001f600",
    "\u200d\ufe0f",
    "a\x00b",
    "",
    " \n\t",
    "\\",
    "%",
    "?",
    "$1",
    " ".join(f"word{number}" for number in range(1000)),
    "dark" * 2000,
)


VECTORS = st.tuples(*[st.integers(-3, 3).map(float)] * 4).filter(any)


def check_scored(found: list[Scored], limit: int) -> None:
    """What holds of every scored answer: within the limit, the best first, nothing twice."""
    scores = [scored.score for scored in found]
    assert len(found) <= limit
    assert all(math.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert len({scored.memory.id for scored in found}) == len(found)


class Recall(Subject):
    """``nearest`` and ``matching_words``."""

    @pytest.mark.req("L4")
    @given(
        drafts=st.lists(st.tuples(strategies.drafts(), st.none() | VECTORS), max_size=12),
        asked=VECTORS,
        limit=st.integers(1, 6),
        conditions=strategies.conditions(),
    )
    @GENERATED
    def test_nearest_agrees_with_the_definition(
        self,
        store: Store,
        drafts: list[tuple[Draft, tuple[float, ...] | None]],
        asked: tuple[float, ...],
        limit: int,
        conditions: Draft,
    ) -> None:
        whose = owner(new_id())
        put(
            store,
            *(
                memory(whose=whose, vector=None if values is None else vector(*values), **draft)
                for draft, values in drafts
            ),
        )
        wanted = query(whose, **conditions)
        found = store.nearest(wanted, vector(*asked), limit)
        defined = Store.nearest(store, wanted, vector(*asked), len(drafts))
        check_scored(found, limit)
        scores = {scored.memory.id: scored.score for scored in defined}
        best = sorted(scores.values(), reverse=True)[:limit]
        assert [scored.score for scored in found] == pytest.approx(best, abs=TOLERANCE)
        for scored in found:
            assert scored.score == pytest.approx(scores[scored.memory.id], abs=TOLERANCE)
        # Which of several equals fall to the limit is left to the store; the better ones are not.
        certain = {one for one, score in scores.items() if best and score > best[-1] + TOLERANCE}
        assert certain <= {scored.memory.id for scored in found}
        memories = {one.memory.id: plain(one.memory) for one in defined}
        assert all(plain(one.memory) == memories[one.memory.id] for one in found)

    @pytest.mark.req("L4", "L11")
    def test_what_may_not_be_seen_crowds_nothing_out(self, store: Store) -> None:
        """A store that takes the best first and looks at owners and filters later finds nothing."""
        mine = [memory(f"dark {n}", vector=vector(1, 1), type=MemoryType.EVENT) for n in range(3)]
        nearer: Draft = {"content": "dark", "vector": vector(1, 0)}
        gone = [memory(**nearer) for _ in range(50)]
        put(store, *mine, *(memory(whose=BOB, **nearer) for _ in range(300)))
        put(store, *(memory(**nearer) for _ in range(100)), *gone)
        store.apply([forgotten(one) for one in gone[:25]] + [erased(one) for one in gone[25:]])
        wanted = query(ADA, types=frozenset({MemoryType.EVENT}))
        for found in (
            store.nearest(wanted, vector(1, 0), 3),
            store.matching_words(wanted, "dark", 3),
        ):
            assert sorted(ids_of(one.memory for one in found)) == sorted(ids_of(mine))

    @pytest.mark.req("L4")
    def test_nearest_follows_every_change(self, store: Store) -> None:
        one, two = memory("one", vector=vector(1, 0)), memory("two", vector=vector(0, 1))
        put(store, one, two)

        def nearest() -> list[str]:
            found = store.nearest(query(ADA), vector(1, 0.1), 5)
            return [scored.memory.content for scored in found]

        assert nearest() == ["one", "two"]
        turned = updated(one, write={"keeps_vector": False, "vector": vector(-1, 0)})
        store.apply([turned])
        assert nearest() == ["two", "one"]
        store.apply([forgotten(two)])
        assert nearest() == ["one"]
        store.apply([erased(turned.memory)])
        assert nearest() == []

    @given(
        contents=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), max_size=10),
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
        contents: list[list[str]],
        asked: list[str],
        conditions: Draft,
        draft: Draft,
        limit: int,
    ) -> None:
        whose = owner(new_id())
        memories = [
            # Every second one has generated fields, so that conditions leave some and take some.
            memory(whose=whose, **((draft if n % 2 else {}) | {"content": " ".join(chosen)}))
            for n, chosen in enumerate(contents)
        ]
        put(store, *memories, memory(" ".join(WORDS), BOB))
        conditions = conditions | {"include_forgotten": False}
        wanted = query(whose, **conditions)
        matching = {
            one.id
            for one in memories
            if filters.matches(one, wanted.where)
            and set(words.terms(words.searchable(one.content, one.title))) & set(words.asked(" ".join(asked)))
        }
        text = " ".join(asked).upper()
        found = store.matching_words(wanted, text, limit)
        check_scored(found, limit)
        assert all(scored.score > 0 for scored in found)
        assert {scored.memory.id for scored in found} <= matching
        assert len(found) == min(limit, len(matching))

    def test_more_words_count_more(self, store: Store) -> None:
        both = memory("prefers dark mode today")
        put(store, memory("dark chocolate is fine"), both, memory("silent mode is fine"))
        put(store, *(memory(f"filler number {number}") for number in range(20)))
        found = store.matching_words(query(ADA), "dark mode", 3)
        assert len(found) == 3
        assert found[0].memory == both

    @pytest.mark.parametrize("text", HOSTILE_QUERIES, ids=lambda text: ascii(text[:20]))
    def test_any_text_is_only_text(self, store: Store, text: str) -> None:
        dark = memory("dark mode content")
        hidden = memory("dark mode content")
        put(store, dark, hidden, memory("dark mode content", BOB))
        store.apply([forgotten(hidden)])
        found = store.matching_words(query(ADA), text, 5)
        check_scored(found, 5)
        assert {scored.memory.id for scored in found} <= {dark.id}
        shares = set(words.asked(text)) & set(words.terms("dark mode content"))
        assert bool(found) == bool(shares)

    @given(text=st.text(st.characters(codec="utf-8"), max_size=30))
    @GENERATED
    def test_generated_text_is_only_text(self, store: Store, text: str) -> None:
        one = memory("dark mode", owner(new_id()))
        put(store, one)
        found = store.matching_words(query(one.owner), f"{text} dark", 5)
        assert ids_of(scored.memory for scored in found) == [one.id]
        check_scored(found, 5)

    def test_words_follow_every_change(self, store: Store) -> None:
        one = memory("old words", expires_at=None)
        put(store, one)

        def count(text: str) -> int:
            return len(store.matching_words(query(ADA), text, 5))

        assert (count("old"), count("new")) == (1, 0)
        changed = updated(one, content="new words")
        store.apply([changed])
        assert (count("old"), count("new")) == (0, 1)
        store.apply([forgotten(changed.memory)])
        assert count("new words") == 0
        put(store, memory("new words", expires_at=START))
        assert count("new words") == 0
