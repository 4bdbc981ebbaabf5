"""Working memory under threads: one factory for a key, no waiting in a circle, and counts that add up."""

import gc
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from tests.support.working_memory import counted, waiting_threads
from wellkept.errors import InvalidInput, ScopeDisposed
from wellkept.working import Limits, WorkingMemory, WorkingScope

THREADS = 12
PATIENCE_S = 30


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    return WorkingMemory("debugger", clock=clock)


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Start all threads at one moment; what each returned, or the error it raised."""
    start = threading.Barrier(threads)

    def run(number: int) -> Any:
        start.wait(PATIENCE_S)
        try:
            return work(number)
        except Exception as error:  # noqa: BLE001  # reason: what it raised is what the test looks at
            return error

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads), timeout=PATIENCE_S))


@pytest.mark.slow
@pytest.mark.req("W2", "W7")
def test_one_factory_runs_whatever_the_number_of_threads(working: WorkingMemory) -> None:
    made: list[tuple[int, int]] = []
    scope = working.create_scope("task")
    for level in (working, scope):
        for key in range(50):

            def take(number: int, level: Any = level, key: int = key) -> Any:
                def factory() -> tuple[int, int]:
                    made.append((key, number))
                    return made[-1]

                return level.get_or_set(f"k{key}", factory)

            assert {tuple(found) for found in together(take)} == {made[key]}
    assert len(made) == 50  # the scope found what is below it
    entry = working.entry("k0")
    assert entry is not None
    assert entry.access_count == 2 * THREADS - 1


@pytest.mark.req("W2", "W7")
def test_all_others_wait_for_the_factory_that_runs(working: WorkingMemory) -> None:
    made: list[int] = []

    def factory() -> int:
        made.append(1)
        while waiting_threads() < THREADS - 1:
            working.set("other", "not blocked")
        return len(made)

    assert together(lambda _: working.get_or_set("key", factory)) == [1] * THREADS
    assert made == [1]
    assert working.remove("key")
    assert working.get_or_set("key", lambda: "anew") == "anew", "nothing is left of what is done"


@pytest.mark.req("W2", "W7")
def test_those_who_wait_for_a_factory_that_fails_run_their_own(working: WorkingMemory) -> None:
    attempts: list[int] = []

    def factory() -> int:
        attempts.append(1)
        if len(attempts) < 4:
            raise LookupError
        return len(attempts)

    found = together(lambda _: working.get_or_set("key", factory))
    assert sum(isinstance(one, LookupError) for one in found) == 3
    assert [one for one in found if not isinstance(one, LookupError)] == [4] * (THREADS - 3)


@pytest.mark.req("W2", "W7")
def test_a_running_factory_blocks_no_other_key(working: WorkingMemory) -> None:
    running, go = threading.Event(), threading.Event()

    def slow() -> int:
        running.set()
        assert go.wait(PATIENCE_S)
        return 1

    with ThreadPoolExecutor(2) as pool:
        slowly = pool.submit(working.get_or_set, "slow", slow)
        assert running.wait(PATIENCE_S)
        scope = working.create_scope("task")
        assert scope.get_or_set("slow", lambda: "local") == "local"  # another level is another key
        assert working.get_or_set("other", lambda: 2) == 2
        working.set("third", 3)
        assert (working.get("slow"), working.keys(), working.stats().entries) == (None, ("other", "third"), 3)
        assert working.snapshot().entries[0].key == "other"
        go.set()
        assert slowly.result(PATIENCE_S) == 1


@pytest.mark.req("W7")
def test_factories_that_need_each_other_do_not_wait_forever(working: WorkingMemory) -> None:
    both = threading.Barrier(2)

    def cross(number: int) -> Any:
        mine, other = ("a", "b") if number else ("b", "a")

        def factory() -> Any:
            both.wait(PATIENCE_S)
            return [working.get_or_set(other, lambda: "alone")]

        return working.get_or_set(mine, factory)

    found = together(cross, threads=2)
    assert sum(isinstance(one, InvalidInput) for one in found) == 1
    assert [one for one in found if not isinstance(one, InvalidInput)] == [["alone"]]
    assert len(working) == 2


@pytest.mark.req("W7")
def test_no_access_and_no_entry_is_lost(clock: HandClock) -> None:
    working = WorkingMemory("a", clock=clock, limits=Limits(entries=THREADS * 40))
    working.set("shared", 0)

    def work(number: int) -> None:
        for turn in range(100):
            working.get("shared")
            working.set(f"{number}/{turn % 40}", [number, turn])

    full = [one for one in together(work) if one is not None]
    entry = working.entry("shared")
    assert entry is not None
    assert len(working) == working.stats().entries == counted(working) == THREADS * 40
    assert len(full) == 1  # of all threads, the one that came last found no room for its last key
    for number in range(THREADS):
        for turn in range(39):
            assert working.get(f"{number}/{turn}")[0] == number


@pytest.mark.req("W3", "W7")
def test_each_thread_finds_its_own_in_a_shared_tree(working: WorkingMemory) -> None:
    outer = working.create_scope("outer")
    levels: list[Any] = [working, outer, outer.create_scope("inner")]

    def work(number: int) -> tuple[list[dict[str, int]], int]:
        dice, model = random.Random(number), [dict[str, int]() for _ in levels]
        for turn in range(300):
            place, key = dice.randrange(3), f"{number}/{dice.randrange(5)}"
            if dice.random() < 0.3:
                assert levels[place].remove(key) is (model[place].pop(key, None) is not None)
            else:
                levels[place].set(key, turn)
                model[place][key] = turn
            for depth in range(3):
                expected = next((model[one][key] for one in range(depth, -1, -1) if key in model[one]), None)
                assert levels[depth].get(key) == expected
        return model, sum(map(len, model))

    found = together(work)
    assert all(isinstance(one, tuple) for one in found), found
    assert working.stats().entries == counted(working) == sum(count for _, count in found)
    for place, level in enumerate(levels):
        own = level.local_entries() if isinstance(level, WorkingScope) else level.all()
        assert {key: entry.value for key, entry in own.items()} == {
            key: value for model, _ in found for key, value in model[place].items()
        }


@pytest.mark.req("W3", "W7")
def test_scopes_that_come_and_go_leave_nothing_behind(working: WorkingMemory) -> None:
    shared = working.create_scope("shared")

    def work(number: int) -> int:
        refused = 0
        for turn in range(60):
            try:
                with shared.create_scope("child") as child:
                    child.set("a", turn)
                    with child.create_scope("grandchild") as grandchild:
                        grandchild.set(f"{number}", turn)
                        grandchild.merge_to_parent(overwrite=bool(turn % 2))
                        assert child.get(f"{number}") == turn
                    working.snapshot()
            except ScopeDisposed:
                refused += 1
            if number == 0 and turn == 30:
                shared.dispose()
        return refused

    found = together(work)
    assert all(isinstance(one, int) for one in found), found
    assert found[0] >= 29
    assert (working.active_scopes(), working.stats().entries, counted(working)) == ((), 0, 0)


@pytest.mark.req("W3", "W7")
def test_merging_and_restoring_are_seen_as_one_step(working: WorkingMemory) -> None:
    scope = working.create_scope("task")
    scope.set("key", 0)
    snapshot = working.snapshot()
    done = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            for turn in range(400):
                scope.merge_to_parent()
                scope.set("key", turn)
                working.restore(snapshot)
            done.set()
            return 0
        missing = 0
        while not done.is_set():
            missing += scope.get("key") is None
            missing += len(scope.all()) != 1
        return missing

    assert together(work, threads=4) == [0, 0, 0, 0]


@pytest.fixture
def restless() -> Iterator[None]:
    """The interpreter goes from thread to thread as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.req("W4", "W7")
