"""The index in tables of the server, for owners that have too many memories to be held in RAM: exact, and slower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from wellkept.errors import StoreError
from wellkept.filters import Where
from wellkept.ports.index import Corpus, Index, Key, Near, Nearest
from wellkept.recall import candidates as gathered
from wellkept.recall import quantized
from wellkept.recall.arrays import Array
from wellkept.recall.candidates import Candidates
from wellkept.recall.entries import Entry, entries_of
from wellkept.stores.postgres import search_candidates as gathering
from wellkept.stores.postgres import search_sql as sql
from wellkept.stores.postgres.rows import named
from wellkept.stores.postgres.search_schema import TABLES
from wellkept.stores.postgres.server import Row, Server, Session
from wellkept.types import Mark, Owner, Owners, Stored, Vector

T = TypeVar("T")

_AT_ONCE = 500  # memories


class TableIndex(Index):
    """Keeps entries, vectors and postings in tables, which all processes share. Every answer is computed by the server.

    Of two processes that bring it up to date at once, the second finds it done: the row of the owner is locked
    meanwhile.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    # -- following --------------------------------------------------------------------------------------------

    def followed(self, owner: Owner) -> Mark | None:
        """How far the tables show the journal of an owner."""
        found = self._server.read(lambda session: session.rows(sql.MARK, (named(owner).digest,)))
        return None if not found or found[0][0] is None else Mark(*found[0])

    def size(self, owner: Owner) -> int:
        """How many memories of an owner the tables hold."""
        found = self._server.read(lambda session: self._known(session, [owner]))
        return int(found[0][2][0]) if found else 0

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        """Write the tables anew in one transaction; others search what was there before until it is committed."""
        rest = iter(stored)
        begun = False

        def work(session: Session) -> None:
            nonlocal begun
            if begun:  # some of what is to be loaded was read already, and is lost with the connection
                raise StoreError("the connection was lost while memories were indexed", hint="search again")
            with session.transaction():
                session.run(sql.ADD_OWNER, (named(owner).digest,))
                [no] = _locked(session, owner)
                [(seq, revision, *_)] = session.rows(sql.OWNER, (no,))
                if revision == upto.revision and seq is not None and seq >= upto.seq:
                    return  # another process was faster
                _forget(session, [no])
                writer = _Writer(session, no, dimension)
                begun = True
                while some := list(islice(rest, _AT_ONCE)):
                    writer.add(entries_of(some))
                writer.finish(upto)

        self._server.write(work)

    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        """Write what changed. What is not loaded stays so."""
        entries = list({entry.id: entry for entry in entries_of(stored)}.values())

        def work(session: Session) -> None:
            with session.transaction():
                for no in _locked(session, owner):
                    self._follow(session, no, entries, gone, upto)

        self._server.write(work, repeatable=True)

    @staticmethod
    def _follow(session: Session, no: int, entries: Sequence[Entry], gone: Sequence[str], upto: Mark) -> None:
        [(seq, revision, memories, total, dimension)] = session.rows(sql.OWNER, (no,))
        if seq is None or revision != upto.revision or seq >= upto.seq:
            return
        writer = _Writer(session, no, dimension, memories, total)
        writer.remove([*gone, *(entry.id for entry in entries)])
        writer.add(entries)
        writer.finish(upto)

    def drop(self, owners: Iterable[Owner] | None = None) -> None:
        """Empty the tables, or delete the rows of some owners; every process loads them again."""
        digests = None if owners is None else [named(owner).digest for owner in owners]

        def work(session: Session) -> None:
            with session.transaction():
                numbers = [no for (no,) in session.rows(sql.LOCK_ALL, {"digests": digests})]
                _forget(session, numbers)
                session.run(sql.UNMARK, (numbers,))

        self._server.write(work, repeatable=True)

    # -- searching --------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[Session], T]) -> T:
        """From the server that takes writes: a replica may not have yet what was just brought up to date."""
        return self._server.write(work, repeatable=True)

    def _known(self, session: Session, owners: Iterable[Owner]) -> list[tuple[Owner, int, list[int]]]:
        """The owners that are in the tables, with their numbers and counters."""
        by_digest = {named(owner).digest: owner for owner in owners}
        if not by_digest:
            return []
        return [(by_digest[digest], no, rest) for digest, no, *rest in session.rows(sql.KNOWN, (list(by_digest),))]

    def nearest(self, owners: Owners, where: Where, vector: Vector, limit: int, *, exact: bool = False) -> Nearest:  # noqa: ARG002  # halves are rough
        """Compare all vectors of each owner, in half precision."""
        fits, values = sql.conditions(where)
        values |= {"asked": _text(vector), "dimension": vector.dimension, "limit": limit}

        def work(session: Session) -> list[Near]:
            return [
                Near(owner, *row)
                for owner, no, _ in self._known(session, owners)
                for row in session.rows(sql.nearest(fits), values | {"owner": no})
            ]

        return Nearest(_first(self._read(work), limit), exact=False)

    def corpus(self, owners: Owners, terms: Sequence[int]) -> Corpus:
        """Add up the counters, and count the postings of the terms."""
        numbers = dict(zip(sql.signed(terms), terms, strict=True))
        having: Counter[int] = Counter(dict.fromkeys(terms, 0))
        memories = total = 0
        times: list[float] = []

        def work(session: Session) -> list[tuple[list[int], list[list[Row]]]]:
            return [
                (
                    rest,
                    session.together([(sql.SPAN, {"owner": no}), (sql.HAVING, {"owner": no, "terms": list(numbers)})]),
                )
                for _, no, rest in self._known(session, owners)
            ]

        for (known, said), ([span], counts) in self._read(work):
            memories, total = memories + known, total + said
            times += [moment for moment in span if moment is not None]
            for term, count in counts:
                having[numbers[term]] += count
        return Corpus(memories, total, dict(having), min(times, default=None), max(times, default=None))

    def worded(
        self,
        owners: Owners,
        where: Where,
        weights: Mapping[int, float],
        mean_length: float,
        limit: int,
        *,
        required: Sequence[int] = (),
    ) -> Sequence[Near]:
        """Add up the postings of each owner."""
        fits, values = sql.conditions(where)
        needed = sql.signed(list(dict.fromkeys(required)))
        values |= {"terms": sql.signed(list(weights)), "weights": list(weights.values()), "mean": mean_length}
        values |= {"required": needed, "count": len(needed), "limit": limit}
        statement = sql.worded(fits, required=bool(needed))

        def work(session: Session) -> list[Near]:
            return [
                Near(owner, *row)
                for owner, no, _ in self._known(session, owners)
                for row in session.rows(statement, values | {"owner": no})
            ]

        return _first(self._read(work), limit)

    def dated(self, owners: Owners, where: Where, start: float, end: float, limit: int) -> Sequence[Key]:
        """Look through the times of each owner."""
        fits, values = sql.conditions(where)
        values |= {"start": start, "end": end, "middle": (start + end) / 2, "limit": limit}

        def work(session: Session) -> list[Key]:
            return [
                (owner, memory_id)
                for owner, no, _ in self._known(session, owners)
                for (memory_id,) in session.rows(sql.dated(fits), values | {"owner": no})
            ]

        return self._read(work)

    def candidates(self, *keys: Sequence[Key | Near], beside: Sequence[Key | Near] = ()) -> Candidates:
        """Read the rows of each owner and their neighbours."""
        wanted: dict[Owner, tuple[set[str], set[str]]] = {}
        for place, some in [*((0, one) for one in keys), (1, beside)]:
            for owner, memory_id, *_ in some:
                wanted.setdefault(owner, (set(), set()))[place].add(memory_id)

        def work(session: Session) -> list[Candidates]:
            return [
                gathering.candidates(session, owner, no, *wanted[owner])
                for owner, no, _ in self._known(session, wanted)
            ]

        return gathered.joined(self._read(work))


