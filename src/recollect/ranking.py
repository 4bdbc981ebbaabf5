"""Scores as pure functions: raw signals in, an order and its reasons out."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect import words
from recollect.types import Hit, Memory

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What is known of a candidate: its cosine and its share of the query's words, each if it has one."""

    memory: Memory
    similarity: float | None = None
    keyword: float | None = None


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of two vectors; 0 if one has no direction.

    >>> cosine([1.0, 0.0], [1.0, 1.0]) > 0.7
    True
    """
    norm = math.hypot(*left) * math.hypot(*right)
    return sum(x * y for x, y in zip(left, right, strict=True)) / norm if norm else 0.0


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """The BM25 score of each text for the terms of a query, never negative.

    >>> [score > 0 for score in bm25("dark mode", ["the dark", "light"])]
    [True, False]
    """
    counted = [Counter(words.terms(text)) for text in texts]
    lengths = [sum(counts.values()) for counts in counted]
    average = max(1.0, sum(lengths) / len(lengths)) if lengths else 1.0
    scores = [0.0] * len(texts)
    for term in words.asked(query):
        frequency = sum(1 for counts in counted if term in counts)
        weight = math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))
        for index, counts in enumerate(counted):
            if times := counts[term]:
                norm = K1 * (1 - B + B * lengths[index] / average)
                scores[index] += weight * times * (K1 + 1) / (times + norm)
    return scores


def coverage(query: str, text: str) -> float:
    """The share of the query's terms that a text has.

    >>> coverage("dark modes", "Dark mode"), coverage("dark mode", "Dark theme")
    (1.0, 0.5)
    """
    asked, found = words.asked(query), set(words.terms(text))
    return sum(1 for term in asked if term in found) / len(asked) if asked else 0.0


def fuse(signals: Iterable[Signals]) -> list[tuple[float, Mapping[str, float], Memory]]:
    """Score candidates from 0 to 1, the best first: the mean of the signals that the search had.

    A candidate that one of the two searches did not return counts 0 there.
    """
    candidates = list(signals)
    semantic = any(one.similarity is not None for one in candidates)
    keyword = any(one.keyword is not None for one in candidates)
    scored: list[tuple[float, Mapping[str, float], Memory]] = []
    for one in candidates:
        reasons: dict[str, float] = {}
        if semantic:
            reasons["similarity"] = min(1.0, max(0.0, one.similarity or 0.0))
        if keyword:
            reasons["keyword"] = min(1.0, max(0.0, one.keyword or 0.0))
        score = sum(reasons.values()) / len(reasons) if reasons else 0.0
        scored.append((score, reasons, one.memory))
    scored.sort(key=lambda item: (-item[0], -item[2].importance, item[2].id))
    return scored


def hits(scored: Sequence[tuple[float, Mapping[str, float], Memory]], *, limit: int, explain: bool) -> tuple[Hit, ...]:
    """The first hits of a ranking."""
    return tuple(
        Hit(memory=memory, score=score, rank=rank, reasons=reasons if explain else {})
        for rank, (score, reasons, memory) in enumerate(scored[:limit], start=1)
    )
