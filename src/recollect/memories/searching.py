"""Search: candidates from the store, scores from the pure functions in ``ranking``."""

import time

from recollect import layers, ranking, validation, words
from recollect.errors import InvalidInput, QueryTooLong
from recollect.events import SearchCompleted
from recollect.memories.engine import Engine
from recollect.ports import Query
from recollect.types import Results

QUERY_CHARACTERS = 32_768
_CANDIDATES = 100
_RESULTS = 1_000


def search(engine: Engine, wanted: Query, text: str, *, limit: int, min_score: float, explain: bool) -> Results:
    """The best memories for a text."""
    _check(text)
    validation.flag("explain", explain)
    validation.integer("limit", limit, 1, _RESULTS)
    validation.unit("min_score", min_score)
    started = time.perf_counter()
    scored = ranking.fuse(_signals(engine, wanted, text, max(limit, _CANDIDATES)))
    passed = [one for one in scored if one[0] > 0 and one[0] >= min_score]
    searched = tuple(sorted({owner.layer for owner in wanted.owners}, key=layers.PRECEDENCE.__getitem__))
    results = Results(hits=ranking.hits(passed, limit=limit, explain=explain), total=len(passed), layers=searched)
    if engine.bus.wants(SearchCompleted):
        engine.bus.emit(
            SearchCompleted(
                at=wanted.where.now,
                query=text,
                result_count=len(results),
                duration_ms=(time.perf_counter() - started) * 1000,
                layers=searched,
            )
        )
    return results


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


def _signals(engine: Engine, wanted: Query, text: str, limit: int) -> list[ranking.Signals]:
    """What the two searches know of each candidate, brought together."""
    found: dict[str, ranking.Signals] = {}
    for scored in engine.store.matching_words(wanted, text, limit):
        memory = scored.memory
        share = ranking.coverage(text, words.searchable(memory.content, memory.title))
        found[memory.id] = ranking.Signals(memory=memory, keyword=share)
    vector = engine.embed([text])[0] if wanted.as_of is None else None
    if vector is not None:
        for scored in engine.store.nearest(wanted, vector, limit):
            known = found.get(scored.memory.id)
            keyword = known.keyword if known else None
            found[scored.memory.id] = ranking.Signals(memory=scored.memory, similarity=scored.score, keyword=keyword)
    return list(found.values())
