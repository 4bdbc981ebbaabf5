"""The index in RAM: the memories of each owner in arrays, with a lock of its own, and images of them in the store."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import islice
from typing import NamedTuple, overload

import numpy as np

from wellkept.filters import Where
from wellkept.ports.index import Corpus, Images, Index, Key, Near, Nearest
from wellkept.recall import candidates as gathered
from wellkept.recall import image, quantized
from wellkept.recall.arrays import Array, best, unpacked
from wellkept.recall.candidates import Candidates
from wellkept.recall.entries import entries_of
from wellkept.recall.owner_index import OwnerIndex, Scored
from wellkept.types import Mark, Owner, Owners, Stored, Vector

HELD_ROWS = 2_000_000
"""How many memories all owners together may hold before the one not used for longest is dropped."""

IMAGE_ROWS = 2_000
"""Memories: with fewer, making an index takes no longer than reading its image."""

IDLE_S = 10.0
"""An owner that was used so lately is not dropped: a search asks several times, and must get one answer."""

_AT_ONCE = 200  # rows take many times the room of what is kept of them, and adding them holds up other threads
_YIELDED = 50  # memories, about a millisecond
_LATELY_S = 1.0
_YIELD_S = 0.000_05  # nothing at all would give the interpreter back before another thread woke up


class _Held:
    """What is held of one owner. ``lock`` guards everything else; ``following`` is held by who brings it up to date."""

    __slots__ = ("following", "index", "lock", "mark", "tried", "unsaved", "used")

    def __init__(self, used: float) -> None:
        self.lock = threading.Lock()
        self.following = threading.Lock()
        self.used = used
        self.index: OwnerIndex | None = None
        self.mark: Mark | None = None
        self.unsaved = 0  # memories that changed since the image was made
        self.tried = False  # whether the image was looked for


class _Part(NamedTuple):
    """What was found in the index of one owner, when that had seen so many changes."""

    searched: OwnerIndex
    changes: int
    names: Array
    rows: Array
    scores: Array


class _Answer(Sequence[Near]):
    """What was found, the best first. It is made of arrays, and into ``Near`` only when it is read: a search passes
    hundreds back as they are, to get the candidates.
    """

    def __init__(self, parts: Sequence[_Part]) -> None:
        self.parts = parts

    @cached_property
    def _near(self) -> list[Near]:
        found = [
            Near(part.searched.owner, one, score)
            for part in self.parts
            for one, score in zip(unpacked(part.names), part.scores.tolist(), strict=True)
        ]
        found.sort(key=lambda one: -one.score)
        return found

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self.parts)

    @overload
    def __getitem__(self, place: int) -> Near: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Near]: ...
    def __getitem__(self, place: int | slice) -> Near | Sequence[Near]:
        if isinstance(place, slice) and place == slice(place.stop) and place.stop is not None and place.stop > 0:
            return _best(self.parts, place.stop)  # the first ones, as an answer again
        return self._near[place]

    def __iter__(self) -> Iterator[Near]:
        return iter(self._near)

    def __repr__(self) -> str:
        return repr(self._near)


class RamIndex(Index):
    """Keeps the active memories of the owners that were searched lately in RAM.

    With ``images``, an index that is worth it is kept in the store as well, and taken from there by the next process.

    >>> from wellkept.types import Layer
    >>> index, ada = RamIndex(), Owner(Layer.USER, ("ada",))
    >>> index.load(ada, [], 0, Mark(1))
    >>> index.followed(ada)
    Mark(seq=1, revision=0)
    """

    def __init__(
        self,
        images: Images | None = None,
        *,
        rows: int = HELD_ROWS,
        image_rows: int = IMAGE_ROWS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._images = images
        self._rows = rows
        self._image_rows = image_rows
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()  # of the dictionary alone, held for microseconds
        self._held: dict[Owner, _Held] = {}
        self._searched: tuple[Owner | None, float] = (None, 0.0)

    def _check_process(self) -> None:
        """In a forked child, a lock that another thread of the parent held would be held for ever."""
        if os.getpid() != self._process:
            self._start()

    # -- following --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the memory back."""
        super().close()
        self.drop()

    def followed(self, owner: Owner) -> Mark | None:
        """How far the owner's index is; it comes from its image if there is one and nothing else is known."""
        held = self._of(owner)
        with held.lock:
            if held.index is None and not held.tried and self._images is not None:
                held.tried = True
                self._restore(owner, held)
            return held.mark

    def _restore(self, owner: Owner, held: _Held) -> None:
        assert self._images is not None  # noqa: S101  # said by the caller, for the type checker
        kept = self._images.read(owner)
        found = None if kept is None else image.from_parts(owner, kept[1])
        if kept is not None and found is not None:
            held.index, held.mark, held.unsaved = found, kept[0], 0

    def following(self, owner: Owner) -> AbstractContextManager[object]:
        """A lock of the owner's own."""
        return self._of(owner).following

    def load(self, owner: Owner, stored: Iterable[Stored], dimension: int, upto: Mark) -> None:
        """Make the index aside, in pieces, and put it in its place when it is done: nobody waits for it meanwhile but
        those who search this owner for the first time.
        """
        made, rest = OwnerIndex(owner, dimension), iter(stored)
        while some := list(islice(rest, _AT_ONCE)):
            entries = []
            for start in range(0, len(some), _YIELDED):
                entries += entries_of(some[start : start + _YIELDED])
                self._let_others(owner)
            made.add(entries)
        made.settle()
        held = self._of(owner)
        with held.lock:
            held.index, held.mark, held.unsaved, held.tried = made, upto, made.alive, True
            parts = self._image(held)
        self._save(owner, upto, parts)
        self._evict()

    def _let_others(self, owner: Owner) -> None:
        """Give the interpreter to other threads, if another owner was searched lately. What they wait for it would
        otherwise be several times the time of a search.
        """
        searched, at = self._searched
        if searched is not None and searched != owner and self._clock() - at < _LATELY_S:
            time.sleep(_YIELD_S)

    def follow(self, owner: Owner, stored: Sequence[Stored], gone: Sequence[str], upto: Mark) -> None:
        """Add and remove rows. What is not loaded stays so."""
        entries = entries_of(stored)
        held = self._of(owner)
        with held.lock:
            if held.index is None:
                return
            held.index.remove(gone)
            held.index.add(entries)
            held.index.settle()
            held.mark = upto
            held.unsaved += len(entries) + len(gone)
            parts = self._image(held)
        self._save(owner, upto, parts)

    def _image(self, held: _Held) -> Mapping[str, bytes | memoryview] | None:
        """The image of an index that is large, and differs much from the one that is kept."""
        index = held.index
        if self._images is None or index is None or index.alive < self._image_rows or held.unsaved <= index.alive // 8:
            return None
        held.unsaved = 0
        return image.to_parts(index)

    def _save(self, owner: Owner, mark: Mark, parts: Mapping[str, bytes | memoryview] | None) -> None:
        if self._images is not None and parts is not None:
            self._images.write(owner, mark, parts)

    def drop(self, owners: Iterable[Owner] | None = None) -> None:
        """Forget what was loaded; images are the store's."""
        self._check_process()
        with self._lock:
            if owners is None:
                self._held = {}
            else:
                for owner in owners:
                    self._held.pop(owner, None)

    def _of(self, owner: Owner) -> _Held:
        self._check_process()
        now = self._clock()
        with self._lock:
            held = self._held.get(owner)
            if held is None:
                held = self._held[owner] = _Held(now)
            held.used = now
            return held

    def _loaded(self, owners: Iterable[Owner]) -> Iterator[OwnerIndex]:
        """The indexes of owners that have anything, one after the other, each while its lock is held."""
        self._check_process()
        for owner in owners:
            held = self._held.get(owner)  # one step, so that it needs no lock
            if held is None:
                continue
            held.used = self._clock()
            self._searched = owner, held.used
            with held.lock:
                if held.index is not None and held.index.alive:
                    yield held.index

    def _evict(self) -> None:
        """Drop the owners that were not used for longest, while there are too many rows."""
        now = self._clock()
        with self._lock:
            total = sum(_size(held) for held in self._held.values())
            for owner, held in sorted(self._held.items(), key=lambda pair: pair[1].used):
                if total <= self._rows or now - held.used < IDLE_S:
                    return
                total -= _size(held)
                del self._held[owner]

    # -- searching --------------------------------------------------------------------------------------------

    def nearest(self, owners: Owners, where: Where, vector: Vector, limit: int, *, exact: bool = False) -> Nearest:
        """Compare all vectors in 8 bits, and the first exactly where the vectors themselves are held."""
        question, parts = quantized.question(vector.data), []
        for index in self._loaded(owners):
            if index.codes.size and index.dimension == vector.dimension:
                parts.append(_part(index, index.nearest(question, where, limit, exact=exact)))
                exact = exact and index.exact is not None
        return Nearest(_best(parts, limit), exact)

    def corpus(self, owners: Owners, terms: Sequence[int]) -> Corpus:
        """Add up the counts of the owners."""
        memories = total = 0
        having = dict.fromkeys(terms, 0)
        spans: list[tuple[float, float]] = []
        for index in self._loaded(owners):
            memories += index.alive
            total += index.words
            spans.append(index.span())
            for term, (rows, _) in zip(terms, index.having(terms), strict=True):
                having[term] += len(rows)
        first, last = (min(one for one, _ in spans), max(one for _, one in spans)) if spans else (None, None)
        return Corpus(memories, total, having, first, last)

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
        """Add up the words of all rows."""
        parts = [
            _part(index, index.worded(where, weights, mean_length, limit, required)) for index in self._loaded(owners)
        ]
        return _best(parts, limit)

    def dated(self, owners: Owners, where: Where, start: float, end: float, limit: int) -> Sequence[Key]:
        """Look through the times of all rows."""
        return [
            (index.owner, name)
            for index in self._loaded(owners)
            for name in unpacked(index.ids.names.rows.take(index.dated(where, start, end, limit)))
        ]

    def candidates(self, *keys: Sequence[Key | Near], beside: Sequence[Key | Near] = ()) -> Candidates:
        """Gather the rows of each owner."""
        wanted: dict[Owner, list[_Part | list[str]]] = {}
        for some in keys:
            _group(some, wanted)
        near: dict[Owner, list[_Part | list[str]]] = {}
        _group(beside, near)
        found = []
        for index in self._loaded({**wanted, **near}):
            rows, around = (_rows(index, some.get(index.owner, ())) for some in (wanted, near))
            found.append(index.candidates(rows, around))
        return gathered.joined(found)


