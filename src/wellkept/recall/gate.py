"""The gate: how likely it is that a search found an answer at all.

Judged per memory. A turn of a conversation is judged beside other turns, whose scores contain the signals of their
conversation; a memory that stands alone has none of these, and a store may hold both. The best of each kind is weighed
by a logistic of its own, together with the size of the store: among many memories, one is always a little similar. When
in doubt, hits are shown: a question left empty is worse than a hit with a low score. The weights are fitted by
benchmarks/fit.py.
"""

import math
from dataclasses import dataclass, replace

from wellkept.recall.arrays import Array

_MOST = 5_000  # larger stores are judged as one of 5,000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks for an answer among memories of one kind.

    ``best`` is the highest sum of signals, in log-odds; ``similarity`` the highest calibrated one;
    ``size`` the logarithm of the number of memories in sight; ``unseen_name`` is 1 if the question names somebody or
    something unheard of; ``heard`` is the share of the question's words that any memory, of either kind, says or means.
    """

    best: float
    similarity: float
    size: float
    unseen_name: float
    heard: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """Weights of the evidence."""

    base: float
    best: float
    similarity: float
    size: float
    unseen_name: float
    heard: float

    def __call__(self, seen: Evidence) -> float:
        """The chance of an answer, from 0 to 1."""
        odds = (
            self.base
            + self.best * seen.best
            + self.similarity * seen.similarity
            + self.size * seen.size
            + self.unseen_name * seen.unseen_name
            + self.heard * seen.heard
        )
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, odds))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """How memories that stand alone and turns of a conversation are judged.

    Below ``least``, a question is taken to be about something that is not in the store. Stores of less than ``fewest``
    memories are judged as one of so many: what is seen of them says nothing of the size that was fitted.
    """

    alone: Logistic
    linked: Logistic
    least: float
    fewest: int


def evidence(
    sums: Array, similar: Array, linked: Array, *, memories: int, unseen_name: bool, heard: float
) -> tuple[Evidence | None, Evidence | None]:
    """The evidence among memories that stand alone, and among ``linked`` ones; none where there are none."""
    size = math.log(min(_MOST, max(1, memories)))

    def among(those: Array) -> Evidence | None:
        if not those.any():
            return None
        return Evidence(
            best=float(sums[those].max()),
            similarity=float(similar[those].max()),
            size=size,
            unseen_name=float(unseen_name),
            heard=heard,
        )

    return among(~linked), among(linked)


def known(seen: tuple[Evidence | None, Evidence | None], gate: Gate) -> float:
    """How likely it is that the memories hold an answer, from 0 to 1: the better of the two kinds decides.

    >>> steep = Logistic(base=-5.0, best=1.0, similarity=0.0, size=0.0, unseen_name=0.0, heard=0.0)
    >>> weak, strong = (Evidence(best=it, similarity=0.0, size=5.0, unseen_name=0.0, heard=0.5) for it in (0.2, 7.0))
    >>> known((weak, strong), Gate(alone=steep, linked=steep, least=0.2, fewest=8)) > 0.8
    True
    >>> known((None, None), Gate(alone=steep, linked=steep, least=0.2, fewest=8))
    0.0
    """
    kinds = zip(seen, (gate.alone, gate.linked), strict=True)
    return max(0.0 if one is None else judge(sized(one, gate)) for one, judge in kinds)


def sized(seen: Evidence, gate: Gate) -> Evidence:
    """The evidence, with the size that a gate counts."""
    return replace(seen, size=max(seen.size, math.log(gate.fewest)))
