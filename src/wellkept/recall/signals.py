"""Signals as pure functions: what a question has in common with each of a few hundred candidates.

Everything is computed from the candidates themselves, so that it is the same whatever index found them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from wellkept.recall import quantized, ranking
from wellkept.recall.arrays import Array, best, spread
from wellkept.recall.calibration import PLAIN, Calibration
from wellkept.recall.candidates import Candidates
from wellkept.recall.conversations import NOBODY
from wellkept.recall.entries import (
    ASKS,
    HAS_NAME,
    HAS_NUMBER,
    SAID_BY_ASSISTANT,
    SAID_BY_USER,
    SAYS_NOTHING,
    STATED,
    TELLS_TIME,
)
from wellkept.recall.owner_index import K1, B
from wellkept.text import words
from wellkept.text.dates import DateRange
from wellkept.text.query_text import Asked
from wellkept.types import Vector

_PSEUDO_MEMORIES = 100  # make the weights of words nearly equal where there are few memories to count in
_BESIDE = 0.5  # what a neighbour's keyword score counts
_HEARD_BESIDE = 0.6  # what a word counts that a neighbour says
_UNKNOWN = 0.6  # what a word counts for the gate that the lexicon does not know: nobody can say who means it
_PIECES = 65_536
_LOW_BITS = 0xFFF
_BEST_OF_CONVERSATION = 3
_ECHO = 0.6  # a stored question with more of the words than this repeats the one that is asked
_REPLIED = -0.25  # what the role counts where the question asks for what the assistant said
_SETTLED = 0.3  # the share of the question's words that a fact must have to come before what was said
_DAY_S = 86_400.0
_USER = words.term("user")  # where memories never say so they say "she" or a name, and it is as good as a pronoun

DATED = 0.5
"""How near to a date that the question names a memory must be to be looked at for that alone."""

Kin = Callable[[Array], Array]
"""How near in meaning the words of a question are to pieces of words: a row for each word, a column for each piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as it is compared: its words, its vector if meaning takes part, and the dates that it names.

    ``unknown`` are the places of the words that the lexicon does not know.
    """

    asked: Asked
    vector: Vector | None = None
    calibration: Calibration = PLAIN
    asks_when: bool = False
    asks_number: bool = False
    asks_person: bool = False
    asks_reply: bool = False
    ranges: Sequence[DateRange] = ()
    periods: Sequence[DateRange] = ()
    kin: Kin | None = None
    unknown: Sequence[int] = ()


def meaning(question: Question, kin: Kin, pieces: bytes) -> Question:
    """A question with what the lexicon knows its words by: ``pieces`` has two bytes for each, zeros for an unknown one.

    >>> from wellkept.text import query_text
    >>> asked = Question(asked=query_text.parse("dark xyzzy"))
    >>> meaning(asked, lambda pieces: pieces, bytes([7, 0, 0, 0])).unknown
    [1]
    """
    return replace(question, kin=kin, unknown=np.flatnonzero(np.frombuffer(pieces, "<u2") == 0).tolist())


@dataclass(frozen=True, slots=True)
class Weights:
    """What the words of a question weigh, as shares of 1: its terms, then its patterns. ``memories`` were in sight, and
    the question has a name that none of them has if ``unseen_name`` says so; if ``unseen_word`` does, it is nothing but
    one word that none of them has.
    """

    shares: Array
    mean_length: float
    memories: int
    unseen_name: bool
    unseen_word: bool

    def of_terms(self, asked: Asked) -> dict[int, float]:
        """The weight of each term; one of another language weighs as much as its word."""
        shares = self.shares.tolist()
        return {term: shares[place] for place, term in asked.others} | dict(zip(asked.terms, shares, strict=False))


class Signals(NamedTuple):
    """The rows of candidates that are worth ranking, with a value of every signal for each.

    ``passages`` says which passage of a long text came nearest (-1: it has but one). ``heard`` is the weighted share of
    the question's words that any of them says or means.
    """

    rows: Array
    passages: Array
    values: Mapping[str, Array]
    heard: float


def weigh(asked: Asked, memories: int, total_words: int, having: Sequence[int]) -> Weights:
    """The weights of words: those that few memories have weigh most. ``having`` counts the memories that have each
    term, then each prefix; all counts are of all memories in sight, so that owners can be compared.

    >>> from wellkept.text import query_text
    >>> weights = weigh(query_text.parse("dark tea"), 1_000, 5_000, [900, 3])
    >>> weights.mean_length, bool(weights.shares[1] > 0.8)
    (5.0, True)
    """
    counts = np.array(having, np.int64)
    weights = np.log(1 + (memories + _PSEUDO_MEMORIES - counts - 0.5) / (counts + 1.5)).astype(np.float32)
    weights[[place for place, term in enumerate(asked.terms) if term == _USER and not having[place]]] = 0
    unseen = {term for term, times in zip(asked.terms, having, strict=False) if not times}
    return Weights(
        shares=weights / np.float32(weights.sum() or 1.0),
        mean_length=max(1.0, total_words / max(1, memories)),
        memories=memories,
        unseen_name=any(name in unseen for name in asked.names),
        unseen_word=asked.lone and len(having) == len(unseen) == 1,
    )


def measure(
    found: Candidates,
    question: Question,
    weights: Weights,
    *,
    matching: Array | None = None,
    may: Array | None = None,
    pool: int,
    kept: int,
    model: ranking.Model,
) -> Signals:
    """Every signal of the candidates that are worth it: the quick ones first, and the others of those that they leave.

    ``matching`` says which row has a word for which pattern, ``may`` which candidates may be hits. At most ``pool``
    come in for their vector, as many for their words, and half as many for their date; ``kept`` of them are left by the
    quick signals, weighed by the ``model``'s first look.
    """
    times = _times(found, question.asked, matching)
    keyword = _keyword(found, times, weights)
    similar, embedded = _similarity(found, question)
    dated_by = (*question.ranges, *question.periods)
    near = _nearness(found.occurred[: found.count], found.occurred[: found.count], question.ranges)
    looked = _nearness(found.occurred[: found.count], found.occurred[: found.count], dated_by)
    phrase = with_phrases(found, question.asked.phrases) if question.asked.phrases else None
    rows = _chosen(similar, embedded, keyword, looked, phrase, may=may, pool=pool)
    signals = _quick(found, rows, question, similar=similar, keyword=keyword, near=near)
    if phrase is not None:
        signals["phrase"] = phrase[rows]
    if len(rows) > kept:
        those = best(ranking.total(ranking.weighed(signals, found.size[rows] > 1, model.first)), kept)
        rows = rows[those]
        signals = {name: values[those] for name, values in signals.items()}
    signals["words"], heard = _coverage(found, rows, times, weights.shares, question)
    signals["exact"] = weights.shares @ (times[:, rows] > 0)
    signals["echo"] = _echo(found.marks[rows], signals["words"])
    told = _nearness(found.told_from[rows], found.told_to[rows], question.ranges)
    signals["told"] = np.zeros(len(rows), np.float32) if told is None else told
    signals["period"] = _in_periods(found, rows, question.periods)
    signals["settled"] = _settled(found, rows, signals["words"])
    return Signals(rows, nearest_passages(found, rows, question.vector), signals, heard)


# -- words ----------------------------------------------------------------------------------------------------


def _times(found: Candidates, asked: Asked, matching: Array | None) -> Array:
    """How often each row, neighbours too, has each word, in whichever language, and whether one for each prefix."""
    every = asked.every
    times = _occurrences(found, np.array(every, np.uint32))
    if asked.others:
        place_of = {term: place for place, term in enumerate(every)}
        for place, other in asked.others:
            times[place] += times[place_of[other]]
        times = times[: len(asked.terms)]
    return times if matching is None else np.concatenate([times, matching.astype(np.float32)])


def _occurrences(found: Candidates, terms: Array) -> Array:
    """How often each row has each of some distinct terms: a row for each term."""
    count, total = len(terms), len(found.names)
    order = np.argsort(terms)
    wanted = terms[order]
    likely = np.zeros(_LOW_BITS + 1, np.bool_)
    likely[wanted & _LOW_BITS] = True
    places = np.flatnonzero(likely.take(found.terms & np.uint32(_LOW_BITS)))  # few are left to be looked up
    flat = found.terms.take(places)
    place = wanted.searchsorted(flat)
    same = wanted.take(place, mode="clip") == flat if count else np.zeros(0, np.bool_)
    row = np.cumsum(found.length).searchsorted(places[same], side="right")
    counts = np.bincount(order[place[same]] * total + row, minlength=count * total)
    return counts.reshape(count, total).astype(np.float32)


def _keyword(found: Candidates, times: Array, weights: Weights) -> Array:
    """The BM25 of each candidate, with half of its neighbours'."""
    norms = np.float32(K1 * B / weights.mean_length) * found.length.astype(np.float32) + np.float32(K1 * (1 - B))
    own = np.append((np.float32(K1 + 1) * weights.shares) @ (times / (times + norms)), np.float32(0))
    before, after = found.before[: found.count], found.after[: found.count]
    keyword: Array = own[: found.count] + np.float32(_BESIDE) * (own[before] + own[after])  # nobody is the last one
    return keyword


