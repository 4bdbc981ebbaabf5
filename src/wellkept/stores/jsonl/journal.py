"""The journal in plain files: everything is held in RAM, and each read looks whether the files changed."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wellkept import logs
from wellkept.errors import StoreClosed, StoreError, WellkeptError
from wellkept.ports import Counters, Plan, StoreSettings
from wellkept.stores.durability import check_durability
from wellkept.stores.jsonl import derived, edits, foreign, rewriting, writing
from wellkept.stores.jsonl.config import JsonlConfig
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.following import FollowingJournal
from wellkept.stores.jsonl.locks import Lock
from wellkept.stores.jsonl.names import folder
from wellkept.stores.jsonl.order import Batches
from wellkept.stores.jsonl.owner_folder import ARCHIVE, DAMAGED, DELETED, MEMORY, TOMBSTONES, OwnerFolder
from wellkept.stores.jsonl.settings_file import MARK
from wellkept.stores.jsonl.writing import Part, Unforced
from wellkept.types import Access, Embedded, Guard, Operation, Owner, Owners, Stored

if TYPE_CHECKING:
    from wellkept.stores.jsonl.records import JsonlRecords


class JsonlJournal(FollowingJournal):
    """Versions as lines. One writer at a time, by a lock between processes; readers take no lock."""

    def __init__(self, disk: Disk, lock: Lock, config: JsonlConfig) -> None:
        super().__init__(disk)
        self._new_origin = self._settings.pop("origin")  # for a folder that has none
        self.config = config
        self._closed = False
        self._dirty: set[Owner] = set()  # written to by this process: their indexes are outdated
        self._file_lock = lock
        self._unfinished: StoreError | None = None
        self._unforced: Unforced | None = None
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.records: JsonlRecords  # where the versions and leases stand that guards name

    def _versions_of_guards(self, guards: Sequence[Guard]) -> Mapping[tuple[Owner, str, str], int]:
        return self.records.versions(guards)

    def _tokens_of_guards(self, guards: Sequence[Guard]) -> Mapping[str, int]:
        return self.records.tokens() if any(guard.lease is not None for guard in guards) else {}

    # -- coming in --------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Refuse to work after ``close``."""
        if self._closed:
            raise StoreClosed("the store is closed", hint="open it again")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock of this process, and know what others wrote."""
        with self._lock:
            self.check_open()
            self._refresh()
            if self._accepts():
                with suppress(StoreError), self.writing("accept"):  # where nothing can be written, it waits
                    pass
            yield

    @contextmanager
    def writing(self, operation: str) -> Iterator[None]:
        """The same, and nobody else writes. Lines are forced to the disk when the lock is free again: the system then
        forces those of all writers at once.
        """
        with self._lock:
            self.check_open()
            with self._file_lock.exclusive(operation):
                self._refresh()
                self._purge_left()
                if self._accepts() and operation != "check":
                    edits.accept(self, self.clock())
                yield
            unforced, self._unforced = self._unforced, None
            if self._unfinished is not None:
                error, self._unfinished = self._unfinished, None
                raise error
        if unforced is not None:
            self._force(unforced)

    def _force(self, unforced: Unforced) -> None:
        """Force lines to the disk. If it fails for good, they are taken back, unless others wrote behind them."""
        try:
            self.disk.force(unforced.folder.memory)
        except StoreError as error:
            with self._lock, self._file_lock.exclusive("append"):
                self._force_again(unforced, error)

    def _force_again(self, unforced: Unforced, failed: StoreError) -> None:
        name, concurrency = unforced.folder.memory, self.config.concurrency
        for attempt in range(concurrency.max_retries):
            if self.disk.look(name).inode != unforced.inode:
                return  # it was replaced, and forced to the disk with that
            time.sleep(concurrency.retry_backoff_ms * 2**attempt / 1000)
            try:
                self.disk.force(name, unforced.data, unforced.at)
            except StoreError as error:
                failed = error
            else:
                return
        if self.disk.look(name).size == unforced.at + len(unforced.data):
            with suppress(StoreError):
                self.disk.cut(name, unforced.at)
            self._refresh()
            unforced.folder.vanished.clear()
        raise failed

    _reading, _writing = reading, writing

    def _accepts(self) -> bool:
        return self.config.integrity.accept_edits and any(one.handwritten for one in self._folders.values())

    # -- keeping ----------------------------------------------------------------------------------------------

    def folder_of(self, owner: Owner) -> OwnerFolder:
        """The folder of an owner, which need not exist yet."""
        name = folder(owner)
        found = self._folders.setdefault(name, OwnerFolder(name, loaded=True))
        found.owner = owner
        return found

    def folders(self) -> list[OwnerFolder]:
        """Every folder."""
        return list(self._folders.values())

    def _keep(self, planned: Plan, stored: Sequence[Stored]) -> None:
        if planned.embedder is not None and "embedder" not in self._settings:
            self._keep_settings({"embedder": planned.embedder, "dimension": str(planned.dimension)})
        self.migrate({one.owner for one in stored})
        parts = writing.parts_of(self, planned.steps, stored)
        erases = any(one.operation is Operation.ERASED for one in stored)
        try:
            self.commit(parts)
        except StoreError as error:
            relaxed = self._settings.get("durability") == "relaxed" and error.retryable
            if not relaxed or erases or len(self.buffer) >= writing.BUFFERED:
                raise
            self.buffer.append(parts)
            logs.writes_buffered(len(self.buffer), error.code)
        for part in parts:
            self._dirty.add(part.lines[0].stored.owner)
            for line in part.lines:
                part.folder.note(line)
                if line.batch is not None:
                    self.batches.complete(line.batch.id)
        for line in sorted((line for part in parts for line in part.lines), key=lambda line: line.stored.seq):
            self.folder_of(line.stored.owner).last = line.stored.stamp
            self.folder_of(line.stored.owner).lost = None  # the gap stands in the line now

    def rewrite(self, versions: Sequence[Stored]) -> None:
        """Write the files of the owners anew, and read them again."""
        with self.writing("rewrite"):
            self.drain()
            owners = {one.owner for one in versions}
            self.migrate(owners)
            for owner in owners & self._logs.keys():
                folder_, heads = self.folder_of(owner), self._logs[owner].heads
                others = {(one.id, one.stamp): one for one in versions if one.owner == owner}
                rewriting.rewrite(self.disk, folder_, others)
                folder_.loaded = False
                kept = folder_.vectors
                kept.forget_made()
                for one in others.values():
                    if one.vector is not None and one.id in heads and heads[one.id].stamp == one.stamp:
                        kept.keep(self.disk, one.id, one.stamp, one.vector, revision=kept.revision + 1)
            self._refresh()

    def migrate(self, owners: Set[Owner]) -> None:
        """Write sessions of the older format as lines of today, before the first line is added to them."""
        older = [one for one in self._folders.values() if one.decode_foreign is not None and one.owner in owners]
        for one in older:
            if one.owner is not None:
                foreign.migrate(self.disk, one.name, one.owner)
        if older:
            self._layers.clear()
            self._refresh()

    def commit(self, parts: Sequence[Part]) -> None:
        """Write lines, all or none; a disk that fails is tried again, a little later each time."""
        retries = self.config.concurrency.max_retries
        for attempt in range(retries + 1):
            try:
                self.drain()
                self._unforced = writing.write(self.disk, parts, later=parts[0].file == MEMORY)
                return
            except StoreError as error:
                if attempt == retries or not error.retryable:
                    raise
                time.sleep(self.config.concurrency.retry_backoff_ms * 2**attempt / 1000)

    def drain(self) -> None:
        """Write what waits for a disk that failed."""
        while self.buffer:
            writing.write(self.disk, self.buffer[0])
            del self.buffer[0]

    def _take(self, stored: Sequence[Stored], counters: Mapping[Owner, Counters]) -> None:
        erased = {(one.owner, one.id) for one in stored if one.operation is Operation.ERASED}
        for owner in {owner for owner, _ in erased}:
            log, folder_ = self._log(owner), self.folder_of(owner)
            own = (one for one in stored if one.owner == owner)
            versions = [one for one in (*log.versions, *own) if (one.owner, one.id) in erased]
            last = {one.id: one.stamp for one in versions}
            folder_.gone |= {one.stamp: one.seq for one in versions if one.stamp != last[one.id]}
            folder_.left = True
        super()._take(stored, counters)
        self._purge_left()

    def _purge_left(self) -> None:
        """Take what was erased out of the files. The tombstones are on the disk: whatever fails here is tried again by
        the next writer.
        """
        for one in self._folders.values():
            if not one.left or one.owner is None:
                continue
            log = self._logs[one.owner]
            gone = {head.id for head in log.heads.values() if head.operation is Operation.ERASED}
            try:
                rewriting.purge(self.disk, one, gone)
                derived.write_numbers(self.disk, one, self.numbers(one, log))
                one.left = False
            except StoreError as error:
                self._unfinished = StoreError(
                    f"the memory was erased, but its content may still stand in {one.name!r}",
                    details=error.details,
                    hint="check the disk; the next write tries again",
                )

    def finish(self) -> None:
        """Take out what a process erased that was killed before it had written the files anew. Where nothing can be
        written now, the next writer does.
        """
        with self.reading():
            is_left = any(one.left for one in self._folders.values())
        if is_left:
            with suppress(StoreError), self.writing("finish"):
                pass

    def _keep_vectors(self, vectors: Sequence[Embedded], settings: Mapping[str, str]) -> None:
        if settings:
            self._keep_settings(settings)
        self.migrate({one.owner for one in vectors})
        for one in vectors:
            head = self._logs[one.owner].heads[one.id]
            kept = self.folder_of(one.owner).vectors
            embedder = (self._settings | dict(settings)).get("embedder")
            revision = max(kept.revision, self._logs[one.owner].revision) + (one.vector.embedder == embedder)
            kept.keep(self.disk, one.id, head.stamp, one.vector, revision=revision)

    def _keep_adoption(self, embedder: str, dimension: int) -> None:
        values = {name: value for name, value in self._settings.items() if name != "calibration"}
        self.file.write(values | {"embedder": embedder, "dimension": str(dimension)})
        with suppress(StoreError):  # derived: whoever reads them passes over those of another embedder
            for one in self._folders.values():
                one.vectors.forget_made(embedder)
                one.vectors.revision += 1
                log = self.log_of(one.owner)
                one.vectors.compact(self.disk, () if log is None else log.heads.values())

    def _keep_settings(self, values: Mapping[str, str]) -> None:
        check_durability(values.get("durability"))
        self.file.write(self._settings | dict(values))
        self.disk.durable = values.get("durability", self._settings.get("durability")) != "relaxed"

    def count_accesses(self, accesses: Sequence[Access], *, wait_ms: int | None = None) -> None:
        """Add them up, and nothing else: what another write left to be done does not make counting fail."""
        lock = self._file_lock if wait_ms is None else self._file_lock.waiting(wait_ms)
        with self._lock:
            self.check_open()
            with lock.exclusive("count_accesses"):
                self._refresh()
                known = [one for one in accesses if self._is_live(one.owner, one.id)]
                derived.add_accesses(self.disk, [(self.folder_of(one.owner), one) for one in known])
            for one in known:
                self._take_access(one)

    # -- telling ----------------------------------------------------------------------------------------------

    def flaws(self, owners: Owners | None = None) -> Counter[str]:
        """The lines that are not served, by the reason."""
        found: Counter[str] = Counter()
        for one in self._folders.values():
            if owners is None or one.owner in owners:
                found.update(one.flaws)
        found["unfinished"] += len(self.batches)
        return +found

    def drop(self, owner: Owner) -> None:
        """Delete the folder of an owner of whom everything was erased; the tombstones are kept elsewhere."""
        one, log = self.folder_of(owner), self._logs.get(owner)
        erased = log is None or all(head.operation is Operation.ERASED for head in log.heads.values())
        if not erased or one.flaws:
            return
        tombstones, _ = self.disk.read(one.file(TOMBSTONES))
        self.disk.replace(one.file(DELETED), self.disk.read(one.file(DELETED))[0] + tombstones)
        files = (f"{one.name}/{file}" for file in (MEMORY, ARCHIVE, TOMBSTONES, DAMAGED))
        for name in (*files, *map(one.derived, derived.FILES)):
            self.disk.remove(name)
        one.sweep(self.disk)
        for name in (one.name, one.derived("")[:-1]):
            self.disk.remove_folder(name)
        self._dirty.discard(owner)
        one.loaded = False

    def known_owners(self) -> list[Owner]:
        """Everybody who has versions."""
        return [owner for owner, log in self._logs.items() if log.versions]

    def settings_there(self) -> dict[str, str]:
        """What the files of the settings say now."""
        self.file.seen = None
        found = self.file.news()
        self._settings |= found
        return found

    def origin(self) -> str:
        """The origin of this folder."""
        return self._all_settings()["origin"]

    def settings(self) -> StoreSettings:
        """The settings of the folder, the damaged ones among them."""
        with self.reading():
            return self._all_settings()

    def _all_settings(self) -> StoreSettings:
        damaged = {row.name for row in self.file.damaged}
        if not damaged:
            return StoreSettings({"origin": self._new_origin} | self._settings)
        sound = {name: value for name, value in self._settings.items() if name not in damaged}
        stamp = max((log.versions[-1].stamp for log in self._logs.values() if log.versions), default=None)
        return StoreSettings(sound, self.file.damaged).derive(self._settings, stamp)

    def settle_settings(self, values: Mapping[str, str]) -> None:
        """Write settings of a new folder."""
        self._settings = {"origin": self._new_origin, **self._settings, **values}
        self.file.write(self._settings)

    def mend_settings(self) -> None:
        """Write damaged settings anew, as far as it is known what they were."""
        settings = self._all_settings()
        mended = settings.mended()
        written = {name: value for name, value in mended.values() if value is not None and name != MARK}
        self._settings = {"origin": self._new_origin, **self._settings, **written, **settings.sound}
        self.file.write(self._settings, mended=mended)

    # -- ending -----------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for what is going on, and let nothing begin."""
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Go on. The writes buffered until now are the parent's to write."""
        if in_child:
            self._lock = threading.RLock()
            self._forget_everything()
        else:
            self._lock.release()

    def close(self) -> None:
        """Write what is pending and release everything. Closing twice is allowed."""
        with self._lock:
            if self._closed:
                return
            try:
                if self.buffer:
                    with self.writing("close"):
                        self.drain()
            finally:
                with suppress(WellkeptError):  # indexes are derived: who needs them can have them made again
                    if self._dirty:
                        with self.writing("index"):
                            derived.write_indexes(self, self._dirty)
                self._closed = True
                self._forget_everything()

    def _forget_everything(self) -> None:
        """What is held belongs to another process now, or to nobody."""
        self._logs.clear()
        self._folders.clear()
        self._layers.clear()
        self.batches = Batches()
        self.buffer = []
        for kept in (self._vectors, self._renewed):
            kept.clear()
        self._accesses.clear()
        self.file.seen = None
