"""Positions: every place in a journal can be resumed from, and every past state be read."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import codec
from wellkept.errors import InvalidInput, PositionLost
from wellkept.ports import Store, positions
from wellkept.ports.positions import Reached
from wellkept.testing.builders import START_US, Writer, bare, ids_of, owner, put, query
from wellkept.testing.cases import Cases
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import JournalPage, Operation, Owner, Position, Sort, Stored, Write

ADA, BOB, EVE = owner("ada"), owner("bob"), owner("eve")
ALL = frozenset({ADA, BOB, EVE})
NONSENSE = ("", "1", "0", "not a position", "e30", "WzEsMl0", "é", "x" * 5_000, "' OR 1=1 --", "W10=", "\x00")
# What may stand beside the right epoch in a text that somebody changed.
TAMPERED: tuple[object, ...] = (
    *(None, 5, {"a": 1}, [[]], [1], ["ada"], [[1, 2, "", 0]], [["ada", 1, "", 0]], [['["nobody","ada"]', 1, "", 0]]),
    *([['["user","ada"]', value, "", 0]] for value in (-1, 2**70, 1.5, "1", None)),
    *([['["user","ada"]', 1, value, 0]] for value in (5, None)),
    *(["-1"], ["1", "2"]),
)

Follow = Callable[[Position | None, int | None], JournalPage[Stored]]


def some_history(store: Store, writes: Writer) -> list[tuple[Position, list[Stored]]]:
    """Writes of three owners in turns; after each append the position, and what could be seen there."""
    a, b = writes.add(ADA, "a", id="1"), writes.add(BOB, "b", id="1")
    a2, gone = writes.update(a, "a2", tags=["x"]), writes.add(ADA, "gone", id="9")
    c = writes.add(EVE, "c", id="3")
    steps: list[list[Write]] = [[a], [b], [a2, gone], [c], [writes.forget(a2)], [writes.update(b, "b2")]]
    seen = []
    for step in steps:
        store.journal.append(step)
        seen.append((store.journal.position(ALL), [bare(one) for one in store.journal.scan(ALL)]))
    return seen


def follow(read: Follow, limit: int | None) -> list[Stored]:
    """Everything, piece by piece. ``more`` is right, because nobody writes meanwhile."""
    page = read(None, limit)
    found = list(page)
    while page.more:
        assert limit is not None
        assert len(page) == limit
        page = read(page.next, limit)
        assert page.items, "more was promised"
        assert page.items[0] not in found, "a page brings back what another one had"
        found += page
    assert list(read(page.next, limit)) == []
    return found


def by_owner(found: list[Stored]) -> dict[Owner, list[Stored]]:
    """The versions of each owner, in the order in which they came."""
    return {one: [version for version in found if version.owner == one] for one in {each.owner for each in found}}


@pytest.mark.req("H5")
class Positions(Subject):
    """``versions``, ``feed``, ``position`` and reads ``at`` a position."""

    @pytest.mark.req("N10")
    def test_journals_are_read_in_pieces(self, store: Store, writes: Writer) -> None:
        some_history(store, writes)
        with Cases() as cases:
            for limit in (1, 2, 3, 100, None):
                with cases.case(f"pieces of {limit}"):
                    self._read_in_pieces(store, limit)

    def _read_in_pieces(self, store: Store, limit: int | None) -> None:
        wanted = {ADA: [1, 2, 3, 4], BOB: [1, 2], EVE: [1]}
        reads: tuple[Follow, ...] = (
            lambda after, size: store.journal.versions(ALL, after=after, limit=size),
            lambda after, size: store.journal.feed(after=after, limit=size),
        )
        for read in reads:
            found = by_owner(follow(read, limit))
            assert {one: [each.seq for each in found[one]] for one in found} == wanted
        ada = follow(lambda after, size: store.journal.versions({ADA}, after=after, limit=size), limit)
        assert [one.operation for one in ada] == [
            Operation.ADDED,
            Operation.UPDATED,
            Operation.ADDED,
            Operation.FORGOTTEN,
        ]

    @pytest.mark.req("N10")
    @given(
        turns=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.none() | st.integers(1, 4)), max_size=12),
        back=st.integers(0, 2_000_000),
    )
    @GENERATED
    def test_a_follower_between_interleaved_writers_misses_nothing(
        self, store: Store, writes: Writer, turns: list[tuple[int, int, int | None]], back: int
    ) -> None:
        run = writes.new_id()
        everybody = [owner(f"{run} {number}") for number in range(3)]
        feed, position = store.journal.feed().next, None
        followed: list[Stored] = []
        fed: list[Stored] = []
        for who, count, limit in turns:
            at = {"recorded_at": writes.now() - back}  # clocks of several writers differ
            store.journal.append([writes.add(everybody[who], write=at) for _ in range(count)])
            page = store.journal.versions(frozenset(everybody), after=position, limit=limit)
            followed, position = [*followed, *page], page.next
            page = store.journal.feed(after=feed, limit=limit)
            fed, feed = [*fed, *page], page.next
        followed += store.journal.versions(frozenset(everybody), after=position)
        fed += store.journal.feed(after=feed)
        for found in (by_owner(followed), by_owner(fed)):
            for number, one in enumerate(everybody):
                written = sum(count for who, count, _ in turns if who == number)
                assert [each.seq for each in found.get(one, [])] == list(range(1, written + 1))

    def test_a_position_is_where_the_journals_end(self, store: Store, writes: Writer) -> None:
        seen = some_history(store, writes)
        last = store.journal.position(ALL)
        assert last == seen[-1][0]
        assert list(store.journal.versions(ALL, after=last)) == []
        answered = store.journal.append([writes.add(BOB, "news")])
        assert answered == store.journal.position({BOB})
        assert [one.facets["text"] for one in store.journal.versions(ALL, after=last)] == ["news"]
        assert list(store.journal.versions({ADA}, after=last)) == []

    def test_an_owner_that_a_position_does_not_know_is_read_from_the_start(self, store: Store, writes: Writer) -> None:
        some_history(store, writes)
        found = store.journal.versions({ADA, BOB}, after=store.journal.position({ADA}))
        assert [(one.owner, one.seq) for one in found] == [(BOB, 1), (BOB, 2)]

    @pytest.mark.req("N6")
    def test_every_past_state_can_be_read(self, store: Store, writes: Writer) -> None:
        for position, state in some_history(store, writes):
            assert [bare(one) for one in store.journal.scan(ALL, at=position)] == state
            for whose in (ADA, BOB):
                got = store.journal.get({whose}, ["1", "9"], at=position)
                assert sorted(map(bare, got)) == sorted(one for one in state if one.owner == whose)
            listed = store.journal.select(query(*ALL, states=None, sort=Sort.OLDEST, at=position))
            assert [(one.owner, one.id, one.version) for one in listed] == [(o.owner, o.id, o.version) for o in state]

    @pytest.mark.req("N6")
    def test_a_time_is_a_position(self, store: Store, writes: Writer) -> None:
        seen = some_history(store, writes)
        for position, state in seen:
            at = codec.from_micros(max(one.recorded_at for one in state))
            assert store.journal.position(ALL, at) == position
        before = store.journal.position(ALL, codec.from_micros(START_US - 1))
        assert list(store.journal.scan(ALL, at=before)) == []
        between = store.journal.position({ADA}, codec.from_micros(START_US + 1_500_000))
        assert [one.seq for one in store.journal.versions({ADA}, after=between)] == [2, 3, 4]

    def test_an_erased_memory_is_gone_from_the_past_and_positions_still_hold(
        self, store: Store, writes: Writer
    ) -> None:
        seen = some_history(store, writes)
        feeds = [store.journal.feed(limit=count).next for count in range(1, 8)]
        gone = next(one for one in store.journal.scan({ADA}) if one.id == "1")
        store.journal.append([writes.erase(gone)])
        for position, state in seen:
            found = [bare(one) for one in store.journal.scan(ALL, at=position)]
            assert found == [one for one in state if (one.owner, one.id) != (ADA, "1")]
            rest = list(store.journal.versions({ADA}, after=position))
            assert rest[-1].operation is Operation.ERASED
            assert {one.seq for one in rest} <= {3, 5}
        for position in feeds:
            assert list(store.journal.feed(after=position))[-1].operation is Operation.ERASED

    def test_nonsense_is_no_position(self, store: Store, writes: Writer) -> None:
        some_history(store, writes)
        with Cases() as cases:
            for text in NONSENSE:
                with cases.case(text):
                    self._refused(store, Position(text), Position(text), (InvalidInput,))

    def test_a_position_that_was_tampered_with_is_refused(self, store: Store, writes: Writer) -> None:
        some_history(store, writes)
        epoch = store.journal.settings()["epoch"]
        with Cases() as cases:
            for inside in TAMPERED:
                with cases.case(inside):
                    text = codec.encode_json([epoch, inside])
                    made_up = Position(base64.urlsafe_b64encode(text).decode().rstrip("="))
                    self._refused(store, made_up, made_up, (InvalidInput, PositionLost))

    def test_a_page_can_be_resumed_behind_any_of_its_versions(self, store: Store, writes: Writer) -> None:
        some_history(store, writes)
        start = store.journal.versions(ALL, limit=2).next
        page = store.journal.versions(ALL, after=start)
        for number, place in enumerate(positions.along(start, page), start=1):
            assert list(store.journal.versions(ALL, after=place)) == list(page)[number:]

    def test_positions_of_other_kinds_and_states_are_refused(self, store: Store, writes: Writer, place: Path) -> None:
        some_history(store, writes)
        journal, refusals = store.journal, (InvalidInput, PositionLost)
        self._refused(store, journal.feed().next, journal.position(ALL), refusals)
        epoch = journal.settings()["epoch"]
        for known in ({ADA: Reached(99)}, {ADA: Reached(2, "00000000")}, {owner("nobody"): Reached(1)}):
            with pytest.raises(refusals):
                journal.versions(frozenset(known), after=positions.encode(epoch, known))
        restored = positions.encode("another epoch", {ADA: Reached(1)})
        self._refused(store, restored, positions.encode_feed("another epoch", "1"), (PositionLost,))
        elsewhere = place / "another store"
        elsewhere.mkdir()
        other = self.open_store(elsewhere)
        some_history(other, writes)
        theirs, their_feed = other.journal.position(ALL), other.journal.feed().next
        other.close()
        self._refused(store, theirs, their_feed, (PositionLost,))

    def _refused(self, store: Store, position: Position, feed: Position, errors: tuple[type[Exception], ...]) -> None:
        with pytest.raises(errors):
            store.journal.versions(ALL, after=position)
        with pytest.raises(errors):
            list(store.journal.scan(ALL, at=position))
        with pytest.raises(errors):
            list(store.journal.get(ALL, ["1"], at=position))
        with pytest.raises(errors):
            list(store.journal.select(query(*ALL, at=position)))
        with pytest.raises(errors):
            store.journal.feed(after=feed)

    def test_versions_of_several_owners_that_changed_at_one_time(self, store: Store, writes: Writer) -> None:
        """Pages end anywhere between versions with equal times."""
        at = {"recorded_at": START_US}
        put(store, *(writes.add(one, write=at) for one in (ADA, BOB, EVE) for _ in range(3)))
        found = follow(lambda after, size: store.journal.versions(ALL, after=after, limit=size), 2)
        assert len(set(ids_of(found))) == len(found) == 9
