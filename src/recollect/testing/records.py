"""Records: named documents beside the memories, whoever's they are and whatever their names look like."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect import codec
from recollect.errors import Conflict, StoreClosed
from recollect.ports import Record, Store
from recollect.testing import strategies
from recollect.testing.builders import START, memory, owner, put
from recollect.testing.concurrency import at_once, attempt
from recollect.testing.isolation import CONFUSABLE, OWNERS
from recollect.testing.subject import GENERATED, Subject
from recollect.types import Layer, Owner

ADA, BOB = owner("ada"), owner("bob")
KIND = "session"
NAMES = (*dict.fromkeys(name for group in CONFUSABLE for name in group), "../up", "/etc/passwd", "CON", "a" * 256)
BODIES: tuple[object, ...] = (
    {},
    {"text": "two\nlines, a \u2028 and 'quotes\"", "zero": "\u0000"},
    {"numbers": [0, -1, 1.5, 2**63 - 1], "none": None, "deep": {"ü": [True, False]}},
)
THREADS = 4


def record(
    name: str = "monday", whose: Owner = ADA, body: object = None, *, version: int = 1, kind: str = KIND
) -> Record:
    """A record of ada's, or of somebody else's."""
    return Record(
        owner=whose,
        kind=kind,
        name=name,
        body=codec.encode_json({"name": name} if body is None else body),
        version=version,
        updated_at=START + timedelta(microseconds=version),
    )


def following(one: Record, body: object) -> Record:
    """The next version of a record."""
    after = one.updated_at + timedelta(microseconds=1)
    return replace(one, body=codec.encode_json(body), version=one.version + 1, updated_at=after)


@pytest.mark.req("H5", "J2")
class Records(Subject):
    """``records``, ``record``, ``put_record`` and ``drop_record``."""

    def test_the_records_of_everybody_can_be_gone_through(self, store: Store, place: Path) -> None:
        kept = [record("monday"), record("monday", BOB), record("../up", BOB, kind="note"), record("c" * 256)]
        for one in (*kept, record("gone")):
            store.put_record(one)
        store.drop_record(ADA, KIND, "gone")
        put(store, memory("in a session without a record", owner("ada", "tuesday", layer=Layer.SESSION)))
        with self.settled(store, place) as settled:
            assert sorted(settled.all_records(), key=str) == sorted(kept, key=str)

    @pytest.mark.parametrize("body", BODIES, ids=["empty", "texts", "values"])
    def test_a_record_comes_back_as_it_was_put(self, store: Store, body: object) -> None:
        one = record(body=body)
        assert store.record(ADA, KIND, one.name) is None
        store.put_record(one)
        assert store.record(ADA, KIND, one.name) == one
        assert store.records({ADA}, KIND) == [one]

    def test_only_the_next_version_is_taken(self, store: Store) -> None:
        one = record()
        for version in (0, 2, 7):
            with pytest.raises(Conflict):
                store.put_record(replace(one, version=version))
        assert store.records({ADA}, KIND) == []
        store.put_record(one)
        two = following(one, {"changed": True})
        for wrong in (one, replace(two, version=3)):
            with pytest.raises(Conflict) as caught:
                store.put_record(wrong)
            assert caught.value.hint
        assert store.record(ADA, KIND, one.name) == one
        store.put_record(two)
        assert store.records({ADA}, KIND) == [two]

    def test_a_dropped_record_is_gone_and_its_name_free(self, store: Store) -> None:
        one, other = record("one"), record("other")
        store.put_record(one)
        store.put_record(following(one, {}))
        store.put_record(other)
        assert store.drop_record(ADA, KIND, "one")
        assert not store.drop_record(ADA, KIND, "one")
        assert not store.drop_record(owner("nobody"), KIND, "one")
        assert store.record(ADA, KIND, "one") is None
        assert store.records({ADA}, KIND) == [other]
        store.put_record(one)
        assert store.record(ADA, KIND, "one") == one

    @pytest.mark.req("L6")
    def test_each_owner_has_its_own(self, store: Store) -> None:
        of = {whose: record("same", whose, {"whose": number}) for number, whose in enumerate(OWNERS)}
        for one in of.values():
            store.put_record(one)
        wrong = [whose for whose in OWNERS if store.records({whose}, KIND) != [of[whose]]]
        wrong += [whose for whose in OWNERS if store.record(whose, KIND, "same") != of[whose]]
        assert wrong == []
        some = OWNERS[::3]
        assert {one.owner for one in store.records(frozenset(some), KIND)} == set(some)
        assert store.records(frozenset(), KIND) == []
        assert store.drop_record(OWNERS[0], KIND, "same")
        assert len(store.records(frozenset(OWNERS), KIND)) == len(OWNERS) - 1

    def test_names_are_taken_literally_and_give_the_order(self, store: Store) -> None:
        made = {name: record(name) for name in NAMES}
        for one in made.values():
            store.put_record(one)
        assert [one.name for one in store.records({ADA}, KIND)] == sorted(NAMES)
        assert [name for name in NAMES if store.record(ADA, KIND, name) != made[name]] == []
        for name in NAMES[::2]:
            assert store.drop_record(ADA, KIND, name)
        assert [one.name for one in store.records({ADA}, KIND)] == sorted(NAMES[1::2])

    def test_kinds_are_kept_apart(self, store: Store) -> None:
        kinds = (KIND, "Session", "sessions", "snapshot")
        made = [record(kind=kind) for kind in kinds]
        for one in made:
            store.put_record(one)
        for one in made:
            assert store.records({ADA}, one.kind) == [one]
            assert store.record(ADA, one.kind, one.name) == one
        assert store.drop_record(ADA, "Session", "monday")
        assert store.record(ADA, KIND, "monday") is not None

    @given(names=st.lists(strategies.texts(min_size=1), min_size=2, max_size=4, unique=True))
    @GENERATED
    def test_generated_names(self, store: Store, names: list[str]) -> None:
        whose = owner(*names)
        assume(store.records({whose}, KIND) == [])
        for name in names:
            store.put_record(record(name, whose))
        assert [one.name for one in store.records({whose}, KIND)] == sorted(names)
        for name in names:
            assert store.drop_record(whose, KIND, name)
        assert store.records({whose}, KIND) == []

    def test_records_and_memories_leave_each_other_alone(self, store: Store) -> None:
        one, mine = record(), memory("mine")
        store.put_record(one)
        assert store.sequence() == 0
        put(store, mine)
        store.rebuild()
        assert store.record(ADA, KIND, one.name) == one
        assert store.check().findings == ()
        assert store.drop_record(ADA, KIND, one.name)
        assert set(store.get({ADA}, [mine.id])) == {mine.id}

    def test_durable_records_are_there_again(self, store: Store, place: Path) -> None:
        one = record()
        store.put_record(one)
        store.put_record(two := following(one, {"kept": True}))
        store.put_record(record("dropped"))
        store.drop_record(ADA, KIND, "dropped")
        store.close()
        with closing(self.open_store(place)) as again:
            assert again.records({ADA}, KIND) == ([two] if again.capabilities.durable else [])

    def test_another_opening_sees_a_record_at_once(self, store: Store, place: Path) -> None:
        if not (store.capabilities.durable and store.capabilities.shared):
            pytest.skip("only a durable, shared store can be opened while it is open")
        with closing(self.open_store(place)) as second:
            store.put_record(one := record())
            assert second.record(ADA, KIND, one.name) == one
            second.put_record(two := following(one, {}))
            assert store.record(ADA, KIND, one.name) == two
            with pytest.raises(Conflict):
                store.put_record(following(one, {"late": True}))

    def test_of_racing_writers_one_wins_each_version(self, store: Store) -> None:
        one = record(body={"count": 0})
        store.put_record(one)
        for _ in range(5):
            jobs = [partial(attempt, store.put_record, following(one, {"writer": n})) for n in range(THREADS)]
            assert sum(at_once(jobs)) == 1
            stored = store.record(ADA, KIND, one.name)
            assert stored is not None
            assert stored.version == one.version + 1
            one = stored

    def test_no_byte_of_a_dropped_record_remains(self, store: Store, place: Path) -> None:
        mark = "only0in0this0record"
        store.put_record(record("one", body={"of": "others"}))
        store.put_record(hidden := record(f"{mark}name", body={"mark": mark}))
        kept = self.raw_bytes(place)
        if kept is None or not store.capabilities.erases:
            pytest.skip("raw_bytes() gives no look at what is kept, or it erases nothing")
        assert mark.encode() in kept
        store.drop_record(ADA, KIND, hidden.name)
        assert mark.encode() not in (self.raw_bytes(place) or b"")
        store.close()
        assert mark.encode() not in (self.raw_bytes(place) or b"")

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        calls: tuple[Callable[[], object], ...] = (
            lambda: store.records({ADA}, KIND),
            lambda: store.record(ADA, KIND, "monday"),
            lambda: store.put_record(record()),
            lambda: store.drop_record(ADA, KIND, "monday"),
        )
        for call in calls:
            with pytest.raises(StoreClosed):
                call()
