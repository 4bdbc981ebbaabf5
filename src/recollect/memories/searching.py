"""Search: candidates from the store, an order from the pure functions in ``ranking`` and ``merging``."""

import time
from datetime import datetime

import numpy as np
import numpy.typing as npt

from recollect import events, layers, validation
from recollect.errors import InvalidInput, QueryTooLong
from recollect.memories import embedding, entitlements, hitting
from recollect.memories.engine import Engine
from recollect.memories.hitting import SPARE, Ranked, Search
from recollect.ports import Query
from recollect.recall import calibration, ranking
from recollect.recall.probes import Candidates, Probe
from recollect.text import dates, query_text
from recollect.text.query_text import Asked
from recollect.types import Ranking, Results, Vector

QUERY_CHARACTERS = 32_768
_POOL = 200
_KEPT = 100
_RESULTS = 1_000
_NO_WORDS = Asked(terms=(), words=(), phrases=(), prefixes=(), names=())


def checked(
    text: object,
    *,
    limit: int,
    min_score: float | None,
    mode: Ranking | str,
    explain: bool,
    asked_at: datetime | None,
    now: datetime,
) -> Search:
    """Refuse what makes no sense."""
    _check(text)
    validation.flag("explain", explain)
    return Search(
        text=str(text),
        limit=validation.integer("limit", limit, 1, _RESULTS),
        min_score=None if min_score is None else validation.unit("min_score", min_score),
        ranking=validation.choice("ranking", Ranking, mode),
        explain=explain,
        asked_at=now if asked_at is None else validation.moment("asked_at", asked_at),
    )


def search(engine: Engine, wanted: Query, asked: Search) -> Results:
    """The best memories for a text."""
    started = time.perf_counter()
    by_meaning = entitlements.searches_by_meaning(engine, asked.ranking)
    vector = embedding.question(engine, asked.text) if by_meaning else None
    probe = _probe(engine, asked, vector)
    found = engine.store.candidates(wanted, probe)
    scores = _scores(asked, found, semantic=vector is not None)
    order = _order(engine, asked, found, scores)
    if asked.min_score is None and not _knows(asked, probe, found, scores):
        order = order[:0]
    hits, total = hitting.read(engine, wanted, asked, Ranked(found, scores, order))
    searched = tuple(sorted({owner.layer for owner in wanted.owners}, key=layers.PRECEDENCE.__getitem__))
    results = Results(hits=hits, total=total, layers=searched, semantic=vector is not None)
    if engine.bus.handlers and engine.bus.wants(events.SearchCompleted):
        engine.bus.emit(
            events.SearchCompleted(
                at=wanted.where.now,
                query=asked.text,
                result_count=len(results),
                duration_ms=(time.perf_counter() - started) * 1000,
                layers=searched,
            )
        )
    return results


def _probe(engine: Engine, asked: Search, vector: Vector | None) -> Probe:
    if asked.ranking is Ranking.SIMILARITY and vector is not None:
        scale = embedding.scale(engine)
        return Probe(asked=_NO_WORDS, pool=asked.limit + SPARE, vector=vector, calibration=scale)
    parsed = query_text.parse(asked.text)
    return Probe(
        asked=parsed,
        pool=max(asked.limit, _POOL),
        kept=max(_KEPT, 3 * asked.limit),
        asks_when=dates.asks_when(asked.text),
        first=(ranking.WITH_VECTORS if vector is not None else ranking.WORDS_ALONE).first,
        vector=vector,
        kin=engine.lexicon.kin(parsed.words) if engine.lexicon is not None and vector is not None else None,
        calibration=calibration.PLAIN if vector is None else embedding.scale(engine),
        dates=lambda first, last: dates.ranges(asked.text, asked_at=asked.asked_at, first=first, last=last),
    )


def _scores(asked: Search, found: Candidates, *, semantic: bool) -> ranking.Scores:
    if asked.ranking is Ranking.SIMILARITY and semantic:
        return ranking.similarity(found.signals)
    return ranking.best(found.signals, ranking.WITH_VECTORS if semantic else ranking.WORDS_ALONE)


def _order(engine: Engine, asked: Search, found: Candidates, scores: ranking.Scores) -> npt.NDArray[np.intp]:
    """The candidates that are good enough, the best first, of equals the newest. Where what is read can still change
    the score, the caller's minimum is for later.
    """
    least = ranking.LEAST if asked.min_score is None else asked.min_score
    if asked.min_score is not None and hitting.rescores(engine, asked):
        least = 0.0
    enough = np.flatnonzero(scores.values >= least)
    return enough[np.lexsort((-found.numbers[enough], -scores.values[enough]))]


def _knows(asked: Search, probe: Probe, found: Candidates, scores: ranking.Scores) -> bool:
    """Whether the store seems to know anything about it. Who asks for nearness, a phrase or a beginning gets it."""
    semantic = probe.vector is not None
    if probe.asked.phrases or probe.asked.prefixes or (asked.ranking is Ranking.SIMILARITY and semantic):
        return True
    if found.question.get("memories", 0) < ranking.MANY:
        return True
    model = ranking.WITH_VECTORS if semantic else ranking.WORDS_ALONE
    return ranking.knows(found.signals, scores, found.question, model) >= ranking.KNOWS


def _check(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("query is empty", details={"field": "query"}, hint="say what to look for")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            "query contains unpaired surrogates",
            details={"field": "query"},
            hint="decode it with errors='replace' first",
        ) from None
    if len(text) > QUERY_CHARACTERS:
        raise QueryTooLong(
            f"query has {len(text)} characters, the limit is {QUERY_CHARACTERS}",
            details={"field": "query", "limit": QUERY_CHARACTERS},
            hint="search for the few sentences that matter",
        )
