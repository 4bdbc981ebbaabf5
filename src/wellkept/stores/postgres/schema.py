"""The tables, and the way from one schema to the next. DDL is transactional: a step is taken whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wellkept import ids
from wellkept.errors import ConfigurationError, NotAStore, SchemaTooNew
from wellkept.stores.postgres import epochs, extension, search_schema, tables
from wellkept.stores.postgres.server import Session

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: the statements up and down, and what is lost on the way down: queries that count it, each with a
    sentence for the count.
    """

    number: int
    up: Sequence[str]
    down: Sequence[str]
    losses: Sequence[tuple[str, str]] = ()


# Texts are compared byte by byte. What may be long is not in a key of an index, whose rows have at most 2,700 bytes.
FIRST = Migration(
    number=1,
    up=(
        'CREATE TABLE settings (name text COLLATE "C" PRIMARY KEY, value text NOT NULL, digest bytea NOT NULL)',
        "CREATE TABLE epochs (number integer PRIMARY KEY, name text NOT NULL, incarnation text NOT NULL,"
        " began_at timestamptz NOT NULL DEFAULT now())",
        "CREATE TABLE owners (no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest bytea NOT NULL UNIQUE,"
        ' name text COLLATE "C" NOT NULL, seq bigint NOT NULL DEFAULT 0, memories bigint NOT NULL DEFAULT 0,'
        " bytes bigint NOT NULL DEFAULT 0, last_at bigint NOT NULL DEFAULT 0, revision bigint NOT NULL DEFAULT 0)"
        " WITH (fillfactor = 50)",
        "CREATE INDEX owners_name ON owners (left(name, 400))",
        'CREATE TABLE journal (owner integer NOT NULL, seq bigint NOT NULL, id text COLLATE "C" NOT NULL,'
        " version bigint NOT NULL, born bigint NOT NULL, born_at bigint NOT NULL, recorded_at bigint NOT NULL,"
        ' operation text NOT NULL, stamp text COLLATE "C" NOT NULL, replaced text, reason text,'
        " write_id text, facets text,"
        " content text, payload bytea, digest bytea NOT NULL, epoch integer NOT NULL,"
        " xid xid8 NOT NULL DEFAULT pg_current_xact_id(), PRIMARY KEY (owner, seq))",
        "CREATE UNIQUE INDEX journal_id ON journal (owner, id, version)",
        "CREATE INDEX journal_feed ON journal (epoch, xid, owner, seq)",
        'CREATE TABLE heads (owner integer NOT NULL, id text COLLATE "C" NOT NULL, born bigint NOT NULL,'
        " born_at bigint NOT NULL, seq bigint NOT NULL, version bigint NOT NULL,"
        ' stamp text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL,'
        ' tier text COLLATE "C" NOT NULL,'
        " importance double precision NOT NULL, created_at bigint NOT NULL, occurred_at bigint NOT NULL,"
        ' expires_at bigint, author text COLLATE "C", source_type text COLLATE "C", has_pointer boolean NOT NULL,'
        ' tags text[] COLLATE "C" NOT NULL, key text COLLATE "C", size bigint NOT NULL, vector bigint NOT NULL,'
        " PRIMARY KEY (owner, id)) WITH (fillfactor = 80)",
        "CREATE UNIQUE INDEX heads_born ON heads (owner, born_at, born)",
        "CREATE INDEX heads_key ON heads (owner, hashtextextended(key, 0)) WHERE key IS NOT NULL",
        "CREATE TABLE accesses (owner integer NOT NULL, born bigint NOT NULL, times bigint NOT NULL,"
        " last_at bigint NOT NULL, PRIMARY KEY (owner, born)) WITH (fillfactor = 70)",
        *(
            f"CREATE TABLE {name} (owner integer NOT NULL, born bigint NOT NULL, embedder text NOT NULL,"
            " data bytea NOT NULL, spans bytea, pieces bytea, digest bytea,"
            " PRIMARY KEY (owner, born))"
            for name in ("vectors", "renewed")
        ),
        "CREATE INDEX vectors_digest ON vectors (digest) WHERE digest IS NOT NULL",
        'CREATE TABLE records (owner integer NOT NULL, kind text COLLATE "C" NOT NULL,'
        ' name text COLLATE "C" NOT NULL, version bigint NOT NULL, updated_at bigint NOT NULL, body bytea NOT NULL,'
        " digest bytea NOT NULL, PRIMARY KEY (owner, kind, name))",
        # Records that failed their checksum, set aside as they are by a repair.
        "CREATE TABLE damaged_records (LIKE records)",
        'CREATE TABLE leases (name text COLLATE "C" PRIMARY KEY, holder text NOT NULL, token bigint NOT NULL,'
        " until timestamptz NOT NULL)",
        *(f"ALTER TABLE {name} ALTER data SET STORAGE EXTERNAL" for name in ("vectors", "renewed")),
        # ANALYZE copies values, which an erasure could not reach.
        *(
            f"ALTER TABLE {table} {', '.join(f'ALTER {column} SET STATISTICS 0' for column in columns)}"
            for table, columns in (
                ("journal", ("reason", "facets", "content", "payload")),
                ("heads", ("author", "tags", "key")),
                ("records", ("body",)),
                ("damaged_records", ("body",)),
                ("vectors", ("data", "spans", "pieces", "digest")),
                ("renewed", ("data", "spans", "pieces", "digest")),
            )
        ),
        *search_schema.UP,
    ),
    down=tuple(
        f"DROP TABLE {name}"
        for name in (
            *search_schema.TABLES,
            *("leases", "damaged_records", "records", "renewed", "vectors", "accesses"),
            *("heads", "journal", "owners", "epochs", "settings"),
        )
    ),
)

