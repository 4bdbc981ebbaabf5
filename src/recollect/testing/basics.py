"""Writing and reading back: one example per promise of the contract."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import Conflict, EmbedderMismatch, InvalidInput, StoreClosed
from recollect.ports import Store, Write
from recollect.testing import strategies
from recollect.testing.builders import (
    START,
    Ticker,
    added,
    by_words,
    erased,
    forgotten,
    ids_of,
    later,
    memory,
    nearest,
    new_id,
    owner,
    plain,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.subject import GENERATED, Subject
from recollect.types import (
    KnowledgePointer,
    Layer,
    Memory,
    MemoryType,
    Operation,
    Owner,
    PointerType,
    Source,
    SourceType,
    State,
    Status,
    Vector,
)

ADA = owner("ada")
BOB = owner("bob")
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


def full_memory() -> Memory:
    """A memory in which no field has its default."""
    return memory(
        "Every field is set",
        owner("ada", "monday", layer=Layer.SESSION),
        created_at=datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC),
        occurred_at=datetime(1999, 12, 31, 0, 0, 0, 1, tzinfo=UTC),
        type=MemoryType.DECISION,
        importance=0.1 + 0.2,
        tags=("z", "a.b.c", "ünï"),
        metadata={"n": 1, "f": 1.0, "b": True, "none": None, "l": [1, {"x": []}], "": "", "ü": "é"},
        title="Title",
        description="Two\nlines",
        language="de-CH",
        author="bob",
        role="assistant",
        session="monday morning",
        type_name="app.models.Thing",
        confidence=1 / 3,
        relevance=1.0,
        decay_factor=5e-324,
        source=Source(type=SourceType.TOOL_RESULT, reference="call-7"),
        pointer=KnowledgePointer(
            source_type=PointerType.POLICY,
            source_id="policy-1",
            content_hash="sha256:00",
            synced_at=datetime(2025, 5, 5, 5, 5, 5, 5, tzinfo=UTC),
        ),
        references=(new_id(), "elsewhere"),
        key="key-1",
        expires_at=datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        state=State.FORGOTTEN,
    )


def same(found: Memory | None, wanted: Memory) -> bool:
    """Equal in value and, where JSON could confuse them, in type: 1, 1.0 and true differ."""
    return found is not None and plain(found) == plain(wanted) and repr(found.metadata) == repr(dict(wanted.metadata))


def snapshot(store: Store, *owners: Owner) -> object:
    """All that can be seen of some owners' memories, to prove that nothing changed."""
    whose = frozenset(owners)
    return (
        list(store.scan(whose, vectors=True)),
        store.versions(whose),
        store.sequence(),
        store.settings(),
    )


