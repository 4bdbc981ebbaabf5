"""Who holds a lock, and who waits for it: threads, and processes, that tests of locks set against one another."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wellkept.errors import LockTimeout
from wellkept.stores.jsonl.locks import Lock, LockSettings

AT_ONCE = LockSettings(timeout_ms=0)
PATIENT = LockSettings(timeout_ms=120_000)  # a test that fails hangs no longer than that
MODES = ("shared", "exclusive")

HOLD = """
import os, sys
from pathlib import Path
from wellkept.stores.jsonl.locks import Lock
with getattr(Lock(Path(sys.argv[1])), sys.argv[2])("compact"):
    if "fork" in sys.argv:
        ready, told = os.pipe()
        if os.fork() == 0:
            os.write(told, b"!")
            sys.stdin.read()
            os._exit(0)
        os.read(ready, 1)  # only a child that is up has let go of its copies
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def other_process(path: Path, mode: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until the end, or until it is killed."""
    with run(HOLD, path, mode, *more) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        yield process


def is_free(path: Path, mode: str) -> bool:
    try:
        with getattr(Lock(path, AT_ONCE), mode)("try"):
            return True
    except LockTimeout:
        return False


class Waiter(threading.Thread):
    """Takes the lock in a thread: ``waits`` when it has to, ``has`` it at last, and is ``settled`` by either."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(daemon=True)  # one that still waits when its test failed must not keep the process
        self.waits, self.has, self.settled, self.may_end = (threading.Event() for _ in range(4))
        self.failure: BaseException | None = None
        self._held = getattr(Lock(path, PATIENT, sleep=self._sleep), mode)("wait")
        self.start()

    def _sleep(self, seconds: float) -> None:
        self.waits.set()
        self.settled.set()
        time.sleep(seconds)

    def run(self) -> None:
        try:
            with self._held:
                self.has.set()
                self.settled.set()
                self.may_end.wait()
        except BaseException as error:  # noqa: BLE001  # reason: told in `end`
            self.failure = error
            for event in (self.waits, self.has, self.settled):
                event.set()

    def end(self) -> None:
        self.may_end.set()
        self.join()
        assert self.failure is None, self.failure


def is_free_elsewhere(path: Path, mode: str) -> bool:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_free(path, mode)))
    thread.start()
    thread.join()
    return found[0]
