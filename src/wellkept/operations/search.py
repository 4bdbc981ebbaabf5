"""The verb that searches."""

from dataclasses import dataclass

from wellkept.errors import EmbeddingFailed, InvalidLayer, QueryTooLong, RateLimited
from wellkept.operations.conditions import LAYERS, RESULTS, ScopedSearch, layers_field
from wellkept.operations.verb import Caller, Example, Verb, option
from wellkept.types import Layer, Results


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(ScopedSearch):
    """What to search for, and where."""

    layers: tuple[Layer, ...] = layers_field()
    limit_per_layer: int | None = option("The largest number of results of one layer.", bounds=RESULTS)
    precedence: tuple[Layer, ...] = option(
        "The order in which layers override each other, the strongest first.", (), bounds=LAYERS
    )
    overridden: bool = option("Show what more specific layers override as well.", False)


def _search(caller: Caller, given: Search) -> Results:
    return caller.view.search(given.query, **given.arguments())


SEARCH = Verb(
    name="search",
    input=Search,
    output=Results,
    run=_search,
    method="View.search",
    errors=(InvalidLayer, QueryTooLong, EmbeddingFailed, RateLimited),
    description="Scores range from 0 to 1. If no memory seems to be about the question, the answer is empty.",
    examples=(
        Example(line="wellkept search what theme does she like", says="by meaning and by words"),
        Example(line="wellkept search theme --explain", says="why each memory was found, as bars"),
        Example(line="wellkept search 'secur*' --type decision --within 30d", says="decisions of the last month"),
        Example(line="wellkept search theme --json --limit 3", says="for a program"),
    ),
)
