"""The statements by which the journal is read. ``o`` is owners, ``j`` the journal, ``h`` heads, ``a`` accesses, ``v``
vectors.
"""

from wellkept.stores.postgres import rows

MARKS = "SELECT name, seq, revision FROM owners WHERE seq > 0 AND digest = ANY(%s)"
USAGE = "SELECT name, memories, bytes FROM owners WHERE seq > 0 AND digest = ANY(%s)"
OWNERS = (
    "SELECT name FROM owners WHERE seq > 0 AND (left(name, 400), name) > (left(%s, 400), %s)"
    " ORDER BY left(name, 400), name LIMIT %s"
)
LAST = (
    "SELECT o.name, o.seq, o.last_at, j.stamp FROM owners o LEFT JOIN journal j ON j.owner = o.no AND j.seq = o.seq"
    " WHERE o.seq > 0 AND o.digest = ANY(%s)"
)
LAST_BEFORE = (
    "SELECT o.name, j.seq, j.recorded_at, j.stamp FROM owners o CROSS JOIN LATERAL"
    " (SELECT seq, recorded_at, stamp FROM journal j WHERE j.owner = o.no AND j.recorded_at <= %s"
    " ORDER BY j.seq DESC LIMIT 1) j WHERE o.digest = ANY(%s)"
)
REACHED = (
    "SELECT o.name, o.seq, j.stamp FROM unnest(%s::bytea[], %s::bigint[]) w (digest, seq)"
    " JOIN owners o ON o.digest = w.digest LEFT JOIN journal j ON j.owner = o.no AND j.seq = w.seq"
)
"""What the places of a position are now."""

BEHIND = (
    f"SELECT {rows.PLAIN} FROM unnest(%s::bytea[], %s::bigint[]) w (digest, seq)"
    " JOIN owners o ON o.digest = w.digest CROSS JOIN LATERAL"
    " (SELECT * FROM journal j WHERE j.owner = o.no AND j.seq > w.seq ORDER BY j.seq LIMIT %s) j"
    " ORDER BY j.recorded_at, o.name, j.seq LIMIT %s"
)
CHANGED = (
    "SELECT DISTINCT o.name, j.id FROM unnest(%s::bytea[], %s::bigint[]) w (digest, seq)"
    " JOIN owners o ON o.digest = w.digest JOIN journal j ON j.owner = o.no AND j.seq > w.seq"
)
HISTORY = (
    f"SELECT {rows.PLAIN} FROM owners o JOIN journal j ON j.owner = o.no WHERE o.digest = %s AND j.id = %s"
    " ORDER BY j.version"
)
_XMIN = "pg_snapshot_xmin(pg_current_snapshot())"
FEED = (
    f"SELECT {rows.PLAIN}, j.epoch, j.xid::text, j.owner FROM journal j JOIN owners o ON o.no = j.owner"
    " WHERE (j.epoch, j.xid, j.owner, j.seq) > (%(epoch)s, %(xid)s::xid8, %(owner)s, %(seq)s)"
    f" AND (j.epoch < %(now)s OR j.xid < {_XMIN}) ORDER BY j.epoch, j.xid, j.owner, j.seq LIMIT %(limit)s"
)
HELD_BACK = (
    f"SELECT EXISTS (SELECT 1 FROM journal j WHERE j.epoch = %(now)s AND j.xid >= {_XMIN} AND j.xid >= %(xid)s::xid8)"
)
"""Whether there are versions that the feed must not show yet: an older transaction could still commit before them."""

AT_PLACE = "SELECT stamp FROM journal WHERE owner = %(owner)s AND seq = %(seq)s"
LOCK_TIMEOUT = "SELECT set_config('lock_timeout', %s, true)"
"""For one transaction."""

COUNT_ACCESSES = (
    "INSERT INTO accesses AS a (owner, born, times, last_at) SELECT h.owner, h.born, w.times, w.last_at"
    " FROM unnest(%s::bytea[], %s::text[], %s::bigint[], %s::bigint[]) w (digest, id, times, last_at)"
    f" JOIN owners o ON o.digest = w.digest{rows.HEAD_BY_ID}"
    f" WHERE h.state <> '{rows.ERASED}' ORDER BY h.owner, h.born"
    " ON CONFLICT (owner, born) DO UPDATE SET times = a.times + excluded.times,"
    " last_at = greatest(a.last_at, excluded.last_at)"
)
BY_DIGEST = "SELECT DISTINCT ON (digest) digest, embedder, data, spans, pieces FROM vectors WHERE digest = ANY(%s)"
WITHOUT_VECTOR = (
    "FROM heads h JOIN owners o ON o.no = h.owner JOIN journal j ON j.owner = h.owner AND j.seq = h.seq"
    " LEFT JOIN accesses a ON a.owner = h.owner AND a.born = h.born"
    f" WHERE h.state NOT IN ('{rows.ERASED}', 'moved')"
    " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.owner = h.owner AND v.born = h.born AND v.embedder = %(name)s)"
    " AND NOT EXISTS (SELECT 1 FROM renewed v WHERE v.owner = h.owner AND v.born = h.born AND v.embedder = %(name)s)"
)
UNEMBEDDED = (
    f"SELECT o.name, {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} {WITHOUT_VECTOR}"
    " ORDER BY h.owner, h.born LIMIT %(limit)s"
)
STATS = (
    "SELECT CASE WHEN h.state IN ('archived', 'superseded', 'quarantined', 'moved') THEN h.state"
    " WHEN h.state = 'active' AND (h.expires_at IS NULL OR h.expires_at > %s) THEN h.state ELSE 'forgotten' END,"
    f" h.type, count(*), coalesce(sum(h.size + h.vector) FILTER (WHERE {rows.COUNTED}), 0)::bigint,"
    " min(h.created_at), max(h.created_at) FROM heads h JOIN owners o ON o.no = h.owner"
    f" WHERE h.state <> '{rows.ERASED}' AND o.digest = ANY(%s) GROUP BY 1, 2 ORDER BY 2"
)
TAGS = (
    "SELECT t, count(*) FROM heads h JOIN owners o ON o.no = h.owner, unnest(h.tags) t"
    " WHERE h.state = 'active' AND (h.expires_at IS NULL OR h.expires_at > %s) AND o.digest = ANY(%s) GROUP BY t"
)


