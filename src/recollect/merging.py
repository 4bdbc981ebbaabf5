"""What hits have to do with each other: those that say the same, and those that stand before others."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from recollect import words
from recollect.types import Memory

DUPLICATE = 0.95
"""Contents whose words agree to this share say the same."""

_ALIKE = 0.6  # of the words as they stand: less cannot agree so far by their stems

# Texts that differ in one of these words, or in a number, say different things however long they are.
_TELLING = frozenset("no not never none nothing nobody neither nor without cannot t before after more less".split())

CONFLICT = 0.5
"""Contents of different layers whose words agree to this share are about the same thing."""


@dataclass(kw_only=True)
class Found:
    """A memory on its way to becoming a hit: how well its signals match, and its score in the ranking asked for."""

    memory: Memory
    match: float = 0.0
    score: float = 0.0
    reasons: dict[str, float] = field(default_factory=dict)
    passage: int = -1
    duplicates: list[str] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)

    @cached_property
    def raw(self) -> frozenset[str]:
        """Its words as they stand, which is quick to find and enough to tell most texts apart."""
        return frozenset(words.words(self.memory.content))

    @cached_property
    def said(self) -> "Said":
        """Its words, if somebody asks."""
        return Said.of(self.memory.content)


@dataclass(frozen=True, slots=True)
class Said:
    """The words of a text: which, how often, and the length of the counts as a vector."""

    terms: frozenset[int]
    counts: Mapping[int, int]
    length: float

    @classmethod
    def of(cls, text: str) -> "Said":
        """The words of a text."""
        counts = Counter(words.terms(text))
        return cls(frozenset(counts), counts, math.sqrt(sum(times * times for times in counts.values())))


def agreement(left: Said, right: Said) -> float:
    """How far two texts use the same words equally often: the cosine of their counts, 0 to 1.

    >>> agreement(Said.of("Use tabs, please"), Said.of("Please use tabs!"))
    1.0
    """
    if not left.length or not right.length:
        return 0.0
    shared = sum(left.counts[term] * right.counts[term] for term in left.terms & right.terms)
    return round(shared / (left.length * right.length), 9)


def without_duplicates(found: Sequence[Found], limit: int) -> list[Found]:
    """The first hits, of those that say the same only the first; it names the others.

    The same words of two speakers are two things said.
    """
    kept: list[Found] = []
    for one in found:
        one.duplicates.clear()
        same = next((first for first in kept if _same(one, first)), None)
        if same is not None:
            same.duplicates.append(one.memory.id)
        elif len(kept) < limit:
            kept.append(one)
    return kept


def _same(left: Found, right: Found) -> bool:
    # Texts that differ much in length cannot agree so far: most pairs are told apart without looking at their words.
    ours, theirs = len(left.memory.content), len(right.memory.content)
    if abs(ours - theirs) * 4 > max(ours, theirs) or left.memory.author != right.memory.author:
        return False
    if left.memory.content == right.memory.content:
        return True
    if len(left.raw & right.raw) < _ALIKE * len(left.raw) or agreement(left.said, right.said) < DUPLICATE:
        return False
    return not any(word in _TELLING or not word.isalpha() for word in left.raw ^ right.raw)


def overriding(found: Sequence[Found], rank: Sequence[object]) -> list[Found]:
    """Let the hits of more specific layers stand before those of less specific ones that are about the same thing.

    ``rank`` lists the layers, the most specific first. What is overridden is taken out, and named by what overrides it.
    """
    place = {layer: index for index, layer in enumerate(rank)}
    for one in found:
        one.overrides.clear()
    ordered = sorted(found, key=lambda one: place[one.memory.layer])
    gone: set[str] = set()
    for index, one in enumerate(ordered):
        if one.memory.id in gone:
            continue
        for lesser in ordered[index + 1 :]:
            below = place[lesser.memory.layer] > place[one.memory.layer]
            if below and lesser.memory.id not in gone and _conflict(one, lesser):
                one.overrides.append(lesser.memory.id)
                gone.add(lesser.memory.id)
    return [one for one in found if one.memory.id not in gone]


def _conflict(left: Found, right: Found) -> bool:
    if left.memory.key is not None and left.memory.key == right.memory.key:
        return True
    return agreement(left.said, right.said) >= CONFLICT
