"""The store in plain files."""

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Self

from wellkept import logs
from wellkept.errors import ConfigurationError, NotAStore, StoreError, WellkeptError
from wellkept.ports import Capabilities, Store
from wellkept.settings import UrlForm
from wellkept.stores import folder_modes
from wellkept.stores.durability import check_durability
from wellkept.stores.forking import Forks
from wellkept.stores.jsonl import checks, config, derived, edits, git_files, lines, rewriting
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.journal import JsonlJournal
from wellkept.stores.jsonl.lines import CORRUPT
from wellkept.stores.jsonl.locks import Lock, descriptors
from wellkept.stores.jsonl.names import FOLDERS
from wellkept.stores.jsonl.owner_folder import DELETED, DERIVED
from wellkept.stores.jsonl.records import JsonlRecords
from wellkept.stores.jsonl.settings_file import MARK, SETTINGS
from wellkept.types import Component, Diagnosis, Health, Owners, SessionConfig, Status

LOCK = "lock"
CONFIG = "config.json"
_FORMER = ("journal/commits.jsonl", "settings.jsonl")


class JsonlStore(Store):
    """Memories in a folder of JSON Lines: one line for each version, readable without us.

    The lines alone are the truth. Everything is held in RAM as well; a read looks whether the files changed, and reads
    only what was appended.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = JsonlStore(pathlib.Path(folder.name) / "memory")
    >>> store.journal.owners(), store.journal.settings()["durability"]
    ([], 'full')
    >>> store.close(); folder.cleanup()
    """

    name = "jsonl"
    capabilities = Capabilities(durable=True, shared=True, erases=True, leases=True)
    url_form = UrlForm(sample="jsonl:memory", names="folder")
    path: Path
    journal: JsonlJournal
    records: JsonlRecords

    def __init__(
        self,
        path: Path,
        *,
        durability: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        check_durability(durability)
        self.path = path.absolute()
        self._disk = Disk(self.path)
        self._check_folder()
        self._disk.make_root()
        self._disk.read(CONFIG)  # not a link, and no pipe that would never end
        self.config = config.load(self.path / CONFIG)
        lock = Lock(self.path / LOCK, self.config.concurrency.locks)
        self.journal = JsonlJournal(self._disk, lock, self.config)
        self.journal.clock = clock
        self.records = JsonlRecords(self.journal, clock)
        self.journal.records = self.records
        self._prepare(durability)
        if self._folder_open():
            logs.folder_open("jsonl", self.path.name)
        _forks().tell(self.journal)

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
        return any((path / name).exists() for name in (SETTINGS, *FOLDERS.values()))

    @classmethod
    def creation(cls, url: str) -> Callable[[], None]:
        """Removes the files and folders that are made now."""
        root = Path(url.removeprefix("jsonl:")).expanduser().absolute()
        known = {one.name for one in root.iterdir()} if root.is_dir() else set()
        missing = [one for one in (root, *root.parents) if not one.exists()]
        was_there = cls.exists(url)

        def undo() -> None:
            if was_there:
                return
            for one in [one for one in root.iterdir() if one.name not in known]:
                shutil.rmtree(one) if one.is_dir() else one.unlink()
            for one in missing:
                one.rmdir()

        return undo

    @classmethod
    def git_files(cls, url: str) -> Callable[[], list[str]]:
        """Writes ``.gitattributes`` and ``.gitignore``."""
        return partial(git_files.write, Path(url.removeprefix("jsonl:")).expanduser())

    def _folder_open(self) -> bool:
        return folder_modes.everybody_writes(self.path, sticky_protects=False)

    def _check_folder(self) -> None:
        with self._disk.translated(self.path.name):
            if not self.path.exists():
                return
            is_folder = self.path.is_dir()
            if is_folder and self._is_former():
                raise NotAStore(
                    f"{self.path.name!r} was made before the first release, when the project had another name: no"
                    " release reads it",
                    details={"file": self.path.name},
                    hint="name an empty or a new folder, and add its memories anew; this one was left as it is",
                )
            if not (is_folder and _is_ours(self.path)):
                raise NotAStore(
                    f"{self.path.name!r} is not a folder of memories",
                    details={"file": self.path.name},
                    hint="name an empty or a new folder",
                )

    def _is_former(self) -> bool:
        """Whether the folder has the marks of the time before the first release, and none of ours."""
        settings: lines.Fields = {}
        with suppress(StoreError):  # what cannot be read here is told where it is needed
            settings = lines.as_object(self._disk.read(SETTINGS)[0]) or {}
        return MARK not in settings and ("version" in settings or any((self.path / name).exists() for name in _FORMER))

    def _prepare(self, durability: str | None) -> None:
        """Make what must be in the folder. The folder decides how durable it is: whoever makes it says so."""
        journal, disk = self.journal, self._disk
        found = journal.settings_there()
        if "origin" not in found or "epoch" not in found:
            with suppress(StoreError), journal.writing("create"):  # a folder that cannot be written can be read
                found = journal.settings_there()
                if not disk.look(CONFIG).inode:
                    disk.replace(CONFIG, config.dump(self.config).encode())
                if "origin" not in found and not journal.file.damaged:
                    journal.settle_settings({"durability": durability or "full"} | found)
                journal.file.begin_epoch()
        journal.finish()
        kept = journal.settings().get("durability", "full")
        if durability not in (None, kept):
            raise ConfigurationError(
                f"{self.path.name!r} has durability {kept!r}, not {durability!r}",
                details={"field": "durability", "stored": kept, "given": durability},
                hint="leave durability out, or change the store's with memories.configure(durability=...)",
            )
        disk.durable = kept != "relaxed"

    # -- upkeep -----------------------------------------------------------------------------------------------

    def lost_vectors(self, embedder: str) -> bool:
        """Vectors are derived: a clone has none, and neither has a line that a person wrote or a merge brought."""
        return bool(self.journal.unembedded(embedder, 1))

    def check(self, *, repair: bool = False) -> Diagnosis:
        """Read every line of every file; set damaged ones aside if asked to."""
        with self.journal.writing("check"):
            self.journal.reload()
            found = checks.examine(self.journal, repair=repair)
            if repair and found.findings:
                self.journal.reload()
            return found

    def accept(self, at: datetime) -> list[str]:
        """Take lines that people edited, appended or copied over as new versions."""
        with self.journal.writing("accept"):
            self.journal.reload()
            return edits.accept(self.journal, at)

    def rebuild(self) -> None:
        """Read everything again, and write every index anew."""
        with self.journal.writing("rebuild"):
            self.journal.reload()
            derived.write_indexes(self.journal, self.journal.known_owners())

    def compact(self, owners: Owners) -> None:
        """Rewrite the files of the owners without what nobody needs; archived memories move to a file of their own."""
        with self.journal.writing("compact"):
            for owner in owners:
                if self.journal.log_of(owner) is not None:
                    rewriting.compact(self.journal, owner)
            derived.write_indexes(self.journal, owners)

    def session_defaults(self) -> SessionConfig:
        """What ``config.json`` says."""
        return self.config.sessions

    def health(self) -> Health:
        """Whether the folder can be read now, and how many lines of it are not served."""
        started = time.perf_counter()
        journal, status, message = self.journal, Status.HEALTHY, "ok"
        try:
            journal.settings()
        except WellkeptError as error:
            status, message = Status.UNHEALTHY, error.code
        told = {
            "damaged_lines": journal.flaws().total(),
            "buffered_writes": len(journal.buffer),
            "folders_that_lost_lines": sum(one.lost is not None for one in journal.folders()),
            "folder": folder_modes.FINDING if self._folder_open() else "",
        }
        components = {"store": Component(status=status, message=message)}
        components |= {name: Component(status=Status.DEGRADED, message=str(one)) for name, one in told.items() if one}
        if status is Status.HEALTHY and any(told.values()):
            status = Status.DEGRADED
        return Health(status=status, latency_ms=(time.perf_counter() - started) * 1000, components=components)

    def damaged(self, owners: Owners | None = None) -> int:
        """The lines read so far that are unreadable, in the wrong folder, or do not fit their checksum."""
        flaws = self.journal.flaws(owners)
        return sum(flaws[kind] for kind in CORRUPT)

    def close(self) -> None:
        """Write what is pending and release everything. Closing twice is allowed."""
        self.journal.close()


@cache
def _forks() -> Forks:
    """Tells of forks before the lock files hear of them: a thread that is inside one must be able to come out."""
    descriptors()
    return Forks()


def _is_ours(path: Path) -> bool:
    ours = {CONFIG, LOCK, "records", SETTINGS, DERIVED, DELETED, *FOLDERS.values()}
    there = {one.name for one in path.iterdir()} - {".git", ".gitignore", ".gitattributes"}
    return not there or bool(there & ours)
