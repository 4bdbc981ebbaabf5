"""Questions: what a store answers by its own means is what the defaults of ``Store`` answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import filters, statistics
from recollect.lifecycle.decay import USUAL, Irrelevance
from recollect.ports import Query, Store, Stored
from recollect.testing import strategies
from recollect.testing.builders import (
    START,
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
from recollect.types import (
    DecayPolicy,
    KnowledgePointer,
    Memory,
    MemoryType,
    Owner,
    PointerType,
    Sort,
    Source,
    SourceType,
    State,
)

ADA = owner("ada")
BOB = owner("bob")
DRAFTS = st.lists(strategies.drafts(), max_size=10)
FADING_DRAFTS = st.lists(
    st.builds(
        dict[str, Any].__or__,
        strategies.sketches(),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from([MemoryType.CONVERSATION, MemoryType.FACT, MemoryType.PREFERENCE]),
                "importance": st.integers(1, 20).map(lambda some: some / 20),  # few are equal
                "decay_factor": st.sampled_from([None, None, 0.0, 0.3]),
                "expires_at": st.sampled_from([None, None, None, START + timedelta(hours=1)]),
            }
        ),
    ),
    min_size=9,
    max_size=16,
)
POLICIES = (
    USUAL,
    DecayPolicy(enabled=False),
    DecayPolicy(half_life_hours=0.5, min_decay_factor=0.0, by_type_hours={MemoryType.PREFERENCE: 1.0}),
)
# What happens to which memories, how many seconds pass (clocks go back, too), and how the memories fade from then on.
LOOKS = st.lists(
    st.tuples(
        st.sampled_from([None, "touch", "update", "forget"]),
        st.integers(0, 5),
        st.sampled_from([0, 1, 3_600, 86_400, 10_000_000, -1, -7_200, -10_000_000]),
        st.sampled_from([None, None, None, *POLICIES]),
    ),
    min_size=2,
    max_size=6,
)

_POINTER = KnowledgePointer(source_type=PointerType.ADR, source_id="adr-1", content_hash="sha256:00", synced_at=START)
_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)
# A condition, a memory that meets it, and one that just does not.
EXAMPLES: tuple[tuple[str, object, Draft, Draft], ...] = (
    ("types", frozenset({MemoryType.EVENT}), {"type": MemoryType.EVENT}, {}),
    ("tags", ("a", "b"), {"tags": ("b.c", "a")}, {"tags": ("a", "bc")}),
    ("any_tags", ("a", "b"), {"tags": ("b.c",)}, {"tags": ("bc", "A")}),
    ("no_tags", ("a", "b"), {"tags": ("ab",)}, {"tags": ("x", "b.c")}),
    ("min_importance", 0.3, {"importance": 0.3}, {"importance": 0.3 - 1e-16}),
    ("created_after", START, {}, {"created_at": START - _INSTANT}),
    ("created_before", START, {"created_at": START - _INSTANT}, {}),
    ("occurred_after", START, {}, {"occurred_at": START - _INSTANT}),
    ("occurred_before", START, {"occurred_at": START - _INSTANT}, {}),
    ("content_contains", "strasse %", {"content": "STRAßE %"}, {"content": "strasse x"}),
    ("text", ("secur*", "pl*n"), {"content": "The PLAN: Security!"}, {"content": "an insecure plan"}),
    ("text", ("*rit*", "cafe"), {"content": "security of the Caf\u00e9"}, {"content": "security of the cafes"}),
    ("authors", frozenset({"ada"}), {"author": "ada"}, {"author": "Ada"}),
    ("authors", frozenset({"ada"}), {"author": "ada"}, {}),
    ("source_type", SourceType.IMPORT, {"source": Source(type=SourceType.IMPORT)}, {}),
    ("has_pointer", True, {"pointer": _POINTER}, {}),
    ("has_pointer", False, {}, {"pointer": _POINTER}),
    ("metadata", {"a": 1}, {"metadata": {"a": 1.0, "b": 2}}, {"metadata": {"a": True}}),
    ("metadata", {"a.b": None}, {"metadata": {"a.b": None}}, {"metadata": {"a": {"b": None}}}),
    ("include_forgotten", False, {}, {"state": State.FORGOTTEN}),
    ("now", START, {"expires_at": START + _INSTANT}, {"expires_at": START}),
)


def whole(found: list[Stored]) -> list[Stored]:
    """The answer without vectors, which a listing may or may not bring along."""
    return [Stored(one.number, replace(one.memory, vector=None)) for one in found]


def position(last: Stored, sort: Sort) -> tuple[float, int]:
    """Where the next page begins."""
    return filters.sort_value(last.memory, sort), last.number


def walk(store: Store, wanted: Query, between: Callable[[], object]) -> list[str]:
    """The ids of a listing, taken page by page, with something happening after each page."""
    seen: list[str] = []
    while page := store.select(wanted):
        assert wanted.limit is not None
        assert len(page) <= wanted.limit
        ids = ids_of(stored.memory for stored in page)
        assert set(ids).isdisjoint(seen), "a page brings back what another one had"
        seen += ids
        between()
        wanted = replace(wanted, after=position(page[-1], wanted.sort))
    return seen


class Queries(Subject):
    """``select``, ``ranked``, ``count`` and ``stats``."""

    @pytest.mark.req("L5", "L9")
    @given(
        drafts=DRAFTS,
        asked=st.lists(strategies.conditions(), min_size=1, max_size=4),
        picked=st.sets(st.integers(0, 9)) | st.none(),
    )
    @GENERATED
    def test_select_and_count_agree_with_the_definition(
        self, store: Store, drafts: list[Draft], asked: list[Draft], picked: set[int] | None
    ) -> None:
        whose, memories = stored(store, drafts)
        if picked is not None:
            chosen = {one.id for number, one in enumerate(memories) if number in picked}
            asked = [conditions | {"ids": frozenset(chosen)} for conditions in asked]
        for conditions in asked:
            for sort in filters.STORED_ORDERS:
                wanted = query(whose, sort=sort, **conditions)
                assert whole(store.select(wanted)) == whole(Store.select(store, wanted))
            wanted = query(whose, limit=1, offset=1, **conditions)
            matching = sum(filters.matches(one, wanted.where) for one in memories)
            assert store.count(wanted) == Store.count(store, wanted) == matching

    @pytest.mark.req("L5", "L9")
    @given(drafts=DRAFTS, conditions=strategies.conditions(), offset=st.integers(0, 3), limit=st.integers(1, 4))
    @GENERATED
    def test_an_order_of_the_callers_agrees_with_the_definition(
        self, store: Store, drafts: list[Draft], conditions: Draft, offset: int, limit: int
    ) -> None:
        def value(one: Memory) -> float:
            return one.access_count - round(one.importance)  # many are equal

        whose, memories = stored(store, drafts)
        store.touch([one.id for one in memories[::3]], START)
        wanted = query(whose, sort=Sort.RELEVANCE, **conditions)
        every = store.ranked(wanted, value)
        newest = store.select(replace(wanted, sort=Sort.NEWEST))
        assert whole(every) == whole(sorted(newest, key=lambda one: value(one.memory)))
        for last in every:
            rest = replace(wanted, offset=offset, limit=limit, after=(value(last.memory), last.number))
            behind = every[every.index(last) + 1 :]
            assert whole(store.ranked(rest, value)) == whole(behind[offset : offset + limit])

    @pytest.mark.req("L5", "L9", "J6")
    @given(drafts=FADING_DRAFTS, looks=LOOKS, conditions=st.sampled_from([{}, {}, {"tags": ("a",)}]))
    @GENERATED
    def test_an_order_by_relevance_agrees_with_the_definition_as_time_goes_on(
        self,
        store: Store,
        drafts: list[Draft],
        looks: list[tuple[str | None, int, int, DecayPolicy | None]],
        conditions: Draft,
    ) -> None:
        whose, memories = stored(store, drafts)
        others, more = stored(store, drafts[::2])
        policy, then, now = USUAL, store.sequence(), START
        for what, which, seconds, other in looks:
            policy, now = other or policy, now + timedelta(seconds=seconds)
            for one in (memories + more)[which::4]:
                change(store, what, one, now)
            for owners, as_of in (((whose,), None), ((whose, others), None), ((whose, others), then)):
                order = Irrelevance(now, {one: policy if one == whose else USUAL for one in owners})
                wanted = query(*owners, sort=Sort.RELEVANCE, now=now, as_of=as_of, **conditions)
                every = Store.ranked(store, wanted, order)
                assert whole(store.ranked(replace(wanted, limit=1, offset=1), order)) == whole(every[1:2])
                for place, last in enumerate([None, *every]):
                    after = None if last is None else (order(last.memory), last.number)
                    page = store.ranked(replace(wanted, limit=2, after=after), order)
                    assert whole(page) == whole(every[place : place + 2])

    @pytest.mark.req("L5", "L9", "J6")
    def test_what_was_used_or_changed_is_relevant_at_once(self, store: Store) -> None:
        memories = [memory(importance=0.5 + number / 100) for number in range(20)]
        put(store, *memories)
        order = Irrelevance(START + timedelta(days=30), {ADA: USUAL})
        first = query(ADA, sort=Sort.RELEVANCE, limit=1)

        def leading() -> list[str]:
            return ids_of(one.memory for one in store.ranked(first, order))

        assert leading() == [memories[19].id]
        store.touch([memories[0].id], order.now)
        assert leading() == [memories[0].id]
        store.apply([updated(memories[1], importance=1.0)])
        assert leading() == [memories[1].id]
        store.apply([updated(replace(memories[1], version=2), importance=0.1)])
        assert leading() == [memories[0].id]
        put(store, added := memory(importance=0.9))
        assert leading() == [added.id]

    @pytest.mark.req("L5")
    @pytest.mark.parametrize(("name", "value", "good", "bad"), EXAMPLES)
    def test_each_condition_takes_and_leaves(
        self, store: Store, name: str, value: object, good: Draft, bad: Draft
    ) -> None:
        taken, left = memory(**good), memory(**bad)
        put(store, taken, left)
        wanted = query(ADA, **{name: value})
        assert ids_of(one.memory for one in store.select(wanted)) == [taken.id]
        assert store.count(wanted) == 1
        assert store.count(query(ADA, include_forgotten=True)) == 2

    @pytest.mark.req("L5")
    def test_a_listing_may_pick_ids(self, store: Store) -> None:
        one, two, theirs = memory("one"), memory("two"), memory("theirs", BOB)
        put(store, one, two, theirs)
        picked = query(ADA, ids=frozenset({two.id, theirs.id, new_id(), "' OR 1=1"}))
        assert ids_of(one.memory for one in store.select(picked)) == [two.id]
        assert store.select(query(ADA, ids=frozenset())) == []
        many = frozenset(new_id() for _ in range(2_000))
        assert store.count(query(ADA, ids=many | {one.id})) == 1

    @pytest.mark.req("L5", "L9")
    def test_the_five_orders(self, store: Store, place: Path) -> None:
        named = {
            name: memory(name, importance=importance)
            for name, importance in (("a", 0.5), ("b", 0.9), ("c", 0.5), ("d", 0.1))
        }
        put(store, *named.values())
        for second, names in enumerate(("ab", "b", "b", "c")):
            at = START + timedelta(seconds=second, microseconds=second)
            store.touch([named[name].id for name in names], at)
        orders = {
            Sort.NEWEST: "dcba",
            Sort.OLDEST: "abcd",
            Sort.IMPORTANT: "bcad",
            Sort.RECENTLY_ACCESSED: "cbad",
            Sort.MOST_ACCESSED: "bcad",
        }
        with self.settled(store, place) as settled:
            for sort, order in orders.items():
                listing = settled.select(query(ADA, sort=sort))
                assert "".join(one.memory.content for one in listing) == order, sort

    @pytest.mark.req("L5", "H3")
    @given(drafts=DRAFTS, limit=st.integers(1, 3), conditions=strategies.conditions())
    @GENERATED
    def test_pages_walk_a_listing_exactly_once(
        self, store: Store, drafts: list[Draft], limit: int, conditions: Draft
    ) -> None:
        whose, memories = stored(store, drafts)
        extra: list[Memory] = []

        def add_one() -> None:
            if len(extra) < 20:
                extra.append(memory("meanwhile", whose, importance=len(extra) % 3 / 2))
                put(store, extra[-1])

        for sort in filters.STORED_ORDERS:
            listing = query(whose, sort=sort, **conditions)
            pages = replace(listing, limit=limit)
            in_one = ids_of(one.memory for one in store.select(listing))
            assert walk(store, pages, lambda: None) == in_one
            disturbed = walk(store, pages, add_one)
            assert len(set(disturbed)) == len(disturbed)
            assert [one for one in disturbed if one in set(in_one)] == in_one
        assert store.count(query(whose, include_forgotten=True)) == len(memories) + len(extra)

    @pytest.mark.req("L5", "H3")
    def test_pages_by_access_walk_exactly_once(self, store: Store, place: Path) -> None:
        """Times of access may differ by a microsecond, or not at all."""
        memories = [memory(f"number {number}") for number in range(12)]
        put(store, *memories)
        for number, one in enumerate(memories[:10]):
            for _ in range(1 + number % 3):
                store.touch([one.id], START + timedelta(microseconds=number // 2))
        with self.settled(store, place) as settled:
            for sort in (Sort.RECENTLY_ACCESSED, Sort.MOST_ACCESSED):
                for limit in (1, 2, 5):
                    listing = query(ADA, sort=sort)
                    wanted = ids_of(one.memory for one in Store.select(settled, listing))
                    assert ids_of(one.memory for one in settled.select(listing)) == wanted
                    assert walk(settled, replace(listing, limit=limit), lambda: None) == wanted

    @pytest.mark.req("L5")
    @given(
        drafts=DRAFTS,
        offset=st.integers(0, 12),
        limit=st.none() | st.integers(0, 4),
        behind=st.integers(0, 9),
        sort=st.sampled_from(filters.STORED_ORDERS),
    )
    @GENERATED
    def test_limit_offset_and_position_combine(
        self,
        store: Store,
        *,
        drafts: list[Draft],
        offset: int,
        limit: int | None,
        behind: int,
        sort: Sort,
    ) -> None:
        whose, _ = stored(store, drafts)
        wanted = query(whose, sort=sort, include_forgotten=True)
        everything = Store.select(store, wanted)
        if behind < len(everything):
            wanted = replace(wanted, after=position(everything[behind], sort))
        wanted = replace(wanted, offset=offset, limit=limit)
        assert whole(store.select(wanted)) == whole(Store.select(store, wanted))
        assert store.count(wanted) == len(everything)

    @pytest.mark.req("L5")
    @given(
        drafts=st.lists(strategies.drafts(), min_size=1, max_size=6),
        changes=st.lists(st.tuples(st.integers(0, 5), strategies.drafts()), max_size=6),
        conditions=strategies.conditions(),
    )
    @GENERATED
    def test_listings_of_the_past_agree_with_the_definition(
        self,
        store: Store,
        drafts: list[Draft],
        changes: list[tuple[int, Draft]],
        conditions: Draft,
    ) -> None:
        whose, memories = stored(store, drafts)
        past = [dict(enumerate(memories))]
        sequences = [store.sequence()]
        for number, draft in changes:
            which = number % len(memories)
            change = {name: value for name, value in draft.items() if name != "created_at"}
            write = updated(past[-1][which], **change)
            sequences += store.apply([write])
            past.append(past[-1] | {which: write.memory})
        for sequence, state in zip(sequences, past, strict=True):
            wanted = query(whose, as_of=sequence, sort=Sort.OLDEST, **conditions)
            matching = [one for one in state.values() if filters.matches(one, wanted.where)]
            assert [plain(one.memory) for one in store.select(wanted)] == matching
            assert store.count(wanted) == len(matching)
            for sort in filters.STORED_ORDERS:
                sorted_ = replace(wanted, sort=sort, limit=2)
                assert whole(store.select(sorted_)) == whole(Store.select(store, sorted_))

    @pytest.mark.req("L8")
    @given(
        drafts=DRAFTS,
        others=DRAFTS,
        now=st.sampled_from(strategies.MOMENTS),
        vectors=st.lists(st.booleans(), min_size=10, max_size=10),
    )
    @GENERATED
    def test_statistics_agree_with_the_definition(
        self,
        store: Store,
        drafts: list[Draft],
        others: list[Draft],
        now: datetime,
        vectors: list[bool],
    ) -> None:
        some = [
            draft | {"vector": vector(1, 0) if has_vector else None}
            for draft, has_vector in zip(drafts, vectors, strict=False)
        ]
        mine, memories = stored(store, some)
        theirs, foreign = stored(store, others)
        for owners, counted in (
            ({mine}, memories),
            ({mine, theirs}, [*memories, *foreign]),
            (set(), []),
        ):
            stats = store.stats(owners, now)
            assert stats == Store.stats(store, owners, now)
            assert stats == statistics.tally(counted, now)
        assert store.sizes(now) == Store.sizes(store, now)


def stored(store: Store, drafts: list[Draft]) -> tuple[Owner, list[Memory]]:
    """Store drafts for an owner of their own, among memories of others."""
    whose = owner(new_id())
    memories = [memory(whose=whose, **draft) for draft in drafts]
    put(store, *memories)
    return whose, memories


def change(store: Store, what: str | None, which: Memory, now: datetime) -> None:
    """Use or change a memory that may have been changed before."""
    newest = store.get({which.owner}, [which.id])[which.id]
    if what == "touch":
        store.touch([which.id], now)
    elif what == "update":
        store.apply([updated(newest, importance=1 - newest.importance)])
    elif what == "forget":
        store.apply([forgotten(newest)])
