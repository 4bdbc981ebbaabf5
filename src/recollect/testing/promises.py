"""Capabilities: what a store declares it keeps, and what it keeps it declares."""

import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from recollect.ports import Store
from recollect.testing.basics import full_memory, snapshot
from recollect.testing.builders import (
    by_words,
    erased,
    forgotten,
    later,
    memory,
    nearest,
    new_id,
    owner,
    probe,
    put,
    query,
    updated,
    vector,
)
from recollect.testing.subject import Subject
from recollect.text import words
from recollect.types import Vector

ADA = owner("ada")
PATIENCE_S = 60
# Runs in another process: reads one memory, adds another, and answers with what it read.
ELSEWHERE = """
import sys
from recollect.plugins import open_store
from recollect.testing.builders import memory, owner, put
url, wanted, new = sys.argv[1:]
store = open_store(url)
found = store.get({owner("ada")}, [wanted])
put(store, memory("written elsewhere", id=new))
store.close()
sys.stdout.write(found[wanted].content if wanted in found else "nothing")
"""


@pytest.mark.req("H5")
class Promises(Subject):
    """``durable``, ``shared`` and ``erases``, each in both directions."""

    def test_durable_means_that_everything_is_there_again(self, store: Store, place: Path) -> None:
        one, full = memory("one", key="k", vector=vector(1, 0)), full_memory()
        put(store, one, full)
        changed = updated(one, content="changed")
        store.apply([changed, forgotten(changed.memory)])
        gone = memory("gone")
        put(store, gone)
        store.apply([erased(gone)])
        store.set_settings({"kit": "was here"})
        before = snapshot(store, ADA, full.owner)
        store.close()
        with closing(self.open_store(place)) as again:
            if not again.capabilities.durable:
                assert again.sequence() == 0, "it kept what was written: declare it durable"
                assert list(again.scan({ADA, full.owner})) == []
                return
            assert snapshot(again, ADA, full.owner) == before
            assert again.keys(ADA, ["k"]) == {"k": one.id}
            everything = query(ADA, include_forgotten=True)
            assert len(nearest(again, everything, vector(1, 0), 5)) == 1
            last = again.sequence()
            assert put(again, memory("later"))[0] > last
            assert len(by_words(again, query(ADA), "later", 5)) == 1

    def test_a_durable_store_needs_no_closing(self, store: Store, place: Path) -> None:
        """An acknowledged write is kept even if nobody comes to close the store."""
        if not (store.capabilities.durable and store.capabilities.shared):
            pytest.skip("only a durable, shared store can be opened while it is open")
        one = memory("one")
        put(store, one)
        with closing(self.open_store(place)) as second:
            assert second.get({ADA}, [one.id]) == {one.id: one}
            put(second, two := memory("two"))
            assert store.get({ADA}, [two.id]) == {two.id: two}

    def test_shared_means_that_processes_see_each_other(self, store: Store, place: Path) -> None:
        url = self.url(place)
        if url is None:
            assert not store.capabilities.shared, "a shared store needs a url() to prove it"
            pytest.skip("no URL names this store, so no other process can open it")
        here, there = memory("written here"), new_id()
        put(store, here)
        other = subprocess.run(  # noqa: S603  # our own interpreter and our own script
            [sys.executable, "-c", ELSEWHERE, url, here.id, there],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        there_sees = other.stdout == "written here"
        here_sees = there in store.get({ADA}, [there])
        if store.capabilities.shared:
            assert other.returncode == 0, other.stderr
            assert there_sees, "another process does not see what this one wrote"
            assert here_sees, "this process does not see what another one wrote"
        else:
            assert not (there_sees and here_sees), "processes see each other: declare it shared"

    def test_erases_means_that_no_byte_remains(self, store: Store, place: Path) -> None:
        marks = [f"secret{number}mark" for number in range(9)]
        numbers, renewed = [0.123456, -7.654321, 3.14159, 2.71828], [0.654321, 5.4321, -1.61803, 1.41421]
        one = memory(
            f"{marks[0]} first content",
            title=marks[1],
            description=marks[2],
            tags=(marks[3],),
            metadata={"field": marks[4]},
            author=marks[5],
            key=marks[6],
            session=marks[8],
            vector=Vector.of("kit", numbers),
        )
        put(store, one)
        changed = updated(one, content=f"{marks[7]} second content")
        store.apply([changed])
        store.embed([later(store, changed.memory, Vector.of("other", renewed), digest=b"digest of a secret")])
        self._search(store, marks)
        kept = self.raw_bytes(place)
        if kept is None:
            pytest.skip("raw_bytes() gives no look at what is kept")
        for mark in marks:
            assert mark.encode() in kept, "raw_bytes() does not show what is kept"
        put(store, memory("another", vector=Vector.of("kit", [1, 0, 0, 0])))
        # How a store keeps what it derives is its own business; whatever of it can be found now must go as well.
        derived = {
            "the vector": Vector.of("kit", numbers).data,
            "the vector of another embedder": Vector.of("other", renewed).data,
            "the digest": b"digest of a secret",
            "the terms": words.pack(words.terms(f"{marks[7]} second content")),
            "the terms of the first version": words.pack(words.terms(f"{marks[0]} first content")),
        }
        secrets = {mark: mark.encode() for mark in marks}
        secrets |= {name: value for name, value in derived.items() if value in kept}
        store.apply([erased(changed.memory)])
        self._look(store, place, secrets)
        self._search(store, marks)
        self._look(store, place, secrets)
        store.close()
        if store.capabilities.durable:
            self._look(store, place, secrets)

    def _search(self, store: Store, marks: list[str]) -> None:
        """Ask for everything at once, so that whatever a search makes or keeps is made."""
        for wanted in (query(ADA), query(ADA, include_forgotten=True)):
            store.candidates(wanted, probe(" ".join(marks), Vector.of("kit", [1, 0, 0, 0])))

    def _look(self, store: Store, place: Path, secrets: Mapping[str, bytes]) -> None:
        kept = self.raw_bytes(place) or b""
        left = [name for name, value in secrets.items() if value in kept]
        if store.capabilities.erases:
            assert left == [], "bytes of what was erased remain"
        else:
            assert left != [], "nothing of what was erased remains: declare that it erases"
