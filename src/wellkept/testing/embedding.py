"""Vectors that come later, and the change from one embedder to another."""

import pytest

from wellkept.errors import EmbedderMismatch, InvalidInput
from wellkept.ports import Store
from wellkept.testing.basics import check_usage, everything
from wellkept.testing.builders import EMBEDDER, Writer, ids_of, one_of, owner, put, vector
from wellkept.testing.subject import Subject
from wellkept.types import Embedded, Stored, Vector, Write

ADA, BOB = owner("ada"), owner("bob")
OTHER = "another embedder"


def later(one: Write | Stored, *values: float, embedder: str = EMBEDDER, digest: bytes | None = None) -> Embedded:
    """A vector for a memory as it is now."""
    return Embedded(one.owner, one.id, one.version, vector(*values, embedder=embedder), digest)


def missing(store: Store, embedder: str = EMBEDDER) -> list[str]:
    """The ids of memories without a vector of an embedder; they are counted alike."""
    found = ids_of(store.journal.unembedded(embedder, 1_000))
    assert store.journal.count_unembedded(embedder) == len(found)
    return sorted(found)


@pytest.mark.req("H5")
class Embedding(Subject):
    """``embed``, ``unembedded``, ``adopt`` and ``embedded``."""

    def test_memories_without_a_vector_are_listed(self, store: Store, writes: Writer) -> None:
        having = writes.add(ADA, write={"vector": vector(1, 0)})
        lacking = [writes.add(ADA), writes.add(ADA), writes.add(BOB), writes.add(BOB)]
        put(store, having, *lacking)
        put(store, writes.forget(lacking[0]), writes.archive(lacking[1]), writes.erase(lacking[3]))
        assert missing(store) == sorted(ids_of(lacking[:3]))
        assert missing(store, OTHER) == sorted(ids_of([having, *lacking[:3]]))
        assert len(store.journal.unembedded(EMBEDDER, 2)) == 2
        assert {one.facets["text"] for one in store.journal.unembedded(EMBEDDER, 9)} == {"a memory"}

    def test_a_vector_may_come_later(self, store: Store, writes: Writer) -> None:
        one, theirs = writes.add(ADA, id="1"), writes.add(BOB, id="1")
        put(store, one, theirs)
        before = store.journal.marks({ADA, BOB})
        store.journal.embed([later(one, 1, 0)])
        assert store.journal.settings()["embedder"] == EMBEDDER
        assert store.journal.settings()["dimension"] == "2"
        found = one_of(store, ADA, one.id, vectors=True)
        assert (found.vector, found.version) == (vector(1, 0), 1)
        after = store.journal.marks({ADA, BOB})
        assert after[ADA].seq == before[ADA].seq
        assert after[ADA].revision > before[ADA].revision
        assert after[BOB] == before[BOB]
        store.journal.embed([later(one, 0, 1)])
        assert one_of(store, ADA, one.id, vectors=True).vector == vector(0, 1)
        assert store.journal.marks({ADA})[ADA].revision > after[ADA].revision
        assert missing(store) == [theirs.id]
        check_usage(store.journal, [ADA, BOB])

    def test_vectors_of_other_versions_and_memories_are_dropped(self, store: Store, writes: Writer) -> None:
        one, gone = writes.add(ADA, write={"vector": vector(1, 0)}), writes.add(ADA)
        two = writes.update(one, "two")
        store.journal.append([one, two, gone, writes.erase(gone)])
        before = everything(store.journal, ADA)
        nobody = one._replace(id="nothing"), one._replace(owner=BOB, version=2)
        store.journal.embed([later(wrong, 0, 1) for wrong in (one, two._replace(version=3), gone, *nobody)])
        store.journal.embed([])
        assert everything(store.journal, ADA) == before

    def test_a_wrong_dimension_leaves_no_trace(self, store: Store, writes: Writer) -> None:
        one, two = writes.add(ADA, write={"vector": vector(1, 0)}), writes.add(ADA)
        store.journal.append([one, two])
        before = everything(store.journal, ADA)
        with pytest.raises(InvalidInput):
            store.journal.embed([later(one, 0, 1), later(two, 1, 0, 0)])
        with pytest.raises(InvalidInput):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, 0, 0)})])
        with pytest.raises(EmbedderMismatch):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, 0, embedder=OTHER)})])
        assert everything(store.journal, ADA) == before

    def test_the_first_vector_of_a_batch_decides(self, store: Store, writes: Writer) -> None:
        with pytest.raises(EmbedderMismatch):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, embedder=name)}) for name in ("a", "b")])
        assert "embedder" not in store.journal.settings()
        store.journal.append([writes.add(ADA), writes.add(ADA, write={"vector": vector(1, 2, 3)})])
        settings = store.journal.settings()
        assert (settings["embedder"], settings["dimension"]) == (EMBEDDER, "3")

    def test_passages_are_kept_whole(self, store: Store, writes: Writer) -> None:
        rows = Vector.joined([vector(1, 0), vector(0, 1)], [(0, 10), (10, 20)])
        whole = Vector(rows.embedder, rows.data, rows.spans, pieces=b"\x01\x02\x03\x04")
        one, two = writes.add(ADA, write={"vector": whole}), writes.add(ADA)
        store.journal.append([one, two])
        store.journal.embed([Embedded(ADA, two.id, 1, whole)])
        assert [found.vector for found in store.journal.scan({ADA}, vectors=True)] == [whole, whole]
        assert store.journal.settings()["dimension"] == "2"
        check_usage(store.journal, [ADA])

    def test_another_embedder_waits_until_it_is_adopted(self, store: Store, writes: Writer) -> None:
        one, two = writes.add(ADA, write={"vector": vector(1, 0)}), writes.add(BOB, write={"vector": vector(0, 1)})
        forgotten = writes.add(BOB)
        put(store, one, two, forgotten)
        forgotten = writes.forget(forgotten)
        put(store, forgotten)
        store.journal.set_settings({"calibration": "of the former"})
        before = everything(store.journal, ADA, BOB)
        store.journal.embed([later(one, 1, 2, 3, embedder=OTHER), later(two, 4, 5, 6, embedder=OTHER)])
        assert everything(store.journal, ADA, BOB) == before, "a vector that waits shows nowhere"
        assert missing(store, OTHER) == [forgotten.id]
        assert not store.journal.adopt(OTHER, 3)
        assert everything(store.journal, ADA, BOB) == before
        store.journal.embed([later(forgotten, 7, 8, 9, embedder=OTHER)])
        marks = store.journal.marks({ADA, BOB})
        assert store.journal.adopt(OTHER, 3)
        settings = store.journal.settings()
        assert (settings["embedder"], settings["dimension"]) == (OTHER, "3")
        assert "calibration" not in settings
        vectors = {found.id: found.vector for found in store.journal.scan({ADA, BOB}, vectors=True)}
        assert vectors[one.id] == vector(1, 2, 3, embedder=OTHER)
        assert vectors[forgotten.id] == vector(7, 8, 9, embedder=OTHER)
        risen = store.journal.marks({ADA, BOB})
        assert all(risen[who].revision > marks[who].revision for who in marks)
        assert missing(store, OTHER) == []
        assert len(missing(store, EMBEDDER)) == 3
        with pytest.raises(EmbedderMismatch):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, 0)})])
        check_usage(store.journal, [ADA, BOB])

    def test_adopting_ones_own_embedder_changes_nothing(self, store: Store, writes: Writer) -> None:
        store.journal.append([writes.add(ADA, write={"vector": vector(1, 0)})])
        before = everything(store.journal, ADA)
        assert store.journal.adopt(EMBEDDER, 2)
        assert everything(store.journal, ADA) == before

    def test_an_empty_store_adopts_at_once(self, store: Store, writes: Writer) -> None:
        assert store.journal.adopt(OTHER, 2)
        assert store.journal.settings()["embedder"] == OTHER
        with pytest.raises(EmbedderMismatch):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, 0)})])
        with pytest.raises(InvalidInput):
            store.journal.append([writes.add(ADA, write={"vector": vector(1, embedder=OTHER)})])

    def test_a_vector_that_waits_goes_with_the_text_it_was_made_from(self, store: Store, writes: Writer) -> None:
        changed, kept, gone = (writes.add(ADA, write={"vector": vector(1, 0)}) for _ in range(3))
        store.journal.append([changed, kept, gone])
        store.journal.embed([later(one, 5, embedder=OTHER) for one in (changed, kept, gone)])
        assert missing(store, OTHER) == []
        new = writes.update(changed, "another text", write={"keeps_vector": False, "vector": vector(0, 1)})
        store.journal.append([new, writes.update(kept, importance=0.9), writes.erase(gone)])
        assert missing(store, OTHER) == [changed.id]
        assert not store.journal.adopt(OTHER, 1)
        store.journal.embed([later(new, 6, embedder=OTHER)])
        assert store.journal.adopt(OTHER, 1)

    def test_a_digest_finds_the_vector_that_was_stored_with_it(self, store: Store, writes: Writer) -> None:
        """A store may keep none; what it finds is right, and gone with the last memory that had it."""
        one = writes.add(ADA, write={"vector": vector(1, 0), "digest": b"digest 1"})
        two, three = writes.add(BOB), writes.add(ADA)
        put(store, one, two, three)
        store.journal.embed([later(two, 0, 1, digest=b"digest 2"), later(three, 0, 1, digest=b"digest 2")])
        asked = [b"digest 1", b"digest 2", b"unknown"]
        kept = {b"digest 1": vector(1, 0), b"digest 2": vector(0, 1)}
        found = store.journal.embedded(asked)
        assert found in ({}, kept)
        put(store, writes.erase(one), writes.erase(two))
        assert store.journal.embedded(asked) == ({b"digest 2": vector(0, 1)} if found else {})
        put(store, writes.erase(three))
        assert store.journal.embedded(asked) == {}
