"""get_or_set from tasks: one factory for tasks and threads together, no loop blocked, nobody waits in a circle."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
from tests.support.working_memory import reachable, waiting_threads
from wellkept.errors import InvalidInput, LimitReached, ScopeDisposed
from wellkept.events import EventBus, WorkingMemorySet
from wellkept.working import Limits, WorkingMemory

MANY = 8
PATIENCE_S = 30


@dataclass
class Plan:
    steps: list[str]


@pytest.fixture
def working(clock: HandClock) -> WorkingMemory:
    return WorkingMemory("debugger", clock=clock)


Loops = list[weakref.ref[asyncio.AbstractEventLoop]]


def run(work: Coroutine[Any, Any, Any], loops: Loops | None = None) -> Any:
    """Run it in a loop of its own, which goes into ``loops``."""

    async def watched() -> Any:
        if loops is not None:
            loops.append(weakref.ref(asyncio.get_running_loop()))
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(watched())


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


async def others_have_begun() -> None:
    """All tasks of this loop that were ready have run until they had to wait."""
    await asyncio.sleep(0)


def assert_nothing_is_left(working: WorkingMemory, loops: Loops | None = None, key: str = "key") -> None:
    """No call stays that others would wait for, and no waiter, which would hold its loop."""
    working.remove(key)
    assert working.get_or_set(key, lambda: "anew") == "anew"
    gc.collect()
    assert [loop() for loop in loops or []] == [None] * len(loops or [])


@pytest.mark.req("W2", "W7")
def test_one_factory_runs_whatever_the_number_of_tasks(working: WorkingMemory) -> None:
    made: list[int] = []
    begun: list[int] = []
    loops: Loops = []

    async def factory() -> int:
        made.append(threading.get_ident())
        await until(lambda: len(begun) == MANY)
        return len(made)

    async def take(number: int) -> Any:
        begun.append(number)
        return await working.aget_or_set("key", factory)

    async def work() -> list[Any]:
        return await asyncio.gather(*map(take, range(MANY)))

    assert run(work(), loops) == [1] * MANY
    assert made == [threading.get_ident()], "in the thread of the loop"
    assert_nothing_is_left(working, loops)


@pytest.mark.req("W2", "W7")
@pytest.mark.parametrize("first", ["task", "thread"])
def test_tasks_of_several_loops_and_threads_share_one_factory(working: WorkingMemory, first: str) -> None:
    scope = working.create_scope("task")
    made: list[str] = []
    calls = threading.Event()
    waiting_loops: list[int] = []
    loops: Loops = []

    def all_wait() -> bool:
        return (len(waiting_loops), waiting_threads()) == (2, MANY)

    def in_thread() -> str:
        made.append("thread")
        calls.set()
        while not all_wait():
            working.set("other", "not blocked")
        return "made"

    async def in_task() -> str:
        made.append("task")
        calls.set()
        await until(all_wait)
        return "made"

    async def maker() -> Any:
        return await scope.aget_or_set("key", in_task)

    async def tasks() -> list[Any]:
        takers = [asyncio.create_task(scope.aget_or_set("key", in_task)) for _ in range(MANY)]
        await others_have_begun()
        waiting_loops.append(len(takers))
        return await asyncio.gather(*takers)

    with ThreadPoolExecutor(MANY + 3) as pool:
        begin = pool.submit(run, maker(), loops) if first == "task" else pool.submit(scope.get_or_set, "key", in_thread)
        assert calls.wait(PATIENCE_S)
        takers = [pool.submit(run, tasks(), loops) for _ in range(2)]
        threads = [pool.submit(scope.get_or_set, "key", in_thread) for _ in range(MANY)]
        assert begin.result(PATIENCE_S) == "made"
        assert [taker.result(PATIENCE_S) for taker in takers] == [["made"] * MANY] * 2
        assert [thread.result(PATIENCE_S) for thread in threads] == ["made"] * MANY
    assert made == [first]
    assert_nothing_is_left(working, loops)


@pytest.mark.req("W2", "W7")
def test_a_factory_of_a_thread_blocks_no_loop(working: WorkingMemory) -> None:
    running, go = threading.Event(), threading.Event()

    def slow() -> int:
        running.set()
        assert go.wait(PATIENCE_S)
        return 1

    async def work() -> Any:
        thread = asyncio.get_running_loop().run_in_executor(None, working.get_or_set, "key", slow)
        await until(running.is_set)
        task = asyncio.create_task(working.aget_or_set("key", lambda: 2))
        await others_have_begun()
        go.set()  # only a loop that goes on gets here
        return await asyncio.gather(task, thread)

    assert run(work()) == [1, 1]


@pytest.mark.req("W2", "W7")
def test_those_who_wait_for_a_factory_that_fails_run_their_own(working: WorkingMemory) -> None:
    attempts: list[int] = []

    async def factory() -> int:
        attempts.append(1)
        await asyncio.sleep(0)
        if len(attempts) < 4:
            raise LookupError
        return len(attempts)

    async def work() -> list[Any]:
        tasks = (working.aget_or_set("key", factory) for _ in range(MANY))
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = run(work())
    assert sum(isinstance(one, LookupError) for one in found) == 3
    assert [one for one in found if not isinstance(one, LookupError)] == [4] * (MANY - 3)


@pytest.mark.req("W2")
def test_a_factory_that_fails_stores_nothing(working: WorkingMemory) -> None:
    async def failing() -> int:
        raise LookupError

    for factory, error in ((failing, LookupError), (object, InvalidInput)):
        with pytest.raises(error):
            run(working.aget_or_set("key", factory))
    assert len(working) == 0
    assert_nothing_is_left(working)


@pytest.mark.req("W2", "W7")
@pytest.mark.parametrize("successor", ["task", "thread"])
def test_when_the_task_that_makes_it_is_cancelled_another_takes_over(working: WorkingMemory, successor: str) -> None:
    begun: list[int] = []
    loops: Loops = []

    async def forever() -> None:
        begun.append(1)
        await asyncio.get_running_loop().create_future()

    async def work() -> Any:
        maker = asyncio.create_task(working.aget_or_set("key", forever))
        await until(lambda: len(begun) == 1)
        if successor == "task":
            other: asyncio.Future[Any] = asyncio.create_task(working.aget_or_set("key", lambda: "mine"))
            await others_have_begun()
        else:
            other = asyncio.get_running_loop().run_in_executor(None, working.get_or_set, "key", lambda: "mine")
            await until(lambda: waiting_threads() == 1)
        maker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await maker
        return await other

    assert run(work(), loops) == "mine"
    assert_nothing_is_left(working, loops)


@pytest.mark.req("W7")
def test_a_task_that_is_cancelled_while_it_waits_leaves_the_others_alone(working: WorkingMemory) -> None:
    async def work() -> Any:
        go = asyncio.Event()

        async def factory() -> int:
            await go.wait()
            return 1

        tasks = [asyncio.create_task(working.aget_or_set("key", factory)) for _ in range(3)]
        await others_have_begun()
        tasks[1].cancel()
        await until(tasks[1].done)
        assert [task.done() for task in tasks] == [False, True, False]
        go.set()
        return await tasks[0], await tasks[2]

    loops: Loops = []
    assert run(work(), loops) == (1, 1)
    assert_nothing_is_left(working, loops)


@pytest.mark.req("W7")
def test_a_loop_that_is_gone_does_not_keep_a_factory_from_landing(working: WorkingMemory) -> None:
    waits, go = threading.Event(), threading.Event()

    def slow() -> int:
        waits.set()
        assert go.wait(PATIENCE_S)
        return 1

    with ThreadPoolExecutor(1) as pool:
        slowly = pool.submit(working.get_or_set, "key", slow)
        assert waits.wait(PATIENCE_S)
        loop = asyncio.new_event_loop()
        task = loop.create_task(working.aget_or_set("key", lambda: 2))
        loop.set_exception_handler(lambda loop, context: None)  # the test abandons the task on purpose
        loop.run_until_complete(others_have_begun())
        assert not task.done()
        loop.close()
        go.set()
        assert slowly.result(PATIENCE_S) == 1
    loops: Loops = [weakref.ref(loop)]
    del loop, task
    assert_nothing_is_left(working, loops)


@pytest.mark.req("W7")
def test_calls_that_are_done_leave_nothing_behind(working: WorkingMemory) -> None:
    async def failing() -> int:
        raise LookupError

    async def work(number: int) -> None:
        for factory in (failing, lambda: number):
            found = await asyncio.gather(
                *(working.aget_or_set(f"key {number}", factory) for _ in range(2)), return_exceptions=True
            )
            assert len(found) == 2
        working.get_or_set(f"other {number}", lambda: number)
        working.clear()

    held = []
    for number in range(60):
        run(work(number))
        held.append(reachable(working))
    # It goes up and down, for random bytes are drawn for many ids at once, but not on and on.
    assert max(held[30:]) <= max(held[:30])


def in_task(working: WorkingMemory) -> Awaitable[Any]:
    return working.aget_or_set("key", lambda: working.aget_or_set("key", lambda: 1))


def in_a_child(working: WorkingMemory) -> Awaitable[Any]:
    async def factory() -> Any:
        return await asyncio.gather(working.aget_or_set("key", lambda: 1))

    return working.aget_or_set("key", factory)


def in_a_thread(working: WorkingMemory) -> Awaitable[Any]:
    return working.aget_or_set("key", lambda: asyncio.to_thread(working.get_or_set, "key", lambda: 1))


async def in_a_loop_within(working: WorkingMemory) -> Any:
    def factory() -> Any:
        return asyncio.run(working.aget_or_set("key", lambda: 1))

    return await asyncio.to_thread(working.get_or_set, "key", factory)


async def blocking_its_own_loop(working: WorkingMemory) -> Any:
    begun: list[int] = []

    async def factory() -> Any:
        begun.append(1)
        await until(lambda: False)

    maker = asyncio.create_task(working.aget_or_set("key", factory))
    await until(lambda: len(begun) == 1)
    try:
        return working.get_or_set("key", lambda: 1)
    finally:
        maker.cancel()
        await asyncio.gather(maker, return_exceptions=True)


@pytest.mark.req("W7")
@pytest.mark.parametrize("circle", [in_task, in_a_child, in_a_thread, in_a_loop_within, blocking_its_own_loop])
def test_waiting_for_oneself_is_an_error(
    working: WorkingMemory, circle: Callable[[WorkingMemory], Awaitable[Any]]
) -> None:
    async def work() -> None:
        with pytest.raises(InvalidInput, match="'key' waits for its own result") as caught:
            await circle(working)
        assert caught.value.details == {"field": "factory", "key": "key"}

    run(work())
    assert len(working) == 0
    assert_nothing_is_left(working)


@pytest.mark.req("W7")
@pytest.mark.parametrize("other", ["task", "thread"])
def test_factories_that_need_each_other_do_not_wait_forever(working: WorkingMemory, other: str) -> None:
    async def work() -> list[Any]:
        begun: list[str] = []

        async def by_task(need: str) -> Any:
            begun.append(need)
            await until(lambda: len(begun) == 2)
            return [await working.aget_or_set(need, lambda: "alone")]

        def by_thread() -> Any:
            begun.append("a")
            while len(begun) < 2:
                pass
            return [working.get_or_set("a", lambda: "alone")]

        if other == "task":
            second: Awaitable[Any] = working.aget_or_set("b", lambda: by_task("a"))
        else:
            second = asyncio.to_thread(working.get_or_set, "b", by_thread)
        first = working.aget_or_set("a", lambda: by_task("b"))
        return list(await asyncio.gather(first, second, return_exceptions=True))

    found = run(work())
    assert sum(isinstance(one, InvalidInput) for one in found) == 1
    assert [one for one in found if not isinstance(one, InvalidInput)] == [["alone"]]
    for key in ("a", "b"):
        assert_nothing_is_left(working, key=key)


@pytest.mark.req("W7")
def test_who_waits_in_the_same_loop_for_something_else_is_in_nobodys_way(working: WorkingMemory) -> None:
    """A task waits for b; another task of its loop makes a, which the factory of b needs: no circle."""
    b_begun, b_waits = threading.Event(), threading.Event()

    def b() -> Any:
        b_begun.set()
        assert b_waits.wait(PATIENCE_S)
        return working.get_or_set("a", lambda: "never asked")

    def a() -> str:
        b_waits.set()
        while waiting_threads() < 1:
            pass
        return "a"

    async def work() -> list[Any]:
        thread = asyncio.get_running_loop().run_in_executor(None, working.get_or_set, "b", b)
        await until(b_begun.is_set)
        task = asyncio.create_task(working.aget_or_set("b", lambda: "never asked"))
        await others_have_begun()
        return [working.get_or_set("a", a), await task, await thread]

    assert run(work()) == ["a", "a", "a"]


@pytest.mark.req("W2")
def test_it_keeps_what_get_or_set_keeps(clock: HandClock) -> None:
    bus = EventBus()
    told: list[WorkingMemorySet] = []
    bus.on(WorkingMemorySet, told.append)
    working = WorkingMemory("a", clock=clock, bus=bus, limits=Limits(entries=2))

    async def plan() -> Plan:
        return Plan(["look"])

    assert run(working.aget_or_set("plan", plan, type=Plan)) == Plan(["look"])
    assert run(working.aget_or_set("plan", plan)) == {"steps": ["look"]}
    assert [(event.key, event.is_update) for event in told] == [("plan", False)]
    scope = working.create_scope("task")
    assert run(scope.aget_or_set("plan", plan)) == {"steps": ["look"]}
    assert (scope.local_count, run(scope.aget_or_set("step", lambda: 3)), scope.local_count) == (0, 3, 1)
    with pytest.raises(LimitReached):
        run(working.aget_or_set("third", plan))
    with pytest.raises(ScopeDisposed):
        run(scope.aget_or_set("other", scope.dispose))
    with pytest.raises(InvalidInput, match="callable"):
        run(working.aget_or_set("x", 3))  # type: ignore[call-overload]  # the point
    with pytest.raises(InvalidInput, match="key"):
        run(working.aget_or_set("a\nb", plan))
    assert working.keys() == ("plan",)


def test_who_runs_no_tasks_loads_nothing_for_them() -> None:
    code = "import sys, wellkept.working, wellkept.window; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
