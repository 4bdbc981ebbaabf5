"""The store on a server: any number of processes and machines write and read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Self, TypeVar
from urllib.parse import urlsplit

from wellkept.errors import ConfigurationError, StoreReadOnly, WellkeptError
from wellkept.ports import Capabilities, Index, Store
from wellkept.settings import UrlForm, read_options
from wellkept.stores.durability import check_durability
from wellkept.stores.forking import forks
from wellkept.stores.postgres import doctor, epochs, failures, health, migration, options, schema, scrub, tables
from wellkept.stores.postgres.journal import PostgresJournal
from wellkept.stores.postgres.options import Options, PostgresSettings
from wellkept.stores.postgres.records import PostgresRecords
from wellkept.stores.postgres.server import Server, Session
from wellkept.types import Component, Diagnosis, Health, MigrationReport, Owner, Scrubbed, Status, Usage

T = TypeVar("T")


class PostgresStore(Store):
    """Memories in one schema of a PostgreSQL database. Needs the extra ``postgres``.

    An acknowledged write is as durable as a commit of the server. What is erased cannot be read at once; its bytes
    leave the tables with ``scrub``, and the write-ahead log, replicas and backups with their retention.
    """

    name = "postgres"
    capabilities = Capabilities(durable=True, shared=True, erases=False, leases=True)
    section = PostgresSettings
    url_form = UrlForm(sample="postgresql://user@host/database")

    def __init__(self, chosen: Options, *, durability: str | None = None) -> None:
        check_durability(durability)
        self._options = chosen
        self.server = Server(chosen)
        self._index: Index | None = None
        try:
            self._prepare()
            self.durability = self._settle_durability(durability)
        except BaseException:  # reason: whatever ends the opening, its connections must not stay
            self.server.close()
            raise
        self.server.made = self._configure
        self.server.writers.drop_idle()
        self.journal: PostgresJournal = PostgresJournal(self.server)
        self.records: PostgresRecords = PostgresRecords(self.server)
        forks().tell(self)

    def _prepare(self) -> None:
        """Make the tables or bring them up to date, and begin an epoch if they are not where they were."""
        try:
            with self.server.writers.session() as session:
                place = self._options.place
                version = schema.version_of(session, self._options.schema)
                schema.check_not_newer(version, place)
                if version < schema.latest():
                    schema.migrate(session, self._options.schema, place, schema.latest())
                else:
                    epochs.begin(session)
                self.server.wrote(session)
        except failures.driver_error() as error:
            raise failures.translate(error) from error

    def _settle_durability(self, wanted: str | None) -> str:
        """The store's own durability holds; the process that makes the store chooses it."""
        kept = self.server.read(tables.settings).get("durability")
        if kept is None:
            kept = wanted or "full"
            if wanted is not None:
                self.server.write(lambda session: tables.put_settings(session, {"durability": wanted}))
        if wanted not in (None, kept):
            raise ConfigurationError(
                f"the store has durability {kept!r}, not {wanted!r}",
                details={"field": "durability", "stored": kept, "given": wanted},
                hint="leave durability out, or change the store's with memories.configure(durability=...)",
            )
        return kept

    def _configure(self, session: Session) -> None:
        """A new connection may be to another server than the last one: a failover begins an epoch."""
        [(commit,)] = session.rows("SELECT current_setting('synchronous_commit')")
        if self.durability == "relaxed" or commit == "off":
            session.run(f"SET synchronous_commit = {'off' if self.durability == 'relaxed' else 'on'}")
        epochs.begin(session)

    @property
    def index(self) -> Index:
        """In RAM and in tables of the server; made when it is first asked for."""
        if self._index is None:
            from wellkept.stores.postgres.search import PostgresIndex  # lazy: numpy takes 100 ms, and few search
            from wellkept.stores.postgres.search_tables import TableIndex  # lazy: the same

            self._index = PostgresIndex(TableIndex(self.server), self._memories, self._options.ram_rows)
        return self._index

    def _memories(self, owner: Owner) -> int:
        return self.journal.usage({owner}).get(owner, Usage()).memories

    @property
    def place(self) -> str:
        """Where it is, for people: hosts, database and schema. Not a path: nothing can be put beside it."""
        return self._options.place

    def __repr__(self) -> str:
        return f"<PostgresStore {self.place}>"

    @classmethod
    def from_url(cls, url: str, *, durability: str | None = None) -> Self:
        """Open ``postgresql://user@host/database``; ``schema`` and other options stand in its query."""
        return cls(options.parse(url), durability=durability)

    @classmethod
    def canonical(cls, url: str) -> Hashable:
        """Hosts, database and schema, whoever asks for them."""
        place, own = read_options(url, PostgresSettings)
        parts = urlsplit(place)
        return parts.netloc.rpartition("@")[2].removesuffix(":5432"), parts.path, own.schema or options.SCHEMA

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether the schema has our tables."""
        return _version(options.parse(url)) > 0

    @classmethod
    def creation(cls, url: str) -> Callable[[], None]:
        """Drops the tables that are made now."""
        chosen = options.parse(url)
        if _version(chosen) > 0:
            return lambda: None
        return lambda: _asked(chosen, lambda session: schema.drop(session, chosen.schema))

    @classmethod
    def migrate(cls, url: str, to: int | None = None, *, dry_run: bool = False) -> MigrationReport:
        """Make the tables, or bring them to a schema. Needs a user who may create them."""
        chosen = options.parse(url)
        target = schema.latest() if to is None else to
        return _asked(chosen, lambda session: migration.migrate(session, chosen, target, dry_run=dry_run))

    def health(self) -> Health:
        """Whether the server answers, who holds the feed back, and whether commits are as durable as promised."""
        started = time.perf_counter()
        try:
            components = health.components(self.server, self.durability)
        except StoreReadOnly:  # no server of the URL takes any
            components = {"store": health.READ_ONLY}
        except WellkeptError as error:
            components = {"store": Component(status=Status.UNHEALTHY, message=error.code)}
        status = components["store"].status
        if status is Status.HEALTHY and any(one.status is not Status.HEALTHY for one in components.values()):
            status = Status.DEGRADED
        return Health(status=status, latency_ms=(time.perf_counter() - started) * 1000, components=components)

    def check(self, *, repair: bool = False) -> Diagnosis:
        """Compare every version with its checksum, and what follows from the journal with the journal."""
        return self.server.write(lambda session: doctor.examine(session, repair=repair), repeatable=True)

    def rebuild(self) -> None:
        """Derive heads and counters from the journal again."""
        self.server.write(doctor.rebuild, repeatable=True)

    def scrub(self) -> Scrubbed:
        """Write the tables anew without what was erased; whoever reads or writes waits meanwhile."""
        return self.server.write(lambda session: scrub.scrub(session, self._options), repeatable=True)

    def before_fork(self) -> None:
        """Nothing: the connections stay the parent's."""

    def after_fork(self, *, in_child: bool) -> None:
        """A child makes connections of its own."""
        if in_child:
            self.server.renew()
            self.journal.commits.forget()

    def close(self) -> None:
        """Release the connections. Closing twice is allowed."""
        self.server.close()


def _version(chosen: Options) -> int:
    return _asked(chosen, lambda session: schema.version_of(session, chosen.schema))


def _asked(chosen: Options, work: Callable[[Session], T]) -> T:
    """Something to do on a server without opening a store there."""
    server = Server(chosen)
    try:
        with server.writers.session() as session:
            return work(session)
    except failures.driver_error() as error:
        raise failures.translate(error) from error
    finally:
        server.close()
