"""Capabilities: what a store declares it keeps, and what it keeps it declares."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from wellkept.ports import Record, Store
from wellkept.testing.basics import check_usage, everything
from wellkept.testing.builders import START, Writer, one_of, owner, put, vector
from wellkept.testing.subject import Subject
from wellkept.types import Access, Embedded, Guard

ADA, BOB = owner("ada"), owner("bob")
PATIENCE_S = 60
# Runs in another process. Says when it is ready, waits for a line, appends one memory at a time to an owner that all
# share and to one of its own, within a quota, and answers how many were accepted.
ELSEWHERE = """
import importlib, operator, sys
from wellkept.errors import QuotaExceeded
from wellkept.testing.builders import Writer, owner
from wellkept.types import Quota

module, name, url, tag, count, limit = sys.argv[1:]
store = operator.attrgetter(name)(importlib.import_module(module)).from_url(url)
seen = [one.facets["text"] for one in store.journal.scan({owner("ada")})]
print("ready", *seen, flush=True)
sys.stdin.readline()
writes, accepted = Writer(), 0
quota = Quota(owners=frozenset({owner("ada")}), limit_bytes=int(limit))
for number in range(int(count)):
    store.journal.append([writes.add(owner(tag), f"{tag} {number}")])
    try:
        store.journal.append([writes.add(owner("ada"), f"{tag} {number:03}", id=f"{tag} {number}")], quotas=[quota])
        accepted += 1
    except QuotaExceeded:
        pass
store.close()
print(accepted)
"""


class Process:
    """Another process that opened the same store."""

    def __init__(self, store: Store, url: str, tag: str, *, count: int, limit: int = 10**9) -> None:
        kind, pipe = type(store), subprocess.PIPE
        command = [
            sys.executable,
            "-c",
            ELSEWHERE,
            kind.__module__,
            kind.__qualname__,
            url,
            tag,
            str(count),
            str(limit),
        ]
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)  # noqa: S603  # our own script
        assert self._child.stdout is not None
        self.saw = self._child.stdout.readline().split()[1:]

    def go(self) -> None:
        """Let it write."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write("go\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return  # it could not open the store; what it said is in its error output

    def accepted(self) -> int:
        """How many writes to the shared owner were accepted, once it ended."""
        told, error = self._child.communicate(timeout=PATIENCE_S)
        assert self._child.returncode == 0, error
        return int(told)

    def end(self) -> None:
        """Wait until it ended, however."""
        self._child.communicate(timeout=PATIENCE_S)


