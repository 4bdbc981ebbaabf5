"""Search with a limit for each layer, and whether a write made an embedding."""

from typing import Any

import pytest

import wellkept
from tests.support.refusals import refusal
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.types import RankingName


@pytest.mark.req("H3")
def test_a_large_layer_leaves_room_for_the_others() -> None:
    with wellkept.open("ram:", embedder="hashing-64") as memories:
        me = memories.view(user="ada", project="api")
        me.add_many(wellkept.NewMemory(content=f"Tea number {n} is green tea", layer="project") for n in range(400))
        me.add("She sometimes drinks tea in the office", layer="user")
        crowded, shared = {}, {}
        rankings: tuple[RankingName, ...] = ("best", "similarity", "precedence", "relevance")
        for ranking in rankings:
            hits = me.search("green tea", limit=5, min_score=0, ranking=ranking, explain=True)
            crowded[ranking] = {hit.memory.layer.value for hit in hits}
            hits = me.search("green tea", limit=5, limit_per_layer=4, min_score=0, ranking=ranking)
            shared[ranking] = [(hit.rank, hit.memory.layer.value) for hit in hits]
    del crowded["precedence"]
    assert crowded == {ranking: {"project"} for ranking in crowded}
    layers = {ranking: sorted(layer for _, layer in hits) for ranking, hits in shared.items()}
    assert layers == {ranking: ["project"] * 4 + ["user"] for ranking in rankings}
    assert {ranking: [rank for rank, _ in hits] for ranking, hits in shared.items()} == {
        ranking: [1, 2, 3, 4, 5] for ranking in rankings
    }


def test_a_limit_per_layer_is_a_count() -> None:
    wrongs: tuple[Any, ...] = (0, -1, 1_001, True, "3")
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(user="ada")
        refusals = {repr(wrong): refusal(view.search, "tea", limit_per_layer=wrong) for wrong in wrongs}
    assert refusals == dict.fromkeys(refusals, "search: InvalidInput of limit_per_layer")


@pytest.mark.req("H3")
def test_a_write_tells_whether_an_embedding_was_made() -> None:
    with wellkept.open("ram:", embedder=HashingEmbedder(64)) as memories:
        ada = memories.view(user="ada")
        added = ada.add("Likes tea", key="drink")
        assert added.embedded is True
        assert ada.update(added.id, importance=0.9).embedded is False  # the text is the same, and so is its vector
        assert ada.update(added.id, content="Likes coffee").embedded is True
        read = ada.get(added.id)
        assert read is not None
        assert read.embedded is None
        assert ada.add("Given", vector=[1.0] * 64).embedded is True
    with wellkept.open("ram:", embedder=None) as memories:
        assert memories.view(user="ada").add("Likes tea").embedded is False
