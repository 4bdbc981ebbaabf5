"""What is done in a thread comes back to its loop: all of it, on every kind of loop, and no file stays behind."""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect import aio
from recollect.aio.mailbox import Mailbox
from recollect.errors import StoreClosed

PATIENCE_S = 30
THREADS, POSTS = 6, 500


class Blind(asyncio.SelectorEventLoop):
    """A loop that cannot watch files, as those of other systems."""

    def add_reader(self, *_: Any) -> None:  # type: ignore[override]  # whatever it is given
        raise NotImplementedError


class Call:
    """A call that is over, and how often that was told."""

    def __init__(self, told: "Told") -> None:
        self._told = told

    def settle(self) -> None:
        self._told.add(self)


class Told:
    """Waits until so many calls were told of."""

    def __init__(self, count: int) -> None:
        self.calls: list[Call] = []
        self.threads: set[int] = set()
        self._count = count
        self.all = asyncio.Event()

    def add(self, call: Call) -> None:
        self.calls.append(call)
        self.threads.add(threading.get_ident())
        if len(self.calls) == self._count:
            self.all.set()


def run(main: Callable[[], Any], loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> Any:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(asyncio.wait_for(main(), PATIENCE_S))


def end_of_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("recollect-aio"):
            thread.join(PATIENCE_S)


def open_files() -> int:
    gc.collect()
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.fixture
def restless() -> Iterator[None]:
    """The interpreter goes from thread to thread as often as it can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, Blind])
@pytest.mark.parametrize("leaves", [False, True])
def test_whatever_threads_post_is_settled_once_on_the_loop(loop: Any, leaves: bool) -> None:
    async def main() -> None:
        mailbox, told = Mailbox(asyncio.get_running_loop()), Told(THREADS * POSTS)

        def post() -> None:
            for _ in range(POSTS):
                mailbox.post(Call(told))

        threads = [threading.Thread(target=post) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        if leaves:  # in the midst of it
            while len(told.calls) < POSTS:
                await asyncio.sleep(0)
            mailbox.leave()
        await told.all.wait()
        assert len(set(told.calls)) == THREADS * POSTS
        assert told.threads == {threading.get_ident()}
        mailbox.leave()

    run(main, loop)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, Blind])
def test_a_thread_may_post_the_next_while_the_loop_settles_the_last(loop: Any) -> None:
    class Answered(threading.Event):
        def settle(self) -> None:
            self.set()

    async def main() -> None:
        mailbox, answers = Mailbox(asyncio.get_running_loop()), []

        def converse() -> None:
            for _ in range(POSTS):
                question = Answered()
                mailbox.post(question)
                answers.append(question.wait(PATIENCE_S))

        await asyncio.to_thread(converse)
        assert answers == [True] * POSTS
        mailbox.leave()

    run(main, loop)


def test_posting_to_a_loop_that_has_ended_is_no_error() -> None:
    for kind in (asyncio.new_event_loop, Blind):
        loop = kind()
        mailbox = Mailbox(loop)
        loop.close()
        mailbox.post(Call(None))  # type: ignore[arg-type]  # never told


def test_a_loop_that_watches_no_files_gets_its_answers(tmp_path: Path) -> None:
    async def main() -> int:
        async with aio.open(tmp_path / "memory.db", embedder=None) as memories:
            view = memories.view(user="ada")
            await asyncio.gather(*(view.add(f"The number {number}") for number in range(50)))
            return await view.count()

    assert run(main, Blind) == 50


def test_no_file_stays_open_with_a_database_that_was_closed(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(5):
            async with aio.open(tmp_path / "memory.db", embedder=None) as memories:
                await memories.view(user="ada").add("Likes tea")
            with pytest.raises(StoreClosed):
                await memories.view(user="ada").count()
        end_of_threads()

    run(main)
    before = open_files()
    run(main)
    assert open_files() == before


def test_loops_that_ended_leave_at_most_the_last_of_their_files(tmp_path: Path) -> None:
    opened: list[aio.Memories] = []

    async def first() -> None:
        opened.append(await aio.open(tmp_path / "memory.db", embedder=None, workers=1))

    async def ask() -> None:
        await opened[0].view(user="ada").count()

    run(first)
    run(ask)
    before = open_files()
    for _ in range(10):
        run(ask)
    assert open_files() == before
    run(opened[0].close)
    assert open_files() < before


def test_what_is_asked_for_while_the_database_closes_is_answered(tmp_path: Path) -> None:
    async def main() -> None:
        for _ in range(20):
            memories = await aio.open(tmp_path / "memory.db", embedder=None)
            view = memories.view(user="ada")
            asked = [asyncio.ensure_future(view.count()) for _ in range(20)]
            closing = asyncio.ensure_future(memories.close())
            await asyncio.sleep(0)
            asked += [asyncio.ensure_future(view.count()) for _ in range(20)]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert answers == [0] * 20 + answers[20:]
            assert all(answer == 0 or isinstance(answer, StoreClosed) for answer in answers)
            await closing

    run(main)
