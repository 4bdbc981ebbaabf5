"""From ranked candidates to hits: read them, put them into the order of the ranking, fold what says the same."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wellkept import filters, layers, pointed_files
from wellkept.engine.core import Engine
from wellkept.engine.sealing import readable
from wellkept.engine.search_request import Search
from wellkept.filters import Where
from wellkept.lifecycle import decay
from wellkept.ports.index import Key
from wellkept.recall import duplicates, precedence, quantized, ranking, sameness
from wellkept.recall.arrays import Array
from wellkept.recall.candidates import Candidates
from wellkept.recall.duplicates import Found
from wellkept.types import Hit, Need, Owners, Ranking, Stored

SPARE = 10
"""Candidates beyond the limit, in the place of those that say the same."""

_RERANKED = 30
_READ = 100  # memories that are read at least, for orders that depend on more than signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What may be a hit. ``direct`` are memories that were read already: versions of the past, and inactive ones."""

    owners: Owners
    where: Where
    direct: Mapping[Key, Stored]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Rows of candidates with their scores, the order in which those that are good enough come, and how likely it is
    that they hold an answer. ``unrelated`` is the cosine of unrelated texts, if vectors can be compared.
    """

    found: Candidates
    rows: Array
    passages: Array
    scores: ranking.Scores
    order: Array
    known: float = 1.0
    unrelated: float | None = None


def rescores(engine: Engine, asked: Search) -> bool:
    """Whether the score of a hit depends on more than its signals."""
    return engine.reranker is not None or asked.ranking is Ranking.RELEVANCE


def read(engine: Engine, shown: Shown, asked: Search, ranked: Ranked) -> tuple[tuple[Hit, ...], int]:
    """The hits, and how many candidates were good enough.

    Only so many are read as are needed, unless the order depends on what is read.
    """
    again = rescores(engine, asked)
    size = max(_READ, asked.limit) if again or asked.ranking is Ranking.PRECEDENCE else asked.limit
    layered = len({owner.layer for owner in shown.owners}) > 1
    if layered:
        size = max(size, asked.limit + SPARE)  # what overrides a hit may come behind it
    known: list[Found] = []
    kept: list[Found] = []
    total = len(ranked.order)
    for start in range(0, len(ranked.order), size):
        known += _read(engine, shown, ranked, slice(start, start + size), explain=asked.explain)
        good = _in_order(engine, asked, known)
        if again and asked.min_score is not None:
            good = [one for one in good if one.score >= asked.min_score]
            total = len(good)
        if layered:
            good = precedence.overriding(good, asked.precedence, keep=asked.overridden)
        near = _near(ranked, good)
        kept = duplicates.without_duplicates(good, asked.limit, SPARE, per_layer=asked.per_layer, near=near)
        if len(kept) == asked.limit:
            break
    engine.check(Need.READ, shown.owners)  # of what was read before it was ranked, nothing was asked since
    return _made(engine, shown, kept), total


def _read(engine: Engine, shown: Shown, ranked: Ranked, which: slice, *, explain: bool) -> list[Found]:
    """Some of the candidates, read. Another process may have changed or forgotten one since it was chosen."""
    places = ranked.order[which].tolist()
    keys = [ranked.found.key(int(ranked.rows[place])) for place in places]
    stored = {key: one for key in keys if (one := shown.direct.get(key)) is not None}
    if missing := [key[1] for key in keys if key not in stored]:
        read = engine.journal.get(shown.owners, missing)
        stored |= {key: engine.accesses.dressed(one) for one in read if (key := (one.owner, one.id)) not in stored}
    fits = filters.matching(shown.where)
    ordered = [(place, one) for place, key in zip(places, keys, strict=True) if (one := stored.get(key)) and fits(one)]
    memories = {(one.owner, one.id): memory for one, memory in readable(one for _, one in ordered)}
    some = [
        Found(
            memory=memories[one.owner, one.id],
            match=float(ranked.scores.values[place]),
            passage=int(ranked.passages[place]),
            row=int(ranked.rows[place]),
            reasons=ranked.scores.reasons(place) if explain else {},
        )
        for place, one in ordered
        if (one.owner, one.id) in memories
    ]
    if len({one.match for one in some}) < len(some):
        some.sort(key=lambda one: (-one.match, layers.PRECEDENCE[one.memory.layer], -one.memory.importance))
    return some


def _near(ranked: Ranked, good: Sequence[Found]) -> dict[tuple[int, int], float]:
    """How near hits are in meaning that are very near, by their rows, both ways round."""
    low, found = ranked.unrelated, ranked.found
    if low is None or not len(found.codes):
        return {}
    rows = np.array([one.row for one in good if one.row >= 0], np.int64)
    rows = rows[found.passages[rows] == 1] if len(rows) else rows
    codes = found.codes[(np.cumsum(found.passages) - found.passages)[rows]]
    nearness = (quantized.between(codes, codes) - low) / (1 - low)
    pairs = np.argwhere(np.triu(nearness >= sameness.SAME, 1)).tolist()
    values = {(int(rows[left]), int(rows[right])): float(nearness[left, right]) for left, right in pairs}
    return values | {(right, left): value for (left, right), value in values.items()}


def _in_order(engine: Engine, asked: Search, known: Sequence[Found]) -> list[Found]:
    """What was read in the order of the ranking, with its scores."""
    for one in known:
        one.score = one.match
    ordered = list(known) if engine.reranker is None else _reranked(engine, asked, known)
    if asked.ranking is Ranking.PRECEDENCE:
        ordered.sort(key=lambda one: (asked.precedence.index(one.memory.layer), -one.score))
    if asked.ranking is Ranking.RELEVANCE:
        _weigh(ordered, asked)
        ordered.sort(key=lambda one: -one.score)
    return ordered


def _reranked(engine: Engine, asked: Search, known: Sequence[Found]) -> list[Found]:
    """Let the reranker look at the first hits; its log-odds are added to those that the score stands for."""
    assert engine.reranker is not None  # noqa: S101  # said by the caller, for the type checker
    first, rest = known[:_RERANKED], known[_RERANKED:]
    said = engine.reranker.score(asked.text, [_told(one) for one in first])
    for one, value in zip(first, said, strict=True):
        odds = ranking.RERANKED * float(value)
        one.score = ranking.moved(one.match, odds)
        if asked.explain:
            one.reasons["reranker"] = round(odds, 4)
    return sorted(first, key=lambda one: -one.score) + list(rest)


def _told(one: Found) -> str:
    """A memory as a reranker reads it: who said it belongs to what was said."""
    memory = one.memory
    return f"{memory.author}: {memory.content}" if memory.author else memory.content


def _weigh(found: Sequence[Found], asked: Search) -> None:
    """The relevance of hits: the product of its parts, as a share of the highest one that there is."""
    for one in found:
        policy = asked.policies.get(one.memory.owner, decay.USUAL)
        parts = decay.relevance(one.memory, asked.asked_at, policy, match=one.score)
        if asked.explain:
            one.reasons = {name: round(part, 4) for name, part in parts.items()}
        one.score = math.prod(parts.values()) / decay.HIGHEST


def _made(engine: Engine, shown: Shown, kept: Sequence[Found]) -> tuple[Hit, ...]:
    """The hits themselves, with the passages that came nearest."""
    long = {one.memory.id for one in kept if one.passage >= 0}
    read = engine.journal.get(shown.owners, long, payload=False, vectors=True) if long else ()
    stored = {(one.owner, one.id): one for one in read}
    return tuple(
        Hit(
            memory=one.memory,
            score=one.score,
            rank=rank,
            reasons=one.reasons,
            passage=_span(stored.get((one.memory.owner, one.memory.id)), one.passage) if long else None,
            overrides=tuple(one.overrides),
            duplicates=tuple(one.duplicates),
            stale=None if one.memory.pointer is None else pointed_files.is_stale(one.memory.pointer),
        )
        for rank, one in enumerate(kept, start=1)
    )


def _span(stored: Stored | None, passage: int) -> tuple[int, int] | None:
    """Where a passage stands in the text."""
    spans = stored.vector.spans if stored is not None and stored.vector is not None else ()
    return spans[passage] if 0 <= passage < len(spans) else None
