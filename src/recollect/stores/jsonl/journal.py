"""The journal in plain files: everything is held in RAM, and each read looks whether the files changed."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from recollect import codec, logs
from recollect.errors import StoreClosed, StoreError
from recollect.ports import Counters, Plan
from recollect.stores.in_memory import InMemoryJournal
from recollect.stores.jsonl import compaction, derived, order, writing
from recollect.stores.jsonl.batches import Batches
from recollect.stores.jsonl.config import JsonlConfig
from recollect.stores.jsonl.disk import Disk, Look
from recollect.stores.jsonl.folders import FOLDERS, folder
from recollect.stores.jsonl.lines import Line
from recollect.stores.jsonl.locks import Lock
from recollect.stores.jsonl.owner_folder import OwnerFolder
from recollect.stores.jsonl.settings_file import SettingsFile
from recollect.stores.jsonl.writing import Part
from recollect.stores.owner_log import Accesses, OwnerLog
from recollect.types import Access, Embedded, Guard, Operation, Owner, Stamp, Stored

if TYPE_CHECKING:
    from recollect.stores.jsonl.records import JsonlRecords

_RACY_NS = 50_000_000
"""Two changes of a folder within one tick of the system's clock look like one."""


class JsonlJournal(InMemoryJournal):
    """Versions as lines. One writer at a time, by a lock between processes; readers take no lock."""

    def __init__(self, disk: Disk, lock: Lock, config: JsonlConfig) -> None:
        super().__init__(os.urandom)
        self.disk, self.config = disk, config
        self.closed = False
        self.dirty: set[Owner] = set()  # written to by this process: their indexes are outdated
        self.buffer: list[Sequence[Part]] = []
        self._file_lock = lock
        self._file = SettingsFile(disk)
        self._folders: dict[str, OwnerFolder] = {}
        self._layers: dict[str, int] = {}
        self._batches = Batches()
        self._unfinished: StoreError | None = None

    def guarded_by(self, records: "JsonlRecords") -> None:
        """Where the versions and leases stand that guards name."""
        self._records = records

    def _versions_of_guards(self, guards: Sequence[Guard]) -> Mapping[tuple[Owner, str, str], int]:
        return self._records.versions(guards)

    def _tokens_of_guards(self, guards: Sequence[Guard]) -> Mapping[str, int]:
        return self._records.tokens() if any(guard.lease is not None for guard in guards) else {}

    # -- coming in --------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Refuse to work after ``close``."""
        if self.closed:
            raise StoreClosed("the store is closed", hint="open it again")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock of this process, and know what others wrote."""
        with self._lock:
            self.check_open()
            self._refresh()
            yield

    @contextmanager
    def writing(self, operation: str) -> Iterator[None]:
        """The same, and nobody else writes."""
        with self._lock:
            self.check_open()
            with self._file_lock.exclusive(operation):
                self._refresh()
                self._purge_left()
                yield
            if self._unfinished is not None:
                error, self._unfinished = self._unfinished, None
                raise error

    _reading, _writing = reading, writing

    # -- taking in what others wrote --------------------------------------------------------------------------

    def reload(self) -> None:
        """Read everything again."""
        for one in self._folders.values():
            one.seen, one.loaded = Look(), False
        self._layers.clear()
        self._file.seen = None
        self._refresh()

    def _refresh(self) -> None:
        embedder = self._settings.get("embedder")
        self._settings |= self._file.news()
        self._find_folders()
        changed = [one for one in self._folders.values() if not one.loaded or self.disk.look(one.memory) != one.seen]
        if changed:
            self._read(changed)
        for one in self._folders.values():
            if one.owner is not None and self.disk.look(one.derived("vectors.jsonl")) != one.vectors_seen:
                self._settle(one, one.read_vectors(self.disk))
        if self._settings.get("embedder") != embedder:
            for one in self._folders.values():
                one.forget_vectors()
                one.read_vectors(self.disk)
                self._settle(one, None)

    def _find_folders(self) -> None:
        for layer in FOLDERS.values():
            changed = self.disk.look(layer).changed
            if changed == self._layers.get(layer):
                continue
            is_settled = time.time_ns() - changed > _RACY_NS
            self._layers[layer] = changed if is_settled else -1
            there = {f"{layer}/{name}" for name, is_folder in self.disk.entries(layer) if is_folder}
            for name in there - self._folders.keys():
                self._folders[name] = OwnerFolder(name)
            for name in [one for one in self._folders if one.startswith(f"{layer}/") and one not in there]:
                gone = self._folders.pop(name)
                self._batches.forget(name)
                if gone.owner is not None and not any(part.folder is gone for parts in self.buffer for part in parts):
                    self._logs.pop(gone.owner, None)

    def _read(self, changed: Sequence[OwnerFolder]) -> None:
        """Read what changed, let batches that are complete now pass, and only then number and take."""
        tails: dict[str, list[Line]] = {}
        wholes: dict[str, list[Line]] = {}
        released: list[tuple[str, Line]] = []
        for one in changed:
            found = one.tail(self.disk)
            if found is None or not self._follows(one, found):
                self._batches.forget(one.name)
                wholes[one.name] = one.whole(self.disk) + self._buffered(one)
            else:
                tails[one.name] = found
        for name, found in (tails | wholes).items():
            released += self._batches.add(name, found)
        for name, found in wholes.items():
            self._load(self._folders[name], found)
        arrived = {name: [line for name_, line in released if name_ == name] for name, _ in released}
        for name in tails.keys() | arrived.keys() - wholes.keys():
            known = {line.stored.stamp for line in arrived.get(name, ())}
            tail = [line for line in tails.get(name, ()) if line.stored.stamp not in known]
            passing = [*arrived.get(name, ()), *(line for line in tail if self._batches.counts(line))]
            if passing:  # a batch that was read in two pieces: its last lines release the first ones
                self._append_lines(self._folders[name], order.ordered(passing))

    def _follows(self, folder_: OwnerFolder, tail: Sequence[Line]) -> bool:
        """Whether appended lines simply continue what is known; a merge or a copy does not."""
        log = self._logs.get(folder_.owner) if folder_.owner is not None else None
        last = folder_.last
        for line in tail:
            head = log.heads.get(line.stored.id) if log is not None else None
            if line.after != last or (head is not None and head.operation is Operation.ERASED):
                return False
            last = line.stored.stamp
        folder_.last = last
        return True

    def _buffered(self, one: OwnerFolder) -> list[Line]:
        return [line for parts in self.buffer for part in parts if part.folder is one for line in part.lines]

    def _load(self, one: OwnerFolder, found: Sequence[Line]) -> None:
        """Put the versions of a folder into the place of what was known of it."""
        if one.owner is None:
            return
        every = order.ordered(found)
        one.last = every[-1].stored.stamp if every else None
        erased = {line.stored.id for line in every if line.stored.operation is Operation.ERASED}
        one.left = any(line.stored.id in erased and line.stored.operation is not Operation.ERASED for line in every)
        natural = [
            line
            for line in every
            if self._batches.counts(line)
            and (line.stored.id not in erased or line.stored.operation is Operation.ERASED)
        ]
        before, kept = self._logs.get(one.owner), derived.read_numbers(self.disk, one)
        seen = _seen(before, kept)
        one.gone = {stamp: seen.by_stamp[stamp] for stamp in _removed(every) if stamp in seen.by_stamp}
        numbers = order.numbered(natural, seen)
        if not order.is_natural(natural, numbers) and (every_number := _with_gone(one, numbers)) != kept:
            derived.write_numbers(self.disk, one, every_number)
        self._note_vanished(one, before, every)
        first = before is None
        log = self._logs[one.owner] = OwnerLog(codec.encode_owner(one.owner))
        log.counters = Counters(seq=numbers.last)
        log.revision = 0 if before is None else before.revision
        one.forget_versions()
        for line in sorted(natural, key=lambda line: numbers.by_stamp[line.stored.stamp]):
            self._number(one, log, line, numbers.by_stamp[line.stored.stamp])
            one.note(line)
        if before is not None and log.versions[: len(before.versions)] != before.versions:
            log.revision += 1
        if first:
            for memory_id, accesses in derived.read_accesses(self.disk, one).items():
                if self._is_live(one.owner, memory_id):
                    self._accesses[one.owner, memory_id] = Accesses(*accesses)
        one.read_vectors(self.disk)
        self._settle(one, None, revise=before is not None)

    def _note_vanished(self, one: OwnerFolder, before: OwnerLog | None, found: Sequence[Line]) -> None:
        there = {line.stored.stamp for line in found}
        removed = _removed(found)
        known = [] if before is None else before.versions
        one.vanished |= {version.stamp: version for version in known}
        for stamp in [stamp for stamp in one.vanished if stamp in there or stamp in removed]:
            del one.vanished[stamp]

    def _append_lines(self, one: OwnerFolder, found: Sequence[Line]) -> None:
        """Take in versions that others appended."""
        log, touched = self._log(found[0].stored.owner), {line.stored.id for line in found}
        before = self._totals(log, touched)
        for line in found:
            self._number(one, log, line, log.counters.seq + 1)
            one.note(line)
        if self.disk.look(one.derived("vectors.jsonl")) != one.vectors_seen:
            one.read_vectors(self.disk)
        self._settle(one, touched, revise=False, before=before)

    def _number(self, one: OwnerFolder, log: OwnerLog, line: Line, seq: int) -> None:
        head, last_at = log.heads.get(line.stored.id), log.counters.last_at
        recorded_at = max(line.stored.recorded_at, last_at)
        born, born_at = (seq, recorded_at) if head is None else (head.born, head.born_at)
        if head is None and line.stored.operation is Operation.ERASED:
            born, born_at = (
                min([seq, *(one.gone.get(Stamp(stamp), seq) for stamp in line.removed)]),
                line.stored.born_at,
            )
        log.take(line.stored._replace(seq=seq, born=born, born_at=born_at, recorded_at=recorded_at))
        log.counters = log.counters._replace(seq=max(seq, log.counters.seq), last_at=recorded_at)

    def _totals(self, log: OwnerLog, ids: Iterable[str]) -> tuple[int, int]:
        """How many of some memories there are, and their bytes."""
        heads = [head for one in ids if (head := log.heads.get(one)) and head.operation is not Operation.ERASED]
        return len(heads), sum(map(self._size, heads))

    def _settle(
        self,
        one: OwnerFolder,
        ids: set[str] | None,
        *,
        revise: bool = True,
        before: tuple[int, int] | None = None,
    ) -> None:
        """Choose the vectors of some memories of a folder, or of all, and count these; ``before`` is what was counted
        of them until now.
        """
        log = self._logs.get(one.owner) if one.owner is not None else None
        if one.owner is None or log is None or ids == set():
            return
        changed = False
        chosen = log.heads.keys() if ids is None else ids & log.heads.keys()
        memories, size = log.counters[1:3] if ids is None else before or self._totals(log, chosen)
        for memory_id in chosen:
            place = (one.owner, memory_id)
            former = self._vectors.pop(place, None)
            self._renewed.pop(place, None)
            for vector in one.vectors_of(memory_id):
                if "embedder" not in self._settings:  # the settings were lost
                    self._settings |= {"embedder": vector.embedder, "dimension": str(vector.dimension)}
                if vector.embedder != self._settings["embedder"]:
                    self._renewed[place] = vector
                elif str(vector.dimension) == self._settings.get("dimension"):
                    self._vectors[place] = vector
            changed = changed or self._vectors.get(place) != former
        now, size_now = self._totals(log, chosen)
        log.counters = log.counters._replace(
            memories=log.counters.memories + now - memories, bytes_used=log.counters.bytes_used + size_now - size
        )
        log.revision = max(log.revision + (revise and changed), one.revision)

    # -- keeping ----------------------------------------------------------------------------------------------

    def folder_of(self, owner: Owner) -> OwnerFolder:
        """The folder of an owner, which need not exist yet."""
        name = folder(owner)
        found = self._folders.setdefault(name, OwnerFolder(name, loaded=True))
        found.owner = owner
        return found

    def log_of(self, owner: Owner) -> OwnerLog | None:
        """What is known of an owner."""
        return self._logs.get(owner)

    def folders(self) -> list[OwnerFolder]:
        """Every folder."""
        return list(self._folders.values())

    def _keep(self, planned: Plan, stored: Sequence[Stored]) -> None:
        brought = {}
        if planned.embedder is not None and "embedder" not in self._settings:
            brought = {"embedder": planned.embedder, "dimension": str(planned.dimension)}
            self._keep_settings(brought)
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
            self.dirty.add(part.lines[0].stored.owner)
            for line in part.lines:
                part.folder.note(line)
                if line.batch is not None:
                    self._batches.complete(line.batch.id)
        for line in sorted((line for part in parts for line in part.lines), key=lambda line: line.stored.seq):
            self.folder_of(line.stored.owner).last = line.stored.stamp

    def commit(self, parts: Sequence[Part]) -> None:
        """Write lines, all or none; a disk that fails is tried again, a little later each time."""
        retries = self.config.concurrency.max_retries
        for attempt in range(retries + 1):
            try:
                self.drain()
                writing.write(self.disk, parts)
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
            versions = [one for one in (*log.versions, *stored) if (one.owner, one.id) in erased]
            folder_.gone |= {one.stamp: one.seq for one in versions if one.operation is not Operation.ERASED}
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
                writing.purge(self.disk, one, gone)
                numbers = order.Numbers({version.stamp: version.seq for version in log.versions}, log.counters.seq)
                derived.write_numbers(self.disk, one, _with_gone(one, numbers))
                one.left = False
            except StoreError as error:
                self._unfinished = StoreError(
                    f"the memory was erased, but its content may still stand in {one.name!r}",
                    details=error.details,
                    hint="check the disk; the next write tries again",
                )

    def _keep_vectors(self, vectors: Sequence[Embedded], settings: Mapping[str, str]) -> None:
        if settings:
            self._keep_settings(settings)
        for one in vectors:
            head = self._logs[one.owner].heads[one.id]
            folder_ = self.folder_of(one.owner)
            embedder = (self._settings | dict(settings)).get("embedder")
            revision = max(folder_.revision, self._logs[one.owner].revision) + (one.vector.embedder == embedder)
            writing.keep_vector(self.disk, folder_, one.id, head.stamp, one.vector, revision=revision)

    def _keep_adoption(self, embedder: str, dimension: int) -> None:
        values = {name: value for name, value in self._settings.items() if name != "calibration"}
        self._file.write(values | {"embedder": embedder, "dimension": str(dimension)})
        with suppress(StoreError):  # derived: whoever reads them passes over those of another embedder
            for one in self._folders.values():
                one.forget_vectors(embedder)
                one.revision += 1
                compaction.compact_vectors(self.disk, one, self._logs.get(one.owner) if one.owner else None)

    def _keep_settings(self, values: Mapping[str, str]) -> None:
        self._file.write(self._settings | dict(values))
        self.disk.durable = values.get("durability", self._settings.get("durability")) != "relaxed"

    def _keep_accesses(self, accesses: Sequence[Access]) -> None:
        with suppress(StoreError):  # bookkeeping: a full disk must not make reading fail
            known = [one for one in accesses if self._is_live(one.owner, one.id)]
            derived.add_accesses(self.disk, [(self.folder_of(one.owner), one) for one in known])

    def _is_live(self, owner: Owner, memory_id: str) -> bool:
        log = self._logs.get(owner)
        head = None if log is None else log.heads.get(memory_id)
        return head is not None and head.operation is not Operation.ERASED

    # -- telling ----------------------------------------------------------------------------------------------

    def flaws(self) -> Counter[str]:
        """The lines that are not served, by the reason."""
        found: Counter[str] = Counter()
        for one in self._folders.values():
            found.update(one.flaws)
        found["unfinished"] += len(self._batches)
        return +found

    def known_owners(self) -> list[Owner]:
        """Everybody who has versions."""
        return [owner for owner, log in self._logs.items() if log.versions]

    def settings_there(self) -> dict[str, str]:
        """What the files of the settings say now."""
        self._file.seen = None
        found = self._file.news()
        self._settings |= found
        return found

    def counts(self, line: Line) -> bool:
        """Whether the batch of a line is complete."""
        return self._batches.counts(line)

    def origin(self) -> str:
        """The origin of this folder."""
        return self._settings["origin"]

    @property
    def file(self) -> SettingsFile:
        """The file of the settings."""
        return self._file

    def settle_settings(self, values: Mapping[str, str]) -> None:
        """Write settings of a new folder, or such as were lost."""
        self._settings |= values
        self._file.write(self._settings)

    def hold(self) -> None:
        """Let no thread of this process begin anything."""
        self._lock.acquire()

    def let_go(self, *, in_child: bool) -> None:
        """Go on after a fork."""
        if in_child:
            self._lock = threading.RLock()
            self.forget_everything()
        else:
            self._lock.release()

    def held(self) -> AbstractContextManager[object]:
        """Hold the lock of this process, whatever state the store is in."""
        return self._lock

    def forget_everything(self) -> None:
        """What is held belongs to another process now, or to nobody."""
        self._logs.clear()
        self._folders.clear()
        self._layers.clear()
        self._batches = Batches()
        self.buffer = []
        for kept in (self._vectors, self._renewed):
            kept.clear()
        self._accesses.clear()
        self._file.seen = None


def _removed(found: Sequence[Line]) -> set[Stamp]:
    """The stamps that tombstones took away."""
    return {Stamp(stamp) for line in found for stamp in line.removed}


def _with_gone(one: OwnerFolder, numbers: order.Numbers) -> order.Numbers:
    return order.Numbers({**one.gone, **numbers.by_stamp}, numbers.last)


def _seen(before: OwnerLog | None, kept: order.Numbers) -> order.Numbers:
    """The sequences that this process, or an earlier one, has given away."""
    given = dict(kept.by_stamp)
    taken = set(given.values())
    for version in before.versions if before is not None else ():
        if version.stamp not in given and version.seq not in taken:
            given[version.stamp] = version.seq
    return order.Numbers(given, max(kept.last, before.counters.seq if before is not None else 0))
