"""The URL of a database on a server: what libpq takes, and our own options beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from wellkept import extras
from wellkept.errors import ConfigurationError
from wellkept.settings import Number, Section, Text, read_options, setting
from wellkept.stores.postgres import failures

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = re.compile(r"://[^/?#]*@|password=[^&\s]*", re.IGNORECASE)

SCHEMA = "wellkept"
"""The schema whose tables are used, unless the URL names another one."""

_MILLISECONDS = Number(0, 86_400_000, whole=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings(Section, at="database.postgres"):
    """How a `postgresql:` database is used; the same options in its URL override them."""

    schema: str | None = setting(None, Text(63), "The schema whose tables are used; `wellkept` by default.")
    pool_size: int | None = setting(
        None, Number(2, 1_000, whole=True), "Connections of one process at most; 10 by default."
    )
    statement_timeout_ms: int | None = setting(
        None, _MILLISECONDS, "How long a statement may take, in milliseconds; 60,000 by default, 0 for ever."
    )
    idle_timeout_ms: int | None = setting(
        None,
        _MILLISECONDS,
        "After how long a transaction whose client stalled is ended, in milliseconds; 60,000 by default, 0 never.",
    )
    lock_timeout_ms: int | None = setting(
        None,
        Number(1, 86_400_000, whole=True),
        "How long a writer waits for other writers of its memories, in milliseconds; 30,000 by default.",
    )
    reconnect_ms: int | None = setting(
        None,
        Number(0, 3_600_000, whole=True),
        "How long a server that went away is tried again, in milliseconds; 5,000 by default.",
    )
    ram_rows: int | None = setting(
        None,
        Number(0, 100_000_000, whole=True),
        "How many memories of an owner a process holds in RAM for searches; 200,000 by default. The server searches"
        " those of larger owners.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to reach a database, and how to behave there. Its text has neither user nor password.

    ``pool_size`` is at least 2: what is read piece by piece may be written with the other connection.
    ``statement_timeout_ms`` ends a statement, 0 never. ``idle_timeout_ms`` ends a transaction whose client stalled:
    it holds the lock of its owners. ``lock_timeout_ms`` is how long a writer waits for other writers of its owners.
    ``reconnect_ms`` is how long a server that does not answer is tried again. ``ram_rows`` is how many memories of an
    owner each process that searches them holds in RAM; those of larger owners are searched by the server.
    """

    parameters: Mapping[str, str]
    schema: str = SCHEMA
    pool_size: int = 10
    statement_timeout_ms: int = 60_000
    idle_timeout_ms: int = 60_000
    lock_timeout_ms: int = 30_000
    reconnect_ms: int = 5_000
    ram_rows: int = 200_000

    def __repr__(self) -> str:
        return f"<Options {self.place}>"

    @property
    def place(self) -> str:
        """Where the memories are, for people: hosts, database and schema."""
        hosts = self.parameters.get("host", "localhost")
        return f"{hosts}/{self.parameters.get('dbname', '')} ({self.schema})"

    @property
    def hosts(self) -> int:
        """How many servers the URL names."""
        return 1 + self.parameters.get("host", "").count(",")

    @property
    def reads_replicas(self) -> bool:
        """Whether reads may go to a replica: several servers, and the URL asks for one that need not be the primary."""
        wanted = self.parameters.get("target_session_attrs", "any")
        return self.hosts > 1 and wanted in ("standby", "prefer-standby", "read-only")

    def connecting(self, *, writes: bool) -> dict[str, str]:
        """What libpq is given. Of several servers, writers need the one that takes writes."""
        given = {"application_name": "wellkept", "connect_timeout": "10", "client_encoding": "UTF8"}
        given |= self.parameters
        if self.hosts > 1 and (writes or not self.reads_replicas):
            given["target_session_attrs"] = "read-write"
        return given


def parse(url: str) -> Options:
    """Read a URL such as ``postgresql://user:password@host/database?schema=memories``."""
    extras.require("postgres")
    from psycopg import conninfo  # lazy: without the extra, the store still declares its settings

    names = PostgresSettings.__dataclass_fields__
    place, own = read_options(url, PostgresSettings)
    try:
        parameters = conninfo.conninfo_to_dict(urlunsplit(("postgresql", *urlsplit(place)[1:4], "")))
    except (failures.driver_error(), ValueError) as error:
        # The text of the error can hold the URL, with its password.
        told = _SECRET.sub("", str(error)).splitlines()[0][:100] if "parameter" in str(error) else "it cannot be read"
        raise ConfigurationError(
            f"the URL of the PostgreSQL database is wrong: {told}",
            details={"field": "url"},
            hint=f"write postgresql://user@host/database?name=value with parameters of libpq, or {', '.join(names)}",
        ) from None
    given = {name: value for name in names if (value := getattr(own, name)) is not None}
    if not _SCHEMA.fullmatch(given.get("schema", SCHEMA)):
        raise ConfigurationError(
            "schema is not a name of a PostgreSQL schema",
            details={"field": "schema"},
            hint="use lower-case letters, digits and underscores",
        )
    return Options(
        parameters={name: str(value) for name, value in parameters.items()},
        **given,
    )
