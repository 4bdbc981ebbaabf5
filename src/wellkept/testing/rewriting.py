"""Rewriting: other facets and payloads in the place of stored ones, and nothing left of those."""

from pathlib import Path

import pytest

from wellkept.errors import Unsupported
from wellkept.ports import Store
from wellkept.testing.basics import check_usage
from wellkept.testing.builders import Writer, ids_of, one_of, owner, put, query, vector
from wellkept.testing.subject import Subject
from wellkept.types import Embedded, Stored

ADA, BOB = owner("ada"), owner("bob")
_SAME = ("state", "type", "tier", "importance", "created_at", "occurred_at", "expires_at", "bytes")


def _other(one: Stored, mark: str, **facets: object) -> Stored:
    kept = {name: value for name, value in one.facets.items() if name in _SAME}
    return one._replace(facets={**kept, **facets}, payload=mark.encode(), reason=None if one.reason is None else mark)


def _rewrite(store: Store, *versions: Stored) -> None:
    try:
        store.journal.rewrite(versions)
    except Unsupported as error:
        assert error.details["capability"] == "rewrite"
        pytest.skip("the store cannot rewrite")


class Rewriting(Subject):
    """What encrypting in place asks of a store."""

    def test_rewritten_versions_keep_their_places(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA, "one", key="k", tags=["old"], author="a", write={"vector": vector(1, 0)})
        two = writes.update(one, "two", importance=0.9, write={"reason": "because", "write_id": "call"})
        other, theirs = writes.add(ADA, "other", key="l"), writes.add(BOB, id=one.id)
        put(store, one, two, other, theirs)
        position, marks = store.journal.position({ADA}), store.journal.marks({ADA})
        before = store.journal.history(ADA, one.id)
        first = _other(before[0], "first", tags=["new"])
        second = _other(before[1], "second", tags=["new"], key="hashed", hidden=1)._replace(vector=vector(0, 1))
        stranger = first._replace(id="nobody")
        elsewhere = first._replace(owner=BOB)
        _rewrite(store, first, second, stranger, elsewhere)
        after = store.journal.history(ADA, one.id)
        assert [(v.facets, v.payload, v.reason) for v in after] == [
            (first.facets, b"first", None),
            (second.facets, b"second", "second"),
        ]
        places = [(*v[1:7], v.stamp, v.replaced, v.write_id) for v in after]
        assert places == [(*v[1:7], v.stamp, v.replaced, v.write_id) for v in before]
        assert store.journal.position({ADA}) == position
        assert list(store.journal.versions({ADA}, after=position)) == []
        assert store.journal.marks({ADA})[ADA].seq == marks[ADA].seq
        assert store.journal.keyed(ADA, ["k", "l", "hashed"]) == {"hashed": one.id, "l": other.id}
        assert ids_of(store.journal.select(query(ADA, tags=("new",)))) == [one.id]
        assert ids_of(store.journal.select(query(ADA, tags=("old",)))) == []
        assert store.journal.count({ADA}, query(authors=frozenset({"a"})).where) == 0
        assert one_of(store, ADA, one.id, vectors=True).vector == vector(0, 1)
        assert one_of(store, ADA, other.id).facets["text"] == "other"
        assert one_of(store, BOB, one.id).facets["text"] == "a memory"
        check_usage(store.journal, [ADA, BOB])
        third = writes.update(after[1], key="k")
        store.journal.append([third])
        assert store.journal.keyed(ADA, ["k", "hashed"]) == {"k": one.id}

    def test_reasons_of_tombstones_can_be_rewritten(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA)
        store.journal.append([one, writes.erase(one, reason="a secret reason")])
        (tombstone,) = store.journal.history(ADA, one.id)
        _rewrite(store, tombstone._replace(reason="hidden"))
        assert store.journal.history(ADA, one.id) == [tombstone._replace(reason="hidden")]

    @pytest.mark.req("L10")
    def test_nothing_remains_of_what_was_rewritten(self, store: Store, writes: Writer, place: Path) -> None:
        marks = [f"secret{number}mark" for number in range(8)]
        one = writes.add(
            ADA,
            marks[0],
            title=marks[1],
            tags=[marks[2]],
            fields={"field": marks[3]},
            author=marks[4],
            key=marks[5],
            write={"payload": marks[6].encode(), "vector": vector(0.123456, -7.654321), "given": True},
        )
        two = writes.update(one, f"{marks[7]} again", write={"reason": "secret8mark"})
        store.journal.append([one, two])
        store.journal.embed([Embedded(ADA, one.id, 2, vector(0.333, 0.111), b"digest of a secret")])
        if store.images is not None:
            mark = store.journal.marks({ADA})[ADA]
            store.images.write(ADA, mark, {"part": b"image of a secret"})
        kept = self.raw_bytes(place)
        if kept is None or not store.capabilities.erases:
            pytest.skip("raw_bytes() gives no look at what is kept, or nothing is promised")
        assert all(mark.encode() in kept for mark in marks)
        first, second = store.journal.history(ADA, one.id)
        _rewrite(store, _other(first, "1"), _other(second, "2")._replace(vector=vector(1, 0)))
        secrets = [mark.encode() for mark in [*marks, "secret8mark"]]
        secrets += [b"digest of a secret", b"image of a secret", vector(0.123456, -7.654321).data]
        for look in (self.raw_bytes(place) or b"", self._closed(store, place)):
            assert [secret for secret in secrets if secret in look] == []

    def _closed(self, store: Store, place: Path) -> bytes:
        store.close()
        return self.raw_bytes(place) or b""
