"""What the cosines of an embedder mean: 0 for texts that have nothing to do with each other, 1 for a good match.

Embedders do not share a scale. Unrelated sentences have a cosine of about 0 with one model, 0.45 with another and 0.7
with a third, so a minimum score or a weight chosen for one would be wrong for the next. An embedder that knows its
scale declares it; :func:`measure` finds it out with a small set of questions and answers. For any other, search goes
by :func:`estimate`, which needs no text embedded: it looks at vectors that are stored.
"""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap

from wellkept.errors import ConfigurationError, EmbeddingFailed

LEAST_SPAN = 0.05
"""Matches that are no further from the rest than this are chance, not meaning."""

TYPICAL = 0.75
"""The share of the matching pairs that lie below the cosine counted as 1."""

SAMPLE = 64
"""How many stored vectors an estimate looks at."""

ENOUGH = 32
"""Fewer vectors than this say nothing: most of them may be about one thing."""

SPAN = 0.6
"""How far from the cosine of unrelated texts to 1 a good match lies: 0.64 of the way with bge, 0.60 with vectors of
word pieces.
"""

# Each question is answered by its own statement and by no other, so that all other pairs are unrelated. Some answers
# repeat the words of the question and some do not, as memories do. The mixture was chosen so that two models whose
# scales are known from long conversations come out near them: 0.39 to 0.78 where 0.45 to 0.80 is known (bge-small),
# 0.01 to 0.66 where 0.00 to 0.60 is (a table of word pieces).
PAIRS = (
    ("What theme does the user prefer?", "The user prefers the dark theme."),
    ("Which database do we use in production?", "The production database is PostgreSQL 15 with a replica."),
    ("When will the next version be released?", "The next release is planned for the first of March."),
    ("Why did the build fail yesterday?", "The build broke because a compiler flag was missing."),
    ("How do I log in to the staging server?", "The staging server is reached by SSH with the team's key."),
    ("What did the customer complain about?", "The customer complained that the invoices arrive late."),
    ("Who reviews changes to the parser?", "Ingrid reviews all changes to the parser."),
    ("How does our API report errors?", "Our API reports errors as JSON with a status code."),
    ("Where does Maria live?", "Maria moved to Lisbon two years ago."),
    ("What pets does Tom have?", "Tom has an old cat and a puppy called Biscuit."),
    ("Is the boy allergic to anything?", "The boy is allergic to peanuts."),
    ("Which sport does your brother play?", "My brother plays football on Tuesdays."),
    ("What did we cook for the birthday party?", "For her birthday we made lasagne and a lemon cake."),
    ("How was the trip to the mountains?", "We hiked in the Alps for a week and it rained a lot."),
    ("What book are you reading at the moment?", "I am reading a book about a lighthouse keeper and her son."),
    ("How much rent do they pay for the flat?", "Their flat costs 1,200 euros of rent a month."),
    ("What instrument is the girl learning?", "The daughter takes piano lessons after school."),
    ("Why is the car being repaired?", "The mechanic has to replace the brakes of the car."),
    ("When do the tomatoes need water?", "The tomatoes on the balcony are watered every evening."),
    ("What does he do for a living?", "He works as a nurse in the children's hospital."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The cosine of unrelated texts, which counts 0, and that of a good match, which counts 1.

    >>> scale = Calibration(low=0.45, high=0.85)
    >>> [round(scale.of(cosine), 2) for cosine in (0.3, 0.65, 0.9)]
    [0.0, 0.5, 1.0]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigurationError(
                "a calibration needs a low cosine and a higher one",
                details={"field": "calibration"},
                hint="low is the cosine of unrelated texts, high that of a good match, such as 0.0 and 0.6",
            )

    def of(self, cosine: float) -> float:
        """The similarity, from 0 to 1, that a cosine stands for."""
        return min(1.0, max(0.0, (cosine - self.low) / (self.high - self.low)))


PLAIN = Calibration(low=0.0, high=1.0)
"""The cosine as it is: for embedders whose scale cannot be found out."""


def measure(embed: Callable[[Sequence[str]], Iterable[Sequence[float]]]) -> Calibration:
    """Find out the scale of an embedder. Embeds 40 short sentences, in one batch.

    An embedder that tells matches from the rest by chance only gets a cautious scale: 0 where unrelated texts are, 1
    for equal vectors only.

    >>> from wellkept.embedders.hashing import HashingEmbedder
    >>> scale = measure(HashingEmbedder().embed)
    >>> 0.0 <= scale.low < 0.2 < scale.high < 0.6
    True
    """
    texts = [text for pair in PAIRS for text in pair]
    rows = [_unit(row) for row in embed(texts)]
    if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
        raise EmbeddingFailed(
            f"the embedder did not return {len(texts)} vectors of one dimension for {len(texts)} texts",
            hint="check the embedder: it must return one vector per text",
        )
    questions, statements = rows[::2], rows[1::2]
    matching = sorted(starmap(_dot, zip(questions, statements, strict=True)))
    count = len(matching)
    # The mean over all pairs of a question and a foreign statement, without going through all of them.
    everything = _dot(_total(questions), _total(statements))
    low = (everything - sum(matching)) / (count * (count - 1))
    return _between(low, matching[round(TYPICAL * (count - 1))])


def estimate(rows: Sequence[Sequence[float]]) -> Calibration | None:
    """The scale of an embedder by vectors that it made of mostly unrelated texts; ``None`` if there are too few.

    >>> from wellkept.embedders.hashing import HashingEmbedder
    >>> rows = HashingEmbedder().embed([text for pair in PAIRS for text in pair])
    >>> 0.0 <= estimate(rows).low < 0.2 < estimate(rows).high < 0.8, estimate(rows[:5])
    (True, None)
    """
    if len(rows) < ENOUGH:
        return None
    import numpy as np  # lazy: takes 100 ms, and opening a database needs none

    units = np.array([_unit(row) for row in rows], np.float64)
    low = float(np.median((units @ units.T)[np.triu_indices(len(units), 1)]))
    low = max(0.0, low)  # opposite is no less related than unrelated
    return _between(low, low + SPAN * (1 - low))


def _between(low: float, high: float) -> Calibration:
    if not (math.isfinite(low) and math.isfinite(high)) or low > 1 - LEAST_SPAN:
        return PLAIN
    return Calibration(low=low, high=high if high > low + LEAST_SPAN else 1.0)


def _unit(row: Sequence[float]) -> list[float]:
    numbers = [float(number) for number in row]
    length = math.hypot(*numbers)
    return [number / length for number in numbers] if length else numbers


def _total(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, left, right))
