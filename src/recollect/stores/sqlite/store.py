"""The embedded store: one SQLite file, one writer at a time, any number of readers and processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import apsw

from recollect import types
from recollect.errors import ConfigurationError, RecollectError, StoreError
from recollect.ports import Capabilities
from recollect.stores.forking import forks
from recollect.stores.sqlite import connections, embedding, records, rows, schema
from recollect.stores.sqlite.commit import GroupCommit
from recollect.stores.sqlite.journal import Append, Transaction
from recollect.stores.sqlite.reads import SqliteReads
from recollect.types import Operation, Owner

if TYPE_CHECKING:
    from recollect.ports import Embedded, Quota, Record, Write

DURABILITIES = ("full", "relaxed")
_PENDING = 1_000


class SqliteStore(SqliteReads):
    """Memories in one file.

    ``durability="full"`` (the default) survives power loss: every acknowledged write was forced to the disk.
    ``"relaxed"`` survives a crash of the process, but a power loss may take the writes since the last
    checkpoint (up to about 8 MB of them); it never damages the file. The file remembers which it is.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SqliteStore(pathlib.Path(folder.name) / "memory.db")
    >>> store.sequence(), store.durability
    (0, 'full')
    >>> store.close(); folder.cleanup()
    """

    name = "sqlite"
    capabilities = Capabilities(durable=True, shared=True, erases=True)

    def __init__(self, path: Path, *, durability: str | None = None) -> None:
        check_durability(durability)
        self.path = path
        super().__init__(connections.Readers(self._connect))
        self._closed = False
        self._log_to_empty = False
        self._commits = GroupCommit(self._connect, self._begin, self._committed, self._rolled_back)
        try:
            first = connections.prepare(path)
            self.durability = self._settle_durability(first, durability)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise connections.translate(error, path) from error
        self._readers.add(first)
        forks().tell(self)

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open ``sqlite:path`` or a plain path."""
        return cls(_path(url), durability=durability)

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether there is a file."""
        return _path(url).exists()

    def _connect(self) -> apsw.Connection:
        try:
            return connections.connect(self.path, self.durability)
        except apsw.Error as error:
            raise connections.translate(error, self.path) from error

    def _settle_durability(self, connection: apsw.Connection, wanted: str | None) -> str:
        """The file decides: whoever makes it says how durable it is, and all others are told."""
        kept = rows.settings(connection).get("durability")
        if kept is None:
            connection.execute(
                "INSERT INTO settings VALUES ('durability', ?) ON CONFLICT DO NOTHING", (wanted or "full",)
            )
            kept = rows.settings(connection)["durability"]
        if kept not in DURABILITIES:
            kept = "full"  # damaged: the careful one can do no harm
        if wanted not in (None, kept):
            connection.close()
            raise ConfigurationError(
                f"{self.path.name!r} has durability {kept!r}, not {wanted!r}",
                details={"field": "durability", "stored": kept, "given": wanted},
                hint="leave durability out, or change the file's with memories.configure(durability=...)",
            )
        return kept

    # -- writing ----------------------------------------------------------------------------------------------

    def apply(self, writes: Sequence[Write], *, quota: Quota | None = None) -> list[int]:
        """Append versions, in a transaction that may be shared with other threads."""
        if not writes:
            return []
        sequences: list[int] = self._write(Append(writes, quota))
        erases = any(write.operation is Operation.ERASED for write in writes)
        if self._log_to_empty or erases:
            self._empty_log(loudly=erases)
        return sequences

    def set_settings(self, values: Mapping[str, str]) -> None:
        """Change what the file says about itself. Another durability holds for connections opened from now on."""
        if "durability" in values:
            check_durability(values["durability"])
        self._write(lambda transaction: rows.set_settings(transaction.connection, values))

    def put_record(self, record: Record) -> None:
        """Write a record, in a transaction that may be shared with other threads."""
        self._write(lambda work: records.put(work, record))

    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        """Delete a record; like an erased memory, it must not stay in the write-ahead log."""
        dropped: bool = self._write(lambda work: records.drop(work, owner, kind, name))
        if dropped:
            self._empty_log(loudly=True)
        return dropped

    def _write(self, work: Callable[[Transaction], Any]) -> Any:
        try:
            return self._commits.run(work)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise connections.translate(error, self.path) from error

    def _begin(self, connection: apsw.Connection, works: Sequence[Callable[[Transaction], Any]]) -> Transaction:
        transaction = Transaction(connection, self._numbers_of, self._figures)
        transaction.look_for([write.memory.id for work in works if isinstance(work, Append) for write in work.writes])
        with self._pending_lock:
            accesses, self._pending = self._pending, {}
        if accesses:
            transaction.count_accesses(accesses)
        return transaction

    def _committed(self, transaction: Transaction) -> None:
        self._numbers_of.update(transaction.new_owners)
        self._figures.update(transaction.figures)

    def _rolled_back(self, transaction: Transaction) -> None:
        with self._pending_lock:
            for memory_id, (count, at) in transaction.accesses.items():
                newer = self._pending.get(memory_id)
                self._pending[memory_id] = (count + newer[0], newer[1]) if newer else (count, at)

    def _empty_log(self, *, loudly: bool) -> None:
        """Erased content must not stay in the write-ahead log. If a reader or the disk holds it back, the next write
        tries; that one is committed by then and must not be told that it failed.
        """
        self._log_to_empty = True
        connection = self._readers.take()
        try:
            self._log_to_empty = not connections.empty_log(connection)
        except apsw.Error as error:
            if not loudly:
                return
            raise StoreError(
                f"the memory was erased, but its content may still stand in the write-ahead log of {self.path.name!r}",
                details={"file": self.path.name},
                hint="check the disk; the next write and closing try again to empty the log",
            ) from error
        finally:
            self._readers.give(connection)

    def touch(self, ids: Iterable[str], at: datetime) -> None:
        """Count accesses in RAM; they are written with the next write, on closing, or when there are many."""
        with self._pending_lock:
            for memory_id in ids:
                known = self._pending.get(memory_id)
                self._pending[memory_id] = (known[0] + 1 if known else 1, at)
            many = len(self._pending) >= _PENDING
        if many:
            self._flush_accesses()

    def _flush_accesses(self) -> None:
        # Bookkeeping on behalf of a read: a full disk or a busy file must not make reading fail. They stay in RAM.
        if self._pending:
            with suppress(StoreError):
                self._write(lambda _: None)

    def _save_indexes(self) -> None:
        # Also on behalf of a read. An index that is not stored is made again by the next process: slower, never wrong.
        # So it does not wait, neither for other writers nor for the disk to have room.
        unsaved = self._indexes.unsaved()
        if not unsaved:
            return
        connection = self._readers.take()
        try:
            with suppress(apsw.Error), connections.written_at_once(connection):
                self._indexes.save(connection, unsaved)
        finally:
            self._readers.give(connection)

    def embed(self, vectors: Sequence[Embedded]) -> None:
        """Store vectors of memories that are there already."""
        self._write(lambda transaction: embedding.embed(transaction.connection, vectors))

    def adopt(self, embedder: str, dimension: int) -> bool:
        """Go over to another embedder, if every memory has its vector."""
        adopted: bool = self._write(lambda work: embedding.adopt(work.connection, embedder, dimension))
        return adopted

    @property
    def groups(self) -> int:
        """How many transactions were committed since opening; many threads can share one."""
        return self._commits.groups

    # -- upkeep -----------------------------------------------------------------------------------------------

    def health(self) -> types.Health:
        """Whether the file can be read now."""
        started = time.perf_counter()
        try:
            self.sequence()
            status, message = types.Status.HEALTHY, "ok"
        except RecollectError as error:
            status, message = types.Status.UNHEALTHY, error.code
        latency_ms = (time.perf_counter() - started) * 1000
        return types.Health(status=status, latency_ms=latency_ms, components={"file": message})

    def check(self, *, repair: bool = False) -> types.Diagnosis:
        """Compare the file with itself: pages, checksums, and every projection with the journal."""
        from recollect.stores.sqlite import doctor  # lazy: healthy files need none

        found: types.Diagnosis = self._write(lambda work: doctor.examine(work.connection, self.path, repair=repair))
        return found

    def rebuild(self) -> None:
        """Derive heads, tags, keys and the full-text index from the journal again."""
        from recollect.stores.sqlite import doctor  # lazy: as above

        self._write(lambda work: doctor.rebuild(work.connection))

    def schema_version(self) -> int:
        """The schema that the file has."""
        with self._snapshot(()) as (connection, _):
            return schema.version_of(connection)

    def before_fork(self) -> None:
        """Close all connections: none may cross a fork."""
        self._commits.before_fork()
        self._readers.before_fork()
        self._pending_lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Go on. The accesses counted until now are the parent's to write."""
        if in_child:
            self._pending_lock, self._pending = threading.Lock(), {}
            self.__dict__.pop("_indexes", None)  # a thread that is not here may have been changing them
        else:
            self._pending_lock.release()
        self._readers.after_fork(in_child=in_child)
        self._commits.after_fork(in_child=in_child)

    def close(self) -> None:
        """Write what is pending and release the file. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        try:
            self._flush_accesses()
            if self._log_to_empty:
                self._empty_log(loudly=True)
        finally:
            self._commits.close()
            self._readers.close()


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:")).expanduser()


def check_durability(value: str | None) -> None:
    """Refuse a durability that does not exist."""
    if value not in (None, *DURABILITIES):
        raise ConfigurationError(
            f"no durability is named {str(value)[:40]!r}",
            details={"field": "durability"},
            hint="use 'full' or 'relaxed'",
        )
