"""The verb that takes a database to another schema: migrate."""

from dataclasses import dataclass

from wellkept.errors import Unsupported
from wellkept.operations.conditions import TEXT
from wellkept.operations.verb import Caller, Example, Verb, argument, option
from wellkept.transfer import migration
from wellkept.types import MigrationReport, Need
from wellkept.types.bounds import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate:
    """Which database, and to which schema."""

    file: str = argument("The database, a path or a URL; nobody may have it open.", bounds=TEXT)
    to: int | None = option("The schema; without it, the newest.", bounds=Bounds(minimum=1, maximum=1_000))
    dry_run: bool = option("Change nothing; tell what the older schema cannot hold.", False)


def _migrate(_: Caller, given: Migrate) -> MigrationReport:
    return migration.migrate(given.file, to=given.to, dry_run=given.dry_run)


def _lost(_: Caller, given: Migrate) -> str:
    """What the older schema cannot hold, before anything is changed."""
    losses = () if given.dry_run else migration.migrate(given.file, to=given.to, dry_run=True).losses
    return f"migrate, and lose this: {'; '.join(losses)}" if losses else ""


MIGRATE = Verb(
    name="migrate",
    input=Migrate,
    output=MigrationReport,
    run=_migrate,
    method=Need.ADMIN,
    errors=(Unsupported,),
    standalone=True,
    asks=_lost,
    description="A copy of a file is made beside it first. Opening a database brings it up by itself; this is for the"
    " way down, before an older release is used again, and for a PostgreSQL database whose user may not create tables.",
    examples=(
        Example(line="wellkept migrate memory.db --to 1 --dry-run", says="what schema 1 cannot hold"),
        Example(line="wellkept migrate memory.db", says="to the newest schema"),
    ),
)
