"""Search: candidates from the index, signals and an order from pure functions, hits from the journal."""

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from wellkept import codec, events, filters, layers
from wellkept.engine import embedding, hits, index_following
from wellkept.engine.core import Engine
from wellkept.engine.hits import SPARE, Ranked, Shown
from wellkept.engine.journal import BOOKKEEPING, EngineJournal
from wellkept.engine.search_request import Search
from wellkept.entitlements import Feature
from wellkept.filters import ACTIVE, Where
from wellkept.indexes.ram import RamIndex
from wellkept.ports import Corpus, Index, Near, Query, check_vector
from wellkept.ports.index import Key
from wellkept.recall import candidates as gathered
from wellkept.recall import dated, gate, quantized, ranking, repeats, signals, updates
from wellkept.recall import weights as fitted_weights
from wellkept.recall.arrays import Array, best
from wellkept.recall.candidates import Candidates
from wellkept.recall.signals import Question, Signals, Weights
from wellkept.recall.weights import Fitted
from wellkept.text import answer_types, asked_times, dates, periods, query_text
from wellkept.text.dates import DateRange
from wellkept.text.query_text import Asked
from wellkept.types import Mark, Owner, Owners, Position, Ranking, Results, State, Stored, Vector

_POOL = 200
_KEPT = 100
_CROWDED = 3  # where there are many vectors, more of them are too near to each other to be told apart in 8 bits
_PHRASED = 5_000  # memories that have all words of a phrase and are looked at for their order
_PHRASES = 16  # that are looked for by themselves
_MATCHING = 1_000  # memories that have a word for a pattern and are looked at
_LITERAL = 0.5  # the part of the words of the best hit that another one must have where they are wanted as written
_MEANT = 0.5  # how nearly a memory must say a lone word that none of them has
_NO_WORDS = Asked(terms=(), words=(), phrases=(), patterns=(), names=())
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
    """What candidates are chosen by. ``patterned`` are the memories that have a word for each pattern."""

    question: Question
    weights: Weights
    patterned: Sequence[AbstractSet[Key]]

    @property
    def shares(self) -> dict[int, float]:
        """What each term weighs."""
        return self.weights.of_terms(self.question.asked)


def search(engine: Engine, owners: Owners, where: Where, asked: Search, at: Position | None = None) -> Results:
    """The best memories for a text; as they were at a position, if one is given."""
    started = time.perf_counter()
    question = _question(engine, owners, asked)
    scope = _scope(engine, owners, where, at)
    if asked.per_layer is not None:
        scope = replace(scope, sources=_by_layer(scope.sources))
    if asked.ranking is Ranking.SIMILARITY and question.vector is not None:
        ranked = _nearest(engine, scope, asked, question)
    else:
        ranked = _of_time(engine, scope, asked) or _best(engine, scope, asked, question)
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
        return _worded(asked.text)
    settings = engine.journal.settings()
    stored = settings.get("embedder", vector.embedder)
    dimension = index_following.stored_dimension(settings, vector.dimension)
    if (stored, dimension) != (vector.embedder, vector.dimension):
        check_vector(vector, stored, dimension)
    scale = embedding.scale(engine, owners)
    if asked.ranking is Ranking.SIMILARITY:
        return Question(asked=_NO_WORDS, vector=vector, calibration=scale)
    worded = replace(_worded(asked.text), vector=vector, calibration=scale)
    said, lexicon = worded.asked.words, engine.lexicon
    return worded if lexicon is None else signals.meaning(worded, lexicon.kin(said), lexicon.pieces(said))


def _worded(text: str) -> Question:
    """A question by its words alone."""
    return Question(
        asked=query_text.parse(text),
        asks_when=dates.asks_when(text),
        asks_number=answer_types.asks_number(text),
        asks_person=answer_types.asks_person(text),
        asks_reply=answer_types.asks_reply(text),
    )


# -- where to look --------------------------------------------------------------------------------------------


def _scope(engine: Engine, owners: Owners, where: Where, at: Position | None) -> _Scope:
    """The index, brought up to date; what is not to be found in it beside it."""
    journal, index = engine.journal, engine.index
    # The grant is asked for the marks; the index is everybody's, and follows the whole journal.
    present = index_following.fresh(EngineJournal(engine.shared, BOOKKEEPING), index, journal.marks(owners))
    states = frozenset(State) if where.states is None else where.states
    now = _BEFORE_ALL if where.states is None else where.now  # who asks for any state gets what expired as well
    ids = None
    if not filters.anything(where if where.states == ACTIVE else replace(where, states=ACTIVE)):
        ids = frozenset(memory_id for _, memory_id in journal.ids(present, where, at=at))
    changed = frozenset[str]() if at is None else frozenset(one for _, one in journal.changed(present, after=at))
    sources = []
    if State.ACTIVE in states:
        for some, hidden in journal.withholding(present):
            shown = Where(now=now, ids=ids, without=changed | hidden)
            sources.append(_Source(index=index, owners=some, where=shown))
    stored = list(journal.get(present, changed, at=at, vectors=True)) if changed else []
    if states - ACTIVE:
        inactive = journal.ids(present, Where(now=_BEFORE_ALL, states=states - ACTIVE))
        stored += journal.get(present, {one for _, one in inactive} - changed, vectors=True)
    direct = {(one.owner, one.id): one for one in stored if filters.matches(one, where)}
    if direct:
        sources.append(_Source(index=_temporary(direct.values()), owners=present, where=Where(now=now)))
    return _Scope(shown=Shown(owners=present, where=where, direct=direct), at=at, sources=sources)


