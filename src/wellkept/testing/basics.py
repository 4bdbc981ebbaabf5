"""Writing and reading back: one test for each promise of ``append`` and the plain reads."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept import codec
from wellkept.errors import Conflict, EmbedderMismatch, InvalidInput, StoreClosed, Unsupported
from wellkept.ports import Store
from wellkept.ports.journal import Journal
from wellkept.statistics import footprint
from wellkept.testing import strategies
from wellkept.testing.builders import (
    START,
    START_US,
    Writer,
    bare,
    ids_of,
    one_of,
    owner,
    put,
    query,
    vector,
    where,
)
from wellkept.testing.cases import Cases
from wellkept.testing.subject import GENERATED, Subject
from wellkept.types import Access, Operation, Owner, Owners, State, Status, Stored, Usage, Write

ADA, BOB = owner("ada"), owner("bob")
HOSTILE_TEXTS = (
    "' OR 1=1 --",
    '"; DROP TABLE memories; --',
    "100% _under_ \\back\\slash\\",
    "line\nbreak\r\ntab\t bell\x07 escape\x1b[31m",
    "e\u0301 is not \u00e9, \u212b is not \u00c5",
    "\u202eright to left\u202c \u200b\u200d\ufeff",
    "emoji \U0001f469\u200d\U0001f4bb, last plane \U0010ffff, private \ue000",
    " leading and trailing \n",
    '{"json": [1, null]}',
    "\u2028\u2029\x85",
)


def same(found: Stored, write: Write) -> bool:
    """Whether a version is what was written, in value and, where JSON could confuse them, in type."""
    names = ("owner", "id", "version", "operation", "stamp", "replaced", "reason", "payload")
    if any(getattr(found, name) != getattr(write, name) for name in names):
        return False
    if found.write_id != (write.write_id or write.stamp):
        return False
    return found.facets == write.facets and _typed(found.facets) == _typed(write.facets)


def _typed(value: Any) -> str:
    """1, 1.0 and true are equal in Python; their texts differ. The order of names says nothing."""
    if isinstance(value, dict):
        return repr(sorted((name, _typed(one)) for name, one in value.items()))
    return repr([_typed(one) for one in value]) if isinstance(value, list) else repr(value)


def seen(journal: Journal, *owners: Owner) -> tuple[object, ...]:
    """All that can be seen of some owners' memories."""
    whose = frozenset(owners)
    return (
        list(journal.scan(whose, vectors=True)),
        list(journal.versions(whose)),
        journal.position(whose),
        journal.usage(whose),
    )


def everything(journal: Journal, *owners: Owner) -> tuple[object, ...]:
    """All that can be seen at all, to prove that nothing changed."""
    return (*seen(journal, *owners), journal.marks(frozenset(owners)), list(journal.feed()), journal.settings())


def usage_of(journal: Journal, owners: Owners) -> dict[Owner, Usage]:
    """What the owners hold, counted anew."""
    counted: dict[Owner, Usage] = {}
    for one in journal.scan(owners, vectors=True):
        before = counted.get(one.owner, Usage())
        counted[one.owner] = Usage(before.memories + 1, before.bytes_used + footprint(one))
    return counted


def check_usage(journal: Journal, owners: Iterable[Owner]) -> None:
    """The counters are the sums over what is stored."""
    whose = frozenset(owners)
    told = {one: usage for one, usage in journal.usage(whose).items() if usage != Usage()}
    assert told == usage_of(journal, whose)


