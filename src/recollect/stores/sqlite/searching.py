"""Searching the file: the indexes in RAM choose, the tables answer what no index holds."""

from collections.abc import Sequence

import apsw
import numpy as np

from recollect import codec, filters
from recollect.ports import Query, check_vector
from recollect.recall import defaults
from recollect.recall.columns import Array
from recollect.recall.parts import Part
from recollect.recall.probes import Candidates, Probe
from recollect.recall.search import candidates as search
from recollect.stores.sqlite import queries, rows
from recollect.stores.sqlite.indexes import Indexes, state_of


def candidates(
    connection: apsw.Connection, indexes: Indexes, owners: Sequence[int], query: Query, probe: Probe
) -> Candidates:
    """What may answer a search, in the state of the file that the connection sees."""
    state = state_of(connection)
    if probe.vector is not None and state.embedder is not None:
        check_vector(probe.vector, state.embedder, state.dimension)
    held = indexes.refreshed(connection, owners, state)
    allowed = _allowed(connection, owners, query)
    wild = [_beginning(connection, owners, prefix) for prefix in probe.asked.prefixes]
    parts = [Part(index=index, allowed=allowed, wild=wild) for index in held.values()]

    def exact(numbers: Array) -> list[bytes]:
        found = dict(rows.fetch(connection, _VECTORS, (codec.encode_json(numbers.tolist()).decode(),)))
        return [found[number] for number in numbers.tolist()]

    return search(parts, probe, codec.to_micros(query.where.now) / 1e6, exact)


_VECTORS = "SELECT number, data FROM vectors WHERE number IN (SELECT value FROM json_each(?))"


def _allowed(connection: apsw.Connection, owners: Sequence[int], query: Query) -> Array | None:
    """The memories that a filter lets through; none if there is no filter. That they last, the index knows itself."""
    if filters.anything(query.where):
        return None
    found = rows.fetch(connection, *queries.numbers(query, owners))
    return np.array([row[0] for row in found], np.int64)


def _beginning(connection: apsw.Connection, owners: Sequence[int], prefix: str) -> Array:
    """The memories with a word that begins so."""
    named = rows.fetch(connection, f"SELECT owner, name FROM owners WHERE owner IN ({queries.marks(owners)})", owners)
    owner_of = {number: codec.decode_owner(name) for number, name in named}
    found = rows.fetch(connection, *queries.by_beginning(owners, prefix))
    having = (row[2] for row in found if defaults.begins(rows.to_memory(row, owner_of[row[3]]), prefix))
    return np.fromiter(having, np.int64)