@pytest.mark.usefixtures("restless")
def test_no_access_is_lost_while_the_key_is_set_anew(working: WorkingMemory) -> None:
    scope, turns = working.create_scope("task"), 500
    working.set("key", 0)

    def work(number: int) -> None:
        for turn in range(turns):
            if number == 0:
                working.set("key", turn)
            else:
                (working if number % 2 else scope).get("key")

    assert together(work, threads=5) == [None] * 5
    entry = working.entry("key")
    assert entry is not None
    assert entry.access_count == 4 * turns


@pytest.mark.req("W4", "W7")
def test_an_access_counts_for_the_key_even_if_its_value_is_replaced_meanwhile(clock: HandClock) -> None:
    def replacing() -> datetime:
        """Asked by the read, after it has found the value and before it has counted."""
        if replacements:
            working.set("key", replacements.pop())
        return clock()

    replacements: list[int] = []
    working = WorkingMemory("a", clock=replacing)
    working.set("key", 1)
    replacements.append(2)
    assert (working.get("key"), working.get("key")) == (1, 2)
    entry = working.entry("key")
    assert entry is not None
    assert entry.access_count == 2


@pytest.mark.slow
@pytest.mark.req("W3", "W7")
@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("how", ["merging", "restoring"])
def test_who_has_seen_a_part_of_a_change_sees_the_rest(working: WorkingMemory, how: str) -> None:
    keys, turns, scope, done = [f"k{number}" for number in range(30)], 400, working.create_scope("task"), []
    snapshots = []
    for turn in range(turns):
        for key in keys:
            working.set(key, turn)
            scope.set(key, turn)
        snapshots.append(working.snapshot())
    working.restore(snapshots[0])

    def change(turn: int) -> None:
        if how == "restoring":
            working.restore(snapshots[turn])
        else:
            for key in keys:
                scope.set(key, turn)
            scope.merge_to_parent()

    def work(number: int) -> int:
        if number == 0:
            for turn in range(turns):
                change(turn)
            done.append(True)
            return 0
        torn = 0
        while not done:
            for first, second in ((keys[0], keys[-1]), (keys[-1], keys[0])):
                seen = working.get(first)
                torn += (working if number == 1 else scope).get(second) < seen
        return torn

    assert together(work, threads=3) == [0, 0, 0]


@pytest.mark.req("W7")
def test_only_one_thread_ends_a_scope(working: WorkingMemory) -> None:
    for _ in range(50):
        scope = working.create_scope("task")
        scope.set("a", 1)

        def end(_: int, scope: WorkingScope = scope) -> int:
            return scope.dispose()

        assert sorted(together(end, threads=4)) == [0, 0, 0, 1]


@pytest.mark.slow
@pytest.mark.req("W7")
def test_a_finaliser_may_dispose_its_scope_while_the_lock_is_held(clock: HandClock) -> None:
    def collecting(count: int) -> bytes:
        """Random bytes are drawn with the lock held; the collector may run at any such moment."""
        collected.append(len(working.active_scopes()))
        gc.collect()
        return os.urandom(count)

    collected: list[int] = []
    working = WorkingMemory("a", clock=clock, entropy=collecting, limits=Limits(entries=70))

    class Task:
        def __init__(self) -> None:
            self.scope = working.create_scope("task")
            self.itself = self  # a cycle: freed by the collector, in the middle of whatever runs

        def __del__(self) -> None:
            self.scope.dispose()

    def work() -> None:
        for number in range(60):
            task = Task()
            task.scope.set("key", number)
            del task
            working.set(f"k{number}", number)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert max(collected) > 1, "it ran while there were scopes to dispose"
    gc.collect()
    assert (working.active_scopes(), working.stats().entries, counted(working)) == ((), 60, 60)
