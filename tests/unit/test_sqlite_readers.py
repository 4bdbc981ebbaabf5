"""The pool of reading connections: nobody shares one, few stay open, and none outlives the store or a fork."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from wellkept.errors import StoreClosed
from wellkept.stores.sqlite.connections import IDLE_READERS, Readers

THREADS = 3 * IDLE_READERS
PATIENCE_S = 30


class Pool(Readers):
    """A pool that remembers what it opened."""

    def __init__(self, path: Path) -> None:
        self.opened: list[apsw.Connection] = []
        super().__init__(lambda: self._remembered(apsw.Connection(str(path))))

    def _remembered(self, connection: apsw.Connection) -> apsw.Connection:
        self.opened.append(connection)
        return connection

    def alive(self) -> int:
        return sum(1 for one in self.opened if _answers(one))


def _answers(connection: apsw.Connection) -> bool:
    try:
        return bool(connection.execute("SELECT 1").get == 1)
    except apsw.ConnectionClosedError:
        return False


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(tmp_path / "some.db")
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield pool
    sys.setswitchinterval(usual)
    pool.close()


def test_nobody_shares_a_connection_and_few_stay_open(pool: Pool) -> None:
    used: dict[apsw.Connection, int] = {}
    start = threading.Barrier(THREADS)

    def read(number: int) -> bool:
        start.wait(PATIENCE_S)
        alone = True
        for _ in range(100):
            connection = pool.take()
            used[connection] = number
            alone = alone and _answers(connection) and used[connection] == number
            pool.give(connection)
        return alone

    with ThreadPoolExecutor(THREADS) as threads:
        assert all(threads.map(read, range(THREADS), timeout=PATIENCE_S))
    held = [pool.take() for _ in range(THREADS)]
    assert len(set(held)) == THREADS
    for connection in held:
        pool.give(connection)
    assert pool.alive() == IDLE_READERS


def test_what_is_given_back_after_closing_is_closed(pool: Pool) -> None:
    held = [pool.take() for _ in range(3)]
    pool.give(held.pop())
    pool.close()
    with pytest.raises(StoreClosed):
        pool.take()
    assert pool.alive() == 2
    for connection in held:
        pool.give(connection)
    assert pool.alive() == 0
    with pytest.raises(StoreClosed):
        pool.take()


def test_closing_at_the_very_moment_of_giving_back_leaves_nothing_open(pool: Pool) -> None:
    class Unlucky(list[apsw.Connection]):
        def append(self, one: apsw.Connection, /) -> None:
            pool.close()
            super().append(one)

    held, pool._idle = pool.take(), Unlucky()
    pool.give(held)
    assert (pool.alive(), len(pool._idle)) == (0, 0)


def test_closing_while_others_read_leaves_nothing_open(tmp_path: Path, pool: Pool) -> None:
    def read(pool: Pool) -> None:
        try:
            while True:
                pool.give(pool.take())
        except StoreClosed:
            return

    for turn in range(10):
        one = Pool(tmp_path / f"{turn}.db")
        readers = [threading.Thread(target=read, args=(one,)) for _ in range(4)]
        for reader in readers:
            reader.start()
        while not one.opened:
            pool.give(pool.take())  # give way
        one.close()
        for reader in readers:
            reader.join(PATIENCE_S)
        assert (one.alive(), len(one._idle)) == (0, 0)


def test_a_fork_waits_for_readers_and_begins_with_nothing_open(pool: Pool) -> None:
    held, forking, forked = pool.take(), threading.Event(), threading.Event()

    def fork() -> None:
        forking.set()
        pool.before_fork()
        forked.set()
        pool.after_fork(in_child=False)

    thread = threading.Thread(target=fork)
    thread.start()
    assert forking.wait(PATIENCE_S)
    assert not forked.is_set()
    pool.give(held)
    thread.join(PATIENCE_S)
    assert forked.is_set()
    assert pool.alive() == 0
    pool.give(pool.take())
    assert pool.alive() == 1, "it goes on, and keeps what it opens"


def test_an_opening_that_fails_is_not_waited_for(tmp_path: Path) -> None:
    pool = Readers(lambda: apsw.Connection(str(tmp_path / "no" / "folder" / "some.db")))
    with pytest.raises(apsw.CantOpenError):
        pool.take()
    pool.before_fork()
    pool.after_fork(in_child=False)
    assert pool._count == 0
    pool.close()
