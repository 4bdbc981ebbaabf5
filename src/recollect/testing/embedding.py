"""Vectors that come after their memories, those of another embedder, and those of texts in passages."""

import pytest

from recollect.errors import EmbedderMismatch, InvalidInput
from recollect.ports import Store
from recollect.testing.basics import snapshot
from recollect.testing.builders import (
    EMBEDDER,
    START,
    added,
    erased,
    forgotten,
    later,
    memory,
    nearest,
    owner,
    passages,
    probe,
    put,
    query,
    restored,
    updated,
    vector,
)
from recollect.testing.recall import EXACT, ROUGH, contents, signal
from recollect.testing.subject import Subject
from recollect.types import Memory, Vector

ADA = owner("ada")
BOB = owner("bob")
OTHER = "other"
DIGEST = b"sixteen bytes are"


def other(*values: float) -> Vector:
    """A vector of another embedder."""
    return Vector.of(OTHER, values)


def missing(store: Store, embedder: str = EMBEDDER, limit: int = 100) -> list[str]:
    """What is stored without a vector of an embedder."""
    return [stored.memory.content for stored in store.unembedded(embedder, limit)]


def found(store: Store, *near: float, embedder: str = EMBEDDER) -> list[str]:
    """What is nearest, of all that ada has."""
    return contents(nearest(store, query(ADA), Vector.of(embedder, near), 9))


def vector_of(store: Store, one: Memory) -> Vector | None:
    """The vector that a memory has."""
    return store.get({one.owner}, [one.id], vectors=True)[one.id].vector