def with_phrases(found: Candidates, phrases: Sequence[Sequence[int]]) -> Array:
    """The share of the phrases that candidates have: their terms one behind the other."""
    ends = np.cumsum(found.length[: found.count]) * words.TERM_BYTES
    starts = ends - found.length[: found.count] * words.TERM_BYTES
    data, wanted = found.terms.astype("<u4").tobytes(), [words.pack(phrase) for phrase in phrases]
    return np.array(
        [
            sum(_stands_in(phrase, data, start, end) for phrase in wanted) / len(wanted)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ],
        np.float32,
    )


def _stands_in(wanted: bytes, data: bytes, start: int, end: int) -> bool:
    """Whether packed terms contain others, at the border of a term."""
    place = data.find(wanted, start, end)
    while place >= 0 and place % words.TERM_BYTES:
        place = data.find(wanted, place + 1, end)
    return place >= 0


def _coverage(found: Candidates, rows: Array, times: Array, shares: Array, question: Question) -> tuple[Array, float]:
    """The weighted share of the question's words that a memory says or means, or nearly as good, its neighbour; and the
    share that any of the memories does.
    """
    if not len(shares) or not len(rows):
        return np.zeros(len(rows), np.float32), 0.0
    before, after = found.before[rows], found.after[rows]
    around = np.unique(np.concatenate([rows, before, after]))
    around = around[around != NOBODY]
    heard = np.zeros((len(shares), len(around) + 1), np.float32)  # the last column is what nobody says
    heard[:, :-1] = _heard(found, around, times, question)
    place = np.full(len(found.names) + 1, len(around), np.int32)
    place[around] = np.arange(len(around), dtype=np.int32)
    beside = np.maximum(heard[:, place[before]], heard[:, place[after]])
    own = heard[:, place[rows]]
    most = own.max(axis=1)
    most[[word for word in question.unknown if not most[word]]] = _UNKNOWN
    share: Array = shares @ np.maximum(own, np.float32(_HEARD_BESIDE) * beside)
    return share, float(shares @ most)


