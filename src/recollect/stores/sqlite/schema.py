"""The tables of the embedded file, and the steps between one schema and the next, in both directions.

``docs/file-format.md`` describes every column.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw

from recollect import codec
from recollect.stores.sqlite import rows
from recollect.types import Memory

APPLICATION_ID = 0x52434C54  # "RCLT" in ASCII, at byte 68 of the file: how `file` and we know it
# Vectors of 256 or 384 numbers fill a page of 8 KiB with little waste; 4 KiB pages waste a fifth.
PAGE_BYTES = 8192


class Migration(NamedTuple):
    """One step of the schema: what makes it and what takes it back."""

    number: int
    up: tuple[str | Callable[[apsw.Connection], None], ...]
    down: tuple[str | Callable[[apsw.Connection], None], ...]


def _fill_words(connection: apsw.Connection) -> None:
    """The words of every active memory, as schemas 3 and 4 kept them."""
    from recollect.recall import entries  # lazy: brings in the stemmer, which files of this schema do not need

    into = rows.Insert("words (number, session, marks, terms)", 4)
    for number, memory in _active(connection):
        into.rows(connection, [(number, *entries.described(memory.content, memory, memory.owner))])


def _fill_terms(connection: apsw.Connection) -> None:
    """The terms of every active memory, as schema 2 kept them."""
    from recollect.text import words  # lazy: brings in the stemmer, and files are seldom taken back

    into = rows.Insert("words (number, terms)", 2)
    for number, memory in _active(connection):
        into.rows(connection, [(number, words.pack(words.terms(words.searchable(memory.content, memory.title))))])


def _active(connection: apsw.Connection) -> Iterator[tuple[int, Memory]]:
    owners = {number: codec.decode_owner(name) for number, name in rows.fetch(connection, "SELECT * FROM owners")}
    found = rows.fetch(
        connection,
        f"SELECT {rows.JOURNAL}, 0, NULL, {rows.NO_VECTOR} FROM heads h JOIN journal j USING (sequence)"
        " WHERE h.state = 'active'",
    )
    return ((row[2], rows.to_memory(row, owners[row[3]])) for row in found)


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

# One row per active memory: its terms in the order of its text. See recollect.text.words.
_TERMS = "CREATE TABLE words (number INTEGER PRIMARY KEY, terms BLOB NOT NULL) STRICT"

RECALL = Migration(
    2,
    up=(
        """CREATE TABLE vectors (
            number INTEGER PRIMARY KEY,
            embedder TEXT NOT NULL,
            data BLOB NOT NULL
        ) STRICT""",
        _TERMS,
        _fill_terms,
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

# One row per active memory: what the index needs to know of it apart from its vector. See recollect.recall.
_WORDS = """CREATE TABLE words (
    number INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    marks INTEGER NOT NULL,
    terms BLOB NOT NULL
) STRICT"""

INDEX = Migration(
    3,
    up=(
        # Where the passages of a long text stand, the pieces of its words, and the hash of what was embedded if
        # embedding it is slow.
        "ALTER TABLE vectors ADD COLUMN spans BLOB",
        "ALTER TABLE vectors ADD COLUMN pieces BLOB",
        "ALTER TABLE vectors ADD COLUMN digest BLOB",
        "CREATE INDEX vectors_digest ON vectors (digest) WHERE digest IS NOT NULL",
        # Vectors of the next embedder, while memories are embedded anew.
        """CREATE TABLE renewed (
            number INTEGER PRIMARY KEY,
            embedder TEXT NOT NULL,
            data BLOB NOT NULL,
            spans BLOB,
            pieces BLOB,
            digest BLOB
        ) STRICT""",
        "DROP TABLE words",
        _WORDS,
        _fill_words,
        # The index of an owner as arrays, so that a new process need not make it again.
        """CREATE TABLE images (
            image INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            part TEXT NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (owner, part)
        ) STRICT""",
    ),
    down=(
        "DROP TABLE images",
        "DROP TABLE words",
        _TERMS,
        _fill_terms,
        "DROP TABLE renewed",
        "DROP INDEX vectors_digest",
        # Schema 2 knows one vector a memory.
        """UPDATE heads SET bytes = bytes - (SELECT length(data) FROM vectors v WHERE v.number = heads.number)
            WHERE number IN (SELECT number FROM vectors WHERE spans IS NOT NULL)""",
        "DELETE FROM vectors WHERE spans IS NOT NULL",
        "ALTER TABLE vectors DROP COLUMN digest",
        "ALTER TABLE vectors DROP COLUMN pieces",
        "ALTER TABLE vectors DROP COLUMN spans",
        "DELETE FROM settings WHERE name IN ('generation', 'calibration')",
    ),
)

RECORDS = Migration(
    4,
    up=(
        # Named documents beside the memories, such as the descriptions of sessions: the truth, like the journal.
        """CREATE TABLE records (
            owner INTEGER NOT NULL REFERENCES owners,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            version INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            body TEXT NOT NULL,
            checksum BLOB NOT NULL,
            PRIMARY KEY (owner, kind, name)
        ) STRICT, WITHOUT ROWID""",
        # Records that failed their checksum, set aside as they are by a repair.
        """CREATE TABLE damaged_records (
            owner ANY, kind ANY, name ANY, version ANY, updated_at ANY, body ANY, checksum ANY
        ) STRICT""",
    ),
    down=("DROP TABLE damaged_records", "DROP TABLE records"),
)

# What an index needs to know is read off the journal when one is made: a write need not pay for it.
LEAN = Migration(5, up=("DROP TABLE words",), down=(_WORDS, _fill_words))

MIGRATIONS = (JOURNAL, RECALL, INDEX, RECORDS, LEAN)
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
