"""Isolation: nobody finds or changes what belongs to somebody else, whatever the ids look like."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Conflict, InvalidInput, PositionLost
from wellkept.ports import Record, Store, positions
from wellkept.ports.positions import Reached
from wellkept.testing import strategies
from wellkept.testing.basics import check_usage, everything, seen
from wellkept.testing.builders import START, Writer, one_of, owner, put, query, vector, where
from wellkept.testing.cases import Cases
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import Access, Embedded, Layer, Owner, Owners, Stored, Usage, Write

# Within a group, each id is one that a careless comparison takes for another of the group.
CONFUSABLE: tuple[tuple[str, ...], ...] = (
    ("acme", "acme-corp", "acme/", "acme.", "acme:", "acme*", "acm", "ACME", "Acme", "acme ", " acme"),
    ("acme", "acme\n", "acme\r\n", "acme\t", "acme\x00", "acme\x00x", "acme\u200b", "acme\u00ad"),
    ("a_b", "axb", "a%b", "a*b", "a?b", "a.b", "a[x]b", "a b", "a-b", "a+b", "a\\b", "a\\_b"),
    ("%", "_", "*", "?", "[a]", ".", ".*", "a", "..", "/", "\\", "-", "--", "^", "$", "~"),
    (":", "a:b", "a::b", "a,b", 'a","b', '["a","b"]', "a|b", "a;b", "a\x1fb", "ab"),
    ("'", '"', "''", '""', "`", "' OR '1'='1", '" OR ""="', "') --", "{", "}", "$1", ":a", "@a"),
    (" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\x00", "\x00\x00"),
    ("\u00e9", "e\u0301", "\u00c9", "e", "\u00c5", "\u212b", "A\u030a", "\ufb01", "fi", "\u017f", "s"),
    ("straße", "strasse", "STRASSE", "\u0131", "i", "\u0130", "I", "K", "\u212a", "\u0430cme", "acme"),
    ("1", "1.0", "01", "+1", "1e0", "0x1", "true", "null", "None", "undefined", "NaN"),
    ("con", "CON", "nul", "aux.txt", "agent", "user", "session", "default", "system", "admin", "all", "x" * 300),
)
SPLIT: tuple[tuple[str, ...], ...] = (
    *(("a", "b"), ("a:b",), ("a", "b:c"), ("a:b", "c"), ("a:b:c",), ("b", "a"), ("a", "a")),
    *(("ab", "c"), ("a", "bc"), ("abc",), ("a/b", "c"), ("a", "b/c"), ("a,b", "c"), ("a", "b,c")),
    *(('a","b', "c"), ("a", 'b","c'), ("a\nb", "c"), ("a", "b\nc"), ("a|b", "c"), ("a", "b|c")),
    *(("a\x1fb", "c"), ("a", "b\x1fc"), ("a ", "b"), ("a", " b")),
)


def groups() -> Iterator[tuple[Owner, ...]]:
    """Groups of owners that are easily taken for one another."""
    for names in CONFUSABLE:
        yield tuple(owner(name) for name in names)
    yield tuple(Owner(Layer.SESSION, ids) for ids in SPLIT)
    for name in ("acme", "a:b", "user"):
        yield tuple(owner(name, layer=layer) for layer in Layer)
    for names in CONFUSABLE[:3]:
        yield (owner("acme"), *(Owner(Layer.USER, ("acme",), name) for name in names))
    yield tuple(Owner(Layer.SESSION, tuple(ids), branch) for *ids, branch in SPLIT)


GROUPS = tuple(groups())
Read = Callable[[Store, Owners, str], object]


def _stored(found: object) -> list[str]:
    assert isinstance(found, (list, tuple))
    return [one.facets.get("mine", "no facet") for one in found if isinstance(one, Stored)]


def _of(whose: Owners) -> Owner:
    (one,) = whose
    return one


# Every read of the journal. Each names what it sees of the owners as a list of their marks.
READS: Mapping[str, Read] = MappingProxyType(
    {
        "get": lambda store, whose, id: _stored(list(store.journal.get(whose, [id]))),
        "get at": lambda store, whose, id: _stored(
            list(store.journal.get(whose, [id], at=store.journal.position(whose)))
        ),
        "scan": lambda store, whose, _: _stored(list(store.journal.scan(whose, vectors=True))),
        "scan at": lambda store, whose, _: _stored(list(store.journal.scan(whose, at=store.journal.position(whose)))),
        "versions": lambda store, whose, _: _stored(list(store.journal.versions(whose))),
        "history": lambda store, whose, id: _stored(list(store.journal.history(_of(whose), id))),
        "select": lambda store, whose, _: _stored(list(store.journal.select(query(*whose)))),
        "select words": lambda store, whose, _: _stored(
            list(store.journal.select(query(*whose, text=("shared",), tags=("tag",))))
        ),
    }
)
COUNTS: Mapping[str, Read] = MappingProxyType(
    {
        "keyed": lambda store, whose, _: len(store.journal.keyed(_of(whose), ["key"])),
        "count": lambda store, whose, _: store.journal.count(whose, where()),
        "ids": lambda store, whose, _: len(store.journal.ids(whose, where())),
        "usage": lambda store, whose, _: store.journal.usage(whose).get(_of(whose), Usage()).memories,
        "marks": lambda store, whose, _: store.journal.marks(whose)[_of(whose)].seq,
        "stats": lambda store, whose, _: store.journal.stats(whose, START).active,
        "records": lambda store, whose, _: sum(one.kind == "kind" for one in store.records.list(whose)),
        "kind of records": lambda store, whose, _: len(store.records.list(whose, "kind")),
    }
)


def add_one(store: Store, writes: Writer, whose: Owner, mark: str) -> bool:
    """Give an owner a memory that looks like all others; whether the store takes an owner of that name."""
    one = writes.add(whose, "shared words", id="same id", key="key", tags=["tag"], mine=mark)
    try:
        store.journal.append([one._replace(vector=vector(1, 0))])
    except InvalidInput:
        assert any("\x00" in name for name in (*whose.ids, whose.branch)), "only NUL may be refused"
        return False
    store.records.put(Record(owner=whose, kind="kind", name="name", body=b"{}", version=1, updated_at=START))
    return True


@pytest.mark.req("L11", "H6")
class Isolation(Subject):
    """Owners with confusable names, each with a memory of the same id, key, text and tags."""

    def test_confusable_owners_see_only_their_own(self, writes: Writer, place: Path) -> None:
        self._in_each_group(place, partial(self._sees_only_its_own, writes))

    def test_confusable_owners_change_only_their_own(self, writes: Writer, place: Path) -> None:
        self._in_each_group(place, partial(self._changes_only_its_own, writes))

    def _in_each_group(self, place: Path, check: Callable[[Store, tuple[Owner, ...]], None]) -> None:
        """Each group in an empty store of its own: some names are in several groups."""
        with Cases() as cases:
            for number, group in enumerate(GROUPS):
                with cases.case(f"group {number}, of {group[0]}"):
                    folder = place / str(number)
                    folder.mkdir()
                    with closing(self.open_store(folder)) as store:
                        check(store, group)

    def _sees_only_its_own(self, writes: Writer, store: Store, group: tuple[Owner, ...]) -> None:
        held = {one: f"of {place}" for place, one in enumerate(group) if add_one(store, writes, one, f"of {place}")}
        for one, mark in held.items():
            whose = frozenset({one})
            for name, read in READS.items():
                assert read(store, whose, "same id") == [mark], name
            for name, read in COUNTS.items():
                assert read(store, whose, "same id") == 1, name
        pairs = [frozenset(pair) for pair in pairwise(held)]
        for pair in pairs:
            assert {one.owner for one in store.journal.scan(pair)} == pair
            assert {one.owner for one in store.journal.get(pair, ["same id"])} == pair
            assert store.journal.usage(pair).keys() == store.journal.marks(pair).keys() == pair
        assert set(store.journal.owners()) == set(held)

    def _changes_only_its_own(self, writes: Writer, store: Store, group: tuple[Owner, ...]) -> None:
        held = [one for one in group if add_one(store, writes, one, "mine")]
        changed, others = held[0], held[1:]
        before = seen(store.journal, *others)
        marks = store.journal.marks(frozenset(others))
        mine = one_of(store, changed, "same id")
        last: Write | Stored = mine
        for step in (writes.update, writes.forget, writes.archive, writes.restore):
            last = step(last)
            store.journal.append([last])
        store.journal.count_accesses([Access(changed, "same id", 3, 5)])
        store.journal.embed([Embedded(changed, "same id", last.version, vector(0, 1))])
        store.journal.append([writes.erase(last)])
        assert store.records.drop(changed, "kind", "name")
        assert seen(store.journal, *others) == before
        assert store.journal.marks(frozenset(others)) == marks
        assert len(store.records.list(frozenset(others), "kind")) == len(others)
        check_usage(store.journal, held)

    def test_no_owners_means_nothing(self, store: Store, writes: Writer) -> None:
        add_one(store, writes, owner("ada"), "mine")
        nobody: frozenset[Owner] = frozenset()
        for name, read in READS.items():
            if name != "history":
                assert read(store, nobody, "same id") == [], name
        assert store.journal.count(nobody, where()) == store.journal.stats(nobody, START).active == 0
        assert not store.journal.usage(nobody)
        assert not store.journal.marks(nobody)
        assert list(store.records.list(nobody)) == []

    def test_another_owners_memory_cannot_be_changed(self, store: Store, writes: Writer) -> None:
        ada, bob = owner("ada"), owner("bob")
        add_one(store, writes, ada, "mine")
        mine = one_of(store, ada, "same id")
        before = everything(store.journal, ada)
        for step in (writes.update, writes.forget, writes.erase):
            with pytest.raises(Conflict):
                store.journal.append([step(mine)._replace(owner=bob)])
        store.journal.count_accesses([Access(bob, "same id", 1, 1)])
        store.journal.embed([Embedded(bob, "same id", 1, vector(0, 1))])
        assert everything(store.journal, ada) == before
        assert list(store.journal.owners()) == [ada]

    def test_a_position_tells_nothing_of_other_owners(self, store: Store, writes: Writer) -> None:
        """Whoever makes a position up learns nothing about owners that were not asked for."""
        ada, bob, nobody = owner("ada"), owner("bob"), owner("nobody")
        put(store, *(writes.add(one) for one in (ada, bob, bob)))
        epoch = store.journal.settings()["epoch"]

        def outcome(other: Owner, seq: int) -> object:
            made_up = positions.encode(epoch, {other: Reached(seq)})
            try:
                return list(store.journal.versions({ada}, after=made_up)), list(store.journal.scan({ada}, at=made_up))
            except (InvalidInput, PositionLost) as error:
                return type(error), error.message

        assert len({repr(outcome(other, seq)) for other in (bob, nobody) for seq in (1, 2, 3)}) == 1

    @given(several=st.lists(strategies.owners(), min_size=2, max_size=6, unique=True))
    @GENERATED
    def test_generated_owners_are_kept_apart(self, store: Store, writes: Writer, several: list[Owner]) -> None:
        run = writes.new_id()
        put(store, *(writes.add(one, f"run {run}", id=run, mine=str(place)) for place, one in enumerate(several)))
        for place, one in enumerate(several):
            assert [found.facets["mine"] for found in store.journal.get({one}, [run])] == [str(place)]
            assert [found.facets["mine"] for found in store.journal.history(one, run)] == [str(place)]
            assert [found.owner for found in store.journal.select(query(one, ids=frozenset({run})))] == [one]
