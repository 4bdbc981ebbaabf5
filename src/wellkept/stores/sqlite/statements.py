"""The statements by which the journal is read. ``j`` is the journal, ``h`` heads, ``a`` accesses, ``v`` vectors."""

from wellkept.stores.sqlite import rows

ANY_OWNER = 2**62
MARKS = "SELECT name, CAST(seq AS INTEGER), CAST(revision AS INTEGER) FROM owners WHERE seq > 0 AND name IN"
USAGE = "SELECT name, CAST(memories AS INTEGER), CAST(bytes AS INTEGER) FROM owners WHERE seq > 0 AND name IN"
OWNERS = "SELECT name FROM owners WHERE seq > 0 AND name > ? ORDER BY name LIMIT ?"
LAST = (
    "SELECT CAST(o.seq AS INTEGER), j.stamp, CAST(o.last_at AS INTEGER)"
    " FROM owners o LEFT JOIN journal j ON j.owner = o.owner AND j.seq = o.seq"
    " WHERE o.owner = ?"
)
STAMP_AT = (
    "SELECT o.seq, (SELECT stamp FROM journal j WHERE j.owner = o.owner AND j.seq = ?) FROM owners o WHERE owner = ?"
)
AT_OR_BEFORE = f"SELECT {rows.CHECKED} FROM journal WHERE owner = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
PLACES_BEHIND = "SELECT place FROM journal WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?"
CHANGED = "SELECT DISTINCT id FROM journal WHERE owner = ? AND seq > ?"
PLAIN = f"{rows.JOURNAL}, {rows.NO_ACCESSES}, {rows.NO_VECTOR}"
HISTORY = f"SELECT {PLAIN} FROM journal j WHERE j.id = ? AND j.owner = ? ORDER BY j.version"
FEED = f"SELECT {PLAIN} FROM journal j WHERE j.place > ? ORDER BY j.place LIMIT ?"
_AT_PLACES = "WHERE j.place IN (SELECT value FROM json_each(?)) ORDER BY j.place"
VERSIONS_AT_PLACES = f"SELECT {PLAIN} FROM journal j {_AT_PLACES}"
MEMORIES_AT_PLACES = (
    f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} FROM journal j"
    f" LEFT JOIN accesses a ON a.number = j.number {_AT_PLACES}"
)
LAST_PLACE = (
    "SELECT max(coalesce((SELECT max(place) FROM journal), 0),"
    f" coalesce((SELECT max(place) FROM damaged WHERE place < {rows.BOUND}), 0)),"
    " (SELECT stamp FROM journal WHERE place = ?)"
)
COUNT_ACCESS = (
    "INSERT INTO accesses (number, count, last_at) SELECT number, ?, ? FROM journal"
    " WHERE id = ? AND owner = ? AND operation <> 'erased' ORDER BY version DESC LIMIT 1"
    " ON CONFLICT (number) DO UPDATE SET count = count + excluded.count, last_at = max(last_at, excluded.last_at)"
)
BY_DIGEST = "SELECT embedder, data, spans, pieces FROM vectors WHERE digest = ? LIMIT 1"
WITHOUT_VECTOR = (
    "FROM heads h JOIN journal j ON j.place = h.place LEFT JOIN accesses a ON a.number = h.number"
    " WHERE h.state <> 'moved' AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.number = h.number AND v.embedder = ?)"
    " AND NOT EXISTS (SELECT 1 FROM renewed r WHERE r.number = h.number AND r.embedder = ?)"
)
UNEMBEDDED = f"SELECT {rows.JOURNAL}, {rows.ACCESSES}, {rows.NO_VECTOR} {WITHOUT_VECTOR} ORDER BY h.number LIMIT ?"
STATS = (
    "SELECT CASE WHEN state IN ('archived', 'superseded', 'quarantined', 'moved') THEN state"
    " WHEN state = 'active' AND (expires_at IS NULL OR expires_at > ?) THEN state ELSE 'forgotten' END, type,"
    " count(*), sum(bytes), min(created_at), max(created_at)"
    " FROM heads WHERE owner IN {owners} GROUP BY 1, 2 ORDER BY type"
)
TAGS = (
    "SELECT t.tag, count(*) FROM tags t JOIN heads h ON h.owner = t.owner AND h.number = t.number"
    " WHERE t.owner IN {owners} AND h.state = 'active' AND (h.expires_at IS NULL OR h.expires_at > ?)"
    " GROUP BY t.tag"
)


