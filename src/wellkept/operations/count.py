"""The verb that counts."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.errors import InvalidLayer
from wellkept.operations.conditions import Scope, layers_field
from wellkept.operations.verb import Caller, Example, Verb, result
from wellkept.types import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many memories there are."""

    count: int = result("The number of memories.", bounds=fields.COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Scope):
    """Which memories to count."""

    layers: tuple[Layer, ...] = layers_field()


def _count(caller: Caller, given: Counted) -> Count:
    return Count(count=caller.view.count(**given.arguments()))


COUNT = Verb(
    name="count",
    input=Counted,
    output=Count,
    run=_count,
    method="View.count",
    errors=(InvalidLayer,),
    examples=(Example(line="wellkept count --type decision --within 7d", says="the decisions of a week"),),
)