def _by_layer(sources: Sequence[_Source]) -> list[_Source]:
    """Sources of one layer each, so that no layer takes the place of another among the candidates."""
    found = []
    for source in sources:
        for layer in dict.fromkeys(owner.layer for owner in source.owners):
            found.append(replace(source, owners=frozenset(owner for owner in source.owners if owner.layer is layer)))
    return found


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
    corpora = [source.index.corpus(source.owners, question.asked.every) for source in scope.sources]
    patterned = [_matching(engine, scope, pattern) for pattern in question.asked.patterns]
    weights = _weights(question, corpora, patterned)
    question = replace(question, ranges=_ranges(asked, corpora), periods=_periods(asked))
    sought = _Sought(question=question, weights=weights, patterned=patterned)
    pool = max(asked.limit, _POOL)
    gotten = ((source.where, _candidates(engine, scope, source, sought, pool)) for source in scope.sources)
    parts = [(where, some) for where, some in gotten if some.count]
    found = gathered.joined([some for _, some in parts])
    fitted = _fitted(question)
    if asked.per_layer is not None:
        pool = max(pool, found.count)  # the best of each layer are wanted, not the best of all
    measured = signals.measure(
        found,
        question,
        weights,
        matching=_having(found, patterned),
        may=_allowed(parts),
        pool=pool,
        kept=max(_KEPT, 3 * asked.limit) if asked.per_layer is None else pool,
        model=fitted.model,
    )
    linked = found.size[measured.rows] > 1
    parts_of: Mapping[str, Array] = ranking.weighed(measured.values, linked, fitted.model.weights)
    known = _known(sought, measured, ranking.total(parts_of), linked)
    if not question.ranges and not updates.asks_for_past(asked.text):
        parts_of = updates.lifted(parts_of, found, measured.rows, measured.values["words"], question.calibration)
    parts_of = repeats.lowered(parts_of, found, measured.rows, measured.values["words"])
    scores = ranking.chances(parts_of, linked, known, fitted.chance)
    order = _order(engine, asked, found, measured.rows, scores, least=ranking.least(scores))
    if asked.min_score is None:
        order = order[:0] if known < fitted.gate.least else order[_wanted(question, measured)[order]]
    return Ranked(
        found=found,
        rows=measured.rows,
        passages=measured.passages,
        scores=scores,
        order=order,
        known=known,
        unrelated=_unrelated(question),
    )


def _unrelated(question: Question) -> float | None:
    """The cosine of unrelated texts, where there are vectors."""
    return None if question.vector is None else question.calibration.low


def _of_time(engine: Engine, scope: _Scope, asked: Search) -> Ranked | None:
    """Rank by nearness in time, if the question is of nothing else and something is dated there."""
    if not periods.of_time_alone(asked.text):
        return None
    span = _span([source.index.corpus(source.owners, ()) for source in scope.sources])
    ranges = span and asked_times.asked_about(asked.text, at=asked.asked_at, first=span[0], last=span[1])
    if not ranges:
        return None
    pool = max(asked.limit + SPARE, _POOL)
    parts = []
    for source in scope.sources:
        keys = [
            key
            for one in ranges
            for start, end in [periods.stretch(one)]
            for key in source.index.dated(source.owners, source.where, start, end, pool)
        ]
        parts.append((source.where, source.index.candidates(keys)))
    parts = [(where, some) for where, some in parts if some.count]
    found = gathered.joined([some for _, some in parts])
    rows, near = dated.chosen(found, _allowed(parts), ranges, dated.asking(asked.text), asked.asked_at.timestamp())
    if not len(rows):
        return None
    scores = ranking.of_one("date", near)
    return Ranked(
        found=found,
        rows=rows,
        passages=np.full(len(rows), -1, np.int32),
        scores=scores,
        order=_order(engine, asked, found, rows, scores, least=ranking.LEAST),
        known=float(scores.values.max()),
    )


def _weights(question: Question, corpora: Sequence[Corpus], patterned: Sequence[AbstractSet[Key]]) -> Weights:
    having = [sum(corpus.having.get(term, 0) for corpus in corpora) for term in question.asked.terms]
    for place, other in question.asked.others:
        having[place] += sum(corpus.having.get(other, 0) for corpus in corpora)
    return signals.weigh(
        question.asked,
        sum(corpus.memories for corpus in corpora),
        sum(corpus.words for corpus in corpora),
        [*having, *map(len, patterned)],
    )