MIGRATIONS = (FIRST,)

MARK = "wellkept"
"""The comment of the table ``migrations``: others have a table of that name, too."""


def latest() -> int:
    """The newest schema that this release knows."""
    return MIGRATIONS[-1].number


def version_of(session: Session, schema: str) -> int:
    """The schema that the database has; 0 if it has none. Refuses tables that are not ours."""
    # A query of the catalogue, not to_regclass: that may answer from a cache which does not know yet what the process
    # made that held the lock before.
    tables = session.rows(
        "SELECT obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = 'migrations' AND c.relkind IN ('r', 'p')",
        (schema,),
    )
    if not tables:
        return 0
    if tables[0][0] != MARK:
        raise NotAStore(
            f"the schema {schema!r} has tables that Wellkept did not make, or made before its first release, when the"
            " project had another name",
            details={"field": "url", "schema": schema},
            hint="name another schema in the URL, as in ?schema=memories; nothing was changed",
        )
    # By its full name: a search path passes over a schema that the user may not use, as if there were no tables.
    return int(session.rows(f'SELECT max(number) FROM "{schema}".migrations')[0][0] or 0)


def losses(session: Session, version: int, target: int) -> list[str]:
    """What a database loses on its way down to a schema, as sentences."""
    steps = [step for step in MIGRATIONS if target < step.number <= version]
    counted = ((session.rows(query)[0][0], sentence) for step in reversed(steps) for query, sentence in step.losses)
    return [sentence.format(count) for count, sentence in counted if count]


def check_not_newer(version: int, place: str) -> None:
    """Refuse a database of a newer release."""
    if version > latest():
        raise SchemaTooNew(
            f"{place} has schema {version}, this release reads up to {latest()}",
            details={"schema": version, "newest": latest()},
            hint="install a newer release of Wellkept, or migrate the database down with that one",
        )


def check_encoding(session: Session) -> None:
    """Refuse a database that cannot keep every text."""
    [(encoding,)] = session.rows("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"the database has the encoding {encoding}",
            details={"field": "url", "encoding": encoding},
            hint="create one with: createdb --template=template0 --encoding=UTF8 NAME",
        )


def migrate(session: Session, schema: str, place: str, target: int) -> int:
    """Bring the database to a schema, one transaction a step; others who migrate wait. Returns where it was."""
    check_encoding(session)
    before: int | None = None
    while True:
        with session.transaction(unhurried=True):
            session.run(_LOCK, (f"wellkept migrations {schema}",))
            current = version_of(session, schema)
            check_not_newer(current, place)
            before = current if before is None else before
            if current == target:
                return before
            if current == 0:
                _create(session, schema)
            if target > current:
                extension.require(session)
            _step(session, current, target)
            if current == 0:
                epochs.begin(session)


def drop(session: Session, schema: str) -> None:
    """Remove our tables, and the schema if nothing else is in it."""
    with session.transaction():
        for migration in reversed(MIGRATIONS):
            for statement in migration.down:
                session.run(statement)
        session.run("DROP TABLE migrations")
        rest = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s LIMIT 1"
        if not session.rows(rest, (schema,)):
            session.run(f'DROP SCHEMA "{schema}"')


def _create(session: Session, schema: str) -> None:
    """The schema itself, unless somebody made it for us."""
    if not session.rows("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)):
        session.run(f'CREATE SCHEMA "{schema}"')
    session.run(
        f'CREATE TABLE IF NOT EXISTS "{schema}".migrations'
        " (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    session.run(f"COMMENT ON TABLE \"{schema}\".migrations IS '{MARK}'")


def _step(session: Session, current: int, target: int) -> None:
    upwards = target > current
    migration = MIGRATIONS[current] if upwards else MIGRATIONS[current - 1]
    for statement in migration.up if upwards else migration.down:
        session.run(statement)
    if upwards:
        session.run("INSERT INTO migrations (number) VALUES (%s)", (migration.number,))
    else:
        session.run("DELETE FROM migrations WHERE number = %s", (migration.number,))
    if current == 0:
        tables.put_settings(session, {"origin": ids.new_origin()})
