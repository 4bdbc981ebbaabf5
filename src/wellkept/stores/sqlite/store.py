"""The embedded store: one SQLite file, one writer at a time, any number of readers and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import apsw

from wellkept.errors import ConfigurationError, StoreCorrupt, WellkeptError
from wellkept.ports import Capabilities, Store
from wellkept.settings import UrlForm
from wellkept.stores import folder_modes
from wellkept.stores.forking import forks
from wellkept.stores.sqlite import connections, doctor, migration, projections, schema
from wellkept.stores.sqlite.file import SqliteFile
from wellkept.stores.sqlite.images import SqliteImages
from wellkept.stores.sqlite.journal import SqliteJournal
from wellkept.stores.sqlite.records import SqliteRecords
from wellkept.types import Component, Diagnosis, Health, MigrationReport, Status


class SqliteStore(Store):
    """Memories in one file.

    ``durability="full"`` (the default) survives power loss: every acknowledged write was forced to the disk.
    ``"relaxed"`` survives a crash of the process, but a power loss may take the writes since the last
    checkpoint (up to about 8 MB of them); it never damages the file. The file remembers which it is.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SqliteStore(pathlib.Path(folder.name) / "memory.db")
    >>> store.journal.owners(), store.durability
    ([], 'full')
    >>> store.close(); folder.cleanup()
    """

    name = "sqlite"
    capabilities = Capabilities(durable=True, shared=True, erases=True, leases=True)
    url_form = UrlForm(sample="memory.db", names="file")
    path: Path

    def __init__(self, path: Path, *, durability: str | None = None) -> None:
        self._file = SqliteFile(path, durability)
        self.path = self._file.path
        self.journal: SqliteJournal = SqliteJournal(self._file)
        self.records: SqliteRecords = SqliteRecords(self._file)
        self.images: SqliteImages = SqliteImages(self._file)
        forks().tell(self)

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open ``sqlite:path`` or a plain path."""
        return cls(_path(url), durability=durability)

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether there is a file."""
        return _path(url).exists()

    @classmethod
    def creation(cls, url: str) -> Callable[[], None]:
        """Removes the file that is made now."""
        path = _path(url)
        made = () if path.exists() else ("", "-wal", "-shm")

        def undo() -> None:
            for side in made:
                path.with_name(path.name + side).unlink(missing_ok=True)

        return undo

    @classmethod
    def migrate(cls, url: str, to: int | None = None, *, dry_run: bool = False) -> MigrationReport:
        """Bring a file to a schema, after a copy was made; ``StoreBusy`` while another process has it open."""
        return migration.migrate(_path(url), schema.latest() if to is None else to, dry_run=dry_run)

    @property
    def durability(self) -> str:
        """How durable acknowledged writes are."""
        return self._file.durability

    @property
    def groups(self) -> int:
        """How many transactions were committed since opening; many threads can share one."""
        return self._file.commits.groups

    def health(self) -> Health:
        """Whether the file can be read now."""
        started = time.perf_counter()
        try:
            self.journal.settings()
            status, message = Status.HEALTHY, "ok"
        except WellkeptError as error:
            status, message = Status.UNHEALTHY, error.code
        components = {"store": Component(status=status, message=message)}
        if damaged := len(self._file.damaged):
            message = f"{damaged} damaged memories were passed over; run doctor"
            components["memories"] = Component(status=Status.DEGRADED, message=message)
            status = Status.DEGRADED if status is Status.HEALTHY else status
        if self._file.read_only is not None:
            message = f"reading only: {self._file.read_only.code}"
            components["writes"] = Component(status=Status.DEGRADED, message=message)
            status = Status.DEGRADED if status is Status.HEALTHY else status
        if self._file.folder_open():
            components["folder"] = Component(status=Status.DEGRADED, message=folder_modes.FINDING)
            status = Status.DEGRADED if status is Status.HEALTHY else status
        latency_ms = (time.perf_counter() - started) * 1000
        return Health(status=status, latency_ms=latency_ms, components=components)

    def check(self, *, repair: bool = False) -> Diagnosis:
        """Compare the file with itself: pages, checksums, and every projection with the journal."""
        if repair:
            self._file.damaged.clear()
        if self._file.read_only is not None and not repair:
            with self._file.snapshot() as connection:
                return doctor.examine(connection, self.path, repair=False)
        found: Diagnosis = self._look_through(lambda connection: doctor.examine(connection, self.path, repair=repair))
        return found

    def rebuild(self) -> None:
        """Derive heads, tags, keys and counters from the journal again."""
        self._look_through(projections.rebuild)

    def _look_through(self, work: Callable[[apsw.Connection], Any]) -> Any:
        """Work that reads every row: values of a damaged page may be of any type, and in no relation to each other."""
        try:
            return self._file.write(lambda transaction: work(transaction.connection))
        except WellkeptError as error:
            if isinstance(error, StoreCorrupt) and isinstance(error.__cause__, Exception):
                raise connections.translate(error.__cause__, self.path, doctored=True) from error
            raise

    def before_fork(self) -> None:
        """Close all connections: none may cross a fork."""
        self._file.before_fork()

    def after_fork(self, *, in_child: bool) -> None:
        """Open connections again."""
        self._file.after_fork(in_child=in_child)

    def close(self) -> None:
        """Release the file. Closing twice is allowed."""
        self._file.close()


def _path(url: str) -> Path:
    name = url.removeprefix("sqlite:")
    if name == ":memory:":
        raise ConfigurationError(
            "':memory:' would be a database per connection", details={"field": "url"}, hint="use 'ram:'"
        )
    return Path(name).expanduser()
