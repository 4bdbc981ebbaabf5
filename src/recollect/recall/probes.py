"""What a search asks of a store, and the candidates that it gets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.recall.calibration import Calibration
from recollect.recall.columns import Array
from recollect.text.dates import DateRange
from recollect.text.query_text import Asked
from recollect.types import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question as the index takes it.

    ``kin`` tells how near in meaning the words of the question are to pieces of words, from 0 to 1: a row for each
    word, a column for each piece. ``pool`` is how many candidates each kind of search may bring; of these, ``kept`` are
    looked at closely: those that come first by the signals that are quick to find, weighed by ``first``. Without terms
    the answer is the nearest vectors, compared exactly. ``dates`` gives the dates that the question names, for the
    times between which all memories lie.
    """

    asked: Asked
    pool: int
    kept: int = 150
    asks_when: bool = False
    first: Mapping[str, float] = field(default_factory=dict)
    vector: Vector | None = None
    kin: Callable[[Array], Array] | None = None
    calibration: Calibration = field(default_factory=lambda: Calibration(low=0.0, high=1.0))
    dates: Callable[[datetime, datetime], Sequence[DateRange]] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Memories that may be the answer, by their numbers, and a value of every signal for each.

    ``passages`` says which passage of a long text came nearest (-1: it has but one). ``question`` says how many
    memories were in sight (``memories``) and whether the question has a name that none of them has (``unseen_name``).
    """

    numbers: Array
    passages: Array
    signals: Mapping[str, Array]
    question: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)
