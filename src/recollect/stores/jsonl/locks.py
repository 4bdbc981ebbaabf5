"""Locks between processes: many may read, or one may write."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recollect import codec
from recollect.errors import StoreBusy


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSettings:
    """How long to wait for a lock, and how long between two attempts at first."""

    timeout_ms: int = 5_000
    backoff_ms: int = 1


class Lock:
    """An advisory lock on a file; the system lets go of it when its holder dies."""

    def __init__(self, path: Path, settings: LockSettings) -> None:
        self._path = path
        self._settings = settings

    @contextmanager
    def shared(self, operation: str) -> Iterator[None]:
        """Hold it with other readers."""
        with self._held(fcntl.LOCK_SH, operation):
            yield

    @contextmanager
    def exclusive(self, operation: str) -> Iterator[None]:
        """Hold it alone."""
        with self._held(fcntl.LOCK_EX, operation):
            yield

    @contextmanager
    def _held(self, kind: int, operation: str) -> Iterator[None]:
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait(number, kind, operation)
            yield
        finally:
            os.close(number)

    def _wait(self, number: int, kind: int, operation: str) -> None:
        deadline = time.monotonic() + self._settings.timeout_ms / 1000
        pause = self._settings.backoff_ms / 1000
        while True:
            try:
                fcntl.flock(number, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusy(
                        f"the store stayed locked for {self._settings.timeout_ms} ms",
                        operation=operation,
                        hint="try again, or raise concurrency.lock_timeout_ms",
                    ) from None
                time.sleep(pause)
                pause = min(2 * pause, 0.02)
            else:
                if kind == fcntl.LOCK_EX:
                    os.pwrite(number, codec.encode_json({"pid": os.getpid(), "operation": operation}) + b"\n", 0)
                return
