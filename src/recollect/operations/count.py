"""The verb that counts."""

from dataclasses import dataclass

from recollect.errors import InvalidLayer
from recollect.operations.conditions import Narrowed
from recollect.operations.verb import Caller, Example, Needs, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many there are."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Narrowed):
    """Which memories to count."""


def _count(caller: Caller, given: Counted) -> Count:
    return Count(count=caller.view.count(**given.wanted()))


COUNT = Verb(
    name="count",
    input=Counted,
    output=Count,
    run=_count,
    needs=Needs.READ,
    errors=(InvalidLayer,),
    examples=(Example(line="recollect count --type decision --within 7d", says="the decisions of a week"),),
)
