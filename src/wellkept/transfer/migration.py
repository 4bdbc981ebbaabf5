"""Taking a database to another schema: up to this release's, or down for an older release."""

from pathlib import Path

from wellkept import plugins, validation
from wellkept.errors import WellkeptError
from wellkept.types import MigrationReport

_SCHEMAS = 1_000


def migrate(database: str | Path, *, to: int | None = None, dry_run: bool = False) -> MigrationReport:
    """Bring a database to a schema, the newest if none is given, after a copy was made beside it.

    ``dry_run=True`` changes nothing and tells what an older schema cannot hold. Nobody may have the database open.
    Opening a database brings it up by itself; this is for the way down, before an older release is used again.

    >>> import wellkept
    >>> from wellkept.transfer.migration import migrate
    >>> with wellkept.open("memory.db") as memories:
    ...     _ = memories.view(user="ada").add("Likes tea")
    >>> report = migrate("memory.db", to=1)
    >>> report.before, report.after, report.losses
    (1, 1, ())
    """
    try:
        if to is not None:
            validation.integer("to", to, 1, _SCHEMAS)
        validation.flag("dry_run", dry_run)
        return plugins.migrate_store(database, to, dry_run=dry_run)
    except WellkeptError as error:
        error.operation = error.operation or "migrate"
        raise
