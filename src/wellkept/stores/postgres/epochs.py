"""Epochs: which life of the tables this is. Transaction ids start anew after a dump is restored, and sequences are
given again after a failover that lost writes; positions of the former epoch are refused then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wellkept import ids
from wellkept.ports import SettingRow, StoreSettings
from wellkept.stores.postgres import tables
from wellkept.stores.postgres.server import Row, Session, Statement

_TABLE = "to_regclass('journal')::oid::bigint"
# A replica takes part in the epoch of its primary: what it would say of itself is not asked.
_INCARNATION = (
    "SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||"
    " left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||"
    f" (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || {_TABLE}"
)
CURRENT: Statement = (
    f"SELECT number, name, incarnation, {_TABLE}, (SELECT max(number) FROM migrations) FROM epochs"
    " ORDER BY number DESC LIMIT 1",
    (),
)
"""Reads the newest epoch, and what its tables are now: a dump that was restored over them changes that."""

WITH_SETTINGS: Statement = (
    f"SELECT s.name, s.value, s.digest, e.* FROM ({CURRENT[0]}) e LEFT JOIN settings s ON true",
    (),
)
"""Reads the settings of the store as well: every search and every write needs both."""


class Epoch(NamedTuple):
    """The newest epoch. ``valid`` unless the tables were made anew since it began."""

    number: int
    name: str
    valid: bool
    schema: int


def read(rows: Sequence[Row]) -> Epoch:
    """The rows of ``CURRENT``."""
    [(number, name, incarnation, table, schema)] = rows
    valid = incarnation.rpartition("/")[2] == str(table)
    return Epoch(number, name if valid else f"{name}-{table}", valid, schema)


def read_with_settings(session: Session, rows: Sequence[Row]) -> tuple[Epoch, StoreSettings]:
    """The rows of ``WITH_SETTINGS``; the name of the epoch is among the settings."""
    epoch = read([rows[0][3:]])
    kept = [row[:3] for row in rows if row[0] is not None]
    return epoch, tables.to_settings(session, [*kept, SettingRow.sealed("epoch", epoch.name)])


def begin(session: Session) -> None:
    """Begin a new epoch if the server, its timeline or the tables are not those of the last one. Within a transaction
    or by itself; of several processes one begins it.
    """
    if session.rows("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean") == [(True,)]:
        return
    [(now,)] = session.rows(_INCARNATION)
    last = session.rows(CURRENT[0])
    if last and last[0][2] == now:
        return
    session.run(
        "INSERT INTO epochs (number, name, incarnation) SELECT coalesce(max(number), 0) + 1, %s, %s FROM epochs"
        " HAVING coalesce((SELECT incarnation FROM epochs ORDER BY number DESC LIMIT 1), '') <> %s"
        " ON CONFLICT DO NOTHING",
        (ids.new_origin(), now, now),
    )
