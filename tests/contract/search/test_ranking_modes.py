"""The four rankings: what is weighed, what is left out, and what stands before what."""

import math
from collections.abc import Sequence
from datetime import timedelta

import pytest

import wellkept
from tests.support.stand_ins import HandClock, Opener
from wellkept import Memories, NewMemory, View
from wellkept.stores.ram import RamStore
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import DecayPolicy, Ranking

MODES = [mode.value for mode in Ranking]


@pytest.fixture
def memories(ram_opener: Opener, clock: HandClock) -> Memories:
    """An empty database with the built-in embedder."""
    return ram_opener(clock=clock, embedder="default")


@pytest.fixture
def shared(memories: Memories) -> View:
    """A view of several layers."""
    return memories.view(agent="helper", user="ada", project="api", team="core", company="acme")


def contents(results: wellkept.Results) -> list[str]:
    return [hit.memory.content for hit in results]


@pytest.mark.req("L4", "H3")
def test_every_ranking_finds_the_answer_with_scores_from_0_to_1(view: View) -> None:
    view.add_many(["The user prefers dark mode", "The user lives in Rome", "Bread is baked at night"])
    with Cases() as cases:
        for mode in (*MODES, *Ranking):
            with cases.case(mode):
                results = view.search("Which mode does the user prefer?", ranking=mode, explain=True)
                assert results.hits[0].memory.content == "The user prefers dark mode"
                assert [hit.rank for hit in results] == list(range(1, len(results) + 1))
                assert all(0 < hit.score <= 1 and hit.reasons for hit in results)
                plain = view.search("Which mode does the user prefer?", ranking=mode)
                assert [(hit.memory.id, hit.score) for hit in plain] == [(hit.memory.id, hit.score) for hit in results]
                assert all(hit.reasons == {} for hit in plain)


def test_best_is_the_default(view: View) -> None:
    view.add_many(["The user prefers dark mode", "The user prefers tea"])
    asked = "What does the user prefer?"
    assert view.search(asked, explain=True) == view.search(asked, explain=True, ranking="best")


# --- similarity -----------------------------------------------------------------------------------


@pytest.mark.req("L4")
def test_similarity_looks_at_vectors_alone(ram_opener: Opener) -> None:
    view = ram_opener(name="given").view(user="ada")
    view.add("no common word", vector=[0.6, 0.8], importance=0.0)
    view.add("tea tea tea", vector=[0.0, 1.0], importance=1.0)
    view.add("no vector, but tea")
    # Without an embedder there is no vector to compare with: words must do.
    results = view.search("tea", ranking="similarity")
    assert not results.semantic
    assert contents(results)[0] == "tea tea tea"
    assert "no common word" not in contents(results)


@pytest.mark.req("L4")
def test_similarity_is_the_calibrated_cosine(view: View) -> None:
    texts = ["The user prefers dark mode", "The user lives in Rome", "Bread is baked at night"]
    view.add_many(texts)
    view.add("Completely different words", importance=1.0)
    hits = view.search(texts[0], ranking="similarity", min_score=0, explain=True).hits
    assert len(hits) == 4
    assert hits[0].score == 1.0
    for hit in hits:
        assert dict(hit.reasons) in ({"similarity": round(hit.score, 4)}, {})
    question, stored = (view.get(view.add(text).id, include_vector=True) for text in ("A question of taste", texts[2]))
    assert question is not None
    assert stored is not None
    assert question.vector is not None
    assert stored.vector is not None
    cosine = sum(left * right for left, right in zip(question.vector.values, stored.vector.values, strict=True))
    found = view.search("A question of taste", ranking="similarity", min_score=0, limit=10)
    score = next(hit.score for hit in found if hit.memory.content == texts[2])
    assert score == pytest.approx(max(0.0, (cosine - 0.15) / 0.6), abs=1e-5)


# --- precedence -----------------------------------------------------------------------------------


