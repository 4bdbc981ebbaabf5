"""A store: the bundle of a journal, records and, if it brings its own, an index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Self

from wellkept.errors import Unsupported, WellkeptError
from wellkept.ports.index import Images, Index
from wellkept.ports.journal import Journal
from wellkept.ports.records import Records
from wellkept.settings import Section, UrlForm
from wellkept.types import Component, Diagnosis, Health, MigrationReport, Owners, Scrubbed, SessionConfig, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store promises beyond the ports. The kit checks each in both directions.

    ``durable``: an acknowledged write survives closing, crashing and power loss. ``shared``: several processes may use
    it at once. ``erases``: no byte of erased content remains in what the store keeps. ``leases``: its records have
    leases. ``batches``: an append may span several owners.
    """

    durable: bool
    shared: bool
    erases: bool
    leases: bool = False
    batches: bool = True


class Store(ABC):
    """What ``wellkept.open(url)`` opens: a journal, records, and an index if the store brings one.

    The class declares what is known of a store before it is opened: ``section``, its settings, which stand in
    ``[database.NAME]``; and ``url_form``, how its URLs are read. An open store has a ``path`` if it is a file or a
    folder: what belongs to the database and must not be in it is put beside that.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    capabilities: ClassVar[Capabilities]
    section: ClassVar[type[Section] | None] = None
    url_form: ClassVar[UrlForm] = UrlForm()

    path: Path | None = None
    journal: Journal
    records: Records
    images: Images | None = None

    @property
    def index(self) -> Index | None:
        """An index of its own; without one the engine makes one in RAM."""
        return None

    @classmethod
    @abstractmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open the store that a URL names, creating it if it is not there."""

    @classmethod
    def canonical(cls, url: str) -> Hashable:
        """What a URL names, equal for all URLs of one place: by default the file or the folder, or the URL itself."""
        if cls.url_form.names is None:
            return url
        rest = url.partition(":")[2]
        path = Path(rest if cls.section is None else rest.partition("?")[0]).expanduser()
        if not path.exists():
            return path.resolve()
        found = path.stat()  # the same, by whatever link it is reached
        return found.st_dev, found.st_ino

    @classmethod
    def exists(cls, url: str) -> bool:  # noqa: ARG003  # by default only opening can tell
        """Whether there is something at a URL that opening would not have to make first."""
        return True

    @classmethod
    def creation(cls, url: str) -> Callable[[], None]:  # noqa: ARG003  # by default nothing is known of it
        """Asked before a store is opened: the function removes what opening makes, once it is closed again.

        It is called only if the store is still empty; a store that was there before is left as it is.
        """
        return lambda: None

    @classmethod
    def git_files(cls, url: str) -> Callable[[], list[str]] | None:  # noqa: ARG003  # few stores are plain text
        """What writes the files that git needs to merge the store of a URL, and names those that it changed; ``None``
        if git cannot merge it.
        """
        return None

    @classmethod
    def migrate(cls, url: str, to: int | None = None, *, dry_run: bool = False) -> MigrationReport:  # noqa: ARG003
        """Bring what is stored at a URL to a schema, the newest if none is given; nobody may have it open meanwhile."""
        raise Unsupported(
            f"a {cls.name} store has no schemas to migrate between",
            details={"capability": "migrate"},
            hint="opening it brings it up to date",
        )

    @property
    def place(self) -> str:
        """Where it is, for people: the path of its file or folder, the name of a server, or nothing."""
        return "" if self.path is None else str(self.path)

    @abstractmethod
    def close(self) -> None:
        """Release everything; further calls raise ``StoreClosed``. Closing twice is allowed."""

    def health(self) -> Health:
        """Whether the store can work now: by default, whether it answers."""
        try:
            self.journal.settings()
        except WellkeptError as error:
            failed = Component(status=Status.UNHEALTHY, message=error.code)
            return Health(status=Status.UNHEALTHY, latency_ms=0.0, components={"store": failed})
        return Health(status=Status.HEALTHY, latency_ms=0.0, components={"store": Component()})

    def damaged(self, owners: Owners | None = None) -> int:  # noqa: ARG002  # nothing is skipped by default
        """How many lines or rows, of some owners or of all, were found damaged and are skipped, as far as read."""
        return 0

    def lost_vectors(self, embedder: str) -> bool:  # noqa: ARG002  # a store keeps what it was given
        """Whether memories lack vectors of an embedder that somebody else may have removed, as in a clone of files."""
        return False

    def check(self, *, repair: bool = False) -> Diagnosis:  # noqa: ARG002  # nothing to repair by default
        """Look for damage, and repair what can be repaired if asked to."""
        self.journal.settings()  # a closed store cannot be called sound
        return Diagnosis(checks=())

    def rebuild(self) -> None:
        """Derive everything that is derived from the journal again."""
        self.journal.settings()

    def compact(self, owners: Owners) -> None:  # noqa: ARG002  # nothing to give back by default
        """Give back the bytes that the owners' memories take without need. What can be read does not change."""
        self.journal.settings()

    def scrub(self) -> Scrubbed:
        """Remove the bytes of what was erased, as far as the store can, and tell where some may remain. A store that
        ``erases`` has nothing left to do.
        """
        self.journal.settings()
        return Scrubbed()

    def accept(self, at: datetime) -> list[str]:  # noqa: ARG002  # nobody edits what is not plain text
        """Take what people changed in the files themselves over as new versions, recorded at a time; the ids."""
        self.journal.settings()
        return []

    def session_defaults(self) -> SessionConfig | None:
        """How sessions are configured here unless they say otherwise; ``None`` where the store has no opinion."""
        return None