def _heard(found: Candidates, rows: Array, times: Array, question: Question) -> Array:
    """How far rows say each word of the question, or mean it: a row for each word."""
    heard: Array = (times[:, rows] > 0).astype(np.float32)
    if question.kin is not None:
        worded = heard[: len(question.asked.terms)]  # the others are patterns
        meant = _meant(found, rows, question.kin)
        meant[[place for place, word in enumerate(question.asked.words) if words.is_number(word)]] = 0
        np.maximum(worded, meant, out=worded)
    return heard


def _meant(found: Candidates, rows: Array, kin: Kin) -> Array:
    """How nearly each row says each word of the question: by the one of its own words that is nearest in meaning."""
    starts = np.cumsum(found.length, dtype=np.int64) - found.length
    lengths = found.length[rows]
    pieces = found.pieces[spread(starts[rows], lengths)]
    used = np.zeros(_PIECES, np.bool_)
    used[pieces] = True
    known = np.flatnonzero(used)
    column = np.empty(_PIECES, np.int32)
    column[known] = np.arange(len(known), dtype=np.int32)
    # Long texts have many words, which are looked up faster in bytes, and with all of a piece side by side.
    near = np.ascontiguousarray((kin(known) * np.float32(255)).astype(np.uint8).T)
    meant = np.zeros((len(rows), near.shape[1]), np.uint8)
    some = lengths > 0
    if some.any():
        firsts = (np.cumsum(lengths) - lengths)[some]
        meant[some] = np.maximum.reduceat(near.take(column[pieces], axis=0), firsts, axis=0)
    return meant.T / np.float32(255)


