"""The tables of the embedded file, and the steps between one schema and the next, in both directions.

``docs/file-format.md`` describes every column.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import apsw

from wellkept.stores.sqlite import rows

APPLICATION_ID = 0x574C4B50  # "WLKP" in ASCII, at byte 68 of the file: how `file` and we know it
FORMER_APPLICATION_ID = 0x52434C54
"""Of files that were made before the first release, when the project had another name: they are refused by name."""
# Vectors of 256 or 384 numbers fill a page of 8 KiB with little waste; 4 KiB pages waste a fifth.
PAGE_BYTES = 8192

Step = str | Callable[[apsw.Connection], None]


class Migration(NamedTuple):
    """One step of the schema: what makes it, what takes it back, and what is lost on the way back: queries that count
    it, each with a sentence for the count.
    """

    number: int
    up: tuple[Step, ...]
    down: tuple[Step, ...]
    losses: tuple[tuple[str, str], ...] = ()


_VECTOR = "number INTEGER PRIMARY KEY, embedder TEXT NOT NULL, data BLOB NOT NULL, spans BLOB, pieces BLOB, digest BLOB"

FIRST = Migration(
    1,
    up=(
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL)"
        " STRICT, WITHOUT ROWID",
        """CREATE TABLE owners (
            owner INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            seq INTEGER NOT NULL DEFAULT 0,
            memories INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            last_at INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0
        ) STRICT""",
        """CREATE TABLE journal (
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
            write_id TEXT,
            facets TEXT,
            text TEXT,
            payload BLOB,
            checksum BLOB NOT NULL
        ) STRICT""",
        "CREATE UNIQUE INDEX journal_id ON journal (id, owner, version)",
        "CREATE UNIQUE INDEX journal_seq ON journal (owner, seq)",
        """CREATE TABLE heads (
            owner INTEGER NOT NULL,
            number INTEGER NOT NULL,
            place INTEGER NOT NULL,
            state TEXT NOT NULL,
            type TEXT NOT NULL,
            tier TEXT NOT NULL,
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
        "CREATE TABLE accesses (number INTEGER PRIMARY KEY, count INTEGER NOT NULL, last_at INTEGER NOT NULL) STRICT",
        # Where the passages of a long text stand, the pieces of its words, and the hash of what was embedded if
        # embedding it is slow.
        f"CREATE TABLE vectors ({_VECTOR}) STRICT",
        "CREATE INDEX vectors_digest ON vectors (digest) WHERE digest IS NOT NULL",
        # Vectors of the next embedder, while memories are embedded anew.
        f"CREATE TABLE renewed ({_VECTOR}) STRICT",
        # The index of an owner as arrays, so that a new process need not make it again.
        """CREATE TABLE images (
            image INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            part TEXT NOT NULL,
            seq INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            data BLOB NOT NULL,
            UNIQUE (owner, part)
        ) STRICT""",
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
        # Leases: the holder, and until when by the clock of SQLite. The token rises with every holder.
        """CREATE TABLE leases (
            name TEXT PRIMARY KEY,
            holder TEXT NOT NULL,
            token INTEGER NOT NULL,
            until_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID""",
        # Versions and records that failed their checksum, set aside as they are by a repair.
        f"""CREATE TABLE damaged (
            place INTEGER PRIMARY KEY, {", ".join(f"{column} ANY" for column in rows.CHECKED.split(", ")[1:])}
        ) STRICT""",
        """CREATE TABLE damaged_records (
            owner ANY, kind ANY, name ANY, version ANY, updated_at ANY, body ANY, checksum ANY
        ) STRICT""",
    ),
    down=(),
)

MIGRATIONS = (FIRST,)


def latest() -> int:
    """The newest schema that this release knows."""
    return MIGRATIONS[-1].number


_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
# What ANALYZE makes, if a person runs it.
_STATISTICS = {
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
}
DIGEST = "203af48aa04dc9d3065a76890ec0bdab"
"""Of the objects of the first schema: making a schema to compare with takes 4 ms."""


def version_of(connection: apsw.Connection) -> int:
    """The schema that the file has; 0 for an empty one."""
    return int(connection.pragma("user_version"))


def strangers(connection: apsw.Connection) -> list[str]:
    """What the migrations did not make like this: triggers, views, indexes and tables of others, and changed ones."""
    found = objects(connection) - _STATISTICS
    version = version_of(connection)
    if digest(found) == DIGEST and version == FIRST.number:
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
    steps = [step for step in MIGRATIONS if target < step.number <= version_of(connection)]
    counted = ((connection.execute(query).get, sentence) for step in reversed(steps) for query, sentence in step.losses)
    return [sentence.format(count) for count, sentence in counted if count]


def migrate(connection: apsw.Connection, target: int) -> None:
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
