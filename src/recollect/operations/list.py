"""The verb that lists."""

from dataclasses import dataclass

from recollect.errors import InvalidLayer
from recollect.operations.conditions import ScopedPage, layers_field
from recollect.operations.verb import Caller, Example, Verb
from recollect.types import Layer, Need, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class List(ScopedPage):
    """Which page of which memories."""

    layers: tuple[Layer, ...] = layers_field()


def _list(caller: Caller, given: List) -> Page:
    return caller.view.list(**given.arguments())


LIST = Verb(
    name="list",
    input=List,
    output=Page,
    run=_list,
    needs=Need.READ,
    errors=(InvalidLayer,),
    examples=(
        Example(line="recollect list", says="the newest fifty"),
        Example(line="recollect list --all --json", says="every memory, for a program"),
        Example(line="recollect list --tag security --sort important", says="the most important first"),
        Example(line="recollect list --as-of 2d --forgotten", says="as of two days ago, with forgotten ones"),
    ),
)
