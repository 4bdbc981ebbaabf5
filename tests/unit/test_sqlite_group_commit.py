"""Threads that share commits, and one of them that goes away."""

import signal
import threading
from pathlib import Path

import pytest

from wellkept.stores.sqlite import SqliteStore
from wellkept.testing.builders import Writer, owner, put

PATIENCE_S = 30


def test_an_interrupted_writer_leaves_the_queue(tmp_path: Path) -> None:
    """It waits in the queue, or would lead next: those behind it must not wait for it."""
    store = SqliteStore(tmp_path / "memory.db")
    leading, go_on = threading.Event(), threading.Event()
    commits, make = store._file.commits, Writer()
    lost, kept = make.add(owner("ada"), "lost"), make.add(owner("ada"), "kept")

    def hold(_: object) -> bool:
        leading.set()
        return go_on.wait(PATIENCE_S)

    def interrupt() -> None:
        while not commits._queue:  # until the main thread waits
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threads = [threading.Thread(target=commits.run, args=(hold,)), threading.Thread(target=interrupt)]
    threads[0].start()
    assert leading.wait(PATIENCE_S)
    threads[1].start()
    with pytest.raises(KeyboardInterrupt):
        store.journal.append([lost])
    threads.append(threading.Thread(target=put, args=(store, kept)))
    threads[2].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert [stored.facets["text"] for stored in store.journal.scan({kept.owner})] == ["kept"]
    store.close()