@pytest.mark.req("H5")
class Basics(Subject):
    """``apply``, ``get``, ``scan``, ``keys``, ``touch``, ``settings`` and ``close``."""

    def test_an_empty_store_answers_with_nothing(self, store: Store) -> None:
        everything = query(ADA, include_forgotten=True)
        assert store.get({ADA}, [new_id()]) == {}
        assert list(store.scan({ADA})) == []
        assert store.versions({ADA}) == []
        assert store.sequence() == store.sequence(START) == 0
        assert store.keys(ADA, ["k"]) == {}
        assert store.select(everything) == []
        assert store.count(everything) == 0
        assert len(store.candidates(query(ADA), probe("dark mode", vector(1, 0)))) == 0
        assert nearest(store, everything, vector(1, 0), 3) == []
        assert by_words(store, everything, "word", 3) == []
        assert store.pick(everything, [1, 2]) == {}
        assert store.unembedded("kit", 3) == []
        assert store.embedded([b"digest"]) == {}
        assert store.stats({ADA}, START).active == 0
        assert store.apply([]) == []

    def test_what_a_store_says_of_itself(self, store: Store) -> None:
        assert store.name
        assert store.version
        health = store.health()
        assert health.status is Status.HEALTHY
        assert health.latency_ms >= 0
        assert store.check().healthy

    def test_every_field_comes_back_exactly(self, store: Store) -> None:
        wanted = full_memory()
        defaults = memory("Only what is needed", wanted.owner)
        put(store, wanted, defaults)
        found = store.get({wanted.owner}, [wanted.id, defaults.id])
        assert found == {wanted.id: wanted, defaults.id: defaults}
        assert same(found[wanted.id], wanted)
        assert [stored.memory for stored in store.scan({wanted.owner})] == [wanted, defaults]
        journal = store.versions({wanted.owner})
        assert [version.memory for version in journal] == [wanted, defaults]

    @pytest.mark.parametrize("text", HOSTILE_TEXTS)
    def test_any_text_comes_back_exactly(self, store: Store, text: str) -> None:
        wanted = memory(
            f"a{text}",
            title=text,
            description=text,
            author=text,
            tags=(text,),
            metadata={text: text},
            references=(text,),
            key=text,
        )
        store.apply([added(wanted, reason=text)])
        assert store.get({ADA}, [wanted.id])[wanted.id] == wanted
        assert store.keys(ADA, [text]) == {text: wanted.id}
        assert store.versions({ADA})[0].reason == text
        assert store.count(query(ADA, tags=(text,), authors=frozenset({text}))) == 1

    @given(drafts=st.lists(strategies.drafts(), min_size=1, max_size=5))
    @GENERATED
    def test_generated_memories_come_back_exactly(self, store: Store, drafts: list[dict[str, Any]]) -> None:
        whose = owner(new_id())
        wanted = [memory(whose=whose, **draft) for draft in drafts]
        put(store, *wanted)
        found = store.get({whose}, ids_of(wanted))
        assert all(same(found.get(one.id), one) for one in wanted)

    def test_a_megabyte_of_content_comes_back(self, store: Store) -> None:
        long = memory("äöü€ " * 110_000)
        assert len(long.content.encode()) > 1_000_000
        put(store, long)
        assert store.get({ADA}, [long.id])[long.id].content == long.content

    def test_what_is_stored_is_a_copy(self, store: Store) -> None:
        nested: dict[str, Any] = {"list": [1]}
        one = memory(metadata=nested)
        put(store, one)
        nested["list"].append(2)
        returned = store.get({ADA}, [one.id])[one.id]
        assert returned.metadata == {"list": [1]}
        assert isinstance(returned.metadata, dict)
        returned.metadata["list"].append(3)
        assert store.get({ADA}, [one.id])[one.id].metadata == {"list": [1]}

    def test_times_of_a_stored_memory(self, store: Store) -> None:
        """``updated_at`` is when the version was recorded, whatever the memory said."""
        one = memory(created_at=START - timedelta(days=3), updated_at=START - timedelta(days=2))
        recorded = START + timedelta(microseconds=1)
        store.apply([Write(operation=Operation.ADDED, memory=one, recorded_at=recorded)])
        found = store.get({ADA}, [one.id])[one.id]
        assert (found.created_at, found.updated_at) == (one.created_at, recorded)

    def test_get_takes_what_is_there(self, store: Store) -> None:
        one, two = memory("one"), memory("two")
        put(store, one, two)
        store.apply([forgotten(two)])
        found = store.get({ADA}, iter([two.id, new_id(), one.id, one.id, *HOSTILE_TEXTS, ""]))
        assert {id: found[id].state for id in sorted(found)} == {
            one.id: State.ACTIVE,
            two.id: State.FORGOTTEN,
        }
        assert store.get({ADA}, []) == {}
        many = [new_id() for _ in range(2_000)]
        assert set(store.get({ADA}, [*many, one.id])) == {one.id}

    def test_scan_follows_the_order_of_recording(self, store: Store) -> None:
        """Not that of ids or clocks: both may go backwards."""
        first, second = memory("first", id=new_id()), memory("second")
        late = memory("late", id="0" + new_id()[1:], created_at=START - timedelta(days=1))
        numbers = [*put(store, second), *put(store, late, first)]
        store.apply([updated(second, content="second, changed")])
        found = list(store.scan({ADA}))
        assert [stored.memory.content for stored in found] == ["second, changed", "late", "first"]
        assert [stored.number for stored in found] == numbers

    def test_sequences_rise(self, store: Store) -> None:
        one = memory()
        sequences = [
            *put(store, one, memory()),
            *store.apply([updated(one)]),
            *put(store, memory()),
        ]
        assert sequences == sorted(set(sequences))
        assert sequences[0] > 0
        assert store.sequence() == sequences[-1]

    def test_a_batch_may_hold_several_versions(self, store: Store) -> None:
        one = memory("one")
        second = updated(one, content="two")
        third = forgotten(second.memory)
        sequences = store.apply([added(one), second, third])
        assert store.get({ADA}, [one.id])[one.id] == third.memory
        assert [version.sequence for version in store.versions({ADA})] == sequences
        assert [stored.number for stored in store.scan({ADA})] == sequences[:1]

    @pytest.mark.req("H11")
    @pytest.mark.parametrize("wrong", [0, 1, 2, 4])
    def test_a_version_that_is_not_the_next_one_is_refused(self, store: Store, wrong: int) -> None:
        one = memory("one")
        store.apply([added(one), updated(one, content="two")])
        before = snapshot(store, ADA)
        for operation in Operation:
            stale = replace(one, content="three", version=wrong)
            with pytest.raises(Conflict):
                store.apply([Write(operation=operation, memory=stale, recorded_at=START)])
        assert snapshot(store, ADA) == before

    @pytest.mark.req("H11")
    def test_a_missing_memory_cannot_be_changed(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.apply([updated(memory())])
        assert list(store.scan({ADA})) == []

    @pytest.mark.parametrize(
        "refused",
        [
            pytest.param(lambda one: updated(one, version=9), id="version"),
            pytest.param(lambda _: added(memory(key="taken")), id="key"),
            pytest.param(lambda _: added(memory(vector=Vector.of("x", [1, 0]))), id="embedder"),
            pytest.param(lambda _: added(memory(vector=vector(1, 0, 0))), id="dimension"),
        ],
    )
    def test_a_refused_batch_leaves_no_trace(self, store: Store, refused: Callable[[Memory], Write]) -> None:
        one, two = memory("one", key="taken", vector=vector(1, 0)), memory("two")
        put(store, one, two)
        before = snapshot(store, ADA)
        good = [
            added(memory("new", key="free", vector=vector(0, 1))),
            updated(one, content="changed", key="other", write={"keeps_vector": False}),
            added(memory("holder", key="taken")),
            erased(two),
        ]
        with pytest.raises((Conflict, EmbedderMismatch, InvalidInput)):
            store.apply([*good, refused(one)])
        assert snapshot(store, ADA) == before
        assert store.keys(ADA, ["taken", "free", "other"]) == {"taken": one.id}
        found = nearest(store, query(ADA), vector(0, 1), 5)
        assert ids_of(scored.memory for scored in found) == [one.id]
        assert by_words(store, query(ADA), "new changed holder", 5) == []
        assert len(store.apply(good)) == 4

    def test_a_key_belongs_to_one_memory_of_an_owner(self, store: Store) -> None:
        one = memory("one", key="k")
        put(store, one, memory("theirs", BOB, key="k"))
        for state in State:
            current = store.get({ADA}, [one.id])[one.id]
            if current.state is not state:
                store.apply([forgotten(current)])
            with pytest.raises(Conflict):
                put(store, memory("two", key="k"))
        with pytest.raises(Conflict):
            put(store, memory(key="twice"), memory(key="twice"))
        other = memory("other")
        put(store, other)
        with pytest.raises(Conflict):
            store.apply([updated(other, key="k")])
        assert store.keys(ADA, ["k", "twice", "K", ""]) == {"k": one.id}

    def test_a_key_is_free_when_its_memory_lets_go(self, store: Store) -> None:
        one, two = memory("one", key="k"), memory("two")
        put(store, one, two)
        renamed = updated(one, key="new")
        taken = updated(two, key="k")
        store.apply([renamed, taken])
        assert store.keys(ADA, ["k", "new"]) == {"k": two.id, "new": one.id}
        third = memory("three", key="k")
        store.apply([erased(taken.memory), added(third)])
        assert store.keys(ADA, ["k", "new"]) == {"k": third.id, "new": one.id}

    def test_vectors_are_kept_replaced_and_removed(self, store: Store) -> None:
        one = memory(vector=vector(1, 0.1))
        put(store, one)
        steps = [
            (updated(one), one.vector),
            (restored(forgotten(one).memory), one.vector),
            (
                updated(one, write={"keeps_vector": False, "vector": vector(0, 1)}),
                vector(0, 1),
            ),
            (updated(one, write={"keeps_vector": False, "vector": None}), None),
        ]
        for number, (write, wanted) in enumerate(steps, start=2):
            store.apply([replace(write, memory=replace(write.memory, version=number))])
            assert store.get({ADA}, [one.id], vectors=True)[one.id].vector == wanted
            assert [one.memory.vector for one in store.scan({ADA}, vectors=True)] == [wanted]
            assert store.get({ADA}, [one.id])[one.id].vector is None
            assert [one.memory.vector for one in store.scan({ADA})] == [None]
            assert len(nearest(store, query(ADA), vector(1, 1), 5)) == (wanted is not None)

    def test_a_vector_that_is_kept_is_not_replaced(self, store: Store) -> None:
        """Whatever else comes with the write."""
        one = memory(vector=vector(1, 0))
        put(store, one)
        store.apply([updated(one, write={"keeps_vector": True, "vector": vector(0, 1)})])
        assert store.get({ADA}, [one.id], vectors=True)[one.id].vector == vector(1, 0)

    def test_the_first_vector_settles_the_embedder(self, store: Store) -> None:
        put(store, memory("without"))
        assert "embedder" not in store.settings()
        put(store, memory(vector=vector(1, 0)))
        settled = store.settings()
        assert (settled["embedder"], settled["dimension"]) == ("kit", "2")
        with pytest.raises(EmbedderMismatch):
            put(store, memory(vector=Vector.of("other", [1, 0])))
        with pytest.raises(InvalidInput) as caught:
            put(store, memory(vector=vector(1, 0, 0)))
        assert caught.value.details["field"] == "vector"
        assert store.settings() == settled
        put(store, memory(vector=vector(0, 1)))

    def test_one_batch_cannot_mix_embedders(self, store: Store) -> None:
        with pytest.raises(EmbedderMismatch):
            put(store, memory(vector=vector(1, 0)), memory(vector=Vector.of("other", [1, 0])))
        assert "embedder" not in store.settings()
        put(store, memory(vector=Vector.of("other", [1, 0, 0])))

    def test_touch_counts_accesses(self, store: Store, place: Path) -> None:
        clock = Ticker(step=timedelta(microseconds=1))
        one, two, three = memory("one"), memory("two"), memory("three")
        put(store, one, two, three)
        history = store.versions({ADA})
        store.touch([one.id, two.id, new_id()], clock())
        last = clock()
        store.touch([one.id], last)
        store.apply([updated(two, content="two, changed")])
        with self.settled(store, place) as settled:
            found = settled.get({ADA}, [one.id, two.id, three.id])
            accesses = [(found[m.id].access_count, found[m.id].last_accessed_at) for m in (one, two, three)]
            assert accesses == [(2, last), (1, START), (0, None)]
            assert [s.memory.access_count for s in settled.scan({ADA})] == [2, 1, 0]
            assert settled.versions({ADA})[:3] == history

    def test_the_last_access_is_the_one_that_came_last_whatever_the_clock_says(self, store: Store, place: Path) -> None:
        one, earlier = memory("one"), START - timedelta(seconds=2)
        put(store, one)
        store.touch([one.id], START)
        store.touch([one.id], earlier)
        with self.settled(store, place) as settled:
            found = settled.get({ADA}, [one.id])[one.id]
            assert (found.access_count, found.last_accessed_at) == (2, earlier)

    def test_settings_are_merged(self, store: Store) -> None:
        before = store.settings()
        store.set_settings({"a": "1", "ü'": "\n"})
        store.set_settings({"a": "2"})
        store.settings()["a"] = "a copy is changed, the store is not"
        assert store.settings() == before | {"a": "2", "ü'": "\n"}

    def test_a_closed_store_says_so(self, store: Store) -> None:
        one = memory()
        put(store, one)
        vectors = [later(store, one, vector(1, 0))]
        store.close()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: put(store, memory()),
            lambda: store.get({ADA}, [one.id]),
            lambda: list(store.scan({ADA})),
            lambda: store.versions({ADA}),
            store.sequence,
            store.owners,
            store.journal,
            store.settings,
            lambda: store.set_settings({"a": "b"}),
            lambda: store.keys(ADA, ["k"]),
            lambda: store.select(query(ADA)),
            lambda: store.count(query(ADA)),
            lambda: store.candidates(query(ADA), probe("a", vector(1, 0))),
            lambda: store.candidates(query(ADA, include_forgotten=True), probe("a")),
            lambda: store.pick(query(ADA), [1]),
            lambda: store.unembedded("kit", 1),
            lambda: store.embed(vectors),
            lambda: store.adopt("other", 2),
            lambda: store.stats({ADA}, START),
            lambda: store.sizes(START),
        ]
        for call in calls:
            with pytest.raises(StoreClosed):
                call()