@pytest.mark.req("H5")
class Basics(Subject):
    """``append`` and the plain reads, accesses, settings and ``close``."""

    def test_an_empty_store_answers_with_nothing(self, store: Store) -> None:
        journal, ada = store.journal, frozenset({ADA})
        assert list(journal.get(ada, ["x"])) == list(journal.scan(ada)) == list(journal.history(ADA, "x")) == []
        assert not any((journal.keyed(ADA, ["k"]), journal.marks(ada), journal.embedded([b"digest"])))
        assert journal.usage(ada).get(ADA, Usage()) == Usage()
        assert not any((journal.owners(), journal.unembedded("kit", 3)))
        assert not any((journal.select(query(ADA)), journal.ids(ada, where())))
        assert journal.count(ada, where()) == journal.count_unembedded("kit") == 0
        assert journal.stats(ada, START).active == 0
        for page in (journal.versions(ada), journal.feed(), journal.versions(ada, after=journal.position(ada))):
            assert list(page) == []
            assert not page.more
        position = journal.append([])
        assert list(journal.versions(ada, after=position)) == []

    def test_what_a_store_says_of_itself(self, store: Store) -> None:
        assert store.name
        assert store.version
        settings = store.journal.settings()
        assert settings["origin"]
        assert settings["epoch"]
        assert store.health().status is Status.HEALTHY
        assert store.check().healthy

    def test_a_version_comes_back_as_it_was_written(self, store: Store, writes: Writer) -> None:
        payload = bytes(range(256)) * 3
        one = writes.add(
            ADA,
            "Every facet",
            key="k",
            tags=["z", "a.b", "ünï"],
            fields={"n": 1, "f": 1.0, "b": True, "none": None, "l": [1, {"x": []}], "": "", "ü": "é"},
            expires_at=START_US + 1,
            importance=0.1 + 0.2,
            facet_of_a_newer_release={"deep": [1, 2.5, None, True]},
            write={"payload": payload, "reason": "because"},
        )
        sealed = writes.add(ADA, None, write={"payload": b"\x00\xff no JSON"})
        put(store, one, sealed)
        for found in (
            store.journal.get({ADA}, [one.id, sealed.id]),
            store.journal.scan({ADA}),
            store.journal.versions({ADA}),
            store.journal.feed(),
            [*store.journal.history(ADA, one.id), *store.journal.history(ADA, sealed.id)],
            store.journal.select(query(ADA, states=None, now=START)),
        ):
            by_id = {stored.id: stored for stored in found}
            assert same(by_id[one.id], one)
            assert same(by_id[sealed.id], sealed)
        stored = one_of(store, ADA, one.id)
        assert (stored.seq, stored.born, stored.born_at, stored.recorded_at) == (1, 1, one.recorded_at, one.recorded_at)

    def test_what_one_call_wrote_has_one_write_id(self, store: Store, writes: Writer) -> None:
        """In several appends, after an update and for a tombstone; a write that names none stands alone."""
        first, second, alone, gone = (writes.add(ADA, text) for text in ("first", "second", "alone", "gone"))
        store.journal.append([one._replace(write_id="call") for one in (first, second)])
        store.journal.append([alone, gone])
        changed, erased = writes.update(alone, "changed"), writes.erase(gone)
        store.journal.append([one._replace(write_id="call") for one in (changed, erased)])
        calls = {one.stamp: "call" for one in (first, second, changed, erased)} | {alone.stamp: alone.stamp}
        for versions in (store.journal.versions({ADA}), store.journal.feed(), store.journal.history(ADA, alone.id)):
            assert all(one.write_id == calls[one.stamp] for one in versions)
        heads = [*store.journal.scan({ADA}), *store.journal.select(query(ADA, limit=2))]
        assert [one.write_id for one in heads] == ["call"] * 5

    def test_any_text_comes_back_exactly(self, store: Store, writes: Writer) -> None:
        with Cases() as cases:
            for text in HOSTILE_TEXTS:
                with cases.case(text):
                    one = writes.add(ADA, f"a{text}", id=f"id {text}", title=text, author=text, tags=[text], key=text)
                    one = one._replace(facets={**one.facets, text: {text: text}}, reason=text, payload=text.encode())
                    store.journal.append([one])
                    assert same(one_of(store, ADA, one.id), one)
                    assert store.journal.keyed(ADA, [text]) == {text: one.id}
                    assert store.journal.count({ADA}, where(tags=(text,), authors=frozenset({text}))) == 1

    @given(drafts=st.lists(strategies.drafts(), min_size=1, max_size=5), payload=st.binary(max_size=20))
    @GENERATED
    def test_generated_memories_come_back_exactly(
        self, store: Store, writes: Writer, drafts: list[dict[str, Any]], payload: bytes
    ) -> None:
        whose = owner(writes.new_id())
        made = [writes.add(whose, **draft, write={"payload": payload}) for draft in drafts]
        store.journal.append(made)
        found = {one.id: one for one in store.journal.get({whose}, ids_of(made))}
        assert all(same(found[one.id], one) for one in made)
        check_usage(store.journal, [whose])

    def test_large_payloads_and_texts_come_back(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, "äöü€ " * 110_000, write={"payload": bytes(range(256)) * 4_000})
        store.journal.append([one])
        assert same(one_of(store, ADA, one.id), one)

    def test_without_payload_the_payload_is_not_read(self, store: Store, writes: Writer) -> None:
        """Nor need the text be; every other facet is there."""
        one = writes.add(ADA, "long text", tags=["a"], write={"payload": b"payload"})
        store.journal.append([one])
        position = store.journal.position({ADA})
        for at in (None, position):
            read = [*store.journal.get({ADA}, [one.id], at=at, payload=False)]
            read += store.journal.scan({ADA}, at=at, payload=False)
            for found in read:
                assert found.payload == b""
                assert {"text": "long text", **found.facets} == one.facets
            assert len(read) == 2

    def test_what_is_stored_is_a_copy(self, store: Store, writes: Writer) -> None:
        nested = {"list": [1]}
        one = writes.add(ADA, fields=nested)
        store.journal.append([one])
        nested["list"].append(2)
        assert one_of(store, ADA, one.id).facets["fields"] == {"list": [1]}

    def test_get_gives_each_memory_once_in_every_state_but_erased(self, store: Store, writes: Writer) -> None:
        active, forgotten, archived, erased = (writes.add(ADA, text) for text in "abcd")
        put(store, active, forgotten, archived, erased)
        put(store, writes.forget(forgotten), writes.archive(archived), writes.erase(erased))
        asked = [erased.id, archived.id, "nothing", active.id, active.id, *HOSTILE_TEXTS, "", forgotten.id]
        found = store.journal.get({ADA, BOB}, iter(asked))
        assert sorted((one.id, one.facets["state"]) for one in found) == sorted(
            [(active.id, State.ACTIVE), (forgotten.id, State.FORGOTTEN), (archived.id, State.ARCHIVED)]
        )
        many = [f"id {number}" for number in range(2_000)]
        assert ids_of(store.journal.get({ADA}, [*many, active.id])) == [active.id]
        assert list(store.journal.get({ADA}, [])) == list(store.journal.get(frozenset(), [active.id])) == []

    def test_sequences_are_dense_per_owner(self, store: Store, writes: Writer) -> None:
        first, theirs = writes.add(ADA), writes.add(BOB)
        put(store, first, theirs)
        with pytest.raises(Conflict):
            store.journal.append([writes.add(ADA), writes.add(ADA, id=first.id)])
        put(store, writes.update(first), writes.add(ADA), writes.update(theirs))
        for whose, seqs in ((ADA, [1, 2, 3]), (BOB, [1, 2])):
            assert [one.seq for one in store.journal.versions({whose})] == seqs
            assert store.journal.marks({whose})[whose].seq == seqs[-1]
        assert store.journal.marks({ADA, BOB, owner("nobody")}).keys() == {ADA, BOB}
        found = one_of(store, ADA, first.id)
        assert (found.seq, found.born, found.born_at) == (2, 1, first.recorded_at)

    def test_times_rise_per_owner_when_the_clock_goes_back(self, store: Store, writes: Writer) -> None:
        late, early = writes.add(ADA, write={"recorded_at": START_US + 9}), writes.add(ADA, write={"recorded_at": 5})
        store.journal.append([late, early])
        again = writes.update(early, write={"recorded_at": 3})
        theirs = writes.add(BOB, write={"recorded_at": 7})
        put(store, again, theirs)
        assert [one.recorded_at for one in store.journal.versions({ADA})] == [START_US + 9] * 3
        assert [one.recorded_at for one in store.journal.versions({BOB})] == [7]
        assert one_of(store, ADA, early.id).born_at == START_US + 9

    def test_scan_follows_the_order_of_recording(self, store: Store, writes: Writer) -> None:
        """First by time, then by the owner's name, then by sequence; ids and later versions do not matter."""
        at = {"recorded_at": START_US}
        b1, b2 = writes.add(BOB, "b1", id="2", write=at), writes.add(BOB, "b2", id="1", write=at)
        a1, a2 = writes.add(ADA, "a1", id="9", write=at), writes.add(ADA, "a2", write={"recorded_at": START_US + 1})
        put(store, b1, b2)
        put(store, a1, a2)
        put(store, writes.update(b1, "b1!"))
        found = [one.facets["text"] for one in store.journal.scan({ADA, BOB})]
        assert found == ["a1", "b1!", "b2", "a2"]
        assert ids_of(store.journal.scan({BOB})) == [b1.id, b2.id]

    @pytest.mark.req("H11")
    def test_a_version_that_was_not_expected_is_refused(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA)
        two = writes.update(one, "two")
        store.journal.append([one, two])
        before = everything(store.journal, ADA)
        with Cases() as cases:
            for expected, operation in product((0, 1, 3), Operation):
                stale = writes.update(two, "three", write={"operation": operation, "expected": expected})
                with cases.case(f"{operation}, with version {expected} expected"), pytest.raises(Conflict):
                    store.journal.append([stale])
        with pytest.raises(Conflict):
            store.journal.append([writes.update(two, write={"version": 2})])
        with pytest.raises(Conflict):
            store.journal.append([writes.update(writes.add(ADA))])
        assert everything(store.journal, ADA) == before

    def test_a_refused_batch_leaves_no_trace(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, "one", key="taken", write={"vector": vector(1, 0)})
        two = writes.add(ADA, "two")
        theirs = writes.add(BOB)
        put(store, one, two, theirs)
        before = everything(store.journal, ADA, BOB)
        bad = {
            "version": writes.update(two, write={"expected": 7}),
            "key": writes.add(ADA, key="new key"),
            "embedder": writes.add(ADA, write={"vector": vector(1, 0, embedder="other")}),
            "dimension": writes.add(ADA, write={"vector": vector(1, 0, 0)}),
        }
        good = [
            writes.add(ADA, "new", key="free", write={"vector": vector(0, 1)}),
            writes.update(one, "changed", key="other", write={"keeps_vector": False}),
            writes.add(ADA, "holder", key="new key"),
            writes.erase(two),
        ]
        good += [writes.update(theirs, "changed")] if store.capabilities.batches else []
        with Cases() as cases:
            for refused, write in bad.items():
                with cases.case(refused):
                    with pytest.raises((Conflict, EmbedderMismatch, InvalidInput)):
                        store.journal.append([*good, write])
                    assert everything(store.journal, ADA, BOB) == before
                    assert store.journal.keyed(ADA, ["taken", "free", "other", "new key"]) == {"taken": one.id}
        store.journal.append(good)

    def test_batches_over_several_owners_are_declared(self, store: Store, writes: Writer) -> None:
        batch = [writes.add(ADA), writes.add(BOB), writes.add(ADA)]
        if not store.capabilities.batches:
            with pytest.raises(Unsupported):
                store.journal.append(batch)
            assert list(store.journal.owners()) == []
            return
        position = store.journal.append(batch)
        assert position == store.journal.position({ADA, BOB})
        assert [one.seq for one in store.journal.versions({ADA})] == [1, 2]

    def test_a_batch_may_hold_several_versions_of_a_memory(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, "one", key="k")
        two = writes.update(one, "two", key=None)
        three = writes.forget(two)
        gone = writes.add(ADA, "gone")
        store.journal.append([one, two, three, gone, writes.erase(gone)])
        assert same(one_of(store, ADA, one.id), three)
        history = store.journal.history(ADA, one.id)
        assert [(old.seq, old.version, old.born) for old in history] == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]
        assert [old.replaced for old in history] == [None, one.stamp, two.stamp]
        assert store.journal.marks({ADA})[ADA].seq == 5
        check_usage(store.journal, [ADA])

    def test_a_retry_with_the_same_stamps_writes_nothing_twice(self, store: Store, writes: Writer) -> None:
        one, other = writes.add(ADA, "one", key="k", write={"vector": vector(1, 0)}), writes.add(ADA)
        batches = [[one, other], [writes.update(one, "two"), writes.erase(other)]]
        third = writes.update(batches[1][0], "three")
        batches.append([third, writes.forget(third)])
        for batch in batches:
            position = store.journal.append(batch)
            before = everything(store.journal, ADA)
            assert store.journal.append(batch) == position
            assert everything(store.journal, ADA) == before
        stranger = one._replace(stamp=writes.add(ADA).stamp)
        with pytest.raises(Conflict):
            store.journal.append([stranger])

    def test_a_memory_of_another_store_may_begin_at_any_version(self, store: Store, writes: Writer) -> None:
        """A copy has the newest version only, or the tombstone; the stamps say what is missing."""
        old = writes.add(ADA, write={"version": 3, "replaced": "a stamp that is not here"})
        gone = writes.erase(writes.add(ADA), expected=0)
        store.journal.append([old, gone])
        jump = writes.update(old, write={"version": 7})
        store.journal.append([jump])
        assert [(one.version, one.replaced) for one in store.journal.history(ADA, old.id)] == [
            (3, "a stamp that is not here"),
            (7, old.stamp),
        ]
        assert [one.operation for one in store.journal.history(ADA, gone.id)] == [Operation.ERASED]
        check_usage(store.journal, [ADA])

    def test_a_key_belongs_to_one_memory_of_an_owner(self, store: Store, writes: Writer) -> None:
        one, theirs = writes.add(ADA, key="k"), writes.add(BOB, key="k")
        put(store, one, theirs)
        for step in (None, writes.forget, writes.archive):
            if step is not None:
                one = step(one)
                store.journal.append([one])
            with pytest.raises(Conflict):
                store.journal.append([writes.add(ADA, key="k")])
        with pytest.raises(Conflict):
            store.journal.append([writes.add(ADA, key="twice"), writes.add(ADA, key="twice")])
        assert store.journal.keyed(ADA, ["k", "twice", "K", ""]) == {"k": one.id}
        assert store.journal.keyed(BOB, iter(["k"])) == {"k": theirs.id}

    def test_a_key_is_freed_by_erasure_and_moves_within_a_batch(self, store: Store, writes: Writer) -> None:
        one, two = writes.add(ADA, key="k"), writes.add(ADA, key="l")
        store.journal.append([one, two])
        one, two = writes.update(one, key="m"), writes.update(two, key="k")
        store.journal.append([one, two])
        assert store.journal.keyed(ADA, ["k", "l", "m"]) == {"k": two.id, "m": one.id}
        three = writes.add(ADA, key="k")
        store.journal.append([writes.erase(two), three])
        assert store.journal.keyed(ADA, ["k", "l", "m"]) == {"k": three.id, "m": one.id}
        store.journal.append([writes.update(one, key=None), writes.add(ADA, key="m", id="now me")])
        assert store.journal.keyed(ADA, ["m"]) == {"m": "now me"}

    def test_vectors_are_kept_replaced_and_removed(self, store: Store, writes: Writer) -> None:
        long = vector(1, 0.1)
        last = writes.add(ADA, write={"vector": long})
        store.journal.append([last])
        for change, wanted in (
            ({"keeps_vector": True, "vector": vector(5, 5)}, long),
            ({"keeps_vector": False, "vector": vector(0, 1)}, vector(0, 1)),
            ({"keeps_vector": False, "vector": None}, None),
            ({"keeps_vector": True}, None),
        ):
            last = writes.update(last, write=change)
            store.journal.append([last])
            assert one_of(store, ADA, last.id, vectors=True).vector == wanted
            assert [one.vector for one in store.journal.scan({ADA}, vectors=True)] == [wanted]
            assert one_of(store, ADA, last.id).vector is None
            check_usage(store.journal, [ADA])

    def test_accesses_add_up_and_are_no_versions(self, store: Store, writes: Writer) -> None:
        one, other = writes.add(ADA), writes.add(ADA)
        theirs = writes.add(BOB, id=one.id)
        put(store, one, other, theirs)
        marks = store.journal.marks({ADA, BOB})
        store.journal.count_accesses(
            [Access(ADA, one.id, 2, 50), Access(ADA, "nothing", 1, 50), Access(BOB, "no", 1, 1)]
        )
        store.journal.count_accesses([Access(ADA, one.id, 3, 90), Access(ADA, one.id, 1, 80)])
        store.journal.count_accesses([])
        found = one_of(store, ADA, one.id)
        assert (found.access_count, found.last_accessed_at) == (6, 90)
        for untouched in (one_of(store, ADA, other.id), one_of(store, BOB, theirs.id)):
            assert (untouched.access_count, untouched.last_accessed_at) == (0, None)
        assert store.journal.marks({ADA, BOB}) == marks
        assert same(bare(found), one)
        store.journal.append([writes.update(one, "two")])
        assert one_of(store, ADA, one.id).access_count == 6
        assert next(iter(store.journal.scan({ADA}))).access_count == 6

    def test_settings_change_together_and_leave_the_others(self, store: Store) -> None:
        before = store.journal.settings()
        store.journal.set_settings({"calibration": "1", "kit": HOSTILE_TEXTS[0]})
        store.journal.set_settings({"kit": "2"})
        assert store.journal.settings() == {**before, "calibration": "1", "kit": "2"}

    def test_owners_are_all_that_the_journal_tells_of(self, store: Store, writes: Writer) -> None:
        everybody = [owner(f"user {number}") for number in range(7)]
        first = [writes.add(one) for one in everybody]
        put(store, *first)
        store.journal.append([writes.erase(first[0])])
        with pytest.raises(Conflict):
            store.journal.append([writes.update(writes.add(owner("refused")))])
        listed = list(store.journal.owners())
        assert listed == sorted(listed, key=codec.encode_owner)
        assert sorted(listed, key=lambda one: one.ids) == everybody
        walked: list[Owner] = []
        while page := store.journal.owners(after=walked[-1] if walked else None, limit=3):
            assert page[0] not in walked, "a page brings back what another one had"
            walked += page
        assert walked == listed

    def test_upkeep_changes_nothing_that_can_be_read(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, key="k", write={"vector": vector(1, 0)})
        put(store, one, writes.update(one, "two"), writes.add(ADA, "gone", id="gone"))
        put(store, writes.erase(one_of(store, ADA, "gone")))
        before = seen(store.journal, ADA)
        store.rebuild()
        store.compact({ADA})
        assert store.check(repair=True).healthy
        assert seen(store.journal, ADA) == before
        assert store.journal.marks({ADA})[ADA].seq == 4

    def test_a_closed_store_says_so(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA)
        store.journal.append([one])
        position = store.journal.position({ADA})
        journal, records = store.journal, store.records
        store.close()
        store.close()
        calls: list[Any] = [
            lambda: journal.append([writes.add(ADA)]),
            lambda: journal.embed([]),
            lambda: journal.adopt("kit", 2),
            lambda: journal.count_accesses([Access(ADA, one.id, 1, 1)]),
            lambda: journal.set_settings({"a": "b"}),
            journal.settings,
            lambda: journal.get({ADA}, [one.id]),
            lambda: journal.keyed(ADA, ["k"]),
            lambda: list(journal.scan({ADA})),
            lambda: journal.versions({ADA}, after=position),
            lambda: journal.history(ADA, one.id),
            journal.feed,
            lambda: journal.position({ADA}),
            lambda: journal.marks({ADA}),
            lambda: journal.usage({ADA}),
            journal.owners,
            lambda: journal.unembedded("kit", 1),
            lambda: journal.select(query(ADA)),
            lambda: journal.count({ADA}, where()),
            lambda: journal.stats({ADA}, START),
            lambda: records.get(ADA, "kind", "name"),
            lambda: records.drop(ADA, "kind", "name"),
            lambda: records.list({ADA}),
            store.check,
            store.rebuild,
            lambda: store.compact({ADA}),
        ]
        for call in calls:
            with pytest.raises(StoreClosed):
                call()
        assert store.health().status is Status.UNHEALTHY
