"""Threads that write, race and read."""

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import pytest

from wellkept.errors import Conflict
from wellkept.ports import Store
from wellkept.testing.builders import Writer, ids_of, one_of, owner, query, where
from wellkept.testing.subject import Subject
from wellkept.types import Access, JournalPage, Owner, Position, Stored, Write

ADA = owner("ada")
THREADS = 8
ROUNDS = 12

P = ParamSpec("P")
T = TypeVar("T")


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run jobs in threads that start together; the first error of any is raised here."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        start.wait(timeout=60)
        return job()

    # Switch threads as often as the interpreter can: a missing lock shows soon or never.
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(jobs)) as pool:
            futures = [pool.submit(run, job) for job in jobs]
            return [future.result(timeout=120) for future in futures]
    finally:
        sys.setswitchinterval(usual)


def won(write: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Whether a write was accepted; losing is a ``Conflict`` and nothing else."""
    try:
        write(*args, **kwargs)
    except Conflict:
        return False
    return True


@pytest.mark.req("H5")
class Concurrency(Subject):
    """Many threads on one store."""

    @pytest.mark.parametrize("owners", [1, THREADS])
    def test_nothing_is_lost_and_nothing_is_twice(self, store: Store, writes: Writer, owners: int) -> None:
        everybody = [owner(f"user {number}") for number in range(owners)]
        batches = [[writes.add(everybody[thread % owners]) for _ in range(20)] for thread in range(THREADS)]

        def append(batch: list[Write]) -> None:
            for one in batch:
                store.journal.append([one])

        at_once([partial(append, batch) for batch in batches])
        for one in everybody:
            found = list(store.journal.versions({one}))
            assert [each.seq for each in found] == list(range(1, THREADS * 20 // owners + 1))
            assert {each.id for each in found} == {w.id for batch in batches for w in batch if w.owner == one}
        assert sorted(ids_of(store.journal.feed())) == sorted(one.id for batch in batches for one in batch)
        assert store.journal.count(frozenset(everybody), where()) == THREADS * 20

    @pytest.mark.req("H11")
    def test_one_of_many_wins_a_version(self, store: Store, writes: Writer) -> None:
        last = writes.add(ADA)
        store.journal.append([last])
        for turn in range(ROUNDS):
            rivals = [writes.update(last, f"{turn}, {number}") for number in range(THREADS - 2)]
            rivals += [writes.forget(last), writes.archive(last)]
            results = at_once([partial(won, store.journal.append, [rival]) for rival in rivals])
            assert results.count(True) == 1
            last = rivals[results.index(True)]
            assert one_of(store, ADA, last.id).stamp == last.stamp
        assert [one.version for one in store.journal.history(ADA, last.id)] == list(range(1, ROUNDS + 2))

    def test_one_of_many_wins_a_key(self, store: Store, writes: Writer) -> None:
        for turn in range(ROUNDS):
            # Each brings a second memory: those of the losers must not stay behind.
            batches = [[writes.add(ADA), writes.add(ADA, key=f"key {turn}")] for _ in range(THREADS)]
            results = at_once([partial(won, store.journal.append, batch) for batch in batches])
            assert results.count(True) == 1
            winner = batches[results.index(True)][1]
            assert store.journal.keyed(ADA, [f"key {turn}"]) == {f"key {turn}": winner.id}
            assert store.journal.count({ADA}, where()) == 2 * (turn + 1)

    def test_a_retry_beside_its_own_first_attempt_writes_once(self, store: Store, writes: Writer) -> None:
        for turn in range(ROUNDS):
            one = writes.add(ADA, f"turn {turn}")
            at_once([partial(store.journal.append, [one])] * 3)
            assert store.journal.marks({ADA})[ADA].seq == turn + 1

    def test_readers_never_see_half_a_batch(self, store: Store, writes: Writer) -> None:
        pair = [writes.add(ADA, "0"), writes.add(ADA, "0")]
        store.journal.append(pair)
        done = threading.Event()

        def write() -> set[tuple[str, ...]]:
            current = pair
            try:
                for turn in range(1, 40):
                    current = [writes.update(one, str(turn)) for one in current]
                    store.journal.append(current)
            finally:
                done.set()
            return set()

        def read(look: Callable[[], Sequence[Stored]]) -> set[tuple[str, ...]]:
            seen = set()
            while not done.is_set():
                seen.add(tuple(one.facets["text"] for one in look()))
            return seen

        looks: list[Callable[[], Sequence[Stored]]] = [
            lambda: store.journal.get({ADA}, ids_of(pair)),
            lambda: list(store.journal.scan({ADA})),
            lambda: store.journal.select(query(ADA)),
            lambda: list(store.journal.versions({ADA}))[-2:],
        ]
        jobs: list[Callable[[], set[tuple[str, ...]]]] = [write, *(partial(read, look) for look in looks)]
        seen = {one for own in at_once(jobs) for one in own}
        assert [torn for torn in seen if len(torn) != 2 or torn[0] != torn[1]] == []

    def test_followers_miss_nothing_and_see_prefixes_only(self, store: Store, writes: Writer) -> None:
        """A sequence never becomes visible after a higher one: else a follower would skip it."""
        everybody = frozenset({ADA, owner("bob")})
        finished: list[Owner] = []

        def write(whose: Owner) -> list[Stored]:
            try:
                for _ in range(20):
                    store.journal.append([writes.add(whose), writes.add(whose)])
            finally:
                finished.append(whose)
            return []

        def follow(read: Callable[[Position | None], JournalPage[Stored]]) -> list[Stored]:
            seen: list[Stored] = []
            position: Position | None = None
            while True:
                all_written = len(finished) == 4
                page = read(position)
                seen, position = [*seen, *page], page.next
                assert len(seen) <= 160, "a page brings back what another one had"
                if all_written and not page.items:
                    return seen

        def prefixes() -> list[Stored]:
            while len(finished) < 4:
                there = sorted(one.seq for one in store.journal.scan({ADA}))
                assert there == list(range(1, len(there) + 1))
                assert len(there) % 2 == 0
            return []

        followers: list[Callable[[Position | None], JournalPage[Stored]]] = [
            lambda after: store.journal.feed(after=after, limit=7),
            lambda after: store.journal.versions(everybody, after=after, limit=7),
        ]
        writers = [partial(write, one) for one in [*everybody] * 2]
        jobs: list[Callable[[], list[Stored]]] = [*writers, *(partial(follow, one) for one in followers), prefixes]
        for seen in at_once(jobs)[4:6]:
            for one in everybody:
                assert [each.seq for each in seen if each.owner == one] == list(range(1, 81))

    def test_accesses_from_many_threads_are_all_counted(self, store: Store, writes: Writer) -> None:
        one = writes.add(ADA)
        store.journal.append([one])

        def count() -> None:
            for _ in range(10):
                store.journal.count_accesses([Access(ADA, one.id, 2, 5)])

        at_once([count] * THREADS)
        assert one_of(store, ADA, one.id).access_count == 20 * THREADS