@pytest.mark.req("L4")
class Embedding(Subject):
    """``unembedded``, ``embed``, ``adopt`` and ``embedded``."""

    # -- vectors that come later -----------------------------------------------------------------

    def test_memories_without_a_vector_are_listed(self, store: Store) -> None:
        one, two, gone = memory("one"), memory("two"), memory("gone")
        put(store, one, memory("has one", vector=vector(1, 0)), two, memory("theirs", BOB), gone)
        store.apply([forgotten(two), erased(gone), updated(one, content="one, changed")])
        put(store, memory("expired", expires_at=START))
        listed = ["one, changed", "two", "theirs", "expired"]
        assert missing(store) == listed
        assert missing(store, limit=2) == listed[:2]
        assert missing(store, OTHER) == ["one, changed", "has one", "two", "theirs", "expired"]
        everything = {stored.number: stored.memory for stored in store.scan({ADA, BOB})}
        assert all(everything[stored.number] == stored.memory for stored in store.unembedded(EMBEDDER, 100))
        assert store.count_unembedded(EMBEDDER) == len(store.unembedded(EMBEDDER, 100))

    def test_a_vector_may_come_later(self, store: Store) -> None:
        one, two = memory("one"), memory("two", vector=vector(1, 1))
        put(store, one, two)
        assert found(store, 1, 0) == ["two"]
        before = store.sequence(), store.versions({ADA})
        store.embed([later(store, one, vector(1, 0))])
        assert found(store, 1, 0) == ["one", "two"]
        assert vector_of(store, one) == vector(1, 0)
        assert missing(store) == []
        assert store.stats({ADA}, START) == Store.stats(store, {ADA}, START)
        store.embed([later(store, two, vector(1, 0.01)), later(store, one, vector(0, 1))])
        assert found(store, 1, 0) == ["two", "one"]
        assert (store.sequence(), store.versions({ADA})) == before
        assert store.check().healthy
        store.embed([])
        store.rebuild()
        assert found(store, 1, 0) == ["two", "one"]

    def test_the_first_vector_may_come_later(self, store: Store) -> None:
        one = memory("one")
        put(store, one)
        assert found(store, 1, 0) == []
        store.embed([later(store, one, vector(1, 0))])
        settled = store.settings()
        assert (settled["embedder"], settled["dimension"]) == (EMBEDDER, "2")
        assert found(store, 1, 0) == ["one"]

    def test_a_vector_for_another_version_is_dropped(self, store: Store) -> None:
        one, gone = memory("one", vector=vector(1, 0)), memory("gone", vector=vector(1, 0))
        put(store, one, gone)
        stale = [later(store, one, vector(0, 1)), later(store, gone, vector(0, 1), digest=DIGEST)]
        store.apply([updated(one, content="changed", write={"keeps_vector": False, "vector": None}), erased(gone)])
        before = snapshot(store, ADA)
        store.embed(stale)
        store.embed([later(store, one, vector(0, 1), version=version) for version in (0, 1, 3)])
        store.embed([later(store, one, vector(0, 1), number=10_000)])
        assert snapshot(store, ADA) == before
        assert missing(store) == ["changed"]
        assert found(store, 1, 0) == []
        assert store.embedded([DIGEST]) == {}
        store.embed([later(store, one, vector(0, 1), version=2)])
        assert found(store, 1, 0) == ["changed"]

    def test_a_forgotten_memory_can_be_embedded(self, store: Store) -> None:
        one = memory("one")
        put(store, one)
        gone = forgotten(one)
        store.apply([gone])
        store.embed([later(store, gone.memory, vector(1, 0))])
        assert found(store, 1, 0) == []
        store.apply([restored(gone.memory)])
        assert found(store, 1, 0) == ["one"]

    def test_vectors_of_a_wrong_dimension_leave_no_trace(self, store: Store) -> None:
        one, two = memory("one", vector=vector(1, 0)), memory("two")
        put(store, one, two)
        assert found(store, 1, 0) == ["one"]
        before = snapshot(store, ADA)
        with pytest.raises(InvalidInput) as caught:
            store.embed([later(store, two, vector(0, 1)), later(store, one, vector(1, 0, 0))])
        assert caught.value.details["field"] == "vector"
        assert snapshot(store, ADA) == before
        assert found(store, 1, 0) == ["one"]
        assert missing(store) == ["two"]

    # -- another embedder ------------------------------------------------------------------------

    def test_another_embedder_waits_until_it_is_adopted(self, store: Store) -> None:
        one, two = memory("one", vector=vector(1, 0)), memory("two", BOB, vector=vector(0, 1))
        put(store, one, two)
        settled = store.settings()
        assert not store.adopt(OTHER, 3)
        store.embed([later(store, one, other(0, 0, 1))])
        assert vector_of(store, one) == vector(1, 0)
        assert found(store, 1, 0) == ["one"]
        assert (missing(store), missing(store, OTHER)) == ([], ["two"])
        assert not store.adopt(OTHER, 3)
        assert store.settings() == settled
        store.embed([later(store, two, other(0, 1, 0))])
        assert store.stats({ADA, BOB}, START) == Store.stats(store, {ADA, BOB}, START)
        assert store.adopt(OTHER, 3)
        assert (vector_of(store, one), vector_of(store, two)) == (other(0, 0, 1), other(0, 1, 0))
        assert (store.settings()["embedder"], store.settings()["dimension"]) == (OTHER, "3")
        near = nearest(store, query(ADA, BOB), other(0, 2, 1), 9)
        assert contents(near) == ["two", "one"]
        assert [one.score for one in near] == pytest.approx([2 / 5**0.5, 1 / 5**0.5], abs=EXACT)
        assert (missing(store), missing(store, OTHER)) == (["one", "two"], [])
        assert store.stats({ADA, BOB}, START) == Store.stats(store, {ADA, BOB}, START)
        assert store.check().healthy
        with pytest.raises(EmbedderMismatch):
            put(store, memory(vector=vector(1, 0)))
        put(store, memory("three", vector=other(0, 1, 0)))

    def test_adopting_twice_changes_nothing(self, store: Store) -> None:
        put(store, memory("one", vector=vector(1, 0)), memory("two"))
        before = snapshot(store, ADA)
        assert store.adopt(EMBEDDER, 2)
        assert snapshot(store, ADA) == before

    def test_an_empty_store_adopts_at_once(self, store: Store) -> None:
        gone = memory("gone", vector=vector(1, 0))
        put(store, gone)
        store.apply([erased(gone)])
        assert store.adopt(OTHER, 3)
        put(store, memory("one", vector=other(0, 0, 1)))
        assert found(store, 0, 0, 1, embedder=OTHER) == ["one"]

    def test_a_question_must_come_from_the_same_embedder(self, store: Store) -> None:
        """Vectors of two embedders cannot be compared, and a wrong answer would not be noticed."""
        one = memory("one", vector=vector(1, 0))
        put(store, one)
        store.embed([later(store, one, other(1, 0))])
        last = store.sequence()
        for wanted in (query(ADA), query(ADA, include_forgotten=True), query(ADA, as_of=last)):
            for text in ("", "one"):
                with pytest.raises(EmbedderMismatch):
                    store.candidates(wanted, probe(text, other(1, 0)))
                with pytest.raises(InvalidInput):
                    store.candidates(wanted, probe(text, vector(1, 0, 0)))
                assert len(store.candidates(wanted, probe(text, vector(1, 0)))) == 1
        assert store.adopt(OTHER, 2)
        with pytest.raises(EmbedderMismatch):
            found(store, 1, 0)
        assert found(store, 1, 0, embedder=OTHER) == ["one"]

    def test_what_comes_in_the_meantime_is_waited_for(self, store: Store) -> None:
        one = memory("one", vector=vector(1, 0))
        put(store, one)
        store.embed([later(store, one, other(0, 1))])
        new = memory("new", vector=vector(1, 0))
        put(store, new)
        assert not store.adopt(OTHER, 2)
        store.embed([later(store, new, other(1, 1))])
        # Another text needs another vector, and the one that waits was made from the former.
        changed = updated(one, content="changed", write={"keeps_vector": False, "vector": vector(0, 1)})
        store.apply([changed])
        assert missing(store, OTHER) == ["changed"]
        assert not store.adopt(OTHER, 2)
        store.embed([later(store, changed.memory, other(1, 0))])
        # A change that leaves the vector in place leaves the waiting one, too.
        store.apply([updated(changed.memory, importance=0.9), forgotten(new)])
        assert missing(store, OTHER) == []
        assert store.adopt(OTHER, 2)
        assert found(store, 1, 0, embedder=OTHER) == ["changed"]
        assert vector_of(store, new) == other(1, 1)

    def test_a_vector_that_waits_can_be_replaced(self, store: Store) -> None:
        one = memory("one", vector=vector(1, 0))
        put(store, one)
        store.embed([later(store, one, Vector.of("third", [1, 1]))])
        store.embed([later(store, one, other(0, 0, 1))])
        store.embed([later(store, one, other(0, 1, 0))])
        assert vector_of(store, one) == vector(1, 0)
        assert store.adopt(OTHER, 3)
        assert vector_of(store, one) == other(0, 1, 0)
        assert not store.adopt("third", 2)

    def test_an_erased_memory_leaves_no_vector_waiting(self, store: Store) -> None:
        one, gone = memory("one", vector=vector(1, 0)), memory("gone", vector=vector(0, 1))
        put(store, one, gone)
        store.embed([later(store, one, other(1, 0)), later(store, gone, other(0, 1), digest=DIGEST)])
        store.apply([erased(gone)])
        assert store.adopt(OTHER, 2)
        assert found(store, 0, 1, embedder=OTHER) == ["one"]
        assert store.embedded([DIGEST]) == {}
        assert [stored.memory.vector for stored in store.scan({ADA}, vectors=True)] == [other(1, 0)]
        assert store.check().healthy

    def test_what_is_known_of_the_former_embedder_goes_with_it(self, store: Store) -> None:
        store.set_settings({"calibration": "0.1 0.9", "kit": "stays"})
        one = memory("one", vector=vector(1, 0))
        put(store, one)
        assert not store.adopt(OTHER, 2)
        assert store.settings()["calibration"] == "0.1 0.9"
        store.embed([later(store, one, other(1, 0))])
        assert store.adopt(OTHER, 2)
        assert "calibration" not in store.settings()
        assert store.settings()["kit"] == "stays"

    # -- passages --------------------------------------------------------------------------------

    def test_the_best_passage_counts(self, store: Store) -> None:
        long = memory("long", vector=passages((1, 0, 0), (0, 1, 0), (0, 1, 1)))
        first, second = put(store, long, memory("short", vector=vector(0, 3, 1)))
        wanted = query(ADA)
        assert vector_of(store, long) == long.vector
        for near, expected, passage in (
            ((1, 0, 0), {"long": 1, "short": 0}, 0),
            ((0, 1, 0), {"long": 1, "short": 3 / 10**0.5}, 1),
            ((0, 1, 1), {"long": 1, "short": 4 / 20**0.5}, 2),
            ((-1, -1, 0), {"long": -0.5, "short": -3 / 20**0.5}, 2),
        ):
            scored = nearest(store, wanted, vector(*near), 9)
            assert {one.memory.content: one.score for one in scored} == pytest.approx(expected, abs=EXACT)
            for asked in (probe(near=vector(*near)), probe("long", vector(*near))):
                candidates = store.candidates(wanted, asked)
                named = dict(zip(candidates.numbers.tolist(), candidates.passages.tolist(), strict=True))
                assert named[second] == -1
                assert named[first] == passage
                similar = signal(store, wanted, asked, "similarity")
                assert similar[first] == pytest.approx(expected["long"], abs=ROUGH)

    def test_passages_follow_every_change(self, store: Store) -> None:
        one, two = memory("one", vector=passages((1, 0), (0, 1))), memory("two", vector=vector(1, 1))
        numbers = put(store, one, two)
        assert found(store, 0, 1) == ["one", "two"]
        shorter = updated(one, write={"keeps_vector": False, "vector": vector(1, 0)})
        store.apply([shorter])
        assert found(store, 0, 1) == ["two", "one"]
        store.embed([later(store, two, passages((1, 0), (1, 0), (0, 1)))])
        assert signal(store, query(ADA), probe(near=vector(0, 1)), "similarity") == pytest.approx(
            dict(zip(numbers, [0, 1], strict=True)), abs=EXACT
        )
        store.apply([erased(two)])
        assert found(store, 0, 1) == ["one"]

    def test_passages_of_another_embedder_wait_like_others(self, store: Store) -> None:
        one = memory("one", vector=passages((1, 0), (0, 1)))
        put(store, one)
        renewed = passages((1, 0, 0), (0, 0, 1), embedder=OTHER)
        store.embed([later(store, one, renewed)])
        assert store.adopt(OTHER, 3)
        assert vector_of(store, one) == renewed
        assert [one.score for one in nearest(store, query(ADA), other(0, 0, 1), 9)] == pytest.approx([1], abs=EXACT)
        assert store.check().healthy

    def test_passages_must_have_the_dimension_of_the_store(self, store: Store) -> None:
        put(store, memory("one", vector=vector(1, 0)))
        with pytest.raises(InvalidInput):
            put(store, memory("two", vector=passages((1, 0, 0), (0, 1, 0))))
        put(store, memory("two", vector=passages((1, 0), (0, 1))))

    # -- digests ---------------------------------------------------------------------------------

    def test_what_is_found_by_a_digest_is_the_vector_that_was_stored_with_it(self, store: Store) -> None:
        """A store need not remember digests; but it must not give a vector that is not the right one."""
        one, two, long = (
            memory("one", vector=vector(1, 0)),
            memory("two"),
            memory("long", vector=passages((1, 0), (0, 1))),
        )
        store.apply([added(one, digest=DIGEST), added(two), added(long, digest=b"long")])
        store.embed([later(store, two, vector(0, 1), digest=b"two")])
        kept = {DIGEST: one.vector, b"two": vector(0, 1), b"long": long.vector}
        asked = [*kept, b"never", b""]
        assert store.embedded(iter(asked)).items() <= kept.items()
        remembers = store.embedded(asked) == kept
        assert remembers or store.embedded(asked) == {}, "some digests are remembered and others are not"
        # Another text with the same memory: the digest was that of the former.
        changed = updated(one, content="changed", write={"keeps_vector": False, "vector": vector(1, 1)})
        store.apply([changed, forgotten(two), erased(long)])
        assert store.embedded(asked).items() <= {(b"two", vector(0, 1))}
        store.apply([erased(changed.memory)])
        assert store.embedded([DIGEST]) == {}

    def test_a_digest_outlives_one_of_two_memories(self, store: Store) -> None:
        one, two = memory("same", vector=vector(1, 0)), memory("same", BOB, vector=vector(1, 0))
        store.apply([added(one, digest=DIGEST), added(two, digest=DIGEST)])
        store.apply([erased(one)])
        assert store.embedded([DIGEST]).items() <= {(DIGEST, vector(1, 0))}
        store.apply([erased(two)])
        assert store.embedded([DIGEST]) == {}
