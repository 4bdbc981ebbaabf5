"""The verb that lists."""

from dataclasses import dataclass

from wellkept.errors import InvalidLayer
from wellkept.operations.conditions import ScopedPage, layers_field
from wellkept.operations.verb import Caller, Example, Verb
from wellkept.types import Layer, Page


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
    method="View.list",
    errors=(InvalidLayer,),
    examples=(
        Example(line="wellkept list", says="the newest fifty"),
        Example(line="wellkept list --all --json", says="every memory, for a program"),
        Example(line="wellkept list --tag security --sort important", says="the most important first"),
        Example(line="wellkept list --as-of 2d --forgotten", says="as of two days ago, with forgotten ones"),
    ),
)
