"""The index in RAM: in step with the journal, stored as images that are never trusted blindly, a lock per owner."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest

from wellkept import codec
from wellkept.engine import index_following
from wellkept.filters import Where
from wellkept.indexes.ram import IDLE_S, RamIndex
from wellkept.ports import Images
from wellkept.recall import image, quantized
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START, Writer, owner, vector
from wellkept.testing.cases import Cases
from wellkept.text import words
from wellkept.types import Embedded, Mark, Owner, Stored, Vector, Write

ADA, BOB = owner("ada"), owner("bob")
NOW = Where(now=START)
ROWS = 8
"""How many memories an index needs for an image, in these tests."""

PATIENCE_S = 60
WEIGHTS = {words.term("number"): 0.25, words.term("dark"): 0.75}


class KeptImages(Images):
    """Images as a store keeps them: only if the owner is still at the mark, and not behind an erasure."""

    def __init__(self, store: RamStore) -> None:
        self._store = store
        self.kept: dict[Owner, tuple[Mark, dict[str, bytes]]] = {}

    def read(self, owner: Owner) -> tuple[Mark, Mapping[str, bytes]] | None:
        return self.kept.get(owner)

    def write(self, owner: Owner, mark: Mark, parts: Mapping[str, bytes | memoryview]) -> bool:
        if self._store.journal.marks({owner}).get(owner) != mark:
            return False
        self.kept[owner] = mark, {name: bytes(data) for name, data in parts.items()}
        return True

    def raw(self, owner: Owner) -> bytes:
        """All bytes of an image."""
        return b"".join(self.kept[owner][1].values())


class Counted(RamIndex):
    """Counts how often owners were loaded."""

    def __init__(self, images: Images | None = None, **options: Any) -> None:
        super().__init__(images, **({"image_rows": ROWS} | options))
        self.loads: list[Owner] = []

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        self.loads.append(owner)
        super().load(owner, stored, dimension, upto)


class Bench:
    """A store with some memories, and searches of it through any index."""

    def __init__(self) -> None:
        self.store, self.writer = RamStore(), Writer()
        self.images = KeptImages(self.store)

    def put(self, *writes: Write) -> None:
        self.store.journal.append(writes)

    def fill(self, count: int = ROWS, whose: Owner = ADA, start: int = 0) -> list[Write]:
        """So many memories, with words, authors, sessions and vectors."""
        writes = [
            self.writer.add(
                whose,
                f"number {n} dark",
                id=f"{n}",
                author=f"author{n}",
                session=f"s{n // 3}",
                write={"vector": vector(1, n)},
            )
            for n in range(start, start + count)
        ]
        self.put(*writes)
        return writes

    def search(self, index: RamIndex, *owners: Owner) -> dict[str, Any]:
        """Everything that the index says of some owners, brought up to date."""
        whose = frozenset(owners or (ADA,))
        index_following.fresh(self.store.journal, index, self.store.journal.marks(whose))
        near = index.nearest(whose, NOW, vector(1, 2), 99, exact=True)
        said = index.worded(whose, NOW, WEIGHTS, 3.0, 99)
        found = index.candidates(near.found, said, beside=said)
        links = {
            found.key(row): [
                found.ids[other] if other >= 0 else None for other in (found.before[row], found.after[row])
            ]
            for row in range(found.count)
        }
        return {
            "near": {(one.owner, one.id): round(one.score, 5) for one in near.found},
            "said": {(one.owner, one.id): round(one.score, 5) for one in said},
            "corpus": index.corpus(whose, list(WEIGHTS)),
            "links": links,
        }

    def check(self, index: RamIndex, *owners: Owner) -> dict[str, Any]:
        """The same, and a new index must say so as well."""
        found = self.search(index, *owners)
        assert self.search(RamIndex(), *owners) == found
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- following ------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Writer, Write], list[Write]]] = {
    "update": lambda w, one: [w.update(one, "dark number, changed", author="carol", session="s0")],
    "vector": lambda w, one: [w.update(one, write={"keeps_vector": False, "vector": vector(-1, 0.5)})],
    "no vector": lambda w, one: [w.update(one, write={"keeps_vector": False, "vector": None})],
    "forget": lambda w, one: [w.forget(one)],
    "archive": lambda w, one: [w.archive(one)],
    "restore": lambda w, one: [gone := w.forget(one), w.restore(gone)],
    "erase": lambda w, one: [w.erase(one)],
    "expire": lambda w, one: [w.update(one, expires_at=1)],
}


def test_what_is_written_is_seen_by_the_next_search() -> None:
    with Cases() as cases:
        for (name, change), at_once in product(CHANGES.items(), (False, True)):
            with cases.case(name, at_once):
                bench, index = Bench(), Counted()
                writes = bench.fill()
                before = bench.check(index)
                for write in change(bench.writer, writes[3]):
                    bench.put(write)
                    if not at_once:
                        bench.check(index)
                bench.put(bench.writer.add(ADA, "number of the writer"))
                assert bench.check(index) != before
                assert index.loads == [ADA]


def test_vectors_that_come_later_and_another_embedder_are_seen(bench: Bench) -> None:
    writes = [bench.writer.add(ADA, f"number {n}", id=str(n)) for n in range(ROWS)]
    bench.put(*writes)
    index, journal = RamIndex(), bench.store.journal
    assert bench.search(index)["near"] == {}
    journal.embed([Embedded(ADA, "2", 1, vector(1, 2))])
    assert set(bench.check(index)["near"]) == {(ADA, "2")}
    journal.embed([Embedded(ADA, str(n), 1, Vector.of("other", [1, 0, n])) for n in range(ROWS)])
    assert set(bench.check(index)["near"]) == {(ADA, "2")}
    assert journal.adopt("other", 3)
    index_following.fresh(journal, index, journal.marks({ADA}))
    found = index.nearest({ADA}, NOW, Vector.of("other", [0, 0, 1]), 2, exact=True).found
    assert [one.id for one in found] == ["7", "6"]


def test_an_index_that_was_left_far_behind_is_loaded_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Counted()
    bench.fill()
    bench.check(index)
    monkeypatch.setattr(index_following, "_TAIL", 3)
    bench.fill(3, start=ROWS)
    bench.check(index)
    assert index.loads == [ADA]
    bench.fill(4, start=2 * ROWS)
    bench.check(index)
    assert index.loads == [ADA, ADA]


def test_an_index_of_another_journal_is_loaded_anew(bench: Bench) -> None:
    """The store was replaced by a copy that is behind."""
    index = Counted()
    bench.fill(3)
    bench.check(index)
    other = Bench()
    other.fill(2)
    other.check(index)
    assert index.loads == [ADA, ADA]


def test_an_answer_is_passed_on_even_if_the_index_changed_meanwhile(bench: Bench) -> None:
    index = RamIndex()
    writes = bench.fill(4)
    bench.search(index)
    near = index.nearest({ADA}, NOW, vector(1, 2), 99)
    bench.put(bench.writer.erase(writes[0]), bench.writer.update(writes[1], "something else"))
    index_following.fresh(bench.store.journal, index, bench.store.journal.marks({ADA}))
    assert sorted(index.candidates(near.found).ids) == ["1", "2", "3"]
    index.drop([ADA])
    assert index.followed(ADA) is None
    assert len(index.candidates(near.found)) == 0


# --- images ---------------------------------------------------------------------------------------


def test_an_image_is_written_once_an_index_is_large_enough(bench: Bench) -> None:
    index = Counted(bench.images)
    bench.fill(ROWS - 1)
    bench.check(index)
    assert bench.images.kept == {}
    bench.fill(1, start=ROWS)
    bench.check(index)
    assert bench.images.kept[ADA][0] == bench.store.journal.marks({ADA})[ADA]


def test_an_image_is_renewed_when_an_eighth_is_new(bench: Bench) -> None:
    index = Counted(bench.images)
    bench.fill(4 * ROWS)
    bench.check(index)
    made = bench.images.kept[ADA]
    bench.fill(1, start=100)
    bench.check(index)
    assert bench.images.kept[ADA] is made
    bench.fill(ROWS, start=200)
    bench.check(index)
    assert bench.images.kept[ADA][0] == bench.store.journal.marks({ADA})[ADA]


def test_another_index_takes_the_image_and_follows_from_there(bench: Bench) -> None:
    writes = bench.fill(4 * ROWS)
    bench.fill(whose=BOB)
    bench.check(Counted(bench.images), ADA, BOB)
    made = dict(bench.images.kept)
    bench.put(bench.writer.forget(writes[1]), bench.writer.update(writes[2], "number two, changed"))
    second = Counted(bench.images)
    bench.check(second, ADA, BOB)
    assert second.loads == []
    assert bench.images.kept == made


DAMAGES: dict[str, Callable[[dict[str, bytes]], dict[str, bytes]]] = {
    "no header": lambda parts: {name: data for name, data in parts.items() if name != "header"},
    "a header that is no JSON": lambda parts: parts | {"header": b"\x00\xff{"},
    "a header that says nothing": lambda parts: parts | {"header": b"{}"},
    "another format": lambda parts: parts | {"header": _changed(parts["header"], format=image.FORMAT - 1)},
    "another dimension": lambda parts: parts | {"header": _changed(parts["header"], dimension=1)},
    "a part is missing": lambda parts: {name: data for name, data in parts.items() if name != "terms"},
    "a part is cut off": lambda parts: parts | {"rows": parts["rows"][:-3]},
    "a part is empty": lambda parts: parts | {"born": b""},
    "a part says something else": lambda parts: parts | {"rows": bytes(len(parts["rows"]))},
    "a part is too long": lambda parts: parts | {"marks": 2 * parts["marks"]},
    "the ids are those of others": lambda parts: parts | {"ids": parts["ids"][::-1]},
}


def _changed(header: bytes, **fields: object) -> bytes:
    return codec.encode_json(codec.decode_json(header) | fields)


def test_a_damaged_image_is_not_used(bench: Bench) -> None:
    """It is only a copy: the search works without it, and replaces it."""
    bench.fill()
    before = bench.check(Counted(bench.images))
    mark, sound = bench.images.kept[ADA]
    with Cases() as cases:
        for name, damage in DAMAGES.items():
            with cases.case(name):
                bench.images.kept[ADA] = mark, damage(sound)
                second = Counted(bench.images)
                assert bench.check(second) == before
                assert second.loads == [ADA]
                assert bench.images.kept[ADA] == (mark, sound)


@pytest.mark.parametrize("mark", [Mark(10_000, 0), Mark(ROWS, 7)])
def test_an_image_of_another_state_is_not_used(bench: Bench, mark: Mark) -> None:
    bench.fill()
    bench.check(Counted(bench.images))
    bench.images.kept[ADA] = mark, bench.images.kept[ADA][1]
    second = Counted(bench.images)
    bench.check(second)
    assert second.loads == [ADA]


@pytest.mark.req("L7")
def test_an_image_that_is_made_after_an_erasure_has_no_byte_of_what_was_erased(bench: Bench) -> None:
    secret = bench.writer.add(
        ADA,
        "zeppelin hangar zanzibar",
        id="secretid",
        author="secretauthor",
        write={"vector": vector(0.123456, 7.654321)},
    )
    bench.fill()
    bench.put(secret)
    index = Counted(bench.images)
    bench.check(index)
    assert secret.vector is not None
    codes = quantized.encode(quantized.direction(secret.vector.data)[None, :]).tobytes()
    marks = {
        "terms": words.pack(words.terms("zeppelin hangar zanzibar")),
        "author": b"secretauthor",
        "id": b"secretid",
    }
    assert all(mark in bench.images.raw(ADA) for mark in marks.values())
    assert secret.vector.data in bench.images.raw(ADA) or codes in bench.images.raw(ADA)
    del bench.images.kept[ADA]  # as a store does when it erases
    bench.put(bench.writer.erase(secret))
    bench.fill(ROWS, start=50)
    bench.check(index)
    assert [name for name, mark in marks.items() if mark in bench.images.raw(ADA)] == []
    assert secret.vector.data not in bench.images.raw(ADA)


@pytest.mark.req("L7")
def test_no_image_is_kept_of_a_state_that_the_journal_left(bench: Bench) -> None:
    """Between a search and the writing of its image, another process may erase what is in it."""
    writes = bench.fill()
    index = Counted(bench.images)
    mark = bench.store.journal.marks({ADA})[ADA]
    stored = list(bench.store.journal.scan({ADA}, vectors=True))
    bench.put(bench.writer.erase(writes[0]))
    index.load(ADA, stored, 2, mark)
    assert bench.images.kept == {}


# --- many owners, threads, processes ----------------------------------------------------------------


def test_owners_not_used_for_longest_are_dropped_when_there_are_too_many_rows(bench: Bench) -> None:
    now = 0.0
    index = Counted(rows=2 * ROWS, clock=lambda: now)
    owners = [owner(f"user{n}") for n in range(4)]
    for whose in owners:
        bench.fill(whose=whose)
        bench.search(index, whose)
        now += 2 * IDLE_S
    assert [index.followed(whose) is None for whose in owners] == [True, True, False, False]
    now += 2 * IDLE_S
    bench.check(index, owners[2])
    now += 2 * IDLE_S
    bench.check(index, owners[0])
    assert [index.followed(whose) is None for whose in owners[1:]] == [True, False, True]


def test_what_was_used_just_now_is_not_dropped(bench: Bench) -> None:
    """A search of many owners needs them all at once."""
    index = Counted(rows=ROWS, clock=lambda: 0.0)
    owners = [owner(f"user{n}") for n in range(4)]
    for whose in owners:
        bench.fill(whose=whose)
    bench.check(index, *owners)
    assert len(index.loads) == 4


class Halting(Iterable[Stored]):
    """Memories that come only once somebody lets them."""

    def __init__(self, stored: Sequence[Stored]) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self._stored = stored

    def __iter__(self) -> Iterator[Stored]:
        self.begun.set()
        assert self.go.wait(PATIENCE_S)
        return iter(self._stored)


def test_loading_one_owner_keeps_nobody_from_searching(bench: Bench) -> None:
    """Neither another owner, nor the same one as it was before."""
    index = RamIndex()
    bench.fill()
    bench.fill(whose=BOB)
    before = bench.search(index, ADA), bench.search(index, BOB)
    halting = Halting(list(bench.store.journal.scan({BOB}, vectors=True))[:3])
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(index.load, BOB, halting, 2, Mark(ROWS))
        assert halting.begun.wait(PATIENCE_S)
        assert pool.submit(bench.search, index, ADA).result(PATIENCE_S) == before[0]
        assert pool.submit(bench.search, index, BOB).result(PATIENCE_S) == before[1]
        halting.go.set()
        loading.result(PATIENCE_S)
    assert index.corpus({BOB}, []).memories == 3


def test_many_searches_at_once_load_an_owner_once(bench: Bench) -> None:
    bench.fill(200)
    index = Counted()
    ready = threading.Barrier(8)

    def search() -> dict[str, Any]:
        ready.wait(PATIENCE_S)
        return bench.search(index)

    with ThreadPoolExecutor(8) as pool:
        found = [one.result(PATIENCE_S) for one in [pool.submit(search) for _ in range(8)]]
    assert index.loads == [ADA]
    assert all(one == found[0] for one in found)


def test_searches_and_writes_at_once_end_in_the_same_index(bench: Bench) -> None:
    bench.fill(40)
    index = Counted()
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(bench.search, index) for _ in range(30)]
        for n in range(30):
            bench.fill(1, start=100 + n)
        for one in searches:
            one.result(PATIENCE_S)
    bench.check(index)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_searches_although_a_lock_was_held(bench: Bench) -> None:
    bench.fill()
    index = RamIndex()
    before = bench.search(index)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with index._lock, index._held[ADA].lock:
            holding.set()
            done.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(PATIENCE_S)
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)
        os._exit(0 if bench.search(index) == before else 1)
    done.set()
    thread.join(PATIENCE_S)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_best_of_several_owners_come_first(bench: Bench) -> None:
    index = RamIndex()
    bench.fill(20)
    bench.fill(20, whose=BOB)
    everything = bench.search(index, ADA, BOB)["near"]
    found = index.nearest({ADA, BOB}, NOW, vector(1, 2), 7, exact=True).found
    scores = [one.score for one in found]
    assert len(found) == 7
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx(sorted(everything.values(), reverse=True)[:7], abs=1e-3)
    assert [found[0], *found[1:]] == list(found)
    assert np.isclose(found[-1].score, scores[-1])
