"""Listings: what a journal answers by its own means is what ``filters`` says over ``scan``."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import filters, statistics
from wellkept.ports import Query, Store
from wellkept.ports.journal import Journal
from wellkept.testing import strategies
from wellkept.testing.builders import (
    START,
    START_US,
    Writer,
    ids_of,
    moment,
    owner,
    put,
    query,
    vector,
    where,
)
from wellkept.testing.cases import Cases
from wellkept.testing.strategies import Draft
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import (
    ORDERS_OF_STORES,
    Access,
    MemoryType,
    Owner,
    Place,
    Position,
    Sort,
    SourceType,
    State,
    Stored,
    Tier,
)

ADA, BOB = owner("ada"), owner("bob")
DRAFTS = st.lists(strategies.drafts(), max_size=10)
ACTIVE_OR_FORGOTTEN = frozenset({State.ACTIVE, State.FORGOTTEN})

# A condition, a memory that meets it, and one that just does not.
EXAMPLES: tuple[tuple[str, object, Draft, Draft], ...] = (
    ("types", frozenset({MemoryType.EVENT}), {"type": "event"}, {}),
    ("tiers", frozenset({Tier.EPISODIC, Tier.ARCHIVAL}), {"tier": "archival"}, {"tier": "semantic"}),
    ("tags", ("a", "b"), {"tags": ["b.c", "a"]}, {"tags": ["a", "bc"]}),
    ("any_tags", ("a", "b"), {"tags": ["b.c"]}, {"tags": ["bc", "A"]}),
    ("no_tags", ("a", "b"), {"tags": ["ab"]}, {"tags": ["x", "b.c"]}),
    ("min_importance", 0.3, {"importance": 0.3}, {"importance": 0.3 - 1e-16}),
    ("min_trust", 0.5, {"trust": 0.5}, {"trust": 0.5 - 1e-16}),
    ("min_trust", 0.8, {}, {"trust": 0.2}),
    ("created_after", START, {}, {"created_at": START_US - 1}),
    ("created_before", START, {"created_at": START_US - 1}, {}),
    ("occurred_after", START, {}, {"occurred_at": START_US - 1}),
    ("occurred_before", START, {"occurred_at": START_US - 1}, {}),
    ("content_contains", "strasse %", {"text": "STRAßE %"}, {"text": "strasse x"}),
    ("content_contains", "anything", {"text": None}, {"text": "something"}),
    ("text", ("secur*", "pl*n"), {"text": "The PLAN: Security!"}, {"text": "an insecure plan"}),
    ("text", ("*rit*", "cafe"), {"text": "security of the Caf\u00e9"}, {"text": "security of the cafes"}),
    ("text", ("sealed",), {"text": None}, {"text": "open"}),
    ("authors", frozenset({"ada"}), {"author": "ada"}, {"author": "Ada"}),
    ("authors", frozenset({"ada"}), {"author": "ada"}, {}),
    ("source_type", SourceType.IMPORT, {"source_type": "import"}, {}),
    ("has_pointer", True, {"has_pointer": True}, {}),
    ("has_pointer", False, {}, {"has_pointer": True}),
    ("metadata", {"a": 1}, {"fields": {"a": 1.0, "b": 2}}, {"fields": {"a": True}}),
    ("metadata", {"a.b": None}, {"fields": {"a.b": None}}, {"fields": {"a": {"b": None}}}),
    ("states", frozenset({State.ACTIVE}), {}, {"state": "archived"}),
    ("states", frozenset({State.ARCHIVED}), {"state": "archived"}, {"state": "forgotten"}),
    ("states", ACTIVE_OR_FORGOTTEN, {"state": "forgotten"}, {"state": "archived"}),
    ("now", START, {"expires_at": START_US + 1}, {"expires_at": START_US}),
)


def plain(found: Any) -> list[Stored]:
    """An answer without vectors, payloads and texts, which a listing may leave out."""
    kept = (one._replace(vector=None, payload=b"") for one in found)
    return [one._replace(facets={name: one.facets[name] for name in one.facets if name != "text"}) for one in kept]


def defined(journal: Journal, wanted: Query) -> list[Stored]:
    """The definition of a listing."""
    fits = filters.matching(wanted.where)
    found = (one for one in journal.scan(wanted.owners, at=wanted.at) if fits(one))
    return filters.page(found, wanted.sort, after=wanted.after, offset=wanted.offset, limit=wanted.limit)


def check(journal: Journal, wanted: Query) -> None:
    """``select``, ``count`` and ``ids`` agree with the definition."""
    assert plain(journal.select(wanted)) == plain(defined(journal, wanted))
    every = defined(journal, replace(wanted, limit=None, offset=0, after=None))
    assert journal.count(wanted.owners, wanted.where, at=wanted.at) == len(every)
    named = list(journal.ids(wanted.owners, wanted.where, at=wanted.at))
    assert len(set(named)) == len(named)
    assert set(named) == {(one.owner, one.id) for one in every}


def place_of(last: Stored, sort: Sort) -> Place:
    """Where the next page begins."""
    return filters.place_of(last, filters.sort_value(last, sort))


def walk(journal: Journal, wanted: Query, between: Callable[[], object]) -> list[tuple[Owner, str]]:
    """A listing taken page by page, with something happening after each page."""
    seen: list[tuple[Owner, str]] = []
    while page := journal.select(wanted):
        assert wanted.limit is not None
        assert len(page) <= wanted.limit
        found = [(one.owner, one.id) for one in page]
        assert set(found).isdisjoint(seen), "a page brings back what another one had"
        seen += found
        between()
        wanted = replace(wanted, after=place_of(page[-1], wanted.sort))
    return seen


def filled(store: Store, writes: Writer, drafts: list[Draft]) -> tuple[Owner, Owner, Position]:
    """Two owners with these memories, some of them changed, and the position before the changes."""
    first, second = owner(writes.new_id()), owner(writes.new_id())
    made = [writes.add((first, first, second)[place % 3], **draft) for place, draft in enumerate(drafts)]
    put(store, *made)
    position = store.journal.position({first, second})
    put(store, *(writes.update(one, importance=0.75) for one in made[1::3]))
    put(store, *(writes.erase(one) for one in made[5::4]))
    accesses = [Access(one.owner, one.id, place % 3, START_US + place // 2) for place, one in enumerate(made[::2])]
    store.journal.count_accesses([one for one in accesses if one.times])
    return first, second, position


@pytest.mark.req("L5")
class Queries(Subject):
    """``select``, ``count``, ``ids`` and ``stats``."""

    @given(
        drafts=DRAFTS,
        asked=st.lists(strategies.conditions(), min_size=1, max_size=3),
        picked=st.none() | st.sets(st.integers(0, 9)),
        without=st.sets(st.integers(0, 9), max_size=2),
        data=st.data(),
    )
    @GENERATED
    def test_listings_agree_with_the_definition(
        self,
        store: Store,
        writes: Writer,
        *,
        drafts: list[Draft],
        asked: list[Draft],
        picked: set[int] | None,
        without: set[int],
        data: st.DataObject,
    ) -> None:
        first, second, position = filled(store, writes, drafts)
        known = ids_of(store.journal.scan({first, second}))
        for conditions in asked:
            chosen: dict[str, Any] = {"without": frozenset(known[n] for n in without if n < len(known))}
            if picked is not None:
                chosen["ids"] = frozenset(known[n] for n in picked if n < len(known))
            wanted = query(
                *data.draw(st.sampled_from([(first,), (first, second)])),
                sort=data.draw(st.sampled_from(ORDERS_OF_STORES)),
                at=data.draw(st.sampled_from([None, None, position])),
                **(conditions | chosen),
            )
            check(store.journal, wanted)
            every = defined(store.journal, wanted)
            if every:
                last = data.draw(st.sampled_from(every))
                wanted = replace(wanted, after=place_of(last, wanted.sort))
            limit, offset = data.draw(st.none() | st.integers(0, 4)), data.draw(st.integers(0, 3))
            check(store.journal, replace(wanted, limit=limit, offset=offset))

    def test_each_condition_takes_and_leaves(self, store: Store, writes: Writer) -> None:
        with Cases() as cases:
            for number, (name, value, good, bad) in enumerate(EXAMPLES):
                with cases.case(f"{name} = {value!r}, where {good} is taken"):
                    asking, other = owner(f"ada {number}"), owner(f"bob {number}")
                    taken, left = writes.add(asking, **good), writes.add(asking, **bad)
                    put(store, taken, left, writes.add(other, **good))
                    asked = where(**({"states": frozenset(State)} | {name: value}))
                    assert ids_of(store.journal.select(Query(owners=frozenset({asking}), where=asked))) == [taken.id]
                    assert store.journal.count({asking}, asked) == 1
                    assert list(store.journal.ids({asking}, asked)) == [(asking, taken.id)]

    def test_any_state_takes_what_expired(self, store: Store, writes: Writer) -> None:
        store.journal.append([writes.add(ADA, state=state.value, expires_at=START_US - 1) for state in State])
        assert store.journal.count({ADA}, where(states=None)) == len(State)
        assert store.journal.count({ADA}, where(states=frozenset(State))) == 0

    def test_a_listing_may_pick_ids_and_leave_ids_out(self, store: Store, writes: Writer) -> None:
        one, two, theirs = writes.add(ADA), writes.add(ADA), writes.add(BOB)
        put(store, one, two, theirs)
        picked = frozenset({two.id, theirs.id, "nothing", "' OR 1=1"})
        assert ids_of(store.journal.select(query(ADA, ids=picked))) == [two.id]
        assert list(store.journal.select(query(ADA, ids=frozenset()))) == []
        assert ids_of(store.journal.select(query(ADA, without=picked))) == [one.id]
        many = frozenset(f"id {number}" for number in range(2_000))
        assert store.journal.count({ADA}, where(ids=many | {one.id})) == 1
        assert store.journal.count({ADA}, where(without=many | {one.id})) == 1

    def test_the_orders(self, store: Store, writes: Writer) -> None:
        named = {
            name: writes.add(ADA, name, importance=importance, created_at=START_US - place)
            for place, (name, importance) in enumerate((("a", 0.5), ("b", 0.9), ("c", 0.5), ("d", 0.1)))
        }
        store.journal.append(list(named.values()))
        for name, times, last_at in (("a", 1, 10), ("b", 3, 20), ("c", 1, 21)):
            store.journal.count_accesses([Access(ADA, named[name].id, times, last_at)])
        orders = {
            Sort.NEWEST: "dcba",
            Sort.OLDEST: "abcd",
            Sort.IMPORTANT: "bcad",
            Sort.RECENTLY_ACCESSED: "cbad",
            Sort.MOST_ACCESSED: "bcad",
        }
        assert set(orders) == set(ORDERS_OF_STORES)
        for sort, order in orders.items():
            found = store.journal.select(query(ADA, sort=sort))
            assert "".join(one.facets["text"] for one in found) == order, sort

    @pytest.mark.req("H3")
    @given(drafts=DRAFTS, limit=st.integers(1, 3), conditions=strategies.conditions())
    @GENERATED
    def test_pages_walk_a_listing_exactly_once_while_others_write(
        self, store: Store, writes: Writer, drafts: list[Draft], limit: int, conditions: Draft
    ) -> None:
        first, second, _ = filled(store, writes, drafts)
        added: list[str] = []

        def add_one() -> None:
            if len(added) < 20:
                one = writes.add((first, second)[len(added) % 2], importance=len(added) % 3 / 2)
                store.journal.append([one])
                added.append(one.id)

        for sort in ORDERS_OF_STORES:
            listing = query(first, second, sort=sort, **conditions)
            in_one = [(one.owner, one.id) for one in store.journal.select(listing)]
            assert walk(store.journal, replace(listing, limit=limit), lambda: None) == in_one
            disturbed = walk(store.journal, replace(listing, limit=limit), add_one)
            assert [one for one in disturbed if one in set(in_one)] == in_one

    def test_pages_of_the_past_do_not_move(self, store: Store, writes: Writer) -> None:
        made = [writes.add(ADA, f"number {number}", importance=0.5) for number in range(6)]
        store.journal.append(made)
        position = store.journal.position({ADA})

        def disturb() -> None:
            first = next(iter(store.journal.scan({ADA})))
            store.journal.append([writes.update(first, importance=0.9), writes.add(ADA)])

        for sort in (Sort.NEWEST, Sort.OLDEST, Sort.IMPORTANT):
            wanted = query(ADA, sort=sort, at=position, limit=2)
            order = made if sort is Sort.OLDEST else made[::-1]
            assert walk(store.journal, wanted, disturb) == [(ADA, one.id) for one in order]

    def test_times_at_the_edge_of_the_calendar(self, store: Store, writes: Writer) -> None:
        store.journal.append([writes.add(ADA, created_at=START_US, expires_at=2**57)])
        assert store.journal.count({ADA}, where(now=moment(micros=-1))) == 1
        assert store.journal.count({ADA}, where(created_after=datetime.min.replace(tzinfo=START.tzinfo))) == 1

    @pytest.mark.req("L8")
    @given(drafts=DRAFTS, now=st.sampled_from(strategies.MOMENTS))
    @GENERATED
    def test_statistics_agree_with_the_definition(
        self, store: Store, writes: Writer, drafts: list[Draft], now: datetime
    ) -> None:
        first, second, _ = filled(store, writes, drafts)
        embedded = writes.add(first, write={"vector": vector(1, 0)})
        store.journal.append([embedded])
        for owners in ({first}, {first, second}):
            wanted = statistics.tally(store.journal.scan(owners, vectors=True), now)
            assert store.journal.stats(owners, now) == wanted
