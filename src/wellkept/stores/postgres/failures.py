"""Errors of the server and of its driver as errors of ours. No message repeats a text of the server: it may hold
values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from wellkept.errors import (
    ConfigurationError,
    NotAStore,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    WellkeptError,
)

if TYPE_CHECKING:
    import psycopg

_Told = tuple[type[WellkeptError], str, str]

_TOO_MANY: _Told = (
    StoreBusy,
    "the server has no connection left",
    "raise max_connections there, or lower pool_size of the processes that use it",
)
_REFUSED: _Told = (
    ConfigurationError,
    "the server refuses the user or the password",
    "check both in the URL, PGPASSWORD or the password file, and pg_hba.conf on the server",
)
_READ_ONLY: _Told = (
    StoreReadOnly,
    "the server takes no writes: it is a replica, or read-only",
    "name all servers in the URL, postgresql://user@one,two/database: writes go to the one that takes them",
)
_FULL: _Told = (StoreFull, "the server's disk is full", "make room there; reading works meanwhile")
_WAITED: _Told = (
    StoreBusy,
    "other writers held a lock of these memories for too long",
    "try again; raise lock_timeout_ms in the URL if writers may be slow",
)
_SLOW: _Told = (
    StoreBusy,
    "the statement took longer than the server may take",
    "raise statement_timeout_ms in the URL, or ask for less",
)
_GONE: _Told = (StoreError, "the connection to the server was lost", "try again when the server answers")
_RIGHTS: _Told = (
    ConfigurationError,
    "the user of the URL lacks a right on the server",
    "let a user who may create tables run: wellkept migrate URL; then grant USAGE on the schema, and SELECT, INSERT,"
    " UPDATE and DELETE on its tables",
)
_NO_VECTOR: _Told = (
    ConfigurationError,
    "the server does not have the extension pgvector",
    "install pgvector 0.7 or later on the server (package postgresql-NN-pgvector)",
)
_NO_TABLES: _Told = (
    NotAStore,
    "the schema has no tables of Wellkept, or not all of them",
    "run: wellkept migrate URL; or name the right schema in the URL",
)

_NOT_OURS: _Told = (
    ConfigurationError,
    "the schema has tables of something else",
    "name another schema in the URL: ?schema=NAME",
)

_BY_STATE: Mapping[str, _Told] = MappingProxyType(
    {
        "28P01": _REFUSED,
        "28000": _REFUSED,
        "53300": _TOO_MANY,
        "53100": _FULL,
        "53200": (StoreBusy, "the server is out of memory", "try again later"),
        "25006": _READ_ONLY,
        "55P03": _WAITED,
        "40P01": _WAITED,
        "40001": _WAITED,
        "57014": _SLOW,
        "42501": _RIGHTS,
        "42P01": _NO_TABLES,
        "3F000": _NO_TABLES,
        "42P07": _NOT_OURS,
        "0A000": _NO_VECTOR,
        "58P01": _NO_VECTOR,
        "42704": _NO_VECTOR,  # one that is older has no half-precision vectors
        "XX001": (StoreCorrupt, "the server found damaged pages", "restore a backup of the server"),
        "XX002": (StoreCorrupt, "the server found a damaged index", "run REINDEX on the schema, then doctor"),
        "22021": (ConfigurationError, "the server cannot keep this text", "use a database in the encoding UTF8"),
        "22P05": (ConfigurationError, "the server cannot keep this text", "use a database in the encoding UTF8"),
    }
)
# libpq gives no code for a connection that was refused, only a text.
_BY_TEXT: tuple[tuple[str, _Told], ...] = (
    ("closed the connection", _GONE),
    ("connection is", _GONE),
    ("consuming input failed", _GONE),
    ("SSL SYSCALL", _GONE),
    ("too many clients", _TOO_MANY),
    ("connection slots are reserved", _TOO_MANY),
    ("too many connections", _TOO_MANY),
    ("password authentication failed", _REFUSED),
    ("no password supplied", _REFUSED),
    ("pg_hba.conf", _REFUSED),
    ("role ", _REFUSED),
    ("session is read-only", _READ_ONLY),
    (
        "does not exist",
        (ConfigurationError, "the server has no such database", "create it with createdb, or correct the URL"),
    ),
    (
        "SSL",
        (
            ConfigurationError,
            "the server and the URL do not agree on TLS",
            "check sslmode, sslrootcert, sslcert and sslkey in the URL, and ssl on the server",
        ),
    ),
)
_UNREACHED: _Told = (
    StoreError,
    "the server cannot be reached",
    "check that it runs, and host and port of the URL",
)


def driver_error() -> type[psycopg.Error]:
    """What the driver raises: for an ``except``, which asks for it once something was raised."""
    import psycopg  # lazy: without the extra, the store still declares its settings

    return psycopg.Error


def translate(error: psycopg.Error) -> WellkeptError:
    """The error of ours for one of the driver."""
    kind, message, hint = _told(error)
    details = {"sqlstate": error.sqlstate} if error.sqlstate else {}
    return kind(message, details=details, hint=hint)


def _told(error: psycopg.Error) -> _Told:
    state = error.sqlstate
    if state is None:
        text = str(error)
        for words, told in _BY_TEXT:
            if words in text:
                return told
        return _UNREACHED
    if state in _BY_STATE:
        return _BY_STATE[state]
    if state.startswith(("08", "57P")):
        return _GONE
    if state.startswith("53"):
        return _FULL
    return (
        StoreError,
        f"the server refused a statement ({type(error).__name__})",
        "see the server's log; run doctor",
    )


def is_loss(error: BaseException) -> bool:
    """Whether the server or the connection went away: another connection may work."""
    import psycopg  # lazy: as above

    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    state = error.sqlstate
    return state is None or state.startswith(("08", "57P0"))
