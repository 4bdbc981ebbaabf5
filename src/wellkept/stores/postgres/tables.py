"""What several parts do with the tables: locks, new owners, settings."""

from __future__ import annotations

from collections.abc import Mapping

from wellkept.stores.postgres import rows
from wellkept.stores.postgres.server import Row, Session
from wellkept.types import Owner

EMBEDDER_LOCK = 0x3BB2B63635B2B83A
"""Shared by every append; whoever changes the embedder holds it alone."""

LOCK = "SELECT pg_advisory_xact_lock(one) FROM unnest(%s::bigint[]) one"
# What follows in the transaction looks rows up by keys: planning it anew each time would take as long as doing it.
_PLANNED_ONCE = "set_config('plan_cache_mode', 'force_generic_plan', true)"
LOCK_SHARED = f"SELECT pg_advisory_xact_lock_shared(%s), {_PLANNED_ONCE}"
LOCK_ALONE = f"SELECT pg_advisory_xact_lock(%s), {_PLANNED_ONCE}"
SETTINGS = "SELECT name, value FROM settings"
PUT_SETTING = "INSERT INTO settings VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_MAKE_OWNER = (
    "INSERT INTO owners (digest, name) VALUES (%s, %s)"
    " ON CONFLICT (digest) DO UPDATE SET name = excluded.name RETURNING no"
)


def make_owner(session: Session, owner: Owner) -> int:
    """The number of an owner, made if it has none yet. The caller holds its lock."""
    name, digest, _ = rows.named(owner)
    [(number,)] = session.rows(_MAKE_OWNER, (digest, name))
    return int(number)


def to_settings(found: list[Row]) -> dict[str, str]:
    """The rows of ``SETTINGS``."""
    return {name: value for name, value in found}  # noqa: C416  # rows have no length that a type checker knows


def put_settings(session: Session, values: Mapping[str, str]) -> None:
    """Change settings of the store."""
    for one in sorted(values.items()):
        session.run(PUT_SETTING, one)
