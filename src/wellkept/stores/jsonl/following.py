"""What others wrote into the files of a folder, taken in as versions."""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial

from wellkept import codec
from wellkept.errors import StoreError
from wellkept.ports import Counters
from wellkept.stores.in_memory import InMemoryJournal
from wellkept.stores.jsonl import derived, foreign, order, writing
from wellkept.stores.jsonl.disk import Disk, Look
from wellkept.stores.jsonl.lines import Line
from wellkept.stores.jsonl.names import FOLDERS, owner_of
from wellkept.stores.jsonl.order import Batches
from wellkept.stores.jsonl.owner_folder import DELETED, OwnerFolder
from wellkept.stores.jsonl.settings_file import SettingsFile
from wellkept.stores.jsonl.writing import Part
from wellkept.stores.owner_log import Accesses, OwnerLog
from wellkept.types import Operation, Owner, Stamp

_RACY_NS = 50_000_000
"""Two changes of a folder within one tick of the system's clock look like one."""


class FollowingJournal(InMemoryJournal):
    """A journal that looks whether its files changed, and reads what was appended."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(os.urandom)
        self.disk = disk
        self.buffer: list[Sequence[Part]] = []
        self.file = SettingsFile(disk)
        self._folders: dict[str, OwnerFolder] = {}
        self._layers: dict[str, int] = {}
        self.batches = Batches()

    def log_of(self, owner: Owner | None) -> OwnerLog | None:
        """What is known of an owner."""
        return None if owner is None else self._logs.get(owner)

    def reload(self) -> None:
        """Read everything again."""
        for one in self._folders.values():
            one.seen, one.loaded = Look(), False
        self._layers.clear()
        self.file.seen = None
        self._refresh()

    def _refresh(self) -> None:
        self.disk.require_root()
        embedder = self._settings.get("embedder")
        self._settings |= self.file.news()
        self._find_folders()
        changed = [one for one in self._folders.values() if not one.loaded or self.disk.look(one.memory) != one.seen]
        if changed:
            self._read(changed)
            self._copy_damaged(changed)
        for one in self._folders.values():
            if one.owner is not None and one.vectors.changed(self.disk):
                self._settle(one, one.vectors.read(self.disk))
        if self._settings.get("embedder") != embedder:
            for one in self._folders.values():
                one.vectors.forget_made()
                one.vectors.read(self.disk)
                self._settle(one, None)

    def _find_folders(self) -> None:
        for layer in FOLDERS.values():
            changed = self.disk.look(layer).changed
            if changed == self._layers.get(layer):
                continue
            is_settled = time.time_ns() - changed > _RACY_NS
            self._layers[layer] = changed if is_settled else -1
            there = {f"{layer}/{name}" for name, is_folder in self.disk.entries(layer) if is_folder}
            deleted = self.disk.entries(f"{DELETED}/{layer}")
            there |= {f"{layer}/{name.removesuffix('.jsonl')}" for name, _ in deleted if name.endswith(".jsonl")}
            for name in there - self._folders.keys():
                one = self._folders[name] = OwnerFolder(name)
                if (owner := foreign.owner_of(self.disk, name)) is not None:
                    one.owner, one.decode_foreign = owner, partial(foreign.decoded, owner)
            for name in [one for one in self._folders if one.startswith(f"{layer}/") and one not in there]:
                gone = self._folders.pop(name)
                self.batches.forget(name)
                is_kept = any(one.owner == gone.owner for one in self._folders.values())
                is_buffered = any(part.folder is gone for parts in self.buffer for part in parts)
                if gone.owner is not None and not (is_kept or is_buffered):
                    self._logs.pop(gone.owner, None)

    def _read(self, changed: Sequence[OwnerFolder]) -> None:
        """Read what changed, let batches that are complete now pass, and only then number and take."""
        tails: dict[str, list[Line]] = {}
        wholes: dict[str, list[Line]] = {}
        released: list[tuple[str, Line]] = []
        for one in changed:
            found = one.tail(self.disk)
            if found is None or not self._follows(one, found):
                self.batches.forget(one.name)
                wholes[one.name] = one.whole(self.disk) + self._buffered(one)
            else:
                tails[one.name] = found
        for name, found in wholes.items():
            one = self._folders[name]
            one.kept = derived.read_numbers(self.disk, one)
            for line in found:  # what has a number was complete once
                if line.batch is not None and line.stored.stamp in one.kept.by_stamp:
                    self.batches.complete(line.batch.id)
        for name, found in (tails | wholes).items():
            released += self.batches.add(name, found)
        for name, found in wholes.items():
            self._load(self._folders[name], found)
        arrived = {name: [line for name_, line in released if name_ == name] for name, _ in released}
        for name in tails.keys() | arrived.keys() - wholes.keys():
            known = {line.stored.stamp for line in arrived.get(name, ())}
            tail = [line for line in tails.get(name, ()) if line.stored.stamp not in known]
            passing = [*arrived.get(name, ()), *(line for line in tail if self.batches.counts(line))]
            if passing:  # a batch that was read in two pieces: its last lines release the first ones
                self._append_lines(self._folders[name], order.ordered(passing))

    def _copy_damaged(self, changed: Sequence[OwnerFolder]) -> None:
        """Copy lines that cannot be read to a file of their own. If that fails, they still stand where they are."""
        for one in changed:
            fresh, one.fresh = one.fresh, []
            if fresh:
                with suppress(StoreError):
                    writing.set_aside(self.disk, one, fresh)

    def _follows(self, folder_: OwnerFolder, tail: Sequence[Line]) -> bool:
        """Whether appended lines simply continue what is known; a merge or a copy does not."""
        log = self.log_of(folder_.owner)
        last, newest = folder_.last, self.newest(folder_)
        for line in tail:
            head = log.heads.get(line.stored.id) if log is not None else None
            if line.after not in (last, newest) or (head is not None and head.operation is Operation.ERASED):
                return False
            last = line.stored.stamp
        folder_.last = last
        return True

    def newest(self, folder_: OwnerFolder) -> Stamp | None:
        """The line that the next one is linked to: the last one that counts. If lines at the end were removed, it is
        the last that ever was, so that the gap is seen from then on.
        """
        log = self.log_of(folder_.owner)
        if folder_.lost is not None or log is None or not log.versions:
            return folder_.lost
        return log.versions[-1].stamp

    def _buffered(self, one: OwnerFolder) -> list[Line]:
        return [line for parts in self.buffer for part in parts if part.folder is one for line in part.lines]

    def _load(self, one: OwnerFolder, found: Sequence[Line]) -> None:
        """Put the versions of a folder into the place of what was known of it."""
        one.owner = one.owner or owner_of(one.name)
        twin = any(other is not one and other.owner == one.owner for other in self._folders.values())
        if one.owner is None or (twin and not found):
            return
        every = order.ordered(found)
        one.last = every[-1].stored.stamp if every else None
        erased = {line.stored.id for line in every if line.stored.operation is Operation.ERASED}
        removed = _removed(every)
        gone = {
            line.stored.stamp
            for line in every
            if line.stored.id in erased
            and (line.stored.operation is not Operation.ERASED or line.stored.stamp in removed)
        }
        one.left = bool(gone)
        natural = [line for line in every if self.batches.counts(line) and line.stored.stamp not in gone]
        before, kept = self._logs.get(one.owner), one.kept
        seen = _seen(before, kept)
        one.gone = {stamp: seen.by_stamp[stamp] for stamp in removed if stamp in seen.by_stamp}
        numbers = order.numbered(natural, seen)
        self._note_vanished(one, before, every)
        self._note_lost(one, kept, every)
        if not order.is_natural(natural, numbers):
            every_number = order.Numbers({**one.gone, **numbers.by_stamp}, numbers.last, kept.newest)
            if every_number != kept:
                derived.write_numbers(self.disk, one, every_number)
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
        one.vectors.read(self.disk)
        self._settle(one, None, revise=before is not None)

    def _note_vanished(self, one: OwnerFolder, before: OwnerLog | None, found: Sequence[Line]) -> None:
        there = {line.stored.stamp for line in found}
        removed = _removed(found)
        known = [] if before is None else before.versions
        one.vanished |= {version.stamp: version for version in known}
        for stamp in [stamp for stamp in one.vanished if stamp in there or stamp in removed]:
            del one.vanished[stamp]

    def _note_lost(self, one: OwnerFolder, kept: order.Numbers, found: Sequence[Line]) -> None:
        """Notice that the last lines were removed since somebody closed the folder. In git they may be on another
        branch: there, git tells what was removed.
        """
        there = {line.stored.stamp for line in found} | _removed(found) | one.flawed
        there |= {line.stored.replaced for line in found if line.stored.replaced}  # edited, and taken over since
        is_lost = kept.newest is not None and kept.newest not in there and not self.disk.in_git()
        one.lost = kept.newest if is_lost else None

    def numbers(self, one: OwnerFolder, log: OwnerLog) -> order.Numbers:
        """The sequences that were given away, those of erased versions too."""
        given = {version.stamp: version.seq for version in log.versions}
        return order.Numbers({**one.gone, **given}, log.counters.seq, self.newest(one))

    def _append_lines(self, one: OwnerFolder, found: Sequence[Line]) -> None:
        """Take in versions that others appended."""
        log, touched = self._log(found[0].stored.owner), {line.stored.id for line in found}
        before = self._totals(log, touched)
        for line in found:
            self._number(one, log, line, log.counters.seq + 1)
            one.note(line)
        if one.vectors.changed(self.disk):
            one.vectors.read(self.disk)
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
        log = self.log_of(one.owner)
        if one.owner is None or log is None or ids == set():
            return
        changed = False
        chosen = log.heads.keys() if ids is None else ids & log.heads.keys()
        memories, size = log.counters[1:3] if ids is None else before or self._totals(log, chosen)
        for memory_id in chosen:
            place = (one.owner, memory_id)
            former = self._vectors.pop(place, None)
            self._renewed.pop(place, None)
            for vector in one.vectors.of(memory_id):
                if vector.embedder == self._settings.setdefault("embedder", vector.embedder):  # it may be lost
                    self._settings.setdefault("dimension", str(vector.dimension))
                if vector.embedder != self._settings["embedder"]:
                    self._renewed[place] = vector
                elif str(vector.dimension) == self._settings.get("dimension"):
                    self._vectors[place] = vector
            changed = changed or self._vectors.get(place) != former
        now, size_now = self._totals(log, chosen)
        log.counters = log.counters._replace(
            memories=log.counters.memories + now - memories, bytes_used=log.counters.bytes_used + size_now - size
        )
        log.revision = max(log.revision + (revise and changed), one.vectors.revision)

    def _is_live(self, owner: Owner, memory_id: str) -> bool:
        log = self.log_of(owner)
        head = None if log is None else log.heads.get(memory_id)
        return head is not None and head.operation is not Operation.ERASED


def _removed(found: Sequence[Line]) -> set[Stamp]:
    """The stamps that tombstones took away."""
    return {Stamp(stamp) for line in found for stamp in line.removed}


def _seen(before: OwnerLog | None, kept: order.Numbers) -> order.Numbers:
    """The sequences that this process, or an earlier one, has given away."""
    given = dict(kept.by_stamp)
    taken = set(given.values())
    for version in before.versions if before is not None else ():
        if version.stamp not in given and version.seq not in taken:
            given[version.stamp] = version.seq
    return order.Numbers(given, max(kept.last, before.counters.seq if before is not None else 0))
