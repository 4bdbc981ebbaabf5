"""Physical erasure, as far as a client of a server can bring it about."""

from __future__ import annotations

import time

from wellkept.errors import ConfigurationError, StoreBusy
from wellkept.stores.postgres.options import Options
from wellkept.stores.postgres.server import Session
from wellkept.types import Scrubbed

_PAUSE_S = 0.02
_FOREIGN = (
    "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND NOT pg_has_role(current_user, tableowner::name, 'USAGE')"
)
# Whoever may still see rows that are deleted by now: their pages would be copied with them.
_HOLDER = (
    "SELECT who FROM (SELECT 'process ' || pid, coalesce(backend_xmin, backend_xid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() UNION ALL SELECT 'prepared transaction ' || gid, transaction FROM pg_prepared_xacts"
    " UNION ALL SELECT 'replication slot ' || slot_name, xmin FROM pg_replication_slots) holders (who, seen)"
    " WHERE seen IS NOT NULL AND age(seen) >= age(%s::text::xid) LIMIT 1"
)
_REMAINS = (
    "the write-ahead log and its archive, until the server has recycled them",
    "replicas and backups, for their retention",
    "blocks that the file system has freed and not used again",
)


def scrub(session: Session, chosen: Options) -> Scrubbed:
    """Write every table anew without the deleted rows. It needs the owner of the tables, and locks each meanwhile."""
    [(foreign,)] = session.rows(_FOREIGN, (chosen.schema,))
    if foreign:
        raise ConfigurationError(
            "the user of the URL does not own the tables",
            details={"tables": foreign},
            hint="let the user who ran wellkept migrate scrub the database",
        )
    [(horizon,)] = session.rows("SELECT (pg_current_xact_id()::text::numeric % 4294967296)::text")
    _wait(session, horizon, chosen)
    session.run("SET statement_timeout = 0")
    try:
        for (table,) in session.rows(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", (chosen.schema,)
        ):
            session.run(f'VACUUM (FULL) "{chosen.schema}"."{table}"')
    finally:
        if not session.connection.closed:
            session.run(f"SET statement_timeout = {chosen.statement_timeout_ms}")
    return Scrubbed(remains=_REMAINS)


def _wait(session: Session, horizon: str, chosen: Options) -> None:
    deadline = time.monotonic() + chosen.lock_timeout_ms / 1000
    while held := session.rows(_HOLDER, (horizon,)):
        if time.monotonic() > deadline:
            raise StoreBusy(
                f"{held[0][0]} may still see what was erased",
                details={"holder": held[0][0]},
                hint="end its transaction, then scrub again",
            )
        time.sleep(_PAUSE_S)
