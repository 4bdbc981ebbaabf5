"""Bringing a database to another schema on request, up or down: also for a user who may not create tables."""

from __future__ import annotations

from wellkept.errors import InvalidInput
from wellkept.stores.postgres import schema
from wellkept.stores.postgres.options import Options
from wellkept.stores.postgres.server import Session
from wellkept.types import MigrationReport


def migrate(session: Session, chosen: Options, to: int, *, dry_run: bool) -> MigrationReport:
    """Make the tables, or take them to a schema step by step. With ``dry_run`` only what would be lost is told."""
    if not 1 <= to <= schema.latest():
        raise InvalidInput(
            f"no schema has the number {to}; this release knows 1 to {schema.latest()}",
            details={"field": "to", "newest": schema.latest()},
            hint=f"choose one from 1 to {schema.latest()}",
        )
    before = schema.version_of(session, chosen.schema)
    schema.check_not_newer(before, chosen.place)
    losses = tuple(schema.losses(session, before, to))
    if not dry_run:
        schema.migrate(session, chosen.schema, chosen.place, to)
    return MigrationReport(before=before, after=to, losses=losses, dry_run=dry_run)
