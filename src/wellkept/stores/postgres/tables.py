"""What several parts do with the tables: locks, new owners, settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wellkept.ports import SettingRow, StoreSettings
from wellkept.stores.postgres import rows
from wellkept.stores.postgres.server import Row, Session
from wellkept.types import Owner, Stamp

EMBEDDER_LOCK = 0x3BB2B63635B2B83A
"""Shared by every append; whoever changes the embedder holds it alone."""

LOCK = "SELECT pg_advisory_xact_lock(one) FROM unnest(%s::bigint[]) one"
# What follows in the transaction looks rows up by keys: planning it anew each time would take as long as doing it.
_PLANNED_ONCE = "set_config('plan_cache_mode', 'force_generic_plan', true)"
LOCK_SHARED = f"SELECT pg_advisory_xact_lock_shared(%s), {_PLANNED_ONCE}"
LOCK_ALONE = f"SELECT pg_advisory_xact_lock(%s), {_PLANNED_ONCE}"
SETTINGS = "SELECT name, value, digest FROM settings"
ADD_SETTING = "INSERT INTO settings (name, value, digest) VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING"
PUT_SETTING = (
    "INSERT INTO settings (name, value, digest) VALUES (%s, %s, %s)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value, digest = excluded.digest"
)
# What the tables tell of a store whose settings do not: its newest stamp, and what most of some vectors are.
_DERIVED = (
    "SELECT (SELECT stamp FROM journal ORDER BY epoch DESC, xid DESC, owner DESC, seq DESC LIMIT 1), v.*"
    " FROM (SELECT 1) one LEFT JOIN (SELECT embedder,"
    " octet_length(data) / 4 / greatest(1, coalesce(octet_length(spans), 0) / 8)"
    " FROM (SELECT embedder, data, spans FROM vectors LIMIT 500) sample"
    " GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 1) v ON true"
)
_MAKE_OWNER = (
    "INSERT INTO owners (digest, name) VALUES (%s, %s)"
    " ON CONFLICT (digest) DO UPDATE SET name = excluded.name RETURNING no"
)


def make_owner(session: Session, owner: Owner) -> int:
    """The number of an owner, made if it has none yet. The caller holds its lock."""
    name, digest, _ = rows.named(owner)
    [(number,)] = session.rows(_MAKE_OWNER, (digest, name))
    return int(number)


def settings(session: Session) -> StoreSettings:
    """The settings of the store."""
    return to_settings(session, session.rows(SETTINGS))


def to_settings(session: Session, found: Iterable[Row]) -> StoreSettings:
    """The rows of ``SETTINGS``. For damaged ones, the tables are asked for what the store needs."""
    settings = StoreSettings.of_rows(SettingRow(*row) for row in found)
    if not settings.damaged:
        return settings
    [(stamp, embedder, dimension)] = session.rows(_DERIVED)
    of_vectors = {} if embedder is None else {"embedder": embedder, "dimension": str(dimension)}
    return settings.derive(of_vectors, None if stamp is None else Stamp(stamp))


def put_settings(session: Session, values: Mapping[str, str]) -> None:
    """Change settings of the store."""
    for one in sorted(values.items()):
        session.run(PUT_SETTING, SettingRow.sealed(*one))


def mend_settings(session: Session) -> None:
    """Write damaged settings anew, as far as it is known what they were."""
    with session.transaction():
        session.run("LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE")  # nobody else writes any meanwhile
        mended = settings(session).mended()
        session.run("DELETE FROM settings WHERE name = ANY(%s)", (list(mended),))
        for name, value in mended.values():
            if value is not None:
                session.run(ADD_SETTING, SettingRow.sealed(name, value))  # one that was set since stays
