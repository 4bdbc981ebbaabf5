"""Hits that say the same: in the same words, or in others that mean the same."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from wellkept.recall import sameness
from wellkept.text import words
from wellkept.types import Layer, Memory

DUPLICATE = 0.95
"""Contents whose words agree to this share say the same."""

_NOTHING: Mapping[tuple[int, int], float] = MappingProxyType({})
_FAR = 3  # a third of the length is too much
_LONG = 60  # letters: in longer texts, the first word and the last one's full stop matter little
_SOME = 0.4
_ALIKE = 0.6  # of the words as they stand: less cannot agree so far by their stems

# Texts that differ in one of these words, or in a number, say different things however long they are.
_TELLING = frozenset("no not never none nothing nobody neither nor without cannot t before after more less".split())


@dataclass(slots=True, kw_only=True)
class Found:
    """A memory on its way to becoming a hit: how well its signals match, and its score in the ranking asked for."""

    memory: Memory
    match: float = 0.0
    score: float = 0.0
    reasons: dict[str, float] = field(default_factory=dict)
    passage: int = -1
    row: int = -1
    duplicates: list[str] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)


class Said:
    """What a text says, as far as somebody asked: parts of it are found only when they are needed, and once."""

    __slots__ = ("_counts", "_parts", "_raw", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: frozenset[str] | None = None
        self._raw: frozenset[str] | None = None
        self._counts: tuple[Counter[int], float] | None = None

    @property
    def parts(self) -> frozenset[str]:
        """What stands between its spaces: the quickest way to tell long texts apart."""
        if self._parts is None:
            self._parts = frozenset(self.text.split())
        return self._parts

    @property
    def raw(self) -> frozenset[str]:
        """Its words as they stand, without what case and punctuation make of them."""
        if self._raw is None:
            self._raw = frozenset(words.words(self.text))
        return self._raw

    @property
    def counts(self) -> tuple[Counter[int], float]:
        """How often it has each term, and the length of these counts as a vector."""
        if self._counts is None:
            counts = Counter(words.terms(self.text))
            self._counts = counts, math.sqrt(sum(times * times for times in counts.values()))
        return self._counts


def agreement(left: Said, right: Said) -> float:
    """How far two texts use the same words equally often: the cosine of their counts, 0 to 1.

    >>> agreement(Said("Use tabs, please"), Said("Please use tabs!"))
    1.0
    """
    (ours, length), (theirs, other) = left.counts, right.counts
    if not length or not other:
        return 0.0
    return round(sum(times * theirs[term] for term, times in ours.items()) / (length * other), 9)


def without_duplicates(
    found: Sequence[Found],
    limit: int,
    spare: int | None = None,
    *,
    per_layer: int | None = None,
    near: Mapping[tuple[int, int], float] = _NOTHING,
) -> list[Found]:
    """The first hits, of those that say the same only the first; it names the others.

    The same words of two speakers are two things said. Once there are enough hits, only so many more are looked at as
    ``spare`` says. At most ``per_layer`` hits are of one layer. ``near`` has the nearness in meaning of pairs of rows
    that are very near.
    """
    kept: list[Found] = []
    of_layer: Counter[Layer] = Counter()
    before: list[tuple[int, frozenset[str], str | None, Said, Found]] = []
    left = len(found) if spare is None else spare
    for one in found:
        if len(kept) == limit:
            if not left:
                break
            left -= 1
        one.duplicates.clear()
        author, said = one.memory.author, Said(one.memory.content)
        length, parts = len(said.text), said.parts
        shortest, longest = length - length // _FAR, length + length // _FAR
        least = _SOME * len(parts) if length > _LONG else 0
        for other_length, other_parts, other_author, other, first in before:
            if near and author == other_author and _means_same(one, first, near):
                first.duplicates.append(one.memory.id)
                break
            # Texts that differ much in length or in what stands between their spaces cannot agree so far. These two
            # looks tell nearly all pairs apart, and there are many pairs.
            if not shortest <= other_length <= longest or len(parts & other_parts) < least:
                continue
            if author == other_author and _same(said, other):
                first.duplicates.append(one.memory.id)
                break
        else:
            if len(kept) < limit and (per_layer is None or of_layer[one.memory.layer] < per_layer):
                kept.append(one)
                of_layer[one.memory.layer] += 1
                before.append((length, parts, author, said, one))
    return kept


def _means_same(one: Found, first: Found, near: Mapping[tuple[int, int], float]) -> bool:
    """Whether two hits are very near in meaning, and differ in nothing that says otherwise."""
    nearness = near.get((first.row, one.row))
    if nearness is None:
        return False
    return sameness.same(sameness.read(one.memory.content), sameness.read(first.memory.content), nearness)


def _same(left: Said, right: Said) -> bool:
    if left.text == right.text:
        return True
    if len(left.raw & right.raw) < _ALIKE * len(left.raw) or agreement(left, right) < DUPLICATE:
        return False
    return not any(word in _TELLING or not word.isalpha() for word in left.raw ^ right.raw)