@pytest.mark.req("H4")
def test_the_more_specific_layer_comes_first(shared: View) -> None:
    shared.add("Tabs indent code, says the company handbook of style", layer="company")
    shared.add("Ada once mentioned tabs", layer="user")
    shared.add("A note on indenting code with tabs", layer="project")
    asked = "indenting code with tabs"
    best = [hit.memory.layer.value for hit in shared.search(asked)]
    first = [hit.memory.layer.value for hit in shared.search(asked, ranking="precedence")]
    assert first == ["user", "project", "company"]
    assert best[0] == "project"


@pytest.mark.req("H4", "N4")
def test_what_is_overridden_is_left_out_and_named(shared: View) -> None:
    company = shared.add("We indent code with tabs", layer="company")
    team = shared.add("We indent code with eight spaces", layer="team")
    user = shared.add("We indent code with four spaces", layer="user")
    other = shared.add("Code is reviewed by two people", layer="company")
    asked = "How do we indent code, and who reviews it?"
    results = shared.search(asked, ranking="precedence")
    assert [(hit.memory.id, set(hit.overrides)) for hit in results] == [
        (user.id, {team.id, company.id}),
        (other.id, set()),
    ]
    assert [hit.rank for hit in results] == [1, 2]
    assert {hit.memory.id for hit in shared.search(asked)} == {user.id, other.id}
    best = shared.search(asked, overridden=True)
    assert {hit.memory.id for hit in best} == {company.id, team.id, user.id, other.id}
    without = shared.search(asked, ranking="precedence", layers=["company", "team"])
    assert (without.hits[0].memory.id, without.hits[0].overrides) == (team.id, (company.id,))


@pytest.mark.req("H4", "N4")
def test_the_same_key_in_two_layers_is_the_same_thing(shared: View) -> None:
    company = shared.add("Releases go out on Fridays", layer="company", key="release-day")
    user = shared.add("Ship whenever tests of releases pass", layer="user", key="release-day")
    [hit] = shared.search("releases", ranking="precedence")
    assert (hit.memory.id, hit.overrides) == (user.id, (company.id,))


@pytest.mark.req("H4")
def test_nothing_of_the_same_layer_is_overridden(shared: View) -> None:
    ids = {shared.add(f"We indent code with {what}", layer="team").id for what in ("tabs", "spaces", "care")}
    results = shared.search("How do we indent code?", ranking="precedence")
    assert {hit.memory.id for hit in results} == ids
    assert all(hit.overrides == () for hit in results)


# --- relevance ------------------------------------------------------------------------------------


@pytest.mark.req("J6")
def test_relevance_is_the_product_of_its_parts(view: View, clock: HandClock) -> None:
    view.add("Chatted about tea", type="conversation", importance=0.8)
    view.add("Prefers tea", type="preference", importance=0.4)
    clock.forward(days=7)
    hits = {hit.memory.type.value: hit for hit in view.search("tea", ranking="relevance", explain=True, min_score=0)}
    match = {hit.memory.type.value: hit.score for hit in view.search("tea", min_score=0)}
    for kind, hit in hits.items():
        assert set(hit.reasons) == {"importance", "decay", "recency", "match"}
        assert hit.score == pytest.approx(math.prod(hit.reasons.values()) / 1.5, rel=0.001)
        assert hit.reasons["match"] == pytest.approx(match[kind], abs=0.001)
    assert hits["conversation"].reasons["decay"] == pytest.approx(0.5)
    assert hits["preference"].reasons["decay"] == 1.0
    assert hits["conversation"].reasons["importance"] == 0.8
    assert 1.0 < hits["preference"].reasons["recency"] < 1.01


@pytest.mark.req("J6")
def test_what_was_read_lately_counts_more(view: View, clock: HandClock) -> None:
    old, used = view.add("Green tea is in the kitchen"), view.add("Black tea is in the kitchen")
    clock.forward(days=20)
    view.get(used.id)
    hits = view.search("tea in the kitchen", ranking="relevance", explain=True).hits
    assert [hit.memory.id for hit in hits] == [used.id, old.id]
    assert [round(hit.reasons["recency"], 2) for hit in hits] == [1.5, 1.0]


