"""Search with a limit for each layer, and whether a write made an embedding."""

import pytest

import wellkept
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import InvalidInput


@pytest.mark.req("H3")
@pytest.mark.parametrize("ranking", ["best", "similarity", "precedence", "relevance"])
def test_a_large_layer_leaves_room_for_the_others(ranking: str) -> None:
    with wellkept.open("ram:") as memories:
        me = memories.view(user="ada", project="api")
        me.add_many(wellkept.NewMemory(content=f"Tea number {n} is green tea", layer="project") for n in range(400))
        me.add("She sometimes drinks tea in the office", layer="user")
        crowded = me.search("green tea", limit=5, min_score=0, ranking=ranking, explain=True)  # type: ignore[arg-type]
        shared = me.search("green tea", limit=5, limit_per_layer=4, min_score=0, ranking=ranking)  # type: ignore[arg-type]
    if ranking != "precedence":
        assert {hit.memory.layer.value for hit in crowded} == {"project"}
    assert sorted(hit.memory.layer.value for hit in shared) == ["project"] * 4 + ["user"]
    assert [hit.rank for hit in shared] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [0, -1, 1_001, True, "3"])
def test_a_limit_per_layer_is_a_count(wrong: object) -> None:
    with wellkept.open("ram:", embedder=None) as memories, pytest.raises(InvalidInput) as refused:
        memories.view(user="ada").search("tea", limit_per_layer=wrong)  # type: ignore[arg-type]
    assert refused.value.details["field"] == "limit_per_layer"


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
