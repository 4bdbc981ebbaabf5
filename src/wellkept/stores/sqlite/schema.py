"""The tables of the embedded file, and the steps between one schema and the next, in both directions.

``docs/file-format.md`` describes every column.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import apsw

from wellkept.stores.sqlite import old_words, rows, schema_5

APPLICATION_ID = 0x574C4B50  # "WLKP" in ASCII, at byte 68 of the file: how `file` and we know it
# Vectors of 256 or 384 numbers fill a page of 8 KiB with little waste; 4 KiB pages waste a fifth.
PAGE_BYTES = 8192


class Migration(NamedTuple):
    """One step of the schema: what makes it and what takes it back."""

    number: int
    up: tuple[str | Callable[[apsw.Connection], None], ...]
    down: tuple[str | Callable[[apsw.Connection], None], ...]


_JOURNAL_1 = """CREATE TABLE journal (
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
) STRICT"""

_HEADS_1 = """CREATE TABLE heads (
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
) STRICT, WITHOUT ROWID"""

_DAMAGED_1 = """CREATE TABLE damaged (
    sequence INTEGER PRIMARY KEY,
    id ANY, version ANY, number ANY, owner ANY, operation ANY, recorded_at ANY,
    created_at ANY, reason ANY, content ANY, body ANY, checksum ANY
) STRICT"""

_IMAGES_3 = """CREATE TABLE images (
    image INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    part TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, part)
) STRICT"""

_INDEXES_1 = (
    "CREATE UNIQUE INDEX journal_id ON journal (id, version)",
    "CREATE INDEX journal_owner ON journal (owner)",
)

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
        _JOURNAL_1,
        *_INDEXES_1,
        _HEADS_1,
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
        _DAMAGED_1,
    ),
    down=tuple(
        f"DROP TABLE {name}"
        for name in ("damaged", "accesses", "keys", "tags", "heads", "journal", "owners", "settings")
    ),
)

# One row per active memory: its terms in the order of its text. See wellkept.text.words.
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
        old_words.fill_terms,
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

# One row per active memory: what the index needs to know of it apart from its vector. See wellkept.recall.
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
        old_words.fill_words,
        # The index of an owner as arrays, so that a new process need not make it again.
        _IMAGES_3,
    ),
    down=(
        "DROP TABLE images",
        "DROP TABLE words",
        _TERMS,
        old_words.fill_terms,
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
LEAN = Migration(5, up=("DROP TABLE words",), down=(_WORDS, old_words.fill_words))

_JOURNAL_6 = """CREATE TABLE journal (
    place INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES owners,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    born INTEGER NOT NULL,
    born_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    operation TEXT NOT NULL,
    stamp TEXT NOT NULL,
    replaced TEXT,
    reason TEXT,
    facets TEXT,
    text TEXT,
    payload BLOB,
    checksum BLOB NOT NULL
) STRICT"""

_HEADS_6 = """CREATE TABLE heads (
    owner INTEGER NOT NULL,
    number INTEGER NOT NULL,
    place INTEGER NOT NULL,
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
    born_at INTEGER NOT NULL,
    PRIMARY KEY (owner, number)
) STRICT, WITHOUT ROWID"""

_DAMAGED_6 = f"""CREATE TABLE damaged (
    place INTEGER PRIMARY KEY, {", ".join(f"{column} ANY" for column in rows.CHECKED.split(", ")[1:])}
) STRICT"""

_IMAGES_6 = """CREATE TABLE images (
    image INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    part TEXT NOT NULL,
    seq INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, part)
) STRICT"""

_COUNTERS = ("seq", "memories", "bytes", "last_at", "revision")

FACETS = Migration(
    6,
    up=(
        *(f"ALTER TABLE owners ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0" for name in _COUNTERS),
        "DROP INDEX journal_id",
        "DROP INDEX journal_owner",
        "ALTER TABLE journal RENAME TO journal_5",
        "ALTER TABLE damaged RENAME TO damaged_5",
        "DROP TABLE heads",
        "DROP TABLE images",
        _JOURNAL_6,
        "CREATE UNIQUE INDEX journal_id ON journal (id, owner, version)",
        "CREATE UNIQUE INDEX journal_seq ON journal (owner, seq)",
        _HEADS_6,
        _DAMAGED_6,
        _IMAGES_6,
        # Leases: the holder, and until when by the clock of SQLite. The token rises with every holder.
        """CREATE TABLE leases (
            name TEXT PRIMARY KEY,
            holder TEXT NOT NULL,
            token INTEGER NOT NULL,
            until_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID""",
        schema_5.upgrade,
        "DROP TABLE journal_5",
        "DROP TABLE damaged_5",
    ),
    down=(
        "DROP TABLE leases",
        "DROP INDEX journal_id",
        "DROP INDEX journal_seq",
        "ALTER TABLE journal RENAME TO journal_6",
        *(f"DROP TABLE {name}" for name in ("heads", "damaged", "images")),
        _JOURNAL_1,
        *_INDEXES_1,
        _HEADS_1,
        _DAMAGED_1,
        _IMAGES_3,
        schema_5.downgrade,
        "DROP TABLE journal_6",
        *(f"ALTER TABLE owners DROP COLUMN {name}" for name in reversed(_COUNTERS)),
    ),
)

MIGRATIONS = (JOURNAL, RECALL, INDEX, RECORDS, LEAN, FACETS)
LATEST = MIGRATIONS[-1].number
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
# What ANALYZE makes, if a person runs it.
_STATISTICS = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
DIGEST = "2edec58f473ee1b5e6df5691a93d1264"
"""Of the objects of the latest schema: making a schema to compare with takes 4 ms."""


def version_of(connection: apsw.Connection) -> int:
    """The schema that the file has; 0 for an empty one."""
    return int(connection.pragma("user_version"))


def strangers(connection: apsw.Connection) -> list[str]:
    """What the migrations did not make like this: triggers, views, indexes and tables of others, and changed ones."""
    found = objects(connection) - _STATISTICS
    version = version_of(connection)
    if version == LATEST and digest(found) == DIGEST:
        return []
    if version < 0:
        return ["a version below 0"]
    made = apsw.Connection(":memory:")
    try:
        migrate(made, version)
        wrong = found ^ objects(made)
    finally:
        made.close()
    return sorted({f"{kind} {name}" for kind, name, _, _ in wrong})


def objects(connection: apsw.Connection) -> set[tuple[Any, ...]]:
    """The objects of a schema; how their definitions are indented does not count."""
    return {(*names, sql and " ".join(str(sql).split())) for *names, sql in rows.fetch(connection, _OBJECTS)}


def digest(found: Iterable[tuple[Any, ...]]) -> str:
    """What a set of objects is known by."""
    return blake2b(repr(sorted(found, key=repr)).encode(errors="replace"), digest_size=16).hexdigest()


def losses(connection: apsw.Connection, target: int) -> list[str]:
    """What a file loses on its way down to a schema, as sentences; to be told before ``migrate`` is called."""
    found = schema_5.losses(connection) if version_of(connection) >= 6 > target else []
    for schema, statement, sentence in _LOSSES:
        if target < schema <= version_of(connection) and (count := connection.execute(statement).get):
            found.append(sentence.format(count))
    return found


_LOSSES = (
    (4, "SELECT count(*) FROM records", "{} records, such as the descriptions of sessions, are dropped"),
    (3, "SELECT count(*) FROM vectors WHERE spans IS NOT NULL", "{} vectors of long texts are dropped"),
    (2, "SELECT count(*) FROM vectors", "{} vectors are dropped"),
)


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