# -- vectors --------------------------------------------------------------------------------------------------


def calibrated(cosines: Array, scale: Calibration) -> Array:
    """What cosines mean: 0 for nothing in common, 1 for a good match."""
    low, span = np.float32(scale.low), np.float32(scale.high - scale.low)
    found: Array = (cosines - low) / span
    return found


def _products(codes: Array, vector: Vector) -> tuple[quantized.Question, Array]:
    asked = quantized.question(vector.data)
    return asked, asked.products(codes, quantized.weights(codes))


def _similarity(found: Candidates, question: Question) -> tuple[Array, Array]:
    """The similarity of each candidate by its best passage, and which of them have a vector to compare."""
    similar = np.zeros(found.count, np.float32)
    if question.vector is None or not len(found.codes):
        return similar, np.zeros(found.count, np.bool_)
    asked, products = _products(found.codes, question.vector)
    if len(products) != found.count or not (found.passages == 1).all():
        products = quantized.of_rows(products, np.cumsum(found.passages) - found.passages, found.passages)
    have = products > -np.inf
    similar[have] = calibrated(asked.cosines(products[have]), question.calibration)
    return similar, have


def nearest_passages(found: Candidates, rows: Array, vector: Vector | None) -> Array:
    """Which passage of each row came nearest; -1 where there is but one."""
    nearest = np.full(len(rows), -1, np.int32)
    counts = found.passages[rows]
    if vector is None or not len(counts) or counts.max() < 2:
        return nearest
    firsts = (np.cumsum(found.passages) - found.passages)[rows]
    for place in np.flatnonzero(counts > 1).tolist():
        first = int(firsts[place])
        _, products = _products(found.codes[first : first + int(counts[place])], vector)
        nearest[place] = int(np.argmax(products))
    return nearest


# -- all signals ----------------------------------------------------------------------------------------------


