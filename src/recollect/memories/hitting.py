"""From ranked candidates to hits: read them, put them into the order of the ranking, fold what says the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from recollect import filters, layers
from recollect.lifecycle import decay
from recollect.memories.engine import Engine
from recollect.ports import Query
from recollect.recall import duplicates, ranking
from recollect.recall.duplicates import Found
from recollect.recall.probes import Candidates
from recollect.types import DecayPolicy, Hit, Memory, Owner, Ranking

SPARE = 10
"""Candidates beyond the limit, in the place of those that say the same."""

_RERANKED = 30
_READ = 100  # memories that are read at least, for orders that depend on more than signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search as it was asked for, checked."""

    text: str
    limit: int
    min_score: float | None
    ranking: Ranking
    explain: bool
    asked_at: datetime
    policies: Mapping[Owner, DecayPolicy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores, and the order in which those that are good enough come."""

    found: Candidates
    scores: ranking.Scores
    order: npt.NDArray[np.intp]


def rescores(engine: Engine, asked: Search) -> bool:
    """Whether the score of a hit depends on more than its signals."""
    return engine.reranker is not None or asked.ranking is Ranking.RELEVANCE


def read(engine: Engine, wanted: Query, asked: Search, ranked: Ranked) -> tuple[tuple[Hit, ...], int]:
    """The hits, and how many candidates were good enough.

    Only so many are read as are needed, unless the order depends on what is read.
    """
    again = rescores(engine, asked)
    size = max(_READ, asked.limit) if again or asked.ranking is Ranking.PRECEDENCE else asked.limit
    known: list[Found] = []
    kept: list[Found] = []
    total = len(ranked.order)
    for start in range(0, len(ranked.order), size):
        known += _some(engine, wanted, ranked, slice(start, start + size), explain=asked.explain)
        good = _in_order(engine, asked, known)
        if again and asked.min_score is not None:
            good = [one for one in good if one.score >= asked.min_score]
            total = len(good)
        kept = duplicates.without_duplicates(good, asked.limit, SPARE)
        if len(kept) == asked.limit:
            break
    return _hits(engine, wanted, kept), total


def _some(engine: Engine, wanted: Query, ranked: Ranked, which: slice, *, explain: bool) -> list[Found]:
    """Some of the candidates, read. Another process may have changed or forgotten one since it was chosen."""
    places = ranked.order[which]
    numbers = ranked.found.numbers[places].tolist()
    matches = ranked.scores.values[places].tolist()
    passages = ranked.found.passages[places].tolist()
    memories = engine.store.pick(wanted, numbers)
    fits = filters.matching(wanted.where)
    some = [
        Found(memory=memory, match=match, passage=passage, reasons=ranked.scores.reasons(place) if explain else {})
        for place, number, match, passage in zip(places.tolist(), numbers, matches, passages, strict=True)
        if (memory := memories.get(number)) is not None and fits(memory)
    ]
    if len(set(matches)) < len(matches):
        some.sort(key=lambda one: (-one.match, layers.PRECEDENCE[one.memory.layer], -one.memory.importance))
    return some


def _in_order(engine: Engine, asked: Search, known: Sequence[Found]) -> list[Found]:
    """What was read in the order of the ranking, with its scores."""
    for one in known:
        one.score = one.match
    ordered = list(known) if engine.reranker is None else _reranked(engine, asked, known)
    if asked.ranking is Ranking.PRECEDENCE:
        ordered.sort(key=lambda one: (layers.PRECEDENCE[one.memory.layer], -one.score))
        return duplicates.overriding(ordered, list(layers.PRECEDENCE))
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
    """The relevance of hits: the product of its parts, which are told apart only for whoever wants to know."""
    faded = decay.Irrelevance(asked.asked_at, asked.policies).of
    for one in found:
        if asked.explain:
            parts = decay.relevance(one.memory, asked.asked_at, asked.policies[one.memory.owner], match=one.score)
            one.reasons = {name: round(part, 4) for name, part in parts.items()}
        one.score = min(1.0, -faded(one.memory) * one.score)


def _hits(engine: Engine, wanted: Query, kept: Sequence[Found]) -> tuple[Hit, ...]:
    """The hits themselves, with the passages that came nearest."""
    long = [one.memory.id for one in kept if one.passage >= 0]
    vectors = engine.store.get(wanted.owners, long, vectors=True) if long else {}
    return tuple(
        Hit(
            memory=one.memory,
            score=one.score,
            rank=rank,
            reasons=one.reasons,
            passage=_span(vectors.get(one.memory.id), one.passage) if long else None,
            overrides=tuple(one.overrides),
            duplicates=tuple(one.duplicates),
        )
        for rank, one in enumerate(kept, start=1)
    )


def _span(memory: Memory | None, passage: int) -> tuple[int, int] | None:
    """Where a passage stands in the text."""
    spans = memory.vector.spans if memory is not None and memory.vector is not None else ()
    return spans[passage] if 0 <= passage < len(spans) else None
