"""The indexes of owners in RAM: made from the file, kept in step with its journal, and stored in it as images.

An image spares a new process the making. It is only ever a copy: it is dropped when a memory is erased, and whatever
was written since it was made is read from the journal.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import apsw
import numpy as np

from recollect import codec
from recollect.recall.columns import Array
from recollect.recall.entries import Entry, described
from recollect.recall.index import Index
from recollect.stores.sqlite import rows
from recollect.types import Owner

HELD_ROWS = 2_000_000
"""How many memories all indexes together may hold before the one not used for longest is let go."""

IMAGE_ROWS = 2_000
"""Memories: with fewer, making an index takes no longer than reading its image."""

_STATE = (
    "SELECT coalesce((SELECT max(sequence) FROM journal), 0),"
    " coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'generation'), 0),"
    " coalesce((SELECT CAST(value AS INTEGER) FROM settings WHERE name = 'dimension'), 0),"
    " (SELECT value FROM settings WHERE name = 'embedder')"
)
# Texts come as bytes: one that is damaged need not be a text any more, and must not keep all others from being found.
_ENTRIES = (
    "SELECT h.number, CAST(j.content AS BLOB), CAST(j.body AS BLOB), h.author, h.occurred_at, h.expires_at,"
    " h.importance, v.data, v.pieces"
    " FROM heads h JOIN journal j ON j.sequence = h.sequence LEFT JOIN vectors v ON v.number = h.number"
    " WHERE h.owner = ? AND h.state = 'active'"
)
_CHANGED = "SELECT DISTINCT number FROM journal WHERE sequence > ? AND owner = ?"
_HEADER = "header"
_AT_ONCE = 5_000

FORMAT = 2
"""Of images; raised whenever what is in one changes. One of another format is not read."""


@dataclass(frozen=True, slots=True)
class State:
    """What a file says of itself that an index depends on."""

    sequence: int
    generation: int
    dimension: int
    embedder: str | None


def state_of(connection: apsw.Connection) -> State:
    """The state that a connection sees."""
    [row] = rows.fetch(connection, _STATE)
    return State(*row)


@dataclass(slots=True)
class Held:
    """An index, the state of the file that it shows, and how many memories changed since its image was made."""

    index: Index
    state: State
    unsaved: int


class Indexes:
    """The indexes that were used lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, Held] = OrderedDict()

    def locked(self) -> threading.Lock:
        """To be held by a search: an index must not change under one, and they share the interpreter anyway."""
        return self._lock

    def refreshed(self, connection: apsw.Connection, owners: Sequence[int], state: State) -> dict[int, Index]:
        """The indexes of owners as of the connection's snapshot, which must be newer than the last one shown here."""
        found = {owner: self._refreshed(connection, owner, state).index for owner in owners}
        while len(self._held) > len(found) and sum(len(held.index) for held in self._held.values()) > HELD_ROWS:
            self._held.popitem(last=False)
        return found

    def _refreshed(self, connection: apsw.Connection, owner: int, state: State) -> Held:
        held = self._held.get(owner)
        if held is None or (held.state.generation, held.state.dimension) != (state.generation, state.dimension):
            held = self._held[owner] = _loaded(connection, owner, state)
        if held.state.sequence != state.sequence:
            _follow(connection, owner, held)
            held.state = state
        self._held.move_to_end(owner)
        return held

    def unsaved(self) -> list[int]:
        """The owners whose images are missing or old."""
        return [
            owner
            for owner, held in self._held.items()
            if held.index.alive >= IMAGE_ROWS and held.unsaved > held.index.alive // 8
        ]

    def save(self, connection: apsw.Connection, owners: Iterable[int]) -> None:
        """Store the images of indexes, inside a transaction; not if the file went on since: an image of something
        that was erased meanwhile must not come into being.
        """
        state = state_of(connection)
        for owner in owners:
            held = self._held.get(owner)
            if held is not None and held.state == state:
                write_image(connection, owner, held.index, held.state)
                held.unsaved = 0

    def drop(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


def _loaded(connection: apsw.Connection, owner: int, state: State) -> Held:
    """The index from its image, or else from the rows of the file."""
    image = read_image(connection, owner, state)
    if image is not None:
        return image
    index, whose = Index(state.dimension), _name(connection, owner)
    found = iter(connection.execute(f"{_ENTRIES} ORDER BY h.number", (owner,)))
    while some := list(islice(found, _AT_ONCE)):  # in pieces, since rows take many times the room of what is kept
        index.add(_entry(row, whose) for row in some)
    index.settle()
    return Held(index, state, index.alive)


def _follow(connection: apsw.Connection, owner: int, held: Held) -> None:
    """Take in what was written since."""
    changed = [row[0] for row in rows.fetch(connection, _CHANGED, (held.state.sequence, owner))]
    if not changed:
        return
    among = codec.encode_json(changed).decode()
    statement = f"{_ENTRIES} AND h.number IN (SELECT value FROM json_each(?)) ORDER BY h.number"
    whose = _name(connection, owner)
    entries = [_entry(row, whose) for row in rows.fetch(connection, statement, (owner, among))]
    held.index.remove(set(changed) - {entry.number for entry in entries})
    held.index.add(entries)
    held.index.settle()
    held.unsaved += len(changed)


def _name(connection: apsw.Connection, owner: int) -> Owner:
    [(name,)] = rows.fetch(connection, "SELECT name FROM owners WHERE owner = ?", (owner,))
    return codec.decode_owner(name)


def _entry(row: tuple[Any, ...], owner: Owner) -> Entry:
    number, content, body, author, occurred_at, expires_at, importance, vector, pieces = row
    session, marks, terms = described((content or b"").decode(errors="replace"), codec.decode_told(body), owner)
    expires = None if expires_at is None else expires_at / 1e6
    return Entry(number, terms, session, marks, author, occurred_at / 1e6, expires, importance, vector, pieces)


def write_image(connection: apsw.Connection, owner: int, index: Index, state: State) -> None:
    """Store an index as arrays."""
    arrays, authors = index.parts()
    header = {
        "format": FORMAT,
        "sequence": state.sequence,
        "generation": state.generation,
        "dimension": state.dimension,
        "authors": authors,
        "types": {name: array.dtype.str for name, array in arrays.items()},
        "sums": {name: _sum(array) for name, array in arrays.items()},
    }
    connection.execute("DELETE FROM images WHERE owner = ?", (owner,))
    parts: dict[str, Any] = {_HEADER: codec.encode_json(header), **arrays}
    for name, data in parts.items():
        connection.execute("INSERT INTO images (owner, part, data) VALUES (?, ?, ?)", (owner, name, bytes(data)))


def read_image(connection: apsw.Connection, owner: int, state: State) -> Held | None:
    """The index that was stored; none if there is none, or one that does not fit any more or is damaged."""
    parts = dict(rows.fetch(connection, "SELECT part, image FROM images WHERE owner = ?", (owner,)))
    if _HEADER not in parts:
        return None
    try:
        header = codec.decode_json(_blob(connection, parts[_HEADER], "|u1").tobytes())
        fits = (header["format"], header["generation"], header["dimension"])
        if fits != (FORMAT, state.generation, state.dimension) or header["sequence"] > state.sequence:
            return None
        arrays = {name: _blob(connection, parts[name], kind) for name, kind in header["types"].items()}
        if {name: _sum(array) for name, array in arrays.items()} != header["sums"]:
            return None
        index = Index.restored(arrays, state.dimension, header["authors"])
    except (LookupError, TypeError, ValueError):  # an image is only a copy: a bad one is as good as none
        return None
    return Held(index, replace(state, sequence=header["sequence"]), 0)


def _sum(array: Array) -> int:
    """A checksum that is as fast as reading: the sum of all words of 64 bits, and of the bytes behind the last."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(data) // 8 * 8
    total = int(np.sum(data[:whole].view(np.uint64), dtype=np.uint64)) + int(np.sum(data[whole:], dtype=np.uint64))
    return total % 2**62


def _blob(connection: apsw.Connection, image: int, kind: str) -> Array:
    """An array that may be written to, read without a copy in between."""
    blob = connection.blob_open("main", "images", "data", image, False)
    try:
        data = np.empty(blob.length(), np.uint8)
        if len(data):
            blob.read_into(data.data)
    finally:
        blob.close()
    return data.view(np.dtype(kind))
