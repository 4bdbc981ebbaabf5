"""The store in plain files."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Self

from recollect.errors import ConfigurationError, NotAStore, RecollectError, StoreClosed, StoreError
from recollect.ports import Capabilities, Owners, Record, check_record
from recollect.stores.forking import Forks
from recollect.stores.journal import Accesses, Batch, Entry, Journal
from recollect.stores.jsonl import changes, commits, config, folders, lines, loading, records, summaries
from recollect.stores.jsonl.answers import QuickStore
from recollect.stores.jsonl.buffer import Buffer, Waiting
from recollect.stores.jsonl.commit import Change, Files
from recollect.stores.jsonl.descriptors import descriptors
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.locks import Lock
from recollect.types import Diagnosis, Health, Owner, SessionConfig, Status, Vector

DURABILITIES = ("full", "relaxed")
LOCK = "journal/lock"
CONFIG = "config.json"
PENDING = 1_000
"""Accesses that wait in RAM to be written."""

SUMMARISED_AFTER = 500
"""Commits, and one for each four versions: so often the indexes are written while the store is open."""


class JsonlStore(QuickStore):
    """Memories in a folder of JSON Lines: one line for each version, readable without us.

    Everything is held in RAM as well; a read looks whether another process committed something, and reads only that.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = JsonlStore(pathlib.Path(folder.name) / "memory")
    >>> store.sequence(), store.durability
    (0, 'full')
    >>> store.close(); folder.cleanup()
    """

    name = "jsonl"
    capabilities = Capabilities(durable=True, shared=True, erases=True)

    def __init__(self, path: Path, *, durability: str | None = None) -> None:
        _check_durability(durability)
        super().__init__()
        self.path = path
        self._disk = Disk(path)
        self._files = Files(self._disk)
        self._check_folder()
        self.config = config.load(path / CONFIG)
        self._session_defaults = self.config.sessions
        self._file_lock = Lock(path / LOCK, self.config.concurrency.locks)
        self._closed = False
        self._distrusted = False  # the commit log is damaged: the next writer makes it anew
        self._unfinished: StoreError | None = None
        self._pending: dict[str, Accesses] = {}
        self._damaged: Counter[str] = Counter()
        self._buffer = Buffer()
        self._summarised = 0
        self._prepare(durability or "full")
        with self._reading():
            self.durability = self._settled_durability(durability)
            self._summarised = self._files.at.ordinal
        self._disk.durable = self.durability == "full"
        _forks().tell(self)

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open ``jsonl:folder``."""
        path = url.removeprefix("jsonl:")
        if not path:
            raise ConfigurationError("the path is empty", details={"field": "url"}, hint="name a folder")
        return cls(Path(path).expanduser(), durability=durability)

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether there is a folder of memories."""
        path = Path(url.removeprefix("jsonl:")).expanduser()
        return (path / commits.LOG).exists()

    def _check_folder(self) -> None:
        with self._disk.translated(self.path.name):
            if self.path.exists() and not (self.path.is_dir() and _is_ours(self.path)):
                raise NotAStore(
                    f"{self.path.name!r} is not a folder of memories",
                    details={"file": self.path.name},
                    hint="name an empty or a new folder",
                )

    def _prepare(self, durability: str) -> None:
        """Make the folder and what must be in it."""
        with self._disk.translated(self.path.name):
            self._disk.make_folder(LOCK)
            if (self.path / commits.LOG).exists():
                return
            with self._file_lock.exclusive("create"):
                if not (self.path / CONFIG).exists():
                    self._disk.replace(CONFIG, config.dump(self.config).encode())
                if not (self.path / commits.LOG).exists():
                    if not self._files.salvaged():
                        self._disk.append(loading.SETTINGS, lines.of_setting("durability", durability), 0)
                    self._files.at.lengths = self._files.salvaged()
                    self._files.checkpoint()
                    self._files.at = commits.Position()  # nothing was read yet

    def _settled_durability(self, wanted: str | None) -> str:
        """The folder decides: whoever makes it says how durable it is, and all others are told."""
        kept = self._journal.settings.get("durability", "full")
        kept = kept if kept in DURABILITIES else "full"
        if wanted not in (None, kept):
            raise ConfigurationError(
                f"{self.path.name!r} has durability {kept!r}, not {wanted!r}",
                details={"field": "durability", "stored": kept, "given": wanted},
                hint="leave durability out, or change the store's with memories.configure(durability=...)",
            )
        return kept

    # -- coming in --------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            self._check_open()
            self._refresh(locked=False)
            yield

    @contextmanager
    def _writing(self, operation: str) -> Iterator[None]:
        with self._lock:
            self._check_open()
            with self._file_lock.exclusive(operation):
                self._refresh(locked=True)
                self._files.finish(self._files.at)
                if self._distrusted:
                    self._files.checkpoint()
                    self._distrusted = False
                yield
                self._summarise_now_and_then()
            if self._unfinished is not None:
                error, self._unfinished = self._unfinished, None
                raise error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed", hint="open it again")

    def _refresh(self, *, locked: bool) -> None:
        """Take in what others committed.

        Without the lock, a file may be rewritten while it is read. The log tells of that before it happens, so what was
        read is good if the log, looked at again, does not.
        """
        tail = commits.read(self._disk, self._files.at)
        while tail.end is not self._files.at:
            if tail.again or self._buffer:
                self._reload(locked=locked)
                return
            try:
                loaded = loading.load(self._disk, tail.grown, {})
            except loading.Misplaced:
                self._reload(locked=locked)
                return
            following = commits.read(self._disk, tail.end)
            if following.again:
                self._reload(locked=locked)
                return
            self._files.at = tail.end
            self._take(loaded)
            if following.end is tail.end or following.end.offset == tail.end.offset:
                return
            tail = following

    def _reload(self, *, locked: bool) -> None:
        """Read everything from the beginning."""
        if not locked:
            with self._file_lock.shared("read"):
                self._reload(locked=True)
            if self._distrusted:
                with suppress(StoreError), self._writing("recover"):
                    pass  # coming in is enough: whoever writes makes the log anew
            return
        tail = commits.read(self._disk, commits.Position(ordinal=self._files.at.ordinal))
        self._files.finish(tail.end)
        if tail.damaged:
            tail.end.lengths = self._files.salvaged()
        parts = {name: (0, end) for name, end in tail.end.lengths.items()}
        loaded = loading.load(self._disk, parts, self._known)
        # Only now, when nothing can fail any more, is what was known given up.
        self._files.at, self._distrusted = tail.end, tail.damaged
        self._journal = Journal()
        self._damaged.clear()
        self._forget_indexes()
        self._forget_answers()
        self._take(loaded)
        self._buffer.replay(self._journal, self._files)
        for memory_id, accesses in self._pending.items():
            self._journal.touch(memory_id, accesses)

    def _take(self, loaded: loading.Loaded) -> None:
        loaded.into(self._journal)
        self._journal.last = max(self._journal.last, self._files.at.sequence)
        self._files.at.sequence = self._journal.last
        self._damaged.update(loaded.damaged)
        self._known |= loaded.known
        if loaded.vectors or loaded.settings:
            self._forget_indexes()

    def _forget_answers(self) -> None:
        super()._forget_answers()
        self._known: dict[bytes, Entry] = {}  # by the seals of their lines

    # -- keeping ----------------------------------------------------------------------------------------------

    def _keep(self, batch: Batch) -> None:
        change, sequence = changes.of_batch(self._journal, self._files, batch), batch.entries[-1].sequence
        try:
            self._commit(change, sequence)
        except StoreError as error:
            if not (self.durability == "relaxed" and error.retryable and self._buffer.takes(change)):
                raise
            self._buffer.add(Waiting(batch.writes, change, sequence))

    def _keep_vectors(self, vectors: Sequence[tuple[Entry, Vector]], settings: Mapping[str, str]) -> None:
        self._commit(changes.of_vectors(vectors, settings), self._journal.last)
        self._forget_indexes()

    def _keep_adoption(self, embedder: str, dimension: int) -> None:
        self._commit(changes.of_adoption(self._journal, self._files, embedder, dimension), self._journal.last)
        self._forget_indexes()

    def _keep_settings(self, values: Mapping[str, str]) -> None:
        if "durability" in values:
            _check_durability(values["durability"])
        if values:
            self._commit(changes.of_settings(values), self._journal.last)
            self.durability = values.get("durability", self.durability)
            self._disk.durable = self.durability == "full"

    def _commit(self, change: Change, sequence: int) -> None:
        """Write a change; a disk that fails is tried again, a little later each time."""
        retries = self.config.concurrency.max_retries
        for attempt in range(retries + 1):
            try:
                self._buffer.drain(self._files)
                self._files.commit(change, sequence)
                break
            except StoreError as error:
                if attempt == retries or not error.retryable:
                    raise
                time.sleep(self.config.concurrency.retry_backoff_ms * 2**attempt / 1000)
        try:
            self._files.finish(self._files.at)
        except StoreError as error:
            # It is committed and must become visible; whoever writes next tries again to exchange the files.
            self._unfinished = StoreError(
                f"the memory was erased, but its content may still stand in {self.path.name!r}",
                details=error.details,
                hint="check the disk; the next write tries again",
            )

    # -- bookkeeping ------------------------------------------------------------------------------------------

    def touch(self, ids: Iterable[str], at: datetime) -> None:
        """Count accesses in RAM; they are written on closing, or when there are many."""
        with self._reading():
            for memory_id in ids:
                one = Accesses(1, at)
                if self._journal.touch(memory_id, one):
                    self._pending[memory_id] = one.and_more(self._pending.get(memory_id))
            if len(self._pending) >= PENDING:
                self._flush_accesses()

    def _flush_accesses(self) -> None:
        # On behalf of a read: a full disk or a busy folder must not make reading fail. They stay in RAM.
        if not self._pending:
            return
        with suppress(StoreError), self._writing("touch"):
            self._commit(changes.of_accesses(self._journal, self._pending), self._journal.last)
            self._pending = {}

    # -- records ----------------------------------------------------------------------------------------------

    def records(self, owners: Owners, kind: str) -> list[Record]:
        """Read the files that may hold them."""
        with self._lock:
            self._check_open()
            return records.read_all(self._disk, owners, kind)

    def all_records(self) -> list[Record]:
        """Read every file that may hold one."""
        with self._lock:
            self._check_open()
            return records.read_everything(self._disk)

    def record(self, owner: Owner, kind: str, name: str) -> Record | None:
        """Read its file."""
        with self._lock:
            self._check_open()
            return records.read(self._disk, owner, kind, name)

    def put_record(self, record: Record) -> None:
        """Exchange its file at once."""
        with self._writing("put_record"):
            stored = records.read(self._disk, record.owner, record.kind, record.name)
            check_record(record, stored.version if stored else 0)
            session = records.described(record.owner, record.kind, record.name)
            derived = {} if session is None else summaries.derived(self._journal, session, self._disk)
            self._disk.replace(records.place(record.owner, record.kind, record.name), records.encode(record, derived))

    def drop_record(self, owner: Owner, kind: str, name: str) -> bool:
        """Delete its file."""
        with self._writing("drop_record"):
            if records.read(self._disk, owner, kind, name) is None:
                return False
            place = records.place(owner, kind, name)
            self._disk.remove(f"{place}.new")  # a crash may have left it
            self._disk.remove(place)
            return True

    # -- upkeep -----------------------------------------------------------------------------------------------

    def check(self, *, repair: bool = False) -> Diagnosis:
        """Read every line of every file; set damaged ones aside if asked to."""
        from recollect.stores.jsonl import doctor  # lazy: sound folders need none

        with self._writing("check"):
            found = doctor.examine(self._files, self._journal, repair=repair)
            if repair and found.findings:
                self._reload(locked=True)
                self._write_summaries(self._journal.owned)
            return found

    def accept(self, at: datetime) -> list[str]:
        """Take lines that a person edited over as new versions."""
        from recollect.stores.jsonl import edits  # lazy: as above

        with self._writing("accept"):
            found = edits.found(self._files, self._journal)
            if found:
                last = self._journal.last
                self._commit(edits.of_edits(found, self._files, last, at), last + len(found))
                self._reload(locked=True)
                self._write_summaries({edit.entry.owner for edit in found})
            return [edit.entry.memory_id for edit in found]

    def rebuild(self) -> None:
        """Read everything again, and write every index anew."""
        with self._writing("rebuild"):
            self._reload(locked=True)
            self._write_summaries(self._journal.owned)

    def compact(self, owners: Owners) -> None:
        """Rewrite the files of the owners without what was superseded, as one commit."""
        from recollect.stores.jsonl import compaction  # lazy: most processes never need it

        with self._writing("compact"):
            change = compaction.of_owners(self._journal, self._files, owners)
            if change.rewritten:
                self._commit(change, self._journal.last)
                counted = [one for one in owners if f"{folders.folder(one)}/{loading.ACCESSES}" in change.rewritten]
                for memory_id in (id for one in counted for id in self._journal.owned.get(one, ())):
                    self._pending.pop(memory_id, None)
            self._write_summaries(owners)

    def session_defaults(self) -> SessionConfig:
        """What ``config.json`` says."""
        return self._session_defaults

    def _write_summaries(self, owners: Iterable[Owner]) -> None:
        now = datetime.now(UTC)
        policy = self._session_defaults.decay
        summaries.write(self._disk, self._journal, owners, self._files.at.lengths, now, policy=policy)
        summaries.write_global(self._disk, self._journal, now)

    def _outdated(self) -> list[Owner]:
        return [owner for owner in self._journal.owned if summaries.outdated(self._disk, owner)]

    def _summarise(self) -> None:
        # Derived, and so never worth an error: who needs it can have it made again.
        with suppress(StoreError):
            if self._outdated():
                with self._writing("index"):
                    self._write_summaries(self._outdated())

    def _summarise_now_and_then(self) -> None:
        """A process may run for months. Writing the indexes costs as much as they are long, so the longer the rarer."""
        if self._files.at.ordinal - self._summarised < SUMMARISED_AFTER + len(self._journal.entries) // 4:
            return
        self._summarised = self._files.at.ordinal
        with suppress(StoreError):
            self._write_summaries(self._outdated())

    def health(self) -> Health:
        """Whether the folder can be read now, and how many lines of it cannot."""
        started = time.perf_counter()
        try:
            self.sequence()
            status, message = Status.HEALTHY, "ok"
        except RecollectError as error:
            status, message = Status.UNHEALTHY, error.code
        components = {"files": message}
        counts = {
            "damaged_lines": self._damaged.total(),
            "buffered_writes": len(self._buffer),
            "refused_writes": self._buffer.refused,
        }
        if any(counts.values()) and status is Status.HEALTHY:
            status = Status.DEGRADED
        components |= {name: str(count) for name, count in counts.items() if count}
        return Health(status=status, latency_ms=(time.perf_counter() - started) * 1000, components=components)

    def before_fork(self) -> None:
        """Wait for what is going on, and let nothing begin."""
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Go on. The accesses counted and the writes buffered until now are the parent's to write."""
        if in_child:
            self._lock = threading.RLock()
            self._pending, self._buffer = {}, Buffer()
            self._files.at = commits.Position()  # so that everything is read anew
        else:
            self._lock.release()

    def close(self) -> None:
        """Write what is pending and let go of everything. Closing twice is allowed."""
        with self._lock:
            if self._closed:
                return
            try:
                if self._buffer:
                    with self._writing("close"):
                        self._buffer.drain(self._files)
            finally:
                self._flush_accesses()
                self._summarise()
                self._closed = True
                self._journal = Journal()
                self._forget_indexes()
                self._forget_answers()


@cache
def _forks() -> Forks:
    """Tells of forks before the lock files hear of them: a thread that is inside one must be able to come out."""
    descriptors()
    return Forks()


def _is_ours(path: Path) -> bool:
    ours = {"journal", CONFIG, "indices", "records", loading.SETTINGS, *folders.FOLDERS.values()}
    there = {one.name for one in path.iterdir()}
    return not there or bool(there & ours)


def _check_durability(value: str | None) -> None:
    if value not in (None, *DURABILITIES):
        raise ConfigurationError(
            f"no durability is named {str(value)[:40]!r}",
            details={"field": "durability"},
            hint="use 'full' or 'relaxed'",
        )
