"""What says the same in other words is shown once."""

from collections.abc import Sequence

import pytest

from tests.support.stand_ins import Opener


class Sizes:
    """An embedder for which big and large mean the same, and colours something else."""

    name, dimension = "sizes", 3

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Three numbers: a house, its size, its colour."""
        return [[1.0, 0.1 * ("large" in text), 0.6 * ("red" in text)] for text in texts]


@pytest.mark.req("H4", "N4")
def test_a_search_shows_what_says_the_same_in_other_words_once(opener: Opener) -> None:
    view = opener(embedder=Sizes()).view(user="ada")
    big, large = view.add("The big house near the lake"), view.add("The large house near the lake")
    red = view.add("The red house near the lake")
    hits = view.search("house near the lake", min_score=0.01).hits
    shown = {hit.memory.id: set(hit.duplicates) for hit in hits}
    assert set(shown) in ({big.id, red.id}, {large.id, red.id})
    assert shown[red.id] == set()
    assert set.union(*shown.values()) | set(shown) == {big.id, large.id, red.id}
