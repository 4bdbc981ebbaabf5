"""Search: candidates from the index, signals and an order from pure functions, hits from the journal."""

import time
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from recollect import codec, events, filters, layers, validation
from recollect.engine import embedding, hits, index_following
from recollect.engine.core import Engine
from recollect.engine.hits import SPARE, Ranked, Search, Shown
from recollect.entitlements import Feature
from recollect.errors import InvalidInput, QueryTooLong
from recollect.filters import ACTIVE, Where
from recollect.indexes.ram import RamIndex
from recollect.ports import Corpus, Index, Near, Query, check_vector
from recollect.ports.index import Key
from recollect.recall import candidates as gathered
from recollect.recall import gate, quantized, ranking, signals, updates
from recollect.recall.arrays import Array, best
from recollect.recall.candidates import Candidates
from recollect.recall.signals import Question, Signals, Weights
from recollect.text import dates, query_text
from recollect.text.dates import DateRange
from recollect.text.query_text import Asked
from recollect.types import Mark, Owner, Owners, Position, Ranking, Results, State, Stored, Vector

QUERY_CHARACTERS = 32_768

_POOL = 200
_KEPT = 100
_RESULTS = 1_000
_CROWDED = 3  # where there are many vectors, more of them are too near to each other to be told apart in 8 bits
_PHRASED = 5_000  # memories that have all words of a phrase and are looked at for their order
_BEGINNING = 1_000  # memories that have a word for a prefix and are looked at
_NO_WORDS = Asked(terms=(), words=(), phrases=(), prefixes=(), names=())
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
_AFTER_ALL = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where candidates come from: an index, and what it is asked about."""

    index: Index
    owners: Owners
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """What a search looks at. What the index of the store does not show (versions of the past, and memories that are
    not active) is compared directly, in an index made for this search.
    """

    shown: Shown
    at: Position | None
    sources: Sequence[_Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    """What candidates are chosen by. ``prefixed`` are the memories that have a word for each prefix."""

    question: Question
    weights: Weights
    prefixed: Sequence[AbstractSet[Key]]

    @property
    def shares(self) -> dict[int, float]:
        """What each term weighs."""
        return self.weights.of_terms(self.question.asked.terms)


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


def search(engine: Engine, owners: Owners, where: Where, asked: Search, at: Position | None = None) -> Results:
    """The best memories for a text; as they were at a position, if one is given."""
    started = time.perf_counter()
    question = _question(engine, owners, asked)
    scope = _scope(engine, owners, where, at)
    if asked.ranking is Ranking.SIMILARITY and question.vector is not None:
        ranked = _nearest(engine, scope, asked, question)
    else:
        ranked = _best(engine, scope, asked, question)
    found, total = hits.read(engine, scope.shown, asked, ranked)
    searched = tuple(sorted({owner.layer for owner in owners}, key=layers.PRECEDENCE.__getitem__))
    if engine.bus.handlers and engine.bus.wants(events.SearchCompleted):
        engine.bus.emit(
            events.SearchCompleted(
                at=where.now,
                owners=layers.ordered(owners),
                query=asked.text,
                result_count=len(found),
                duration_ms=(time.perf_counter() - started) * 1000,
                layers=searched,
            )
        )
    return Results(hits=found, total=total, layers=searched, semantic=question.vector is not None, known=ranked.known)


def _question(engine: Engine, owners: Owners, asked: Search) -> Question:
    """The text as it is compared. Without vectors it goes by words, unless nearness alone was asked for."""
    if asked.ranking is Ranking.SIMILARITY:
        engine.require(Feature.SEMANTIC_SEARCH)
    nearness = asked.ranking is Ranking.SIMILARITY
    vector = None
    if engine.allows(Feature.SEMANTIC_SEARCH):
        vector = embedding.question(engine, asked.text, required=nearness)
    if vector is None:
        return Question(asked=query_text.parse(asked.text), asks_when=dates.asks_when(asked.text))
    settings = engine.journal.settings()
    stored, dimension = settings.get("embedder", vector.embedder), int(settings.get("dimension", vector.dimension))
    if (stored, dimension) != (vector.embedder, vector.dimension):
        check_vector(vector, stored, dimension)
    scale = embedding.scale(engine, owners)
    if asked.ranking is Ranking.SIMILARITY:
        return Question(asked=_NO_WORDS, vector=vector, calibration=scale)
    parsed = query_text.parse(asked.text)
    return Question(
        asked=parsed,
        vector=vector,
        calibration=scale,
        asks_when=dates.asks_when(asked.text),
        kin=None if engine.lexicon is None else engine.lexicon.kin(parsed.words),
    )


# -- where to look --------------------------------------------------------------------------------------------


def _scope(engine: Engine, owners: Owners, where: Where, at: Position | None) -> _Scope:
    """The index, brought up to date; what is not to be found in it beside it."""
    journal, index = engine.journal, engine.index
    present = index_following.fresh(journal, index, owners)
    states = frozenset(State) if where.states is None else where.states
    now = _BEFORE_ALL if where.states is None else where.now  # who asks for any state gets what expired as well
    ids = None
    if not filters.anything(where if where.states == ACTIVE else replace(where, states=ACTIVE)):
        ids = frozenset(memory_id for _, memory_id in journal.ids(present, where, at=at))
    changed = frozenset[str]() if at is None else frozenset(one for _, one in journal.changed(present, after=at))
    sources = []
    if State.ACTIVE in states:
        sources.append(_Source(index=index, owners=present, where=Where(now=now, ids=ids, without=changed)))
    stored = list(journal.get(present, changed, at=at, vectors=True)) if changed else []
    if states - ACTIVE:
        inactive = journal.ids(present, Where(now=_BEFORE_ALL, states=states - ACTIVE))
        stored += journal.get(present, {one for _, one in inactive} - changed, vectors=True)
    direct = {(one.owner, one.id): one for one in stored if filters.matches(one, where)}
    if direct:
        sources.append(_Source(index=_temporary(direct.values()), owners=present, where=Where(now=now)))
    return _Scope(shown=Shown(owners=present, where=where, direct=direct), at=at, sources=sources)


def _temporary(stored: Iterable[Stored]) -> Index:
    """An index for one search."""
    index = RamIndex()
    owned: dict[Owner, list[Stored]] = {}
    for one in stored:
        owned.setdefault(one.owner, []).append(one)
    for owner, some in owned.items():
        index.load(owner, some, 0, Mark())
    return index


# -- candidates and their order -------------------------------------------------------------------------------


def _best(engine: Engine, scope: _Scope, asked: Search, question: Question) -> Ranked:
    """Rank by everything that is known."""
    corpora = [source.index.corpus(source.owners, question.asked.terms) for source in scope.sources]
    prefixed = [_beginning(engine, scope, prefix) for prefix in question.asked.prefixes]
    weights = _weights(question, corpora, prefixed)
    question = replace(question, ranges=_ranges(asked, corpora))
    sought = _Sought(question=question, weights=weights, prefixed=prefixed)
    pool = max(asked.limit, _POOL)
    gotten = ((source.where, _candidates(engine, scope, source, sought, pool)) for source in _narrowed(scope, sought))
    parts = [(where, some) for where, some in gotten if some.count]
    found = gathered.joined([some for _, some in parts])
    model = ranking.WORDS_ALONE if question.vector is None else ranking.WITH_VECTORS
    measured = signals.measure(
        found,
        question,
        weights,
        beginning=_having(found, prefixed),
        may=_allowed(parts),
        pool=pool,
        kept=max(_KEPT, 3 * asked.limit),
        first=model.first,
    )
    scores = ranking.best(measured.values, model)
    known = _known(sought, found, measured, scores)
    if not question.ranges and not updates.asks_for_past(question.asked.words):
        scores = updates.lifted(scores, found, measured.rows, measured.values["words"])
    least = ranking.LEAST if question.asked.literal else ranking.least(scores)
    order = _order(engine, asked, found, measured.rows, scores, least=least)
    if asked.min_score is None and known < _gate(question).least:
        order = order[:0]
    return Ranked(found=found, rows=measured.rows, passages=measured.passages, scores=scores, order=order, known=known)


def _weights(question: Question, corpora: Sequence[Corpus], prefixed: Sequence[AbstractSet[Key]]) -> Weights:
    having = [sum(corpus.having.get(term, 0) for corpus in corpora) for term in question.asked.terms]
    return signals.weigh(
        question.asked,
        sum(corpus.memories for corpus in corpora),
        sum(corpus.words for corpus in corpora),
        [*having, *map(len, prefixed)],
    )


def _ranges(asked: Search, corpora: Sequence[Corpus]) -> Sequence[DateRange]:
    """The dates that the question names, in the years that the memories come from."""
    firsts = [corpus.first for corpus in corpora if corpus.first is not None]
    lasts = [corpus.last for corpus in corpora if corpus.last is not None]
    if not firsts or not lasts:
        return ()
    return dates.ranges(asked.text, asked_at=asked.asked_at, first=_moment(min(firsts)), last=_moment(max(lasts)))


def _moment(seconds: float) -> datetime:
    """A time within the calendar."""
    return datetime.fromtimestamp(min(max(seconds, _BEFORE_ALL.timestamp()), _AFTER_ALL.timestamp() - 1), UTC)


def _beginning(engine: Engine, scope: _Scope, prefix: str) -> AbstractSet[Key]:
    """The memories with a word that begins so, whatever else is asked of them."""
    where = Where(now=scope.shown.where.now, states=scope.shown.where.states, prefix=prefix)
    return frozenset(engine.journal.ids(scope.shown.owners, where, at=scope.at))


def _having(found: Candidates, prefixed: Sequence[AbstractSet[Key]]) -> Array | None:
    """Which rows have a word for which prefix."""
    if not prefixed:
        return None
    keys = [(found.owners[owner], one) for owner, one in zip(found.owner.tolist(), found.ids, strict=True)]
    return np.array([[key in having for key in keys] for having in prefixed], np.bool_).reshape(len(prefixed), -1)


def _narrowed(scope: _Scope, sought: _Sought) -> Sequence[_Source]:
    """Only what has all quoted phrases; owner by owner, since two owners may have a memory of one id. If nothing has
    them, the words decide, provided that the question has others.
    """
    asked = sought.question.asked
    phrases = asked.phrases
    if not phrases:
        return scope.sources
    required = sorted({term for phrase in phrases for term in phrase})
    narrowed = []
    for source in scope.sources:
        for owner in source.owners:
            near = source.index.worded(
                {owner}, source.where, sought.shares, sought.weights.mean_length, _PHRASED, required=required
            )
            found = source.index.candidates(near)
            said = np.flatnonzero(signals.with_phrases(found, phrases)).tolist()
            ids = frozenset(found.key(row)[1] for row in said)
            narrowed.append(replace(source, owners={owner}, where=replace(source.where, ids=ids)))
    if set(asked.terms) <= set(required) or any(source.where.ids for source in narrowed):
        return narrowed
    return scope.sources


def _candidates(engine: Engine, scope: _Scope, source: _Source, sought: _Sought, pool: int) -> Candidates:
    """The nearest, those that share most words with their neighbours, and some of the dates and prefixes named."""
    near, worded = _found(source, source.where, sought, pool)
    found: list[Sequence[Key | Near]] = [near, worded]
    for one in sought.question.ranges:
        if (stretch := signals.dated(one)) is not None:
            start, end = map(_moment, stretch)
            found += _found(source, _during(source.where, start, end), sought, pool // 2)
            if sought.question.vector is None:  # then nothing else finds what has none of the words
                wanted = _during(scope.shown.where, start, end)
                query = Query(owners=source.owners, where=wanted, limit=pool // 2, at=scope.at)
                found.append([(stored.owner, stored.id) for stored in engine.journal.select(query)])
    for having in sought.prefixed:
        found.append(list(islice((key for key in having if _lets(source.where, key[1])), _BEGINNING)))
    got = source.index.candidates(*found, beside=worded)
    return gathered.unlinked(got, source.where.without) if source.where.without else got


def _during(where: Where, start: datetime, end: datetime) -> Where:
    """A filter that lets through only what occurred between two times."""
    after = start if where.occurred_after is None else max(start, where.occurred_after)
    before = end if where.occurred_before is None else min(end, where.occurred_before)
    return replace(where, occurred_after=after, occurred_before=before)


def _found(source: _Source, where: Where, sought: _Sought, limit: int) -> tuple[Sequence[Near], Sequence[Near]]:
    """What the index finds by its vector, and by its words."""
    near: Sequence[Near] = ()
    if sought.question.vector is not None:
        near = source.index.nearest(source.owners, where, sought.question.vector, limit).found
    said: Sequence[Near] = ()
    if shares := sought.shares:
        said = source.index.worded(source.owners, where, shares, sought.weights.mean_length, limit)
    return near, said


def _lets(where: Where, memory_id: str) -> bool:
    return (where.ids is None or memory_id in where.ids) and memory_id not in where.without


def _allowed(parts: Sequence[tuple[Where, Candidates]]) -> Array:
    """Which candidates may be hits: neighbours of others were not asked whether they may."""
    masks = []
    for where, found in parts:
        may = found.expires[: found.count] > where.now.timestamp()
        if where.ids is not None or where.without:
            may &= np.array([_lets(where, one) for one in found.ids[: found.count]], np.bool_)
        masks.append(may)
    return np.concatenate(masks) if masks else np.zeros(0, np.bool_)


def _order(
    engine: Engine, asked: Search, found: Candidates, rows: Array, scores: ranking.Scores, *, least: float
) -> Array:
    """The candidates that are good enough, the best first, of equals the newest. Where what is read can still change
    the score, the caller's minimum is for later; without one, ``least`` is enough.
    """
    least = least if asked.min_score is None else asked.min_score
    if asked.min_score is not None and hits.rescores(engine, asked):
        least = 0.0
    enough = np.flatnonzero(scores.values >= least)
    those = rows[enough]
    by_name = found.owner[those]
    if len(found.owners) > 1:
        names = sorted(range(len(found.owners)), key=lambda place: codec.encode_owner(found.owners[place]))
        by_name = np.argsort(np.array(names, np.int64))[by_name]
    return enough[np.lexsort((-found.born[those], -by_name, -found.born_at[those], -scores.values[enough]))]


def _known(sought: _Sought, found: Candidates, measured: Signals, scores: ranking.Scores) -> float:
    """How likely it is that the store holds an answer. Who asks for a phrase or a beginning gets it."""
    question, weights = sought.question, sought.weights
    if question.asked.literal:
        return float(len(measured.rows) > 0)
    seen = gate.evidence(
        scores,
        measured.values,
        found.size[measured.rows] > 1,
        memories=weights.memories,
        unseen_name=weights.unseen_name,
    )
    return gate.known(seen, _gate(question))


def _gate(question: Question) -> gate.Gate:
    return gate.WORDS_ALONE if question.vector is None else gate.WITH_VECTORS


def _nearest(engine: Engine, scope: _Scope, asked: Search, question: Question) -> Ranked:
    """Rank by the cosines of the stored vectors, exactly, and by nothing else."""
    assert question.vector is not None  # noqa: S101  # said by the caller, for the type checker
    pool = asked.limit + SPARE
    parts, cosines = [], []
    for source in scope.sources:
        near = source.index.nearest(source.owners, source.where, question.vector, pool * _CROWDED, exact=True)
        first = near.found if near.exact else _exactly(engine, scope, near.found, question.vector)
        first = first[:pool]
        part, scores_of = source.index.candidates(first), _by_owner(first)
        by_place = [scores_of.get(owner, {}) for owner in part.owners]
        rows_of = islice(zip(part.owner.tolist(), part.ids, strict=True), part.count)
        cosines += [by_place[place].get(one, -np.inf) for place, one in rows_of]
        parts.append(part)
    found, values = gathered.joined(parts), np.array(cosines)
    rows = best(values, pool)
    rows = rows[values[rows] > -np.inf]
    scores = ranking.similarity({"similarity": signals.calibrated(values[rows], question.calibration)})
    return Ranked(
        found=found,
        rows=rows,
        passages=signals.nearest_passages(found, rows, question.vector),
        scores=scores,
        order=_order(engine, asked, found, rows, scores, least=ranking.LEAST),
        known=float(scores.values.max(initial=0.0)),
    )


_Scores = dict[Owner, dict[str, float]]
"""A number for each memory, by owner and id: the hash of an owner takes a microsecond, and there may be thousands."""


def _by_owner(found: Iterable[Near]) -> _Scores:
    grouped: _Scores = {}
    last, scores = None, dict[str, float]()
    for owner, memory_id, score in found:
        if owner is not last:
            last, scores = owner, grouped.setdefault(owner, {})
        scores[memory_id] = score
    return grouped


def _exactly(engine: Engine, scope: _Scope, rough: Iterable[Near], vector: Vector) -> list[Near]:
    """The memories by the cosines of their vectors as they are stored, the best first; of several passages, the best
    one's.
    """
    wanted = _by_owner(rough)
    ids = {memory_id for scores in wanted.values() for memory_id in scores}
    read = engine.journal.get(scope.shown.owners, ids, payload=False, vectors=True)
    having = [
        one
        for one in read
        if one.vector is not None and one.vector.dimension == vector.dimension and one.id in wanted.get(one.owner, ())
    ]
    data = [one.vector.data for one in having if one.vector is not None]
    if not data:
        return []
    unit = quantized.direction(vector.data)
    cosines = quantized.exact(np.frombuffer(b"".join(data), "<f4").reshape(-1, len(unit)), unit)
    counts = np.array([len(one) // (4 * len(unit)) for one in data])
    highest = np.maximum.reduceat(cosines, np.cumsum(counts) - counts)
    order = np.argsort(-highest, kind="stable")
    return [Near(having[place].owner, having[place].id, float(highest[place])) for place in order.tolist()]