def _ranges(asked: Search, corpora: Sequence[Corpus]) -> Sequence[DateRange]:
    """The dates that the question names, in the years that the memories come from."""
    span = _span(corpora)
    return () if span is None else dates.ranges(asked.text, asked_at=asked.asked_at, first=span[0], last=span[1])


def _periods(asked: Search) -> Sequence[DateRange]:
    """The periods that the question names relative to when it is asked."""
    return periods.periods(asked.text, at=asked.asked_at)


def _span(corpora: Sequence[Corpus]) -> tuple[datetime, datetime] | None:
    """The times between which everything occurred."""
    firsts = [corpus.first for corpus in corpora if corpus.first is not None]
    lasts = [corpus.last for corpus in corpora if corpus.last is not None]
    return (_moment(min(firsts)), _moment(max(lasts))) if firsts and lasts else None


def _moment(seconds: float) -> datetime:
    """A time within the calendar."""
    return datetime.fromtimestamp(min(max(seconds, _BEFORE_ALL.timestamp()), _AFTER_ALL.timestamp() - 1), UTC)


def _matching(engine: Engine, scope: _Scope, pattern: str) -> AbstractSet[Key]:
    """The memories with a word that matches, whatever else is asked of them."""
    where = Where(now=scope.shown.where.now, states=scope.shown.where.states, pattern=pattern)
    return frozenset(engine.journal.ids(scope.shown.owners, where, at=scope.at))


def _having(found: Candidates, patterned: Sequence[AbstractSet[Key]]) -> Array | None:
    """Which rows have a word for which pattern."""
    if not patterned:
        return None
    keys = [(found.owners[owner], one) for owner, one in zip(found.owner.tolist(), found.ids, strict=True)]
    return np.array([[key in having for key in keys] for having in patterned], np.bool_).reshape(len(patterned), -1)


def _phrased(source: _Source, sought: _Sought, pool: int) -> list[Key]:
    """The memories that have a quoted phrase."""
    keys: list[Key] = []
    for phrase in sought.question.asked.phrases[:_PHRASES]:
        near = source.index.worded(
            source.owners, source.where, sought.shares, sought.weights.mean_length, _PHRASED, required=phrase
        )
        found = source.index.candidates(near)
        keys += [found.key(row) for row in np.flatnonzero(signals.with_phrases(found, [phrase]))[:pool].tolist()]
    return keys


def _candidates(engine: Engine, scope: _Scope, source: _Source, sought: _Sought, pool: int) -> Candidates:
    """The nearest, those that share most words with their neighbours, and some of the dates and patterns named."""
    near, worded = _found(source, source.where, sought, pool)
    found: list[Sequence[Key | Near]] = [near, worded, _phrased(source, sought, pool)]
    for one in (*sought.question.ranges, *sought.question.periods):
        if (stretch := signals.dated(one)) is not None:
            start, end = map(_moment, stretch)
            found += _found(source, _during(source.where, start, end), sought, pool // 2)
            if sought.question.vector is None:  # then nothing else finds what has none of the words
                wanted = _during(scope.shown.where, start, end)
                query = Query(owners=source.owners, where=wanted, limit=pool // 2, at=scope.at)
                found.append([(stored.owner, stored.id) for stored in engine.journal.select(query)])
    for having in sought.patterned:
        found.append(list(islice((key for key in having if _lets(source.where, key[1])), _MATCHING)))
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


def _known(sought: _Sought, measured: Signals, sums: Array, linked: Array) -> float:
    """How likely it is that the store holds an answer. Who asks for a phrase or a pattern gets it."""
    question, weights = sought.question, sought.weights
    if question.asked.patterns:
        return float(len(measured.rows) > 0)
    if weights.unseen_word and measured.values["words"].max(initial=0) < _MEANT:
        return 0.0
    if "phrase" in measured.values and measured.values["phrase"].max(initial=0) == 1:
        return 1.0
    similar, count, name = measured.values["similarity"], weights.memories, weights.unseen_name
    seen = gate.evidence(sums, similar, linked, memories=count, unseen_name=name, heard=measured.heard)
    return gate.known(seen, _fitted(question).gate)


def _wanted(question: Question, measured: Signals) -> Array:
    """Which candidates are shown: all, or where a phrase or a pattern was asked for, those that have it or about as
    many of the words.
    """
    exact = measured.values["exact"]
    most = exact.max(initial=0)
    wanted: Array = exact >= (_LITERAL * most if question.asked.literal else 0)
    return wanted & bool(most or not question.asked.patterns)


def _fitted(question: Question) -> Fitted:
    return fitted_weights.of(None if question.vector is None else question.vector.embedder)


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
    rows = best(values, pool if asked.per_layer is None else len(values))
    rows = rows[values[rows] > -np.inf]
    scores = ranking.similarity({"similarity": signals.calibrated(values[rows], question.calibration)})
    return Ranked(
        found=found,
        rows=rows,
        passages=signals.nearest_passages(found, rows, question.vector),
        scores=scores,
        order=_order(engine, asked, found, rows, scores, least=ranking.LEAST),
        known=float(scores.values.max(initial=0.0)),
        unrelated=_unrelated(question),
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