def _columns(*, payload: bool, vectors: bool) -> str:
    return (
        f"{rows.JOURNAL if payload else rows.WITHOUT_PAYLOAD}, {rows.ACCESSES},"
        f" {rows.VECTOR if vectors else rows.NO_VECTOR}"
    )


def _get(*, payload: bool, vectors: bool) -> str:
    """The newest version of an id, of the owner with the highest number below a given one, and whether owners with
    lower numbers have the same id. Ids are seldom shared, so one statement answers nearly every read.
    """
    joined = " LEFT JOIN vectors v ON v.number = j.number" if vectors else ""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)},"
        " EXISTS (SELECT 1 FROM journal k WHERE k.id = j.id AND k.owner < j.owner)"
        f" FROM journal j LEFT JOIN accesses a ON a.number = j.number{joined}"
        " WHERE j.id = ? AND j.owner < ? ORDER BY j.owner DESC, j.version DESC LIMIT 1"
    )


GET = {
    (payload, vectors): _get(payload=payload, vectors=vectors) for payload in (False, True) for vectors in (False, True)
}


def _get_many(*, payload: bool, vectors: bool) -> str:
    """The newest versions of several ids, of every owner that has one, in the order of the ids: ``CROSS JOIN`` makes
    them the outer loop. Sorting by it instead would copy every row, with its vector.
    """
    joined = " LEFT JOIN vectors v ON v.number = j.number" if vectors else ""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)}"
        " FROM json_each(?) w CROSS JOIN journal j ON j.id = w.value"
        f" LEFT JOIN accesses a ON a.number = j.number{joined}"
        " WHERE j.version = (SELECT max(k.version) FROM journal k WHERE k.id = j.id AND k.owner = j.owner)"
    )


GET_MANY = {
    (payload, vectors): _get_many(payload=payload, vectors=vectors)
    for payload in (False, True)
    for vectors in (False, True)
}


def scan(*, payload: bool, vectors: bool) -> str:
    """The memories of an owner as they are now, in the order of recording."""
    joined = " LEFT JOIN vectors v ON v.number = h.number" if vectors else ""
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)} FROM heads h JOIN journal j ON j.place = h.place"
        f" LEFT JOIN accesses a ON a.number = h.number{joined} WHERE h.owner = ? ORDER BY h.number"
    )


def past(*, payload: bool, vectors: bool, one: bool) -> str:
    """The newest version of each memory of an owner up to a sequence. Erased memories left only a tombstone. Vectors
    belong to the newest version of all.
    """
    joined = (
        " LEFT JOIN heads h ON h.owner = j.owner AND h.number = j.number AND h.place = j.place"
        " LEFT JOIN vectors v ON v.number = h.number"
        if vectors
        else ""
    )
    return (
        f"SELECT {_columns(payload=payload, vectors=vectors)} FROM journal j"
        f" LEFT JOIN accesses a ON a.number = j.number{joined}"
        " WHERE j.owner = ? AND j.seq <= ? AND j.operation <> 'erased' AND NOT EXISTS"
        " (SELECT 1 FROM journal k WHERE k.id = j.id AND k.owner = j.owner AND k.version > j.version AND k.seq <= ?)"
        f" {'AND j.id = ? LIMIT 1' if one else 'ORDER BY j.number'}"
    )