def _columns(*, payload: bool, vectors: bool) -> str:
    version = rows.JOURNAL if payload else rows.WITHOUT_PAYLOAD
    return f"o.name, {version}, {rows.ACCESSES}, {rows.VECTOR if vectors else rows.NO_VECTOR}"


def _beside(of: str, *, vectors: bool) -> str:
    joined = f" LEFT JOIN accesses a ON a.owner = {of}.owner AND a.born = {of}.born"
    if vectors and of == "j":  # vectors belong to the newest version of all
        joined += " LEFT JOIN heads n ON n.owner = j.owner AND n.id = j.id AND n.seq = j.seq"
        joined += " LEFT JOIN vectors v ON v.owner = n.owner AND v.born = n.born"
    elif vectors:
        joined += f" LEFT JOIN vectors v ON v.owner = {of}.owner AND v.born = {of}.born"
    return joined


def heads(*, payload: bool, vectors: bool) -> str:
    """All memories as they are now, in the order of recording."""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)} FROM owners o JOIN heads h ON h.owner = o.no"
        f" JOIN journal j ON j.owner = h.owner AND j.seq = h.seq{_beside('h', vectors=vectors)}"
        f" WHERE o.digest = ANY(%s) AND h.state <> '{rows.ERASED}' ORDER BY h.born_at, o.name, h.born"
    )


def by_id(*, payload: bool, vectors: bool) -> str:
    """Memories as they are now, by their ids and owners.

    What a subquery gives is unknown to the planner: the plan for any ids seems as good to it as one for these, and is
    kept. Planning takes four times as long as looking them up.
    """
    beside = rows.looked_up("accesses", "a", "a.owner = h.owner AND a.born = h.born", optional=True)
    if vectors:
        beside += rows.looked_up("vectors", "v", "v.owner = h.owner AND v.born = h.born", optional=True)
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)}"
        f" FROM owners o CROSS JOIN unnest((SELECT %s::text[])) w (id){rows.HEAD_BY_ID}"
        f"{rows.looked_up('journal', 'j', 'j.owner = h.owner AND j.seq = h.seq')}{beside}"
        f" WHERE o.digest = ANY((SELECT %s::bytea[])::bytea[]) AND h.state <> '{rows.ERASED}'"
    )


IN_ORDER = "SELECT set_config('enable_sort', 'off', true), set_config('enable_hashjoin', 'off', true)"
"""For a transaction that reads in the order of an index: sorting and hashing need room on the server's disk."""


def all_of_one(*, payload: bool, vectors: bool) -> str:
    """All memories of one owner as they are now, in the order of recording, which is that of an index."""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)} FROM heads h JOIN owners o ON o.no = h.owner"
        f" JOIN journal j ON j.owner = h.owner AND j.seq = h.seq{_beside('h', vectors=vectors)}"
        f" WHERE h.owner = (SELECT no FROM owners WHERE digest = ANY(%s)) AND h.state <> '{rows.ERASED}'"
        " ORDER BY h.born_at, h.born"
    )


def past(*, payload: bool, vectors: bool, one: bool) -> str:
    """The newest version of each memory up to a sequence of its owner. Erased memories left only a tombstone."""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)} FROM unnest(%s::bytea[], %s::bigint[]) w (digest, seq)"
        " JOIN owners o ON o.digest = w.digest JOIN journal j ON j.owner = o.no AND j.seq <= w.seq"
        f"{_beside('j', vectors=vectors)} WHERE j.operation <> '{rows.ERASED}' AND NOT EXISTS"
        " (SELECT 1 FROM journal k WHERE k.owner = j.owner AND k.id = j.id AND k.version > j.version"
        " AND k.seq <= w.seq)"
        f" {'AND j.id = ANY(%s)' if one else 'ORDER BY j.born_at, o.name, j.born'}"
    )