@pytest.mark.req("H5")
class Capabilities(Subject):
    """``durable`` and ``shared``, each in both directions; ``erases`` stands in ``erasure``."""

    def test_durable_means_that_everything_is_there_again(self, store: Store, writes: Writer, place: Path) -> None:
        one = writes.add(ADA, "one", key="k", new_facet=[1], write={"payload": b"\x00\xff", "vector": vector(1, 0)})
        gone, two = writes.add(ADA, "gone"), writes.add(BOB, "two")
        put(store, one, gone, two)
        changed = writes.update(one, "changed", write={"reason": "why"})
        put(store, changed, writes.archive(changed), writes.erase(gone))
        store.journal.embed([Embedded(BOB, two.id, 1, vector(0, 1))])
        store.journal.embed([Embedded(BOB, two.id, 1, vector(5, embedder="other"))])
        store.journal.count_accesses([Access(ADA, one.id, 3, 77)])
        store.journal.set_settings({"kit": "was here"})
        before, feed = everything(store.journal, ADA, BOB), store.journal.feed(limit=1).next
        store.close()
        with closing(self.open_store(place)) as again:
            if not again.capabilities.durable:
                assert list(again.journal.owners()) == [], "it kept what was written: declare it durable"
                return
            assert everything(again.journal, ADA, BOB) == before
            assert again.journal.keyed(ADA, ["k"]) == {"k": one.id}
            assert len(list(again.journal.feed(after=feed))) == len(list(again.journal.feed())) - 1
            assert len(again.journal.unembedded("other", 9)) == 1
            again.journal.append([writes.add(ADA, "later")])
            assert again.journal.marks({ADA})[ADA].seq == 6
            check_usage(again.journal, [ADA, BOB])

    def test_openings_of_a_shared_store_see_each_other(self, store: Store, writes: Writer, place: Path) -> None:
        """An acknowledged write needs no closing; keys, versions, quotas and records are everybody's."""
        if not (store.capabilities.durable and store.capabilities.shared):
            pytest.skip("only a durable, shared store can be opened while it is open")
        one = writes.add(ADA, "one", key="k")
        store.journal.append([one])
        with closing(self.open_store(place)) as second:
            position = second.journal.position({ADA})
            changed = writes.update(one_of(second, ADA, one.id), "changed")
            second.journal.append([changed, writes.add(ADA, "two")])
            found = list(store.journal.versions({ADA}, after=position))
            assert [each.facets["text"] for each in found] == ["changed", "two"]
            second.journal.embed([Embedded(ADA, one.id, 2, vector(1, 0))])
            assert one_of(store, ADA, one.id, vectors=True).vector == vector(1, 0)
            assert store.journal.marks({ADA}) == second.journal.marks({ADA})
            second.records.put(Record(owner=ADA, kind="k", name="n", body=b"{}", version=1, updated_at=START))
            assert store.records.get(ADA, "k", "n") is not None
            store.journal.append([writes.add(ADA)], guards=[Guard(owner=ADA, kind="k", name="n", version=1)])
            second.journal.append([writes.erase(changed)])
            assert store.journal.keyed(ADA, ["k"]) == {}
            store.journal.append([writes.add(ADA, "three", key="k")])
            for opening in (store, second):
                check_usage(opening.journal, [ADA])
                assert list(opening.journal.scan({ADA})) == list(store.journal.scan({ADA}))

    def _elsewhere(self, store: Store, place: Path) -> str:
        url = self.url(place)
        if url is None:
            assert not store.capabilities.shared, "a shared store needs a url() to prove it"
            pytest.skip("no URL names this store, so no other process can open it")
        return url

    def test_shared_means_that_processes_see_each_other(self, store: Store, writes: Writer, place: Path) -> None:
        url = self._elsewhere(store, place)
        store.journal.append([writes.add(ADA, "here")])
        other = Process(store, url, "there", count=1)
        other.go()
        if store.capabilities.shared:
            assert other.accepted() == 1
            assert other.saw == ["here"], "another process does not see what this one wrote"
            assert len(store.journal.get({ADA}, ["there 0"])) == 1, "what another process wrote is not seen"
            return
        other.end()
        seen = store.journal.get({ADA}, ["there 0"])
        assert not (other.saw and seen), "processes see each other: declare it shared"

    @pytest.mark.req("L12")
    def test_processes_lose_nothing_and_overrun_no_quota(self, store: Store, writes: Writer, place: Path) -> None:
        url = self._elsewhere(store, place)
        if not store.capabilities.shared:
            pytest.skip("only one process may use this store")
        each = writes.add(ADA, "east 000").facets["bytes"]
        others = [Process(store, url, tag, count=20, limit=30 * each) for tag in ("east", "west")]
        for other in others:
            other.go()
        assert sum(other.accepted() for other in others) == 30
        found = list(store.journal.versions({ADA}))
        assert [one.seq for one in found] == list(range(1, 31))
        assert len({one.id for one in found}) == 30
        for tag in ("east", "west"):
            own = list(store.journal.versions({owner(tag)}))
            assert [one.facets["text"] for one in own] == [f"{tag} {number}" for number in range(20)]
        assert len(list(store.journal.feed())) == 70
        check_usage(store.journal, [ADA, owner("east"), owner("west")])