@pytest.mark.req("J6")
def test_a_memory_can_say_itself_how_far_it_has_faded(view: View, clock: HandClock) -> None:
    faded = view.add("Chatted about tea", type="conversation", decay_factor=0.9)
    clock.forward(days=3650)
    [hit] = view.search("tea", ranking="relevance", explain=True)
    assert (hit.memory.id, hit.reasons["decay"]) == (faded.id, 0.9)
    view.update(faded.id, decay_factor=None)
    [hit] = view.search("tea", ranking="relevance", explain=True)
    assert hit.reasons["decay"] == DecayPolicy().min_decay_factor


@pytest.mark.req("J6")
def test_relevance_is_judged_at_the_time_of_asking(view: View, clock: HandClock) -> None:
    view.add("Chatted about tea", type="conversation")
    clock.forward(days=70)
    asked = START + timedelta(days=7)
    [hit] = view.search("tea", ranking="relevance", explain=True, asked_at=asked)
    assert hit.reasons["decay"] == pytest.approx(0.5)


@pytest.mark.req("J6", "L4")
def test_a_minimum_score_is_one_of_the_score_shown(view: View, clock: HandClock) -> None:
    view.add("Prefers tea", importance=1.0)
    view.add("Ada drinks tea", importance=0.2)
    everything = view.search("tea", ranking="relevance", min_score=0).hits
    least = sum(hit.score for hit in everything) / 2
    assert [hit.score >= least for hit in everything] == [True, False]
    results = view.search("tea", ranking="relevance", min_score=least)
    assert results.hits == everything[:1]
    assert results.total == 1


@pytest.mark.req("J6", "H4")
def test_a_score_is_moved_once_however_many_memories_are_read(view: View) -> None:
    """Where many say the same, more are read until there are as many hits as were asked for."""
    view.add_many([NewMemory(content=f"A chat about tea, number {n % 30}", importance=0.5) for n in range(150)])
    asked = {"ranking": "relevance", "explain": True, "min_score": 0.0}
    [first] = view.search("tea", limit=1, **asked)  # type: ignore[arg-type]  # several kinds of values
    many = view.search("tea", limit=50, **asked)  # type: ignore[arg-type]  # several kinds of values
    assert len(many) == 30
    assert (many.hits[0].reasons, many.hits[0].score) == (first.reasons, first.score)
    assert all(hit.score == pytest.approx(math.prod(hit.reasons.values()) / 1.5, abs=0.001) for hit in many)
    assert all(len(hit.duplicates) == len(set(hit.duplicates)) for hit in many)


# --- a reranker -----------------------------------------------------------------------------------


class Shortest:
    """Likes short texts, and remembers what it was asked."""

    name = "shortest"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.append((query, list(texts)))
        return [20.0 - len(text) for text in texts]


def test_a_reranker_looks_at_the_best_hits_again() -> None:
    reranker = Shortest()
    with wellkept.open(store=RamStore(), reranker=reranker, embedder=None, clock=HandClock()) as memories:
        view = memories.view(user="ada")
        view.add_many([f"tea {'x' * number}" for number in range(1, 60)])
        results = view.search("tea", explain=True, limit=3)
    [(query, texts)] = reranker.asked
    assert (query, len(texts)) == ("tea", 30)
    shortest = sorted(texts, key=len)
    assert contents(results) == shortest[:3]
    for hit in results:
        assert hit.reasons["reranker"] == pytest.approx(0.15 * (20.0 - len(hit.memory.content)), abs=1e-4)
        odds = math.log(hit.score / (1 - hit.score))
        assert odds == pytest.approx(sum(hit.reasons.values()), abs=0.001)


def test_a_full_page_still_names_what_says_the_same(view: View) -> None:
    first, again = view.add_many(["The user prefers dark mode", "The user prefers dark mode!"])
    with Cases() as cases:
        for mode in ("relevance", "precedence"):
            with cases.case(mode):
                [hit] = view.search("Which mode does the user prefer?", ranking=mode, limit=1)
                assert {hit.memory.id, *hit.duplicates} == {first.id, again.id}
