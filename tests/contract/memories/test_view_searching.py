"""Search: ranks, thresholds, limits, explanations."""

import math
from datetime import datetime
from typing import Any

import pytest

from tests.support.refusals import refusal
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, one_store
from wellkept import Filter, NewMemory, View
from wellkept.errors import QueryTooLong
from wellkept.types import Layer


@pytest.fixture
def embedding(opener: Opener, clock: HandClock) -> View:
    return opener(clock=clock, embedder=CountingEmbedder()).view(user="ada")


@pytest.mark.req("L4", "H3")
def test_the_best_comes_first_with_rank_and_score(embedding: View) -> None:
    embedding.add_many(["Prefers dark mode in editors", "Dark chocolate", "Lives in Rome", "dark mode"])
    results = embedding.search("dark mode", limit=10)
    assert results.hits[0].memory.content == "dark mode"
    assert results.hits[0].score > 0.8
    assert [hit.rank for hit in results] == list(range(1, len(results) + 1))
    scores = [hit.score for hit in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert results.total == len(results)
    assert all(dict(hit.reasons) == {} for hit in results)
    exact = embedding.search("dark mode", ranking="similarity").hits[0]
    assert exact.memory.content == "dark mode"
    assert exact.score == pytest.approx(1.0)


@pytest.mark.req("L4")
def test_limit_and_minimum_score(embedding: View) -> None:
    embedding.add_many(["dark mode", "dark chocolate", "dark night mode", "Rome"])
    everything = embedding.search("dark mode")
    first = embedding.search("dark mode", limit=1)
    assert first.hits == everything.hits[:1]
    assert first.total == everything.total
    middle = everything.hits[1].score
    best = embedding.search("dark mode", min_score=middle)
    assert best.hits == tuple(hit for hit in everything if hit.score >= middle)
    assert best.total == len(best)
    assert [hit.memory.content for hit in embedding.search("dark mode", min_score=1.0)] in ([], ["dark mode"])


def test_explain_shows_the_parts_of_the_score(opener: Opener, embedding: View) -> None:
    embedding.add_many(["dark mode", "dark chocolate"])
    for hit in embedding.search("dark mode", explain=True):
        assert {"base", "similarity", "words"} <= set(hit.reasons)
        assert math.log(hit.score / (1 - hit.score)) == pytest.approx(sum(hit.reasons.values()), abs=0.001)
    view = opener(name="without an embedder").view(user="ada")
    without = view.add("dark chocolate")
    (hit,) = view.search("dark mode", explain=True)
    assert hit.memory.id == without.id
    assert {"base", "words"} <= set(hit.reasons)
    assert not {"similarity", "conversation_similarity"} & set(hit.reasons)
    assert math.log(hit.score / (1 - hit.score)) == pytest.approx(sum(hit.reasons.values()), abs=0.001)


def test_without_an_embedder_search_goes_by_words(view: View) -> None:
    view.add_many(
        [
            "Prefers dark mode",
            "Straße nach Rom",
            NewMemory(content="x", metadata={"a": "dark"}),
            NewMemory(content="y", tags=["dark"]),
        ]
    )
    assert {hit.memory.content for hit in view.search("DARK")} == {"Prefers dark mode", "x", "y"}
    assert view.search("light").hits == ()


TEXTS = [
    '"',
    "'",
    "*",
    "tea*",
    "tea AND",
    "NEAR(",
    "a:b",
    "-tea",
    "(tea",
    "tea OR",
    "^tea",
    "%",
    "\\",
    ";--",
    "\x00tea",
    "🙂",
]


def test_any_text_can_be_searched_for(view: View) -> None:
    view.add("green tea")
    answers = {text: [hit.memory.content for hit in view.search(text)] for text in TEXTS}
    assert answers == {text: ["green tea"] if "tea" in text else [] for text in TEXTS}


@one_store
def test_a_query_says_something(view: View) -> None:
    queries: tuple[Any, ...] = ("", " ", "\n", None, 5, b"tea", ["tea"], "\ud800tea")
    refusals = {ascii(query): refusal(view.search, query) for query in queries}
    assert refusals == dict.fromkeys(refusals, "search: InvalidInput of query")


@pytest.mark.req("H10")
def test_a_query_has_a_length(embedding: View) -> None:
    assert embedding.search("é" * 32_768).hits == ()
    with pytest.raises(QueryTooLong) as caught:
        embedding.search("é" * 32_769)
    assert caught.value.details["limit"] == 32_768


ARGUMENTS: dict[str, list[Any]] = {
    "limit": [0, -1, 1001, True, "5", None],
    "min_score": [-0.1, 1.1, float("nan"), True, "0.5", [0.5]],
    "ranking": ["", "BEST", "worst", None, 5],
    "asked_at": ["now", 5, datetime(2026, 1, 1)],  # noqa: DTZ001  # naive
    "explain": ["no", 1, None],
    "layers": [5, 1.5],
    "filter": [5],
    "as_of": ["yesterday"],
}

PARTS: list[tuple[dict[str, Any], str]] = [
    ({"layers": ["planet"]}, "InvalidLayer of layer"),
    ({"layers": ["team"]}, "MissingIdentifier of team"),
    ({"filter": {"colour": 1}}, "InvalidInput of filter.colour"),
    ({"filter": Filter(min_importance=2)}, "InvalidInput of filter.min_importance"),
]


@one_store
def test_arguments_are_checked(view: View) -> None:
    cases = [({name: bad}, f"InvalidInput of {name}") for name, values in ARGUMENTS.items() for bad in values]
    refusals = {str(given): refusal(view.search, "tea", **given) for given, _ in (*cases, *PARTS)}
    assert refusals == {str(given): f"search: {expected}" for given, expected in (*cases, *PARTS)}


def test_of_equal_matches_the_more_important_comes_first(view: View) -> None:
    for importance, kind in ((0.1, "green"), (0.9, "black"), (0.5, "white")):
        view.add(f"{kind} tea", importance=importance)
    hits = view.search("tea", explain=True).hits
    assert [hit.memory.importance for hit in hits] == [0.9, 0.5, 0.1]
    most, middle, least = (hit.reasons.get("importance", 0) for hit in hits)
    assert most == -least > middle == 0


@pytest.mark.req("H4")
def test_of_equal_scores_the_more_specific_layer_comes_first_and_then_the_newest(view: View) -> None:
    user, project = Layer.USER, Layer.PROJECT
    for kind, layer in (("green", user), ("black", project), ("white", user), ("red", project)):
        view.add(f"{kind} tea", layer=layer)
    hits = view.search("tea").hits
    assert len({hit.score for hit in hits}) == 1
    assert [hit.memory.content for hit in hits] == ["white tea", "green tea", "red tea", "black tea"]


@pytest.mark.req("L4")
def test_many_results(view: View) -> None:
    view.add_many([f"tea number {n}" for n in range(150)])
    assert len(view.search("tea", limit=120)) == 120
    assert len(view.search("tea")) == 10


def test_texts_without_words_can_be_stored_and_do_not_disturb(embedding: View) -> None:
    embedding.add_many(["!!!", "…", "🙂"])
    memory = embedding.add("tea")
    assert embedding.search("tea").hits[0].memory.id == memory.id
    embedding.search("!!!")
