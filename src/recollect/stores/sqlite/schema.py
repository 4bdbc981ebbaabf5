"""The tables of the embedded file, and the steps between one schema and the next, in both directions.

``docs/file-format.md`` describes every column.
"""

from collections.abc import Callable
from dataclasses import dataclass

import apsw

from recollect import codec
from recollect.stores.sqlite import rows

APPLICATION_ID = 0x52434C54  # "RCLT" in ASCII, at byte 68 of the file: how `file` and we know it
# Vectors of 256 or 384 numbers fill a page of 8 KiB with little waste; 4 KiB pages waste a fifth.
PAGE_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: what makes it and what takes it back."""

    number: int
    up: tuple[str | Callable[[apsw.Connection], None], ...]
    down: tuple[str, ...]


def _fill_words(connection: apsw.Connection) -> None:
    active = "SELECT h.number, j.content, j.body FROM heads h JOIN journal j USING (sequence) WHERE h.state = 'active'"
    for number, content, body in rows.fetch(connection, active):
        title = codec.decode_json(body).get("title")
        rows.INTO_WORDS.rows(connection, [(number, rows.terms(content, title))])


JOURNAL = Migration(
    1,
    up=(
        """CREATE TABLE settings (
            name TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE owners (
            owner INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE
        ) STRICT""",
        """CREATE TABLE journal (
            sequence INTEGER PRIMARY KEY,
            id TEXT NOT NULL,
            version INTEGER NOT NULL,
            number INTEGER NOT NULL,
            owner INTEGER NOT NULL REFERENCES owners,
            operation TEXT NOT NULL,
            recorded_at INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            reason TEXT,
            content TEXT,
            body TEXT,
            checksum BLOB NOT NULL
        ) STRICT""",
        "CREATE UNIQUE INDEX journal_id ON journal (id, version)",
        "CREATE INDEX journal_owner ON journal (owner)",
        """CREATE TABLE heads (
            owner INTEGER NOT NULL,
            number INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            state TEXT NOT NULL,
            type TEXT NOT NULL,
            importance REAL NOT NULL,
            created_at INTEGER NOT NULL,
            occurred_at INTEGER NOT NULL,
            expires_at INTEGER,
            author TEXT,
            source_type TEXT,
            has_pointer INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (owner, number)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE tags (
            owner INTEGER NOT NULL,
            tag TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (owner, tag, number)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE keys (
            owner INTEGER NOT NULL,
            key TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY (owner, key)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE accesses (
            number INTEGER PRIMARY KEY,
            count INTEGER NOT NULL,
            last_at INTEGER NOT NULL
        ) STRICT""",
        # Journal rows that failed their checksum, set aside as they are by a repair.
        """CREATE TABLE damaged (
            sequence INTEGER PRIMARY KEY,
            id ANY, version ANY, number ANY, owner ANY, operation ANY, recorded_at ANY,
            created_at ANY, reason ANY, content ANY, body ANY, checksum ANY
        ) STRICT""",
    ),
    down=tuple(
        f"DROP TABLE {name}"
        for name in ("damaged", "accesses", "keys", "tags", "heads", "journal", "owners", "settings")
    ),
)

RECALL = Migration(
    2,
    up=(
        """CREATE TABLE vectors (
            number INTEGER PRIMARY KEY,
            embedder TEXT NOT NULL,
            data BLOB NOT NULL
        ) STRICT""",
        # One row per active memory: its terms and how often it has them. See recollect.words.
        """CREATE TABLE words (
            number INTEGER PRIMARY KEY,
            terms BLOB NOT NULL
        ) STRICT""",
        _fill_words,
    ),
    down=(
        "DROP TABLE words",
        # The size of a memory counts its vector.
        """UPDATE heads SET bytes = bytes - (SELECT length(data) FROM vectors v WHERE v.number = heads.number)
            WHERE number IN (SELECT number FROM vectors)""",
        "DROP TABLE vectors",
        "DELETE FROM settings WHERE name IN ('embedder', 'dimension')",
    ),
)

MIGRATIONS = (JOURNAL, RECALL)
LATEST = MIGRATIONS[-1].number


def version_of(connection: apsw.Connection) -> int:
    """The schema that the file has; 0 for an empty one."""
    return int(connection.pragma("user_version"))


def migrate(connection: apsw.Connection, target: int = LATEST) -> None:
    """Bring the file to a schema, one transaction a step: a crash leaves the old one or the new one."""
    while (current := version_of(connection)) != target:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have taken the step while this one waited for the lock.
            if version_of(connection) == current:
                _step(connection, current, target)
            connection.execute("COMMIT")
        except BaseException:  # reason: whatever interrupts a step, the step must not be half taken
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _step(connection: apsw.Connection, current: int, target: int) -> None:
    upwards = target > current
    migration = MIGRATIONS[current] if upwards else MIGRATIONS[current - 1]
    for step in migration.up if upwards else migration.down:
        if isinstance(step, str):
            connection.execute(step)
        else:
            step(connection)
    reached = current + 1 if upwards else current - 1
    connection.pragma("user_version", reached)
    connection.pragma("application_id", APPLICATION_ID)
