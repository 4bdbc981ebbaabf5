"""get_or_set from tasks: one factory for tasks and threads together, no loop blocked, nobody waits in a circle."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.stand_ins import HandClock
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


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def waiting(working: WorkingMemory) -> int:
    return len(working._agent.single_flight._waiting)


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0)


def idle(working: WorkingMemory) -> bool:
    return working._agent.single_flight._waiting == working._agent.single_flight._calls == {}


@pytest.mark.req("W2", "W7")
def test_one_factory_runs_whatever_the_number_of_tasks(working: WorkingMemory) -> None:
    made: list[int] = []

    async def factory() -> int:
        made.append(threading.get_ident())
        await until(lambda: waiting(working) == MANY - 1)
        return len(made)

    async def work() -> list[Any]:
        return await asyncio.gather(*(working.aget_or_set("key", factory) for _ in range(MANY)))

    assert run(work()) == [1] * MANY
    assert made == [threading.get_ident()], "in the thread of the loop"
    assert idle(working)


@pytest.mark.req("W2", "W7")
@pytest.mark.parametrize("first", ["task", "thread"])
def test_tasks_of_several_loops_and_threads_share_one_factory(working: WorkingMemory, first: str) -> None:
    scope = working.create_scope("task")
    made: list[str] = []
    calls = threading.Event()

    def all_wait() -> bool:
        return waiting(working) == 3 * MANY

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

    async def tasks(count: int) -> list[Any]:
        return await asyncio.gather(*(scope.aget_or_set("key", in_task) for _ in range(count)))

    with ThreadPoolExecutor(MANY + 3) as pool:
        begin = pool.submit(run, tasks(1)) if first == "task" else pool.submit(scope.get_or_set, "key", in_thread)
        assert calls.wait(PATIENCE_S)
        loops = [pool.submit(run, tasks(MANY)) for _ in range(2)]
        threads = [pool.submit(scope.get_or_set, "key", in_thread) for _ in range(MANY)]
        assert begin.result(PATIENCE_S) in ("made", ["made"])
        assert [loop.result(PATIENCE_S) for loop in loops] == [["made"] * MANY] * 2
        assert [thread.result(PATIENCE_S) for thread in threads] == ["made"] * MANY
    assert made == [first]
    assert idle(working)


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
        await until(lambda: waiting(working) == 1)
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
    assert (len(working), idle(working)) == (0, True)


@pytest.mark.req("W2", "W7")
@pytest.mark.parametrize("successor", ["task", "thread"])
def test_when_the_task_that_makes_it_is_cancelled_another_takes_over(working: WorkingMemory, successor: str) -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    async def work() -> Any:
        maker = asyncio.create_task(working.aget_or_set("key", forever))
        await until(lambda: len(working._agent.single_flight._calls) == 1)
        if successor == "task":
            other: asyncio.Future[Any] = asyncio.create_task(working.aget_or_set("key", lambda: "mine"))
        else:
            other = asyncio.get_running_loop().run_in_executor(None, working.get_or_set, "key", lambda: "mine")
        await until(lambda: waiting(working) == 1)
        maker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await maker
        return await other

    assert run(work()) == "mine"
    assert idle(working)


@pytest.mark.req("W7")
def test_a_task_that_is_cancelled_while_it_waits_leaves_the_others_alone(working: WorkingMemory) -> None:
    async def work() -> Any:
        go = asyncio.Event()

        async def factory() -> int:
            await go.wait()
            return 1

        tasks = [asyncio.create_task(working.aget_or_set("key", factory)) for _ in range(3)]
        await until(lambda: waiting(working) == 2)
        tasks[1].cancel()
        await until(tasks[1].done)
        assert waiting(working) == 1
        go.set()
        return await tasks[0], await tasks[2]

    assert run(work()) == (1, 1)
    assert idle(working)


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
        loop.run_until_complete(until(lambda: waiting(working) == 1))
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # the test abandons it on purpose
        loop.close()
        go.set()
        assert slowly.result(PATIENCE_S) == 1
    assert idle(working)


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
    async def factory() -> Any:
        await until(lambda: False)

    maker = asyncio.create_task(working.aget_or_set("key", factory))
    await until(lambda: len(working._agent.single_flight._calls) == 1)
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
    assert (len(working), idle(working)) == (0, True)


@pytest.mark.req("W7")
@pytest.mark.parametrize("other", ["task", "thread"])
def test_factories_that_need_each_other_do_not_wait_forever(working: WorkingMemory, other: str) -> None:
    async def work() -> list[Any]:
        calls = working._agent.single_flight._calls

        async def by_task(need: str) -> Any:
            await until(lambda: len(calls) == 2)
            return [await working.aget_or_set(need, lambda: "alone")]

        def by_thread() -> Any:
            while len(calls) < 2:
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
    assert idle(working)


@pytest.mark.req("W7")
def test_who_waits_in_the_same_loop_for_something_else_is_in_nobodys_way(working: WorkingMemory) -> None:
    """A task waits for b; another task of its loop makes a, which the factory of b needs: no circle."""
    calls = working._agent.single_flight._calls
    b_waits = threading.Event()

    def b() -> Any:
        assert b_waits.wait(PATIENCE_S)
        return working.get_or_set("a", lambda: "never asked")

    def a() -> str:
        b_waits.set()
        while waiting(working) < 2:
            pass
        return "a"

    async def work() -> list[Any]:
        thread = asyncio.get_running_loop().run_in_executor(None, working.get_or_set, "b", b)
        await until(lambda: len(calls) == 1)
        task = asyncio.create_task(working.aget_or_set("b", lambda: "never asked"))
        await until(lambda: waiting(working) == 1)
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
