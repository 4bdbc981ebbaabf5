"""Many threads at once: nothing lost, nothing twice, nothing half done."""

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from recollect.errors import Conflict
from recollect.ports import Store
from recollect.testing.builders import (
    added,
    erased,
    forgotten,
    ids_of,
    memory,
    owner,
    put,
    query,
    updated,
)
from recollect.testing.subject import Subject
from recollect.types import Memory, Version

ADA = owner("ada")
THREADS = 8
ROUNDS = 15

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


def attempt(write: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Whether a write won; losing is a ``Conflict`` and nothing else."""
    try:
        write(*args, **kwargs)
    except Conflict:
        return False
    return True


@pytest.mark.req("H5")
class Concurrency(Subject):
    """Threads that write, race and read."""

    def test_nothing_is_lost_and_nothing_is_twice(self, store: Store) -> None:
        batches = [[memory(f"thread {thread} number {number}") for number in range(20)] for thread in range(THREADS)]

        def add(batch: list[Memory]) -> list[int]:
            return [sequence for one in batch for sequence in put(store, one)]

        sequences = at_once([partial(add, batch) for batch in batches])
        assert all(own == sorted(own) for own in sequences)
        everything = sorted(sequence for own in sequences for sequence in own)
        assert len(set(everything)) == len(everything) == THREADS * 20
        journal = store.versions({ADA})
        assert [version.sequence for version in journal] == everything
        wanted = sorted(one.content for batch in batches for one in batch)
        assert sorted(stored.memory.content for stored in store.scan({ADA})) == wanted
        assert store.count(query(ADA)) == len(wanted)
        assert store.sequence() == everything[-1]

    @pytest.mark.req("H11")
    def test_one_of_many_wins_a_version(self, store: Store) -> None:
        one = memory("start")
        put(store, one)
        for turn in range(ROUNDS):
            current = store.get({ADA}, [one.id])[one.id]
            writes = [updated(current, content=f"{turn}, {number}") for number in range(THREADS)]
            won = at_once([partial(attempt, store.apply, [write]) for write in writes])
            assert won.count(True) == 1
            winner = writes[won.index(True)].memory
            assert store.get({ADA}, [one.id])[one.id] == winner
        assert [v.version for v in store.versions({ADA})] == list(range(1, ROUNDS + 2))

    @pytest.mark.req("H11")
    def test_different_changes_race_for_one_version(self, store: Store) -> None:
        for _ in range(ROUNDS):
            one = memory("start")
            put(store, one)
            writes = [updated(one, content="new"), forgotten(one), erased(one), added(one)]
            won = at_once([partial(attempt, store.apply, [write]) for write in writes])
            assert won.count(True) == 1
            assert store.versions({ADA}, memory_id=one.id)[-1].operation is writes[won.index(True)].operation

    def test_one_of_many_wins_a_key(self, store: Store) -> None:
        for turn in range(ROUNDS):
            key = f"key {turn}"
            rivals = [memory(f"{turn}, {number}", key=key) for number in range(THREADS)]
            # Each brings a companion: the losers' companions must not stay behind.
            batches = [[memory(f"with {one.content}"), one] for one in rivals]
            won = at_once([partial(attempt, put, store, *batch) for batch in batches])
            assert won.count(True) == 1
            assert store.keys(ADA, [key]) == {key: rivals[won.index(True)].id}
            assert store.count(query(ADA)) == 2 * (turn + 1)

    def test_readers_never_see_half_a_batch(self, store: Store) -> None:
        pair = [memory("0"), memory("0")]
        put(store, *pair)
        done = threading.Event()

        def write() -> set[tuple[str, ...]]:
            current = pair
            try:
                for turn in range(1, 60):
                    writes = [updated(one, content=str(turn)) for one in current]
                    store.apply(writes)
                    current = [write.memory for write in writes]
            finally:
                done.set()
            return set()

        def read(look: Callable[[], list[str]]) -> set[tuple[str, ...]]:
            seen = set()
            while not done.is_set():
                seen.add(tuple(look()))
            return seen

        looks: list[Callable[[], list[str]]] = [
            lambda: [one.content for one in store.get({ADA}, ids_of(pair)).values()],
            lambda: [stored.memory.content for stored in store.scan({ADA})],
            lambda: [stored.memory.content for stored in store.select(query(ADA))],
        ]
        readers = [partial(read, look) for look in looks]
        jobs: list[Callable[[], set[tuple[str, ...]]]] = [write, *readers]
        seen = {one for own in at_once(jobs) for one in own}
        assert [torn for torn in seen if len(torn) != 2 or torn[0] != torn[1]] == []

    def test_a_follower_of_the_change_feed_misses_nothing(self, store: Store) -> None:
        """A sequence never becomes visible after a higher one: else a follower would skip it."""
        writers = THREADS // 2
        left = threading.Semaphore(0)

        def write() -> list[Version]:
            try:
                for number in range(20):
                    put(store, memory(f"number {number}"), memory(f"number {number}, too"))
            finally:
                left.release()
            return []

        def follow() -> list[Version]:
            seen: list[Version] = []
            finished = 0
            while True:
                finished += left.acquire(blocking=False)
                last = seen[-1].sequence if seen else 0
                news = store.versions({ADA}, after=last, limit=7)
                assert all(version.sequence > last for version in news)
                seen += news
                if finished == writers and not news:
                    return seen

        *_, seen = at_once([*[write] * writers, follow])
        assert seen == store.versions({ADA})
        assert len(seen) == writers * 40

    def test_accesses_from_many_threads_are_all_counted(self, store: Store, place: Path) -> None:
        one = memory()
        put(store, one)

        def touch() -> None:
            for _ in range(20):
                store.touch([one.id], one.created_at)

        at_once([touch] * THREADS)
        with self.settled(store, place) as settled:
            assert settled.get({ADA}, [one.id])[one.id].access_count == 20 * THREADS
            assert len(settled.versions({ADA})) == 1
