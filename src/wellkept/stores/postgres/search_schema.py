"""The tables of the index on the server. They are derived from the journal: dropping them loses nothing."""

TABLES = ("search_postings", "search_vectors", "search_entries", "search_owners")

UP = (
    "CREATE TABLE search_owners (no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest bytea NOT NULL UNIQUE,"
    " seq bigint, revision bigint, memories bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0,"
    " dimension integer NOT NULL DEFAULT 0) WITH (fillfactor = 50)",
    'CREATE TABLE search_entries (owner integer NOT NULL, no bigint NOT NULL, id text COLLATE "C" NOT NULL,'
    " born_at bigint NOT NULL, session bigint, run bigint, marks smallint NOT NULL, author text,"
    " occurred double precision NOT NULL, told_from double precision, told_to double precision,"
    " expires double precision, importance real NOT NULL, length integer NOT NULL,"
    " passages integer NOT NULL, terms integer[] NOT NULL, pieces bytea NOT NULL, codes bytea NOT NULL,"
    " PRIMARY KEY (owner, no), UNIQUE (owner, id))",
    "CREATE INDEX search_entries_occurred ON search_entries (owner, occurred)",
    "CREATE INDEX search_entries_told ON search_entries (owner, told_from) WHERE told_from IS NOT NULL",
    "CREATE INDEX search_entries_expires ON search_entries (owner, expires) WHERE expires IS NOT NULL",
    "CREATE INDEX search_entries_session ON search_entries (owner, session, no) WHERE session IS NOT NULL",
    "CREATE INDEX search_entries_run ON search_entries (owner, run, no) WHERE run IS NOT NULL",
    "CREATE TABLE search_vectors (owner integer NOT NULL, no bigint NOT NULL, vector halfvec NOT NULL)",
    "CREATE INDEX search_vectors_owner ON search_vectors (owner, no)",
    "CREATE TABLE search_postings (owner integer NOT NULL, term integer NOT NULL, no bigint NOT NULL,"
    " times integer NOT NULL, length integer NOT NULL, PRIMARY KEY (owner, term, no) INCLUDE (times, length))",
    # ANALYZE copies values, which an erasure could not reach.
    "ALTER TABLE search_entries ALTER author SET STATISTICS 0, ALTER terms SET STATISTICS 0,"
    " ALTER pieces SET STATISTICS 0, ALTER codes SET STATISTICS 0",
    "ALTER TABLE search_vectors ALTER vector SET STATISTICS 0",
)

ERASE = """WITH gone AS (SELECT e.owner, e.no, e.terms FROM search_entries e JOIN search_owners o ON o.no = e.owner
        WHERE o.digest = %s AND e.no = %s FOR UPDATE OF e),
    vectors AS (DELETE FROM search_vectors v USING gone WHERE v.owner = gone.owner AND v.no = gone.no),
    said AS (SELECT gone.owner, gone.no, term FROM gone, unnest(gone.terms) term),
    postings AS (DELETE FROM search_postings p USING said
        WHERE p.owner = said.owner AND p.term = said.term AND p.no = said.no)
    UPDATE search_entries e SET terms = '{}', pieces = '', codes = '', author = NULL FROM gone
    WHERE e.owner = gone.owner AND e.no = gone.no"""
"""Deletes what the tables say of an erased memory, by the digest of its owner and the number of its first version. Its
row stays until the next search takes it out of its conversation. It takes no lock of the owner, which is held for long
while an owner is loaded.
"""
