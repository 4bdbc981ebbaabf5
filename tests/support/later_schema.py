"""A schema 2 that exists only in tests: what a later release may do to the tables, on the way there and back.

It keeps a label for every version, and counts them for each owner.
"""

from __future__ import annotations

import apsw

from wellkept.stores.postgres import schema as postgres
from wellkept.stores.sqlite import schema as sqlite


def _label(connection: apsw.Connection) -> None:
    """By code instead of SQL, as a step that reads facets would."""
    connection.executemany(
        "INSERT INTO labels VALUES (?, ?)",
        [(place, f"version {version}") for place, version in connection.execute("SELECT place, version FROM journal")],
    )


SQLITE = sqlite.Migration(
    2,
    up=(
        "CREATE TABLE labels (place INTEGER PRIMARY KEY, label TEXT NOT NULL) STRICT",
        "CREATE INDEX labels_label ON labels (label)",
        "ALTER TABLE owners ADD COLUMN labels INTEGER NOT NULL DEFAULT 0",
        _label,
        "UPDATE owners SET labels = (SELECT count(*) FROM journal j WHERE j.owner = owners.owner)",
    ),
    down=("ALTER TABLE owners DROP COLUMN labels", "DROP INDEX labels_label", "DROP TABLE labels"),
    losses=(("SELECT count(*) FROM labels", "{} labels are dropped"),),
)

POSTGRES = postgres.Migration(
    2,
    up=(
        "CREATE TABLE labels (owner integer, seq bigint, label text NOT NULL, PRIMARY KEY (owner, seq))",
        "ALTER TABLE owners ADD COLUMN labels integer NOT NULL DEFAULT 0",
        "INSERT INTO labels SELECT owner, seq, 'version ' || version FROM journal",
        "UPDATE owners SET labels = (SELECT count(*) FROM journal j WHERE j.owner = owners.no)",
    ),
    down=("ALTER TABLE owners DROP COLUMN labels", "DROP TABLE labels"),
    losses=(("SELECT count(*) FROM labels", "{} labels are dropped"),),
)

EVERY = ((sqlite, (sqlite.FIRST, SQLITE)), (postgres, (postgres.FIRST, POSTGRES)))
"""The modules that name the migrations, and what they name in the later release."""


def install() -> None:
    """Make this process one of the later release, for good."""
    for module, migrations in EVERY:
        setattr(module, "MIGRATIONS", migrations)  # noqa: B010  # a type checker knows of one migration only
