"""The URL of a database on a server: what libpq takes, and our own options beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo

from wellkept.errors import ConfigurationError

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = re.compile(r"://[^/?#]*@|password=[^&\s]*", re.IGNORECASE)
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "pool_size": (2, 1_000),
    "statement_timeout_ms": (0, 86_400_000),
    "idle_timeout_ms": (0, 86_400_000),
    "lock_timeout_ms": (1, 86_400_000),
    "reconnect_ms": (0, 3_600_000),
    "ram_rows": (0, 100_000_000),
}
OWN = ("schema", *_NUMBERS)
"""The options that are ours: they may stand in the query of the URL, or in the settings."""


SCHEMA = "wellkept"
"""The schema whose tables are used, unless the URL names another one."""


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
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in query if name not in OWN])
        parameters = conninfo.conninfo_to_dict(urlunsplit(("postgresql", *parts[1:3], rest, "")))
    except (psycopg.Error, ValueError) as error:
        # The text of the error can hold the URL, with its password.
        told = _SECRET.sub("", str(error)).splitlines()[0][:100] if "parameter" in str(error) else "it cannot be read"
        raise ConfigurationError(
            f"the URL of the PostgreSQL database is wrong: {told}",
            details={"field": "url"},
            hint=f"write postgresql://user@host/database?name=value with parameters of libpq, or {', '.join(OWN)}",
        ) from None
    own = {name: value for name, value in query if name in OWN}
    schema = own.pop("schema", SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise ConfigurationError(
            "schema is not a name of a PostgreSQL schema",
            details={"field": "schema"},
            hint="use lower-case letters, digits and underscores",
        )
    return Options(
        parameters={name: str(value) for name, value in parameters.items()},
        schema=schema,
        **{name: _number(name, value) for name, value in own.items()},
    )


def _number(name: str, value: str) -> int:
    least, most = _NUMBERS[name]
    if not (value.isascii() and value.isdecimal() and len(value) < 10 and least <= int(value) <= most):
        raise ConfigurationError(
            f"{name} must be a whole number from {least} to {most}",
            details={"field": name},
            hint=f"write ?{name}={least} in the URL, or another number",
        )
    return int(value)