def _chosen(
    similar: Array,
    embedded: Array,
    keyword: Array,
    near: Array | None,
    phrase: Array | None,
    *,
    may: Array | None,
    pool: int,
) -> Array:
    """The candidates that are worth a second look: the nearest, those with most of the words, some of the dates, and
    those with a phrase.
    """
    wanted = np.zeros(len(keyword), np.bool_)
    reasons = [(embedded, similar, pool), (keyword > 0, keyword, pool)]
    if near is not None:
        reasons.append((near > DATED, keyword + np.maximum(similar, 0), pool // 2))
    if phrase is not None:
        reasons.append((phrase > 0, keyword + phrase, pool))
    for those, values, count in reasons:
        some = np.flatnonzero(those if may is None else those & may)
        wanted[some[best(values[some], count)]] = True
    return np.flatnonzero(wanted)


def _nearness(start: Array, end: Array, ranges: Sequence[DateRange]) -> Array | None:
    """How near stretches of time are to the dates that the question names: 1 inside, less outside, 0 for none."""
    near: Array | None = None
    for one in ranges:
        outside = np.nan_to_num(np.maximum(np.maximum(one.start - end, start - one.end), 0), nan=np.inf)
        this = np.float32(one.weight) * np.exp(-outside / _width(one)).astype(np.float32)
        near = this if near is None else np.maximum(near, this)
    return near


def _in_periods(found: Candidates, rows: Array, ranges: Sequence[DateRange]) -> Array:
    """How near memories are to the periods that the question names: what they tell of, or when they occurred."""
    occurred = _nearness(found.occurred[rows], found.occurred[rows], ranges)
    told = _nearness(found.told_from[rows], found.told_to[rows], ranges)
    if occurred is None or told is None:
        return np.zeros(len(rows), np.float32)
    return np.maximum(occurred, told)


def _width(one: DateRange) -> float:
    return 0.5 * max(one.end - one.start, _DAY_S) + 3 * _DAY_S


def dated(one: DateRange) -> tuple[float, float] | None:
    """The stretch of time in which a memory is nearer than ``DATED`` to a date; none if the date counts for too little.

    >>> [round(moment) for moment in dated(DateRange(0.0, 86_400.0, 1.0))]
    [-209608, 296008]
    """
    if one.weight <= DATED:
        return None
    margin = _width(one) * float(np.log(one.weight / DATED))
    return one.start - margin, one.end + margin


def _quick(
    found: Candidates, rows: Array, question: Question, *, similar: Array, keyword: Array, near: Array | None
) -> dict[str, Array]:
    marks, conversation, sizes = found.marks[rows], found.conversation[rows], found.size[rows]
    by_user, linked = (marks & SAID_BY_USER) > 0, sizes > 1
    of_user = _REPLIED if question.asks_reply else 1.0
    return {
        "similarity": similar[rows],
        "keyword": keyword[rows],
        "conversation_similarity": _mean_of_best(conversation, sizes, similar[rows]) * linked,
        "conversation_keyword": _mean_of_best(conversation, sizes, keyword[rows]) * linked,
        "author": _named(found, rows, frozenset(question.asked.words)),
        "role": of_user * (0.5 * by_user - 0.5 * ((marks & SAID_BY_ASSISTANT) > 0)),
        "opening": max(0.0, of_user) * ((found.before[rows] == NOBODY) & by_user & linked),
        "question": 1.0 * ((marks & ASKS) > 0),
        "empty": 1.0 * ((marks & SAYS_NOTHING) > 0),
        "when": float(question.asks_when) * ((marks & TELLS_TIME) > 0),
        "number": float(question.asks_number) * ((marks & HAS_NUMBER) > 0),
        "person": float(question.asks_person) * ((marks & HAS_NAME) > 0),
        "date": np.zeros(len(rows), np.float32) if near is None else near[rows],
        "importance": found.importance[rows] - np.float32(0.5),
    }


def _settled(found: Candidates, rows: Array, heard: Array) -> Array:
    """Where turns of a conversation are candidates: which facts have as many of the question's words as any turn."""
    turns, stated = found.size[rows] > 1, (found.marks[rows] & STATED) > 0
    settled: Array = 1.0 * (stated & (heard >= max(_SETTLED, heard[turns].max(initial=0)))) * turns.any()
    return settled


def _echo(marks: Array, heard: Array) -> Array:
    """How far a stored question repeats the one that is asked: it has its words, but not its answer."""
    repeated: Array = np.maximum(0, heard - np.float32(_ECHO)) / np.float32(1 - _ECHO)
    return repeated * ((marks & ASKS) > 0)


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


def _named(found: Candidates, rows: Array, asked: frozenset[str]) -> Array:
    """Whether the question names who said it: +0.5 if so, -0.5 if it names somebody else whom the owner knows,
    nothing if nobody said it."""
    signal = np.zeros(len(rows), np.float32)
    for place, names in enumerate(found.authors):
        named = [author for author, name in enumerate(names) if name and name <= asked]
        if named:
            those = np.flatnonzero(found.owner[rows] == place)
            said = np.isin(found.author[rows[those]], named)
            signal[those] = np.where(said, np.float32(0.5), np.float32(-0.5))
            signal[those[found.author[rows[those]] == 0]] = 0  # nobody said it
    return signal
