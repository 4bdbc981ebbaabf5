"""The SQL of the index on the server."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from wellkept import codec
from wellkept.filters import Where
from wellkept.recall.conversations import PAUSE_S
from wellkept.recall.entries import SPOKEN
from wellkept.recall.owner_index import K1, B

ENTRY_COLUMNS = (
    ("owner", "int4"),
    ("no", "int8"),
    ("id", "text"),
    ("born_at", "int8"),
    ("session", "int8"),
    ("run", "int8"),
    ("marks", "int2"),
    ("author", "text"),
    ("occurred", "float8"),
    ("told_from", "float8"),
    ("told_to", "float8"),
    ("expires", "float8"),
    ("importance", "float4"),
    ("length", "int4"),
    ("passages", "int4"),
    ("terms", "int4[]"),
    ("pieces", "bytea"),
    ("codes", "bytea"),
)


class Condition(NamedTuple):
    """A part of a statement, and its values by name."""

    text: str
    values: dict[str, Any]


_FOUND = "SELECT no FROM search_entries WHERE owner = %(owner)s AND"


def conditions(where: Where) -> Condition:
    """What every index heeds, of the column ``no``. Each is a subquery: most memories do not expire, and looking every
    one up would take longer than the search.
    """
    text = f" AND no NOT IN ({_FOUND} expires <= %(now)s)"
    values: dict[str, Any] = {"now": _seconds(where.now)}
    if where.occurred_after is not None:
        text += f" AND no IN ({_FOUND} occurred >= %(after)s)"
        values["after"] = _seconds(where.occurred_after)
    if where.occurred_before is not None:
        text += f" AND no IN ({_FOUND} occurred < %(before)s)"
        values["before"] = _seconds(where.occurred_before)
    if where.ids is not None:
        text += f" AND no IN ({_FOUND} id = ANY(%(ids)s))"
        values["ids"] = list(where.ids)
    if where.without:
        text += f" AND no NOT IN ({_FOUND} id = ANY(%(without)s))"
        values["without"] = list(where.without)
    return Condition(text, values)


def _seconds(moment: datetime) -> float:
    return codec.to_micros(moment) / 1e6


def nearest(fits: str) -> str:
    """The memories whose best passage agrees most. Vectors are one unit long, so that the product is the cosine."""
    return f"""SELECT e.id, s.score FROM (
        SELECT no, max(-(vector <#> %(asked)s::halfvec)) AS score FROM search_vectors
        WHERE owner = %(owner)s AND vector_dims(vector) = %(dimension)s{fits}
        GROUP BY no ORDER BY score DESC, no LIMIT %(limit)s) s
        JOIN search_entries e ON e.owner = %(owner)s AND e.no = s.no ORDER BY s.score DESC, e.no"""


WORDED = f"""SELECT p.no, sum(t.weight * p.times * {K1 + 1} /
    (p.times + {K1} * ({1 - B} + {B} * p.length / %(mean)s))) AS score
    FROM unnest(%(terms)s::integer[], %(weights)s::double precision[]) t (term, weight)
    JOIN search_postings p ON p.owner = %(owner)s AND p.term = t.term GROUP BY p.no"""


def worded(fits: str, *, required: bool) -> str:
    """The memories with the highest BM25; with required terms all that have them."""
    if not required:
        found = f"SELECT no, score FROM ({WORDED}) w WHERE score > 0{fits}"
    else:
        found = f"""SELECT no, coalesce(score, 0) AS score FROM (
            SELECT no FROM search_postings WHERE owner = %(owner)s AND term = ANY(%(required)s)
            GROUP BY no HAVING count(*) = %(count)s) r LEFT JOIN ({WORDED}) w USING (no) WHERE true{fits}"""
    return f"""SELECT e.id, s.score FROM ({found} ORDER BY score DESC, no LIMIT %(limit)s) s
        JOIN search_entries e ON e.owner = %(owner)s AND e.no = s.no ORDER BY s.score DESC, e.no"""


def dated(fits: str) -> str:
    """The memories that occurred in a stretch of time or tell of it, those nearest to its middle first."""
    return f"""SELECT id FROM search_entries WHERE owner = %(owner)s AND (occurred BETWEEN %(start)s AND %(end)s
        OR told_from <= %(end)s AND told_to >= %(start)s){fits}
        ORDER BY least(abs(occurred - %(middle)s), abs((told_from + told_to) / 2 - %(middle)s)), no LIMIT %(limit)s"""


HAVING = """SELECT term, count(*) FROM search_postings
    WHERE owner = %(owner)s AND term = ANY(%(terms)s) GROUP BY term"""

SPAN = "SELECT min(occurred), max(occurred) FROM search_entries WHERE owner = %(owner)s"

AUTHORS = """SELECT DISTINCT author FROM search_entries
    WHERE owner = %(owner)s AND author IS NOT NULL"""


def _beside(which: str, compared: str) -> str:
    """The neighbour of a memory in its conversation: in a session that was named, or in what was said in one go."""
    return f"""CASE WHEN e.session IS NOT NULL THEN (SELECT {which}(x.no) FROM search_entries x
            WHERE x.owner = e.owner AND x.session = e.session AND x.no {compared} e.no)
        WHEN e.run IS NOT NULL THEN (SELECT {which}(x.no) FROM search_entries x
            WHERE x.owner = e.owner AND x.run = e.run AND x.no {compared} e.no) END"""


LINKS = f"""SELECT e.no, e.id, {_beside("max", "<")}, {_beside("min", ">")} FROM search_entries e
    WHERE e.owner = %(owner)s AND (e.id = ANY(%(ids)s) OR e.no = ANY(%(numbers)s))"""

ROWS = """SELECT no, id, born_at, session, run, marks, author, occurred, told_from, told_to, expires, importance,
    length, passages, terms, pieces, codes FROM search_entries WHERE owner = %(owner)s AND no = ANY(%(numbers)s)"""

SIZES = """SELECT true, s, (SELECT count(*) FROM search_entries WHERE owner = %(owner)s AND session = s)
    FROM unnest(%(sessions)s::bigint[]) s UNION ALL
    SELECT false, r, (SELECT count(*) FROM search_entries WHERE owner = %(owner)s AND run = r)
    FROM unnest(%(runs)s::bigint[]) r"""

REMOVE = """WITH gone AS (DELETE FROM search_entries WHERE owner = %(owner)s AND id = ANY(%(ids)s)
        RETURNING no, length, run, terms),
    vectors AS (DELETE FROM search_vectors v USING gone WHERE v.owner = %(owner)s AND v.no = gone.no),
    said AS (SELECT gone.no, term FROM gone, unnest(gone.terms) term),
    postings AS (DELETE FROM search_postings p USING said
        WHERE p.owner = %(owner)s AND p.term = said.term AND p.no = said.no)
    SELECT no, length, run FROM gone"""

LAST_SPOKEN = """SELECT no, run FROM search_entries
    WHERE owner = %(owner)s AND run IS NOT NULL AND no < %(lowest)s ORDER BY no DESC LIMIT 1"""

RELINK = f"""WITH spoken AS (
        SELECT no, occurred, lag(occurred) OVER (ORDER BY no) AS last FROM search_entries
        WHERE owner = %(owner)s AND run IS NOT NULL AND no >= %(start)s),
    begun AS (SELECT no, CASE WHEN last IS NULL OR abs(occurred - last) > {PAUSE_S} THEN no END AS start FROM spoken),
    linked AS (SELECT no, max(start) OVER (ORDER BY no) AS run FROM begun),
    named AS (SELECT no, CASE WHEN run = %(start)s THEN %(run)s ELSE run END AS run FROM linked)
    UPDATE search_entries e SET run = named.run FROM named
    WHERE e.owner = %(owner)s AND e.no = named.no AND e.run <> named.run"""
"""Links what was said without a session, from a memory on: what was said after a pause begins a conversation."""


def runs(session: int, marks: int) -> bool:
    """Whether a memory belongs to a conversation that nobody named."""
    return not session and bool(marks & SPOKEN)


def signed(terms: Sequence[int]) -> list[int]:
    """Terms as PostgreSQL's integers, which have a sign."""
    return [term - (1 << 32) if term >= 1 << 31 else term for term in terms]


VECTOR_COLUMNS = (("owner", "int4"), ("no", "int8"), ("vector", "halfvec"))
POSTING_COLUMNS = (("owner", "int4"), ("term", "int4"), ("no", "int8"), ("times", "int4"), ("length", "int4"))

MARK = "SELECT seq, revision FROM search_owners WHERE digest = %s"
KNOWN = "SELECT digest, no, memories, words FROM search_owners WHERE digest = ANY(%s) AND memories > 0"
OWNER = "SELECT seq, revision, memories, words, dimension FROM search_owners WHERE no = %s"
ADD_OWNER = "INSERT INTO search_owners (digest) VALUES (%s) ON CONFLICT DO NOTHING"
LOCK_ALL = """SELECT no FROM search_owners WHERE %(digests)s::bytea[] IS NULL OR digest = ANY(%(digests)s)
    ORDER BY no FOR UPDATE"""
UNMARK = "UPDATE search_owners SET seq = NULL, revision = NULL, memories = 0, words = 0 WHERE no = ANY(%s)"
NOTE = """UPDATE search_owners SET seq = %s, revision = %s, memories = %s, words = %s, dimension = %s WHERE no = %s"""
