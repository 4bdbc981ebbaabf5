"""The memories of one owner in arrays: what a search compares, kept in step with the store by adding and removing."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Any

import numpy as np

from recollect.recall import quantized
from recollect.recall.columns import Array, Column
from recollect.recall.conversations import NOBODY, Conversations
from recollect.recall.entries import SPOKEN, Entry
from recollect.recall.postings import Postings, Recent
from recollect.text import words

_COLUMNS: Mapping[str, type] = {
    "number": np.int64,
    "session": np.int64,
    "author": np.int32,
    "marks": np.uint8,
    "occurred": np.float64,
    "expires": np.float64,
    "importance": np.float32,
    "length": np.int32,
    "alive": np.bool_,
    "first": np.int32,
    "passages": np.int32,
    "start": np.int64,
}
"""One value for each row. ``first`` and ``passages`` tell its vectors, ``start`` and ``length`` its terms."""

_KEPT = ("number", "session", "author", "marks", "occurred", "expires", "importance", "length", "passages")
"""The columns that an image keeps; the others follow from them."""

_FEW = 256
_PART = 8  # an eighth of all rows is many

EXACT = 20_000
"""Passages: up to so many, the vectors themselves are kept beside their codes."""


class Index:
    """The active memories of one owner. Rows are in the order of recording; a changed memory gets a new row.

    Not safe for many threads at once: its store guards it.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.alive = 0
        self.words = 0  # in all that is alive
        self.expiring = False
        self.authors: list[str | None] = [None]
        self.author_words: list[frozenset[str]] = [frozenset()]
        self.postings: Postings | None = None
        self._sorted = 0  # rows at the beginning whose numbers ascend
        self.recent = Recent()
        self._columns = {name: Column(dtype) for name, dtype in _COLUMNS.items()}
        self._terms = Column(np.uint32)
        self._pieces = Column(np.uint16)
        self._codes = Column(np.uint8, max(1, dimension))
        self._weights = Column(np.int32)
        self._exact: Column | None = Column(np.float32, max(1, dimension))
        self._signs: Array | None = None
        self._ones = 0  # rows with one passage
        self._row_of: dict[int, int] = {}
        self._author_ids: dict[str | None, int] = {None: 0}
        self._spoken_by = Column(np.int32)  # how many rows each author has
        self._spoken_by.extend([0])
        self._conversations = Conversations()
        self._unlinked = False
        self._highest = 0  # of all numbers

    def __len__(self) -> int:
        return self._columns["number"].size

    def __getitem__(self, name: str) -> Array:
        return self._columns[name].rows

    @property
    def linked(self) -> bool:
        """Whether any row has a neighbour."""
        return self._conversations.linked

    @property
    def conversation(self) -> Array:
        """The conversation of each row."""
        return self._conversations.of.rows

    @property
    def before(self) -> Array:
        """The row that was said before each; ``NOBODY`` for the first of a conversation."""
        return self._conversations.before.rows

    @property
    def after(self) -> Array:
        """The row that was said after each; ``NOBODY`` for the last of a conversation."""
        return self._conversations.after.rows

    @property
    def codes(self) -> Array:
        """One 8-bit code for each passage."""
        return self._codes.rows

    @property
    def weights(self) -> Array:
        """The weight of each code: see ``quantized.weights``."""
        return self._weights.rows

    @property
    def signs(self) -> Array:
        """One 1-bit code for each passage; made when first asked for."""
        if self._signs is None or len(self._signs) != self._codes.size:
            known = 0 if self._signs is None else len(self._signs)
            new = quantized.signs(self.codes[known:])
            self._signs = new if self._signs is None else np.concatenate([self._signs, new])
        return self._signs

    @property
    def single(self) -> bool:
        """Whether every row has one passage: then passages and rows are the same."""
        return self._codes.size == len(self) == self._ones

    @property
    def sizes(self) -> Array:
        """How many rows each conversation has."""
        return self._conversations.sizes.rows

    def terms(self, row: int) -> Array:
        """The terms of a row, in the order of the text."""
        start = int(self["start"][row])
        found: Array = self._terms.rows[start : start + int(self["length"][row])]
        return found

    @property
    def exact(self) -> Array | None:
        """The vectors as they were given, one for each code, if there are so few that they are kept."""
        return None if self._exact is None else self._exact.rows

    def pieces(self, rows: Array) -> tuple[Array, Array]:
        """The pieces of rows, one behind the other, and how many each has."""
        lengths = self["length"][rows]
        return self._pieces.rows[spread(self["start"][rows], lengths)], lengths

    def rows(self, numbers: Array) -> Array:
        """The rows of memories that are alive, of those asked for."""
        if len(numbers) * _PART > len(self):  # looking through all rows at once is sooner done
            return np.flatnonzero(np.isin(self["number"], numbers) & self["alive"]).astype(np.int32)
        found = [row for number in numbers.tolist() if (row := self._row(number)) is not None]
        return np.array(found, np.int32)

    def _row(self, number: int) -> int | None:
        if (row := self._row_of.get(number)) is not None:
            return row if self["alive"][row] else None
        numbers = self["number"][: self._sorted]
        place = int(np.searchsorted(numbers, number))
        if place == len(numbers) or numbers[place] != number or not self["alive"][place]:
            return None
        return place

    # -- changing ---------------------------------------------------------------------------------------------

    def add(self, entries: Iterable[Entry]) -> None:
        """Take memories in; those that are there already are replaced."""
        taken = list(entries)
        if not taken:
            return
        self.remove(entry.number for entry in taken)
        base = len(self)
        last, self._highest = self._highest, max(self._highest, *(entry.number for entry in taken))
        lengths = [len(entry.terms) // words.TERM_BYTES for entry in taken]
        counts = [0 if entry.vector is None else len(entry.vector) // (4 * self.dimension) for entry in taken]
        starts = self._terms.size + np.cumsum([0, *lengths])[:-1]
        firsts = self._codes.size + np.cumsum([0, *counts])[:-1]
        values: dict[str, Any] = {
            "number": [entry.number for entry in taken],
            "author": [self._author(entry.author) for entry in taken],
            "marks": [entry.marks for entry in taken],
            "occurred": [entry.occurred for entry in taken],
            "expires": [np.inf if entry.expires is None else entry.expires for entry in taken],
            "importance": [entry.importance for entry in taken],
            "length": lengths,
            "alive": [True] * len(taken),
            "first": firsts,
            "passages": counts,
            "start": starts,
            "session": [entry.session for entry in taken],
        }
        for name, column in self._columns.items():
            column.extend(values[name])
        places = np.arange(base, base + len(taken), dtype=np.int32)
        self._add_terms(taken, np.repeat(places, lengths))
        self._add_vectors(taken)
        self._ones += counts.count(1)
        self._row_of.update(zip(values["number"], range(base, base + len(taken)), strict=True))
        np.add.at(self._spoken_by.rows, values["author"], 1)
        self._link(taken, last)
        self.alive += len(taken)
        self.words += sum(lengths)
        self.expiring = self.expiring or any(entry.expires is not None for entry in taken)

    def _add_terms(self, entries: Sequence[Entry], rows: Array) -> None:
        flat = np.frombuffer(b"".join(entry.terms for entry in entries), dtype="<u4")
        self._terms.extend(flat)
        self._pieces.extend(np.frombuffer(b"".join(map(_pieces, entries)), dtype="<u2"))
        self.recent.extend(flat, rows)

    def _add_vectors(self, entries: Sequence[Entry]) -> None:
        data = b"".join(entry.vector for entry in entries if entry.vector is not None)
        if not data:
            return
        vectors = np.frombuffer(data, dtype="<f4").reshape(-1, self.dimension)
        codes = quantized.encode(vectors)
        self._codes.extend(codes)
        self._weights.extend(quantized.weights(codes))
        if self._exact is not None:
            self._exact.extend(vectors)
            if self._exact.size > EXACT:
                self._exact = None

    def _author(self, author: str | None) -> int:
        known = self._author_ids.get(author)
        if known is None:
            known = self._author_ids[author] = len(self.authors)
            self.authors.append(author)
            self.author_words.append(frozenset(words.words(author or "")))
            self._spoken_by.extend([0])
        return known

    def _link(self, entries: Sequence[Entry], last: int) -> None:
        """Give rows their places in conversations: at once if they are few and the newest, else all anew when asked."""
        ascending = [last, *(entry.number for entry in entries)]
        few = len(entries) * 8 <= len(self)
        if self._unlinked or not few or any(one >= other for one, other in pairwise(ascending)):
            self._unlinked = True
            return
        self._conversations.append(
            [entry.session for entry in entries],
            [bool(entry.marks & SPOKEN) for entry in entries],
            [entry.occurred for entry in entries],
        )

    def remove(self, numbers: Iterable[int]) -> None:
        """Let memories go; those that are not there are passed over."""
        for number in numbers:
            row = self._row(number)
            if row is not None:
                self._remove(number, row)

    def _remove(self, number: int, row: int) -> None:
        if self["session"][row] or self["marks"][row] & SPOKEN:
            self._unlinked = True
        self._spoken_by.rows[self["author"][row]] -= 1
        self["alive"][row] = False
        self.alive -= 1
        self.words -= int(self["length"][row])
        self._row_of.pop(number, None)
        # What is gone must not be found by its vector: no direction agrees with zeros.
        first, count = int(self["first"][row]), int(self["passages"][row])
        if count:
            self._codes.rows[first : first + count] = quantized.ZERO
            self._weights.rows[first : first + count] = quantized.weights(self._codes.rows[first : first + count])

    def named(self, asked: AbstractSet[str]) -> list[int]:
        """The authors whose names are among the words asked for, and who said something that is here."""
        spoken = self._spoken_by.rows.tolist()
        return [place for place, name in enumerate(self.author_words) if name and spoken[place] and name <= asked]

    def settle(self) -> None:
        """To be called after changes: link conversations, and sort the terms of recent rows in with the others once
        looking through them all takes too long.
        """
        if self._unlinked:
            kept = self._kept()
            spoken = (self["marks"][kept] & SPOKEN) > 0
            self._conversations.relink(len(self), kept, self["session"][kept], spoken, self["occurred"][kept])
            self._unlinked = False
        unsorted = len(self) - self.recent.since
        if unsorted <= max(_FEW, len(self) // 8):
            return
        rows = np.repeat(np.arange(len(self), dtype=np.int32), self["length"])
        self.postings = Postings.of(self._terms.rows, rows)
        self.recent = Recent(len(self))

    def _kept(self) -> Array:
        """The rows that are alive, in the order of recording."""
        kept = np.flatnonzero(self["alive"])
        return kept[np.argsort(self["number"][kept], kind="stable")]

    # -- an image of it ---------------------------------------------------------------------------------------

    def parts(self) -> tuple[dict[str, Array], list[str | None]]:
        """Everything alive, in the order of recording, as plain arrays to be stored; and the names of the authors.

        Nothing of what was removed is in them.
        """
        kept = self._kept()
        used, author = np.unique(np.append(0, self["author"][kept]), return_inverse=True)
        linked = Conversations()
        spoken = (self["marks"][kept] & SPOKEN) > 0
        order = np.arange(len(kept), dtype=np.int32)
        linked.relink(len(kept), order, self["session"][kept], spoken, self["occurred"][kept])
        terms = self._terms.rows[spread(self["start"][kept], self["length"][kept])]
        passages = spread(self["first"][kept], self["passages"][kept])
        vectors = self.codes[passages] if self._exact is None else self._exact.rows[passages]
        rows = np.repeat(np.arange(len(kept), dtype=np.int32), self["length"][kept])
        postings = Postings.of(terms, rows)
        arrays = {
            **{name: self[name][kept] for name in _KEPT},
            "author": author[1:].astype(np.int32),
            "terms": terms,
            "pieces": self._pieces.rows[spread(self["start"][kept], self["length"][kept])],
            "vectors": vectors.reshape(-1),
            "vocabulary": postings.vocabulary,
            "starts": postings.starts,
            "rows": postings.rows,
            "times": postings.times,
            **linked.parts(),
        }
        return arrays, [self.authors[place] for place in used.tolist()]

    @classmethod
    def restored(cls, parts: Mapping[str, Array], dimension: int, authors: Sequence[str | None]) -> "Index":
        """The index that an image was made of, or a ``ValueError`` if it is none.

        Its arrays are taken over, so they must be writable.
        """
        _check(parts, dimension, len(authors))
        index = cls(dimension)
        for author in authors:
            index._author(author)
        for name in _KEPT:
            index._columns[name].replace(parts[name])
        count, lengths, passages = len(parts["number"]), parts["length"], parts["passages"]
        for name, values in (
            ("alive", np.ones(count, np.bool_)),
            ("start", np.cumsum(lengths, dtype=np.int64) - lengths),
            ("first", (np.cumsum(passages) - passages).astype(np.int32)),
        ):
            index._columns[name].replace(values)
        index._terms.replace(parts["terms"])
        index._pieces.replace(parts["pieces"])
        index._take_vectors(parts["vectors"].reshape(-1, max(1, dimension)))
        index._ones = int(np.count_nonzero(passages == 1))
        index.postings = Postings(parts["vocabulary"], parts["starts"], parts["rows"], parts["times"])
        index.recent = Recent(count)
        index._sorted = index.alive = count
        index._highest = int(parts["number"].max()) if count else 0
        index.words = int(lengths.sum())
        index.expiring = bool(np.isfinite(parts["expires"]).any())
        index._spoken_by.replace(np.bincount(parts["author"], minlength=len(authors)).astype(np.int32))
        index._conversations = Conversations.restored(parts)
        return index

    def _take_vectors(self, vectors: Array) -> None:
        """Codes as they are, or vectors with their codes."""
        if vectors.dtype == np.uint8:
            self._exact = None
            self._codes.replace(vectors)
        else:
            self._exact = Column(np.float32, vectors.shape[1])
            self._exact.replace(vectors)
            self._codes.replace(quantized.encode(vectors))
        self._weights.replace(quantized.weights(self._codes.rows))


def _check(parts: Mapping[str, Array], dimension: int, authors: int) -> None:
    """Refuse arrays that do not fit together: using them would read what is not there."""
    count, terms = len(parts["number"]), len(parts["terms"])
    postings = len(parts["rows"])
    fits = (
        all(len(parts[name]) == count for name in (*_KEPT, "of", "before", "after"))
        and len(parts["pieces"]) == terms == int(parts["length"].sum())
        and len(parts["vectors"]) == int(parts["passages"].sum()) * max(1, dimension)
        and len(parts["starts"]) == len(parts["vocabulary"]) + 1
        and len(parts["times"]) == postings == int(parts["starts"][-1])
        and _within(parts["rows"], 0, count)
        and _within(parts["author"], 0, authors)
        and _within(parts["of"], 0, len(parts["sizes"]))
        and all(_within(parts[name], NOBODY, count) for name in ("before", "after"))
        and bool((np.diff(parts["number"]) > 0).all())
    )
    if not fits:
        raise ValueError("the parts of the image do not fit together")


def _within(values: Array, low: int, high: int) -> bool:
    return not len(values) or (low <= int(values.min()) and int(values.max()) < high)


def _pieces(entry: Entry) -> bytes:
    """A piece for each term; none, if the pieces are not those of these terms."""
    wanted = len(entry.terms) // words.TERM_BYTES * 2
    return entry.pieces if entry.pieces is not None and len(entry.pieces) == wanted else bytes(wanted)


def spread(starts: Array, lengths: Array) -> Array:
    """The places of many ranges, one behind the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
