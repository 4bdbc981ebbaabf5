"""Erasure: what remains of an erased memory is a tombstone, and in the files nothing else."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from wellkept.errors import Conflict
from wellkept.ports import Record, Store
from wellkept.testing.basics import check_usage, same
from wellkept.testing.builders import START, Writer, one_of, owner, put, vector
from wellkept.testing.subject import Subject
from wellkept.types import Embedded, Mark, Operation, Owner

ADA, BOB = owner("ada"), owner("bob")


@pytest.mark.req("H5")
class Erasure(Subject):
    """Tombstones, and the capability ``erases`` in both directions."""

    def test_an_erased_memory_leaves_a_tombstone(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, "one", key="k", write={"payload": b"body", "vector": vector(1, 0)})
        two = writes.update(one, "two")
        store.journal.append([one, two, writes.add(ADA, "other")])
        gone = writes.erase(two, reason="asked for")
        store.journal.append([gone])
        (tombstone,) = store.journal.history(ADA, one.id)
        assert (tombstone.version, tombstone.seq, tombstone.born) == (3, 4, 1)
        assert (tombstone.operation, tombstone.reason) == (Operation.ERASED, "asked for")
        assert (tombstone.stamp, tombstone.replaced) == (gone.stamp, two.stamp)
        assert (dict(tombstone.facets), tombstone.payload, tombstone.vector) == ({}, b"", None)
        assert list(store.journal.get({ADA}, [one.id])) == []
        for page in (store.journal.versions({ADA}), store.journal.feed()):
            assert [(entry.seq, bool(entry.facets)) for entry in page] == [(3, True), (4, False)]
        check_usage(store.journal, [ADA])

    @pytest.mark.req("H11")
    def test_an_erased_id_is_not_used_again(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA)
        gone = writes.erase(one)
        store.journal.append([one, gone])
        for expected in (0, 1, 2, 3):
            with pytest.raises(Conflict):
                store.journal.append(
                    [writes.add(ADA, id=one.id, write={"version": expected + 1, "expected": expected})]
                )
        theirs = writes.add(BOB, id=one.id)
        store.journal.append([theirs])
        assert same(one_of(store, BOB, one.id), theirs)

    @pytest.mark.req("N7")
    def test_a_second_tombstone_takes_the_reason_of_the_first_away(
        self, store: Store, writes: Writer, place: Path
    ) -> None:
        one, other, third = (writes.add(ADA, text) for text in ("one", "other", "third"))
        store.journal.append([one, other, third])
        first = writes.erase(one, reason="secretreasonmark")
        store.journal.append([first, writes.erase(third, reason="another")])
        second = writes.erase(first)
        store.journal.append([second])
        (tombstone,) = store.journal.history(ADA, one.id)
        assert (tombstone.version, tombstone.reason, tombstone.stamp) == (3, None, second.stamp)
        assert (tombstone.seq, tombstone.born, tombstone.replaced) == (6, 1, first.stamp)
        assert [entry.seq for entry in store.journal.versions({ADA})] == [2, 5, 6]
        assert list(store.journal.get({ADA}, [one.id])) == []
        check_usage(store.journal, [ADA])
        with pytest.raises(Conflict):
            store.journal.append([writes.erase(first)])
        if self.raw_bytes(place) is not None and store.capabilities.erases:
            self._look(store, place, {"the reason": b"secretreasonmark"})
        store.journal.append([writes.update(other, "changed")])
        assert [entry.seq for entry in store.journal.versions({ADA})] == [2, 5, 6, 7]

    @pytest.mark.req("L7", "N7")
    def test_erases_means_that_no_byte_remains(self, store: Store, writes: Writer, place: Path) -> None:
        marks = [f"secret{number}mark" for number in range(9)]
        first, second = vector(0.123456, -7.654321, 3.14159), vector(0.654321, 5.4321, -1.61803, embedder="other")
        one = writes.add(
            ADA,
            f"{marks[0]} first text",
            title=marks[1],
            tags=[marks[2]],
            fields={"field": marks[3]},
            author=marks[4],
            key=marks[5],
            write={"payload": f'{{"a":"{marks[6]}"}}'.encode(), "vector": first, "reason": marks[7]},
        )
        changed = writes.update(one, f"{marks[8]} second text", write={"digest": b"digest of a secret"})
        store.journal.append([one, changed])
        store.journal.embed([Embedded(ADA, one.id, 2, second, b"digest of a secret")])
        self._make_images(store, ADA, b"image of a secret")
        kept = self.raw_bytes(place)
        if kept is None:
            pytest.skip("raw_bytes() gives no look at what is kept")
        for mark in marks:
            assert mark.encode() in kept, "raw_bytes() does not show what is kept"
        store.journal.append([writes.add(ADA, "another", write={"vector": vector(1, 0, 0)})])
        # What a store derives is its own business; whatever of it can be found now must go as well.
        derived = {
            "the vector": first.data,
            "the vector that waits": second.data,
            "the digest": b"digest of a secret",
            "the image": b"image of a secret",
        }
        secrets = {mark: mark.encode() for mark in marks}
        secrets |= {name: value for name, value in derived.items() if value in kept}
        store.journal.append([writes.erase(changed)])
        self._look(store, place, secrets)
        store.close()
        if store.capabilities.durable:
            self._look(store, place, secrets)

    def test_a_dropped_record_leaves_no_byte(self, store: Store, place: Path) -> None:
        body = b'{"text": "secret of a record"}'
        for version in (1, 2):
            store.records.put(
                Record(owner=ADA, kind="kind", name="secret name", body=body, version=version, updated_at=START)
            )
        if self.raw_bytes(place) is None or not store.capabilities.erases:
            pytest.skip("no look at what is kept, or no promise")
        assert store.records.drop(ADA, "kind", "secret name")
        self._look(store, place, {"the record": b"secret of a record"})

    def _look(self, store: Store, place: Path, secrets: Mapping[str, bytes]) -> None:
        kept = self.raw_bytes(place) or b""
        left = [name for name, value in secrets.items() if value in kept]
        if store.capabilities.erases:
            assert left == [], "bytes of what was erased remain"
        else:
            assert left != [], "nothing of what was erased remains: declare that it erases"

    def _make_images(self, store: Store, whose: Owner, content: bytes) -> bool:
        """Keep an image of an index, where the store keeps images."""
        if store.images is None:
            return False
        return store.images.write(whose, store.journal.marks({whose})[whose], {"part": content, "other": b""})

    def test_images_are_kept_at_their_mark_and_dropped_by_an_erasure(self, store: Store, writes: Writer) -> None:
        if store.images is None:
            pytest.skip("the store keeps no images")
        one = writes.add(ADA)
        put(store, one, writes.add(BOB))
        assert store.images.read(ADA) is None
        assert self._make_images(store, ADA, b"of ada")
        assert self._make_images(store, BOB, b"of bob")
        mark = store.journal.marks({ADA})[ADA]
        assert store.images.read(ADA) == (mark, {"part": b"of ada", "other": b""})
        assert not store.images.write(ADA, Mark(mark.seq + 1, mark.revision), {"part": b"ahead"})
        changed = writes.update(one, "changed")
        store.journal.append([changed])
        assert not store.images.write(ADA, mark, {"part": b"late"})
        assert self._make_images(store, ADA, b"new")
        store.journal.append([writes.erase(changed)])
        assert store.images.read(ADA) is None
        assert store.images.read(BOB) is not None
