"""From a question to candidates and their signals, over the indexes of the owners that may be seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from recollect.recall import keywords, ranking
from recollect.recall.columns import Array, joined
from recollect.recall.conversations import NOBODY
from recollect.recall.entries import ASKS, SAID_BY_ASSISTANT, SAID_BY_USER, TELLS_TIME
from recollect.recall.index import Index
from recollect.recall.keywords import Spoken
from recollect.recall.nearest import Compared, Exact, compared, nearest
from recollect.recall.parts import Part, best, eligible
from recollect.recall.probes import Candidates, Probe
from recollect.text.dates import DateRange

_BEST_OF_CONVERSATION = 3
_DAY_S = 86_400.0
_CALENDAR = (datetime.min.replace(tzinfo=UTC).timestamp(), datetime.max.replace(tzinfo=UTC).timestamp() - 1)


@dataclass(slots=True)
class _Found:
    """What is known of the rows of one part."""

    index: Index
    may: Array | None
    compared: Compared | None
    spoken: Spoken
    near: Array | None

    def similarity(self, rows: Array, probe: Probe) -> Array:
        """The calibrated similarity of rows."""
        if self.compared is None:
            return np.zeros(len(rows), np.float32)
        return self.compared.similarity(rows, probe.calibration)


def candidates(parts: Sequence[Part], probe: Probe, now: float, exact: Exact) -> Candidates:
    """The memories that a ranking needs to look at."""
    parts = [part for part in parts if part.index.alive]
    if not parts:
        return Candidates(np.zeros(0, np.int64), np.zeros(0, np.int32), {})
    if probe.vector is not None and not probe.asked.terms and not probe.asked.prefixes:
        return nearest(parts, probe, now, exact)
    spoken, shares, question = keywords.spoken(parts, probe)
    found = [_looked(part, probe, now, own) for part, own in zip(parts, spoken, strict=True)]
    return _joined([_signals(one, probe, shares) for one in found], question)


def _looked(part: Part, probe: Probe, now: float, spoken: Spoken) -> _Found:
    """One look at all rows."""
    index, may = part.index, eligible(part, now)
    for phrase in probe.asked.phrases:
        said = keywords.having(index, spoken, probe.asked.terms, phrase)
        may = said if may is None else may & said
    vectors = None if probe.vector is None or not len(index.codes) else compared(index, probe.vector, may)
    return _Found(index, may, vectors, spoken, _nearness(index["occurred"], _dates(index, probe)))


def _chosen(found: _Found, probe: Probe) -> Array:
    """The rows that are worth a second look: the nearest, those that share most words, some of the dates named."""
    may, keyword = found.may, found.spoken.keyword
    if may is not None:
        keyword = np.where(may, keyword, 0)
    wanted = np.zeros(len(found.index), np.bool_)
    if found.compared is not None:
        wanted[found.compared.nearest(probe.pool)] = True
    worded = best(keyword, probe.pool)
    wanted[worded[keyword[worded] > 0]] = True
    if found.near is not None:
        dated = np.flatnonzero(found.near > 0.5 if may is None else (found.near > 0.5) & may)
        likely = keyword[dated] + np.maximum(found.similarity(dated, probe), 0)
        wanted[dated[best(likely, probe.pool // 2)]] = True
    return np.flatnonzero(wanted)


def _dates(index: Index, probe: Probe) -> Sequence[DateRange]:
    """The dates that the question names, in the years that the memories come from."""
    if probe.dates is None:
        return ()
    occurred = index["occurred"] if index.alive == len(index) else index["occurred"][index["alive"]]
    first, last = np.clip((occurred.min(), occurred.max()), *_CALENDAR).tolist()
    return probe.dates(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC))


def _nearness(occurred: Array, ranges: Sequence[DateRange]) -> Array | None:
    """How near the times of rows are to the dates that the question names: 1 inside, less outside."""
    near: Array | None = None
    for one in ranges:
        outside = np.maximum(np.maximum(one.start - occurred, occurred - one.end), 0)
        width = 0.5 * max(one.end - one.start, _DAY_S) + 3 * _DAY_S
        this = np.float32(one.weight) * np.exp(-outside / width).astype(np.float32)
        near = this if near is None else np.maximum(near, this)
    return near


def _signals(found: _Found, probe: Probe, shares: Array) -> Candidates:
    """Every signal of the chosen rows: the quick ones first, and the others of those that they leave."""
    rows = _chosen(found, probe)
    signals = _quick(found, rows, probe)
    if probe.first and len(rows) > probe.kept:
        first = best(ranking.total(ranking.weighed(signals, probe.first)), probe.kept)
        rows = rows[first]
        signals = {name: values[first] for name, values in signals.items()}
    signals["words"] = keywords.coverage(found.index, rows, found.spoken, shares, probe)
    passages = np.full(len(rows), -1, np.int32) if found.compared is None else found.compared.nearest_passages(rows)
    return Candidates(found.index["number"][rows], passages, signals)


def _quick(found: _Found, rows: Array, probe: Probe) -> dict[str, Array]:
    index = found.index
    marks, conversation = index["marks"][rows], index.conversation[rows]
    sizes = index.sizes[conversation]
    by_user = (marks & SAID_BY_USER) > 0
    similar, keyword = found.similarity(rows, probe), found.spoken.keyword[rows]
    return {
        "similarity": similar,
        "keyword": keyword,
        "conversation_similarity": _mean_of_best(conversation, sizes, similar),
        "conversation_keyword": _mean_of_best(conversation, sizes, keyword),
        "author": _named(index, rows, probe),
        "role": 0.5 * by_user - 0.5 * ((marks & SAID_BY_ASSISTANT) > 0),
        "opening": 1.0 * ((index.before[rows] == NOBODY) & by_user),
        "question": 1.0 * ((marks & ASKS) > 0),
        "when": float(probe.asks_when) * ((marks & TELLS_TIME) > 0),
        "date": np.zeros(len(rows), np.float32) if found.near is None else found.near[rows],
        "importance": index["importance"][rows] - np.float32(0.5),
    }


def _mean_of_best(conversation: Array, sizes: Array, values: Array) -> Array:
    """The mean of the three best candidates of each row's conversation; what is no candidate counts nothing."""
    if not len(values) or sizes.max() == 1:
        return values
    order = np.lexsort((-values, conversation))
    sorted_by = conversation[order]
    first = np.empty(len(order), np.bool_)
    first[0] = True
    np.not_equal(sorted_by[1:], sorted_by[:-1], out=first[1:])
    group = np.cumsum(first) - 1
    rank = np.arange(len(order)) - np.flatnonzero(first)[group]
    kept = rank < _BEST_OF_CONVERSATION
    totals = np.bincount(group[kept], values[order][kept])
    means = np.empty(len(values), np.float32)
    means[order] = (totals / np.minimum(_BEST_OF_CONVERSATION, np.maximum(1, sizes[order][first])))[group]
    return means


def _named(index: Index, rows: Array, probe: Probe) -> Array:
    """Whether the question names who said it: +0.5 if so, -0.5 if it names somebody else who is known here."""
    named = index.named(set(probe.asked.words))
    if not named:
        return np.zeros(len(rows), np.float32)
    return np.where(np.isin(index["author"][rows], named), np.float32(0.5), np.float32(-0.5))


def _joined(found: Sequence[Candidates], question: Mapping[str, float]) -> Candidates:
    return Candidates(
        joined([one.numbers for one in found]),
        joined([one.passages for one in found]),
        {name: joined([one.signals[name] for one in found]) for name in found[0].signals},
        question,
    )
