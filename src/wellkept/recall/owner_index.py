"""The memories of one owner in arrays: what an index compares, kept in step with the journal by adding and removing."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wellkept import codec
from wellkept.filters import Where
from wellkept.recall import quantized
from wellkept.recall.arrays import Array, Column, Ids, Postings, Recent, best, distinct, spread
from wellkept.recall.candidates import Candidates
from wellkept.recall.conversations import NOBODY, Conversations
from wellkept.recall.entries import SPOKEN, Entry
from wellkept.text import words
from wellkept.types import Owner

COLUMNS: Mapping[str, type] = {
    "born": np.int64,
    "born_at": np.int64,
    "session": np.int64,
    "author": np.int32,
    "marks": np.uint16,
    "occurred": np.float64,
    "expires": np.float64,
    "told_from": np.float64,
    "told_to": np.float64,
    "importance": np.float32,
    "length": np.int32,
    "alive": np.bool_,
    "first": np.int32,
    "passages": np.int32,
    "start": np.int64,
}
"""One value for each row. ``first`` and ``passages`` tell its vectors, ``start`` and ``length`` its terms."""

K1 = 1.2
B = 0.9  # high: long answers of assistants would swamp short remarks

EXACT = 20_000
"""Passages: up to so many, the vectors themselves are kept beside their codes."""

_FEW = 256
_PART = 8  # an eighth of all rows is many
_NARROW = 4  # a filter that lets less than one in so many through is worth comparing only those
_GATHERED = (
    "born",
    "born_at",
    "author",
    "marks",
    "occurred",
    "expires",
    "told_from",
    "told_to",
    "importance",
    "length",
)


class Scored(NamedTuple):
    """Rows that were found, in no order, and the numbers they were found by."""

    rows: Array
    scores: Array


class OwnerIndex:
    """The active memories of one owner. Rows are in the order of recording; a changed memory gets a new row.

    Not safe for many threads at once: the index that holds it has a lock for each.
    """

    def __init__(self, owner: Owner, dimension: int) -> None:
        self.owner = owner
        self.dimension = dimension
        self.alive = 0
        self.words = 0  # in all that is alive
        self.expiring = False
        self.authors: list[str | None] = [None]
        self.postings: Postings | None = None
        self.recent = Recent()
        self.ids = Ids()
        self.columns = {name: Column(dtype) for name, dtype in COLUMNS.items()}
        self.terms = Column(np.uint32)
        self.pieces = Column(np.uint16)
        self.codes = Column(np.uint8, max(1, dimension))
        self.weights = Column(np.int32)
        self.exact: Column | None = Column(np.float32, max(1, dimension))
        self.ones = 0  # rows with one passage
        self.spoken_by = Column(np.int32)  # how many rows each author has
        self.spoken_by.extend([0])
        self.conversations = Conversations()
        self.highest = 0  # of all that is born
        self._author_ids: dict[str | None, int] = {None: 0}
        self._author_words: list[frozenset[str]] = [frozenset()]
        self._speakers: list[frozenset[str]] | None = None
        self._signs: Array | None = None
        self._unlinked = False
        self._span: tuple[float, float] | None = None
        self._found: tuple[tuple[int, ...], list[tuple[Array, Array]]] | None = None
        self.changes = 0  # rows that were found before the last change may be others now

    def __len__(self) -> int:
        return self.columns["born"].size

    def __getitem__(self, name: str) -> Array:
        return self.columns[name].rows

    @property
    def signs(self) -> Array:
        """One 1-bit code for each passage; made when first asked for."""
        if self._signs is None or len(self._signs) != self.codes.size:
            known = 0 if self._signs is None else len(self._signs)
            new = quantized.signs(self.codes.rows[known:])
            self._signs = new if self._signs is None else np.concatenate([self._signs, new])
        return self._signs

    @property
    def single(self) -> bool:
        """Whether every row has one passage: then passages and rows are the same."""
        return self.codes.size == len(self) == self.ones

    def rows(self, ids: Sequence[str]) -> Array:
        """The rows of memories that are alive, of those asked for."""
        rows = self.ids.rows(ids)
        rows = rows[rows >= 0]
        return rows[self["alive"][rows]]

    # -- changing ---------------------------------------------------------------------------------------------

    def add(self, entries: Iterable[Entry]) -> None:
        """Take memories in; those that are there already are replaced."""
        taken = list(entries)
        if not taken:
            return
        ids = [entry.id for entry in taken]
        self.remove(ids)
        base, last = len(self), self.highest
        self.highest = max(last, *(entry.born for entry in taken))
        lengths = [len(entry.terms) // words.TERM_BYTES for entry in taken]
        counts = self._add_vectors(taken)
        values: dict[str, Any] = {
            "author": [self.author(entry.author) for entry in taken],
            "expires": [np.inf if entry.expires is None else entry.expires for entry in taken],
            "told_from": [np.nan if entry.told is None else entry.told[0] for entry in taken],
            "told_to": [np.nan if entry.told is None else entry.told[1] for entry in taken],
            "length": lengths,
            "alive": [True] * len(taken),
            "first": self.codes.size - sum(counts) + np.cumsum([0, *counts])[:-1],
            "passages": counts,
            "start": self.terms.size + np.cumsum([0, *lengths])[:-1],
        }
        for name in ("born", "born_at", "session", "marks", "occurred", "importance"):
            values[name] = [getattr(entry, name) for entry in taken]
        for name, column in self.columns.items():
            column.extend(values[name])
        self.ids.extend(ids)
        self._add_terms(taken, np.repeat(np.arange(base, base + len(taken), dtype=np.int32), lengths))
        self.ones += counts.count(1)
        np.add.at(self.spoken_by.rows, values["author"], 1)
        self._link(taken, last)
        self.alive += len(taken)
        self.words += sum(lengths)
        self.expiring = self.expiring or any(entry.expires is not None for entry in taken)
        self._changed()

    def _add_terms(self, entries: Sequence[Entry], rows: Array) -> None:
        flat = np.frombuffer(b"".join(entry.terms for entry in entries), dtype="<u4")
        self.terms.extend(flat)
        self.pieces.extend(np.frombuffer(b"".join(map(_pieces, entries)), dtype="<u2"))
        self.recent.extend(flat, rows)

    def _add_vectors(self, entries: Sequence[Entry]) -> list[int]:
        """Take in vectors, and say how many each entry has. The first one of all decides on their dimension; one of
        another dimension belongs to another embedder, and is left out until everything is loaded anew.
        """
        first = next((entry for entry in entries if entry.vector is not None), None)
        if first is None:
            return [0] * len(entries)
        if not self.codes.size and first.dimension != self.dimension:
            self.dimension = first.dimension
            self.codes, self.exact = Column(np.uint8, self.dimension), Column(np.float32, self.dimension)
        fitting = [entry.vector if entry.dimension == self.dimension else None for entry in entries]
        data = b"".join(vector for vector in fitting if vector is not None)
        vectors = np.frombuffer(data, dtype="<f4").reshape(-1, self.dimension)
        codes = quantized.encode(vectors)
        self.codes.extend(codes)
        self.weights.extend(quantized.weights(codes))
        if self.exact is not None:
            self.exact.extend(vectors)
            if self.exact.size > EXACT:
                self.exact = None
        return [0 if vector is None else len(vector) // (4 * self.dimension) for vector in fitting]

    def author(self, author: str | None) -> int:
        """The place of an author, who is added if nobody knew of him."""
        known = self._author_ids.get(author)
        if known is None:
            known = self._author_ids[author] = len(self.authors)
            self.authors.append(author)
            self._author_words.append(frozenset(words.words(author or "")))
            self.spoken_by.extend([0])
        return known

    def _link(self, entries: Sequence[Entry], last: int) -> None:
        """Give rows their places in conversations: at once if they are few and the newest, else all anew when asked."""
        ascending = [last, *(entry.born for entry in entries)]
        few = len(entries) * 8 <= len(self)
        if self._unlinked or not few or any(one >= other for one, other in pairwise(ascending)):
            self._unlinked = True
            return
        self.conversations.append(
            [entry.session for entry in entries],
            [bool(entry.marks & SPOKEN) for entry in entries],
            [entry.occurred for entry in entries],
        )

    def remove(self, ids: Sequence[str]) -> None:
        """Let memories go; those that are not there are passed over."""
        for row in self.rows(ids).tolist():
            if self["alive"][row]:  # an id may be given twice
                self._remove(row)

    def _remove(self, row: int) -> None:
        if self["session"][row] or self["marks"][row] & SPOKEN:
            self._unlinked = True
        self.spoken_by.rows[self["author"][row]] -= 1
        self["alive"][row] = False
        self.alive -= 1
        self.words -= int(self["length"][row])
        # What is gone must not be found by its vector: no direction agrees with zeros.
        first, count = int(self["first"][row]), int(self["passages"][row])
        if count:
            self.codes.writable[first : first + count] = quantized.ZERO
            self.weights.writable[first : first + count] = quantized.weights(self.codes.rows[first : first + count])
        self._changed()

    def _changed(self) -> None:
        """Forget what was derived for the last search."""
        self._found = self._span = self._speakers = None
        self.changes += 1

    def settle(self) -> None:
        """To be called after changes: link conversations, and sort the terms of recent rows in with the others once
        looking through them all takes too long.
        """
        if self._unlinked:
            kept = self.kept()
            spoken = (self["marks"][kept] & SPOKEN) > 0
            self.conversations.relink(len(self), kept, self["session"][kept], spoken, self["occurred"][kept])
            self._unlinked = False
        unsorted = len(self) - self.recent.since
        if unsorted <= max(_FEW, len(self) // _PART):
            return
        rows = np.repeat(np.arange(len(self), dtype=np.int32), self["length"])
        self.postings = Postings.of(self.terms.rows, rows)
        self.recent = Recent(len(self))
        self.ids.sort()
        self._found = None

    def kept(self) -> Array:
        """The rows that are alive, in the order of recording."""
        kept = np.flatnonzero(self["alive"])
        return kept[np.argsort(self["born"][kept], kind="stable")]

    # -- searching --------------------------------------------------------------------------------------------

    def span(self) -> tuple[float, float]:
        """The times between which everything occurred."""
        if self._span is None:
            occurred = self["occurred"] if self.alive == len(self) else self["occurred"][self["alive"]]
            self._span = float(occurred.min()), float(occurred.max())
        return self._span

    def eligible(self, where: Where) -> Array | None:
        """Which rows may be found: alive, not expired, and let through by what every index heeds. None if all may."""
        masks = [] if self.alive == len(self) else [self["alive"]]
        if self.expiring:
            masks.append(self["expires"] > _seconds(where.now))
        if where.occurred_after is not None:
            masks.append(self["occurred"] >= _seconds(where.occurred_after))
        if where.occurred_before is not None:
            masks.append(self["occurred"] < _seconds(where.occurred_before))
        if where.ids is not None:
            masks.append(self._mask(where.ids))
        if where.without:
            masks.append(~self._mask(where.without))
        return np.logical_and.reduce(masks) if len(masks) > 1 else masks[0] if masks else None

    def _mask(self, ids: AbstractSet[str]) -> Array:
        mask = np.zeros(len(self), np.bool_)
        mask[self.rows(list(ids))] = True
        return mask

    def nearest(self, question: quantized.Question, where: Where, limit: int, *, exact: bool = True) -> Scored:
        """The rows whose vectors agree best: compared in 8 bits, or exactly if wanted, where the vectors themselves are
        kept.

        Under a narrow filter only what it lets through is compared; of very many rows, only those whose signs agree.
        """
        may, rows = self.eligible(where), None
        if may is not None and np.count_nonzero(may) * _NARROW < len(may):
            rows = np.flatnonzero(may)
        elif may is None and quantized.by_signs(self.codes.rows):
            rows = self._owning(quantized.likely(self.signs, question.unit))
        products = self._products(question, rows)
        if rows is None and may is not None:
            products = np.where(may, products, -np.inf)
        places = best(products, limit)
        places = places[products[places] > -np.inf]
        scores = question.cosines(products[places])
        found = places if rows is None else rows[places]
        if exact and self.exact is not None and len(found):
            scores = self._exactly(found, question)
        return Scored(found, scores)

    def _owning(self, passages: Array) -> Array:
        """The rows that some passages belong to, each once."""
        return passages if self.single else np.unique(np.searchsorted(self["first"], passages, side="right") - 1)

    def _products(self, question: quantized.Question, rows: Array | None) -> Array:
        """The product of each row's best passage, of all rows or of some; minus infinity without a vector."""
        codes, weights = self.codes.rows, self.weights.rows
        if self.single:
            return question.products(codes, weights) if rows is None else question.products(codes[rows], weights[rows])
        if rows is None:
            return quantized.of_rows(question.products(codes, weights), self["first"], self["passages"])
        counts = self["passages"][rows]
        passages = spread(self["first"][rows], counts)
        products = question.products(codes[passages], weights[passages])
        return quantized.of_rows(products, np.cumsum(counts) - counts, counts)

    def _exactly(self, rows: Array, question: quantized.Question) -> Array:
        """The cosines of rows that have vectors, by the vectors themselves."""
        assert self.exact is not None  # noqa: S101  # said by the caller, for the type checker
        counts = self["passages"][rows]
        vectors = self.exact.rows[rows if self.single else spread(self["first"][rows], counts)]
        cosines = quantized.exact(vectors, question.unit)
        if len(cosines) == len(rows):
            return cosines
        return np.maximum.reduceat(cosines, np.cumsum(counts) - counts)

    def dated(self, where: Where, start: float, end: float, limit: int) -> Array:
        """Rows that occurred in a stretch of time or tell of it: those nearest to its middle."""
        middle, may = (start + end) / 2, self.eligible(where)
        occurred, told_from, told_to = self["occurred"], self["told_from"], self["told_to"]
        those = ((occurred >= start) & (occurred <= end)) | ((told_to >= start) & (told_from <= end))
        rows = np.flatnonzero(those if may is None else those & may)
        away = np.fmin(np.abs(occurred[rows] - middle), np.abs((told_from[rows] + told_to[rows]) / 2 - middle))
        return rows[best(-away, limit)]

    def having(self, terms: Sequence[int]) -> list[tuple[Array, Array]]:
        """For each term the rows that have it, in their order, and how often each."""
        if self._found is not None and self._found[0] == tuple(terms):
            return self._found[1]  # a search asks how many there are, and then which
        wanted = np.array(terms, np.uint32)
        found = self.recent.among(wanted).find(wanted)
        if self.postings is not None:
            old = self.postings.find(wanted)
            found = [_behind(one, other) if len(other[0]) else one for one, other in zip(old, found, strict=True)]
        if self.alive < len(self):
            kept = [self["alive"][rows] for rows, _ in found]
            found = [(rows[those], times[those]) for (rows, times), those in zip(found, kept, strict=True)]
        self._found = tuple(terms), found
        return found

    def worded(
        self, where: Where, weights: Mapping[int, float], mean_length: float, limit: int, required: Sequence[int]
    ) -> Scored:
        """The rows with the highest BM25, of all words at once: rare ones take longer to begin with than to go
        through. Of rows that have all required terms, those that have no other are found as well.
        """
        postings = self.having(list(weights))
        scores = self._bm25(postings, np.fromiter(weights.values(), np.float32, len(weights)), mean_length)
        may = self.eligible(where)
        for rows, _ in self.having(list(required)) if required else ():
            has = np.zeros(len(self), np.bool_)
            has[rows] = True
            may = has if may is None else may & has
        if may is not None:
            scores = np.where(may, scores, np.float32(-1))
        found = best(scores, limit)
        high = scores.take(found)
        those = high >= 0 if required else high > 0
        return Scored(found[those], high[those])

    def _bm25(self, postings: Sequence[tuple[Array, Array]], shares: Array, average: float) -> Array:
        if not postings:
            return np.zeros(len(self), np.float32)
        rows = np.concatenate([rows for rows, _ in postings])
        times = np.concatenate([times for _, times in postings]).astype(np.float32)
        scores = self["length"].take(rows).astype(np.float32)
        scores *= np.float32(K1 * B / average)
        scores += times + np.float32(K1 * (1 - B))
        np.divide(times, scores, out=scores)
        scores *= np.repeat(np.float32(K1 + 1) * shares, [len(rows) for rows, _ in postings])
        return np.bincount(rows, scores, len(self)).astype(np.float32)

    def candidates(self, rows: Array, beside: Array) -> Candidates:
        """What ranking reads of rows, and of those said before and after each. The neighbours of those ``beside`` are
        candidates as well.
        """
        before, after = self.conversations.before.rows, self.conversations.after.rows
        if len(beside) and self.conversations.linked:
            rows = np.concatenate([rows, before.take(beside), after.take(beside)])
        rows = distinct(rows)
        rows = rows[1:] if len(rows) and rows[0] == NOBODY else rows
        count, around = len(rows), rows
        links = np.full((2, count), NOBODY, np.int32)
        if self.conversations.linked:
            links[:] = before[rows], after[rows]
            others = np.setdiff1d(links, rows)
            around = np.concatenate([rows, others[others != NOBODY]])
            links = _places(links, rows, around[count:])
        terms = spread(self["start"].take(around), self["length"].take(around))
        passages = rows if self.single else spread(self["first"].take(rows), self["passages"].take(rows))
        conversation = self.conversations.of.rows.take(around)
        links = np.concatenate([links, np.full((2, len(around) - count), NOBODY, np.int32)], axis=1)
        return Candidates(
            count=count,
            owners=(self.owner,),
            authors=(self._known(),),
            names=self.ids.names.rows.take(around),
            owner=np.zeros(len(around), np.int32),
            conversation=conversation.astype(np.int64),
            size=self.conversations.sizes.rows.take(conversation),
            before=links[0],
            after=links[1],
            passages=self["passages"].take(rows),
            codes=self.codes.rows.take(passages, axis=0),
            terms=self.terms.rows.take(terms),
            pieces=self.pieces.rows.take(terms),
            **{name: self[name].take(around) for name in _GATHERED},
        )

    def _known(self) -> Sequence[frozenset[str]]:
        """The words of the names of the authors who said something that is here; nothing for the others."""
        if self._speakers is None:
            spoken = self.spoken_by.rows.tolist()
            pairs = zip(self._author_words, spoken, strict=True)
            self._speakers = [name if times else frozenset() for name, times in pairs]
        return self._speakers


def _behind(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _places(wanted: Array, rows: Array, others: Array) -> Array:
    """Where rows stand among some sorted ones, behind which others come; nobody stands nowhere."""
    places = np.full(wanted.shape, NOBODY, np.int32)
    for start, known in ((0, rows), (len(rows), others)):
        if len(known):
            found = known.searchsorted(wanted)
            there = known.take(found, mode="clip") == wanted
            places[there] = start + found[there]
    return places


def _pieces(entry: Entry) -> bytes:
    """A piece for each term; none, if the pieces are not those of these terms."""
    wanted = len(entry.terms) // words.TERM_BYTES * 2
    return entry.pieces if entry.pieces is not None and len(entry.pieces) == wanted else bytes(wanted)


def _seconds(moment: datetime) -> float:
    return codec.to_micros(moment) / 1e6
