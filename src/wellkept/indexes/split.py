"""An index in two places: each owner is searched in one of them, and the answers are put together."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from wellkept.filters import Where
from wellkept.ports.index import Corpus, Index, Key, Near, Nearest
from wellkept.types import Owner, Owners, Vector


class SplitIndex(Index):
    """Searches each owner where it is kept. Which place that is, a subclass decides."""

    @abstractmethod
    def _parts(self, owners: Iterable[Owner]) -> list[tuple[Index, Owners]]:
        """Who is to be asked about which owners; nobody who has none of them."""

    def nearest(self, owners: Owners, where: Where, vector: Vector, limit: int, *, exact: bool = False) -> Nearest:
        """The nearest of both places."""
        found = [index.nearest(some, where, vector, limit, exact=exact) for index, some in self._parts(owners)]
        return Nearest(_first([one.found for one in found], limit), all(one.exact for one in found))

    def corpus(self, owners: Owners, terms: Sequence[int]) -> Corpus:
        """The sums of both places."""
        found = [index.corpus(some, terms) for index, some in self._parts(owners)]
        if len(found) == 1:
            return found[0]
        return Corpus(
            sum(one.memories for one in found),
            sum(one.words for one in found),
            {term: sum(one.having.get(term, 0) for one in found) for term in terms},
            min((one.first for one in found if one.first is not None), default=None),
            max((one.last for one in found if one.last is not None), default=None),
        )

    def worded(
        self,
        owners: Owners,
        where: Where,
        weights: Mapping[int, float],
        mean_length: float,
        limit: int,
        *,
        required: Sequence[int] = (),
    ) -> Sequence[Near]:
        """The best of both places."""
        found = [
            index.worded(some, where, weights, mean_length, limit, required=required)
            for index, some in self._parts(owners)
        ]
        return _first(found, limit)

    def dated(self, owners: Owners, where: Where, start: float, end: float, limit: int) -> Sequence[Key]:
        """Those of both places."""
        found = [index.dated(some, where, start, end, limit) for index, some in self._parts(owners)]
        return [key for some in found for key in some]


def _first(found: Sequence[Sequence[Near]], limit: int) -> Sequence[Near]:
    if len(found) == 1:
        return found[0]
    return sorted((one for some in found for one in some), key=lambda one: -one.score)[:limit]