def _part(index: OwnerIndex, found: Scored) -> _Part:
    return _Part(index, index.changes, index.ids.names.rows.take(found.rows), found.rows, found.scores)


def _best(parts: Sequence[_Part], limit: int) -> _Answer:
    """The best of all."""
    if sum(len(part.rows) for part in parts) > limit:
        owner = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
        place = np.concatenate([np.arange(len(part.rows)) for part in parts])
        first = best(np.concatenate([part.scores for part in parts]), limit)
        chosen = [place[first[owner[first] == number]] for number in range(len(parts))]
        parts = [
            part._replace(names=part.names[those], rows=part.rows[those], scores=part.scores[those])
            for part, those in zip(parts, chosen, strict=True)
        ]
    return _Answer(parts)


def _group(found: Sequence[Key | Near], wanted: dict[Owner, list[_Part | list[str]]]) -> None:
    """Add what was found, or is asked for by id, to what is wanted of each owner."""
    if isinstance(found, _Answer):
        for part in found.parts:
            wanted.setdefault(part.searched.owner, []).append(part)
        return
    ids: dict[Owner, list[str]] = {}
    for owner, memory_id, *_ in found:
        ids.setdefault(owner, []).append(memory_id)
    for owner, some in ids.items():
        wanted.setdefault(owner, []).append(some)


def _rows(index: OwnerIndex, wanted: Sequence[_Part | list[str]]) -> Array:
    """The rows of what was found; looked up again where the index changed since."""
    rows = []
    for some in wanted:
        if isinstance(some, list):
            rows.append(index.rows(some))
        elif some.searched is index and some.changes == index.changes:
            rows.append(some.rows)
        else:
            rows.append(index.rows(unpacked(some.names)))
    return np.concatenate(rows) if rows else np.zeros(0, np.int64)


def _size(held: _Held) -> int:
    index = held.index
    return 0 if index is None else len(index)