def _text(vector: Vector) -> str:
    """The direction of a vector, as the server reads it."""
    return HalfVector(quantized.direction(vector.data)).to_text()


def _first(found: list[Near], limit: int) -> Sequence[Near]:
    found.sort(key=lambda one: -one.score)
    return found[:limit]


def _locked(session: Session, owner: Owner) -> list[int]:
    """The number of an owner, whose row nobody else changes until the transaction ends; none if it is not known."""
    return [no for (no,) in session.rows(sql.LOCK_ALL, {"digests": [named(owner).digest]})]


def _forget(session: Session, numbers: list[int]) -> None:
    for name in TABLES[:-1]:
        session.run(f"DELETE FROM {name} WHERE owner = ANY(%s)", (numbers,))


class _Writer:
    """Writes entries of one owner within a transaction, and keeps count of them."""

    def __init__(self, session: Session, no: int, dimension: int, memories: int = 0, total: int = 0) -> None:
        self._session = session
        self._no = no
        self._dimension = dimension
        self._memories = memories
        self._words = total
        self._lowest: int | None = None  # of what was added to, or taken from, conversations that nobody named
        register_vector(session.connection)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete memories; those that are not there are passed over."""
        gone = self._session.rows(sql.REMOVE, {"owner": self._no, "ids": list(ids)})
        for no, length, run in gone:
            self._memories -= 1
            self._words -= length
            self._touch(no, runs=run is not None)

    def _touch(self, no: int, *, runs: bool) -> None:
        if runs:
            self._lowest = no if self._lowest is None else min(self._lowest, no)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add memories that are not there."""
        rows, vectors, postings = [], [], []
        for entry in entries:
            codes = self._codes(entry)
            terms = np.frombuffer(entry.terms, "<i4").tolist()
            length = len(terms)
            runs = sql.runs(entry.session, entry.marks)
            self._touch(entry.born, runs=runs)
            pieces = entry.pieces if entry.pieces is not None and len(entry.pieces) == 2 * length else bytes(2 * length)
            who = None if entry.author is None else entry.author.replace("\0", " ")
            rows.append(
                (
                    *(
                        self._no,
                        entry.born,
                        entry.id,
                        entry.born_at,
                        entry.session or None,
                        entry.born if runs else None,
                    ),
                    *(entry.marks, who, entry.occurred, *(entry.told or (None, None)), entry.expires, entry.importance),
                    *(length, len(codes), terms, pieces, codes.tobytes()),
                )
            )
            if len(codes):
                vectors += [(self._no, entry.born, HalfVector(row)) for row in _units(entry)]
            postings += [(self._no, term, entry.born, often, length) for term, often in Counter(terms).items()]
            self._memories += 1
            self._words += length
        self._copy("search_entries", sql.ENTRY_COLUMNS, rows)
        self._copy("search_vectors", sql.VECTOR_COLUMNS, vectors)
        self._copy("search_postings", sql.POSTING_COLUMNS, postings)

    def _codes(self, entry: Entry) -> Array:
        """The codes of an entry's passages. The first vector decides on the dimension; others are left out."""
        if entry.vector is None or not entry.dimension:
            return np.zeros((0, 0), np.uint8)
        self._dimension = self._dimension or entry.dimension
        if entry.dimension != self._dimension:
            return np.zeros((0, 0), np.uint8)
        return quantized.encode(np.frombuffer(entry.vector, "<f4").reshape(-1, entry.dimension))

    def _copy(self, table: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> None:
        if rows:
            names = ", ".join(name for name, _ in columns)
            text = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
            with self._session.connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
                copy.set_types([kind for _, kind in columns])
                for row in rows:
                    copy.write_row(row)

    def finish(self, upto: Mark) -> None:
        """Link the conversations, and note how far it is."""
        owner = {"owner": self._no}
        if self._lowest is not None:
            last = self._session.rows(sql.LAST_SPOKEN, owner | {"lowest": self._lowest})
            start, run = last[0] if last else (0, 0)
            self._session.run(sql.RELINK, owner | {"start": start, "run": run})
        values = (*upto, self._memories, self._words, self._dimension, self._no)
        self._session.run(sql.NOTE, values)


def _units(entry: Entry) -> Array:
    """The directions of an entry's passages."""
    rows = np.frombuffer(entry.vector or b"", "<f4").reshape(-1, entry.dimension).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)
