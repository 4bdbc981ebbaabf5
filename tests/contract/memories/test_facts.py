"""Facts: one object per subject and predicate, when each held, and what replaced what."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, one_store, store_of
from tests.support.terminal import Terminal
from wellkept import Memories, Memory, NewMemory, View
from wellkept.errors import Conflict, InvalidInput, NotFound
from wellkept.types import Fact, Filter, State


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def objects(found: list[Memory]) -> list[str]:
    return [one.fact.object for one in found if one.fact is not None]


@pytest.mark.req("N4")
def test_a_new_object_supersedes_the_old_one(view: View) -> None:
    rome = view.facts.add("Ada", "lives in", "Rome", confidence=0.9, kind="home", metadata={"sure": True})
    berlin = view.facts.add(" ADA", "Lives  in", "Berlin")
    assert (berlin.supersedes, berlin.superseded_by) == ((rome.id,), None)
    kept = view.get(rome.id)
    assert kept is not None
    assert (kept.state, kept.superseded_by, kept.confidence) == (State.SUPERSEDED, berlin.id, 0.9)
    assert [one.id for one in view.list()] == [berlin.id]
    assert view.count() == 1
    assert [hit.memory.id for hit in view.search("lives in", min_score=0)] == [berlin.id]
    assert objects(view.facts.find(subject="ada")) == ["Berlin"]
    assert view.stats().superseded == 1
    assert [one.reason for one in view.history(rome.id)] == [None, "superseded"]


@pytest.mark.req("N4")
def test_what_is_superseded_stays_reachable(view: View) -> None:
    chain = [view.facts.add("Ada", "lives in", place) for place in ("Paris", "Rome", "Berlin")]
    lineage = view.lineage(chain[1].id)
    assert [one.id for one in lineage.replaced] == [chain[0].id]
    assert [one.id for one in lineage.replaced_by] == [chain[2].id]
    assert [one.id for one in view.lineage(chain[2].id).replaced] == [chain[0].id, chain[1].id]
    every = Filter(include_superseded=True)
    assert view.count(filter=every) == 3
    assert {hit.memory.id for hit in view.search("lives in", min_score=0, filter=every)} == {one.id for one in chain}
    assert objects(view.facts.find(object="rome", include_superseded=True)) == ["Rome"]
    with pytest.raises(NotFound):
        view.lineage("nobody")


@pytest.mark.req("N4")
def test_several_objects_where_they_are_declared(view: View) -> None:
    for language in ("German", "Italian", "german"):
        view.facts.add("Ada", "speaks", language, multiple=True)
    assert sorted(map(str.casefold, objects(view.facts.find(predicate="speaks")))) == ["german", "italian"]


@pytest.mark.req("N4")
def test_facts_are_ordered_by_confidence(view: View, clock: HandClock) -> None:
    for confidence, tea in ((0.2, "green"), (None, "red"), (0.9, "black"), (0.9, "white")):
        view.facts.add("Ada", "likes", tea, multiple=True, confidence=confidence)
        clock.forward(hours=1)
    assert objects(view.facts.find(subject="Ada", predicate="likes")) == ["white", "black", "green", "red"]
    assert objects(view.facts.find(limit=1)) == ["white"]


@pytest.mark.req("N4")
def test_what_held_then_as_it_was_known_then(view: View, clock: HandClock) -> None:
    view.facts.add("Ada", "lives in", "Rome", valid_from=year(2015))
    before = view.position()
    clock.forward(days=1)
    view.facts.add("Ada", "lives in", "Berlin", valid_from=year(2024))
    assert objects(view.facts.find(valid_at=year(2014))) == []
    assert objects(view.facts.find(valid_at=year(2020))) == ["Rome"]
    assert objects(view.facts.find(valid_at=year(2025))) == ["Berlin"]
    assert objects(view.facts.find(valid_at=year(2025), as_of=before)) == ["Rome"]


@pytest.mark.req("N4")
def test_a_fact_of_the_past_supersedes_nothing(view: View) -> None:
    view.facts.add("Ada", "lives in", "Berlin", valid_from=year(2024))
    paris = view.facts.add("Ada", "lives in", "Paris", valid_from=year(2010), valid_until=year(2015))
    assert paris.supersedes == ()
    assert objects(view.facts.find(subject="Ada")) == ["Berlin"]
    assert objects(view.facts.find(subject="Ada", valid_at=year(2012))) == ["Paris"]


@pytest.mark.req("N2", "N4")
def test_the_same_fact_again_is_the_stored_one(view: View) -> None:
    first = view.facts.add("Ada", "lives in", "Rome")
    assert view.facts.add("Ada", "lives in", "Rome") == first
    surer = view.facts.add("Ada", "lives in", "Rome", confidence=1)
    assert surer.supersedes == (first.id,)


@pytest.mark.req("N4")
def test_forgotten_and_erased_facts_leave_their_slot(view: View) -> None:
    rome = view.facts.add("Ada", "lives in", "Rome")
    view.forget(rome.id)
    berlin = view.facts.add("Ada", "lives in", "Berlin")
    assert berlin.supersedes == ()
    view.forget(berlin.id, permanent=True)
    assert view.facts.add("Ada", "lives in", "Oslo").supersedes == ()
    assert view.get(rome.id) is None  # a new fact does not undo a deletion


@pytest.mark.req("N4")
def test_owners_have_their_own_facts(memories: Memories) -> None:
    ada, bob = memories.view(user="ada", team="core"), memories.view(user="bob", team="core")
    ada.facts.add("api", "is written in", "Go", layer="team")
    ada.facts.add("api", "is written in", "Rust", layer="user")
    assert objects(bob.facts.find(subject="api")) == ["Go"]
    assert sorted(objects(ada.facts.find(subject="api"))) == ["Go", "Rust"]
    assert objects(ada.facts.find(subject="api", layers=["user"])) == ["Rust"]


@pytest.mark.req("N4")
def test_plain_memories_supersede_what_they_name(view: View, clock: HandClock) -> None:
    first, second = view.add("The release is on Friday", key="a"), view.add("The release is on Thursday")
    new = view.add("The release is on Monday", supersedes=[first.id, second.id], key="b")
    assert [one.id for one in view.list()] == [new.id]
    assert view.add("The release is on Monday", supersedes=[first.id, second.id], key="b") == new  # a retry
    assert view.add("The release is on Friday", key="a").id == first.id  # a retry undoes nothing
    with pytest.raises(Conflict):
        view.add("No, on Tuesday", supersedes=[first.id])
    assert view.count() == 1
    assert view.forget(first.id)
    assert view.restore(first.id)
    assert [one.id for one in view.lineage(new.id).replaced] == [second.id, first.id]
    assert not view.restore(first.id)
    with pytest.raises(NotFound):
        view.update(first.id, content="changed")


def test_only_what_can_be_seen_is_superseded(memories: Memories, view: View) -> None:
    bob = memories.view(user="bob").add("Likes tea")
    gone = view.add("Likes cake")
    view.forget(gone.id)
    unseen = {"unknown": "nobody", "bob's": bob.id, "forgotten": gone.id}
    refusals = {name: refusal(view.add, "Likes coffee", supersedes=[id]) for name, id in unseen.items()}
    assert refusals == dict.fromkeys(unseen, "add: NotFound of supersedes")
    assert view.count() == 0
    assert memories.view(user="bob").count() == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"subject": ""}, "fact.subject"),
    ({"predicate": "a\nb"}, "fact.predicate"),
    ({"object": 7}, "fact.object"),
    ({"confidence": 2}, "confidence"),
    ({"valid_from": year(2020), "valid_until": year(2019)}, "fact.valid_until"),
    ({"valid_from": "2020"}, "fact.valid_from"),
    ({"multiple": "yes"}, "fact.multiple"),
]


@one_store
def test_bad_facts_change_nothing(view: View) -> None:
    fact = {"subject": "Ada", "predicate": "lives in", "object": "Rome"}
    refusals = {str(wrong): refusal(view.facts.add, **fact | wrong) for wrong, _ in BAD}
    assert refusals == {str(wrong): f"add: InvalidInput of {field}" for wrong, field in BAD}
    assert view.count() == 0


def test_more_bad_input(view: View) -> None:
    fact = Fact(subject="Ada", predicate="lives in", object="Rome")
    with pytest.raises(InvalidInput):
        view.add("x", key="mine", fact=fact)
    with pytest.raises(InvalidInput):
        view.put("mine", "x", fact=fact)
    with pytest.raises(InvalidInput):
        view.facts.find(limit=0)
    with pytest.raises(InvalidInput):
        view.facts.find(subject="\n")
    with pytest.raises(Conflict):  # which of the two holds?
        view.add_many([NewMemory(content="a", fact=fact), NewMemory(content="b", fact=fact)])
    old = view.add("Old")
    with pytest.raises(Conflict):
        view.add_many([NewMemory(content=text, supersedes=[old.id]) for text in ("a", "b")])
    assert view.count() == 1


def test_many_writers_leave_one_object(view: View) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: view.facts.add("Ada", "lives in", f"Town {number}"), range(12)))
    [last] = view.facts.find(subject="Ada")
    assert len(view.lineage(last.id).replaced) == 11


@given(said=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=8))
def test_the_last_statement_holds(said: list[tuple[str, str]]) -> None:
    clock = HandClock()
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        view = memories.view(user="ada")
        holds: dict[str, str] = {}
        for subject, thing in said:
            view.facts.add(subject, "is", thing)
            holds[subject] = thing
            clock.forward(hours=1)
            for other in "ab":
                assert objects(view.facts.find(subject=other)) == ([holds[other]] if other in holds else [])
        assert view.count() == len(holds)


def test_the_command_line_knows_facts(terminal: Terminal) -> None:
    rome = terminal.json("facts", "add", "Ada", "lives in", "Rome", "--valid-from", "2015-01-01")
    berlin = terminal.json("facts", "add", "Ada", "lives in", "Berlin", "--confidence", "0.9")
    assert [one["id"] for one in terminal.json("facts", "--subject", "ada")["memories"]] == [berlin["id"]]
    assert [one["id"] for one in terminal.json("facts", "--valid-at", "2020-01-01")["memories"]] == [rome["id"]]
    assert [one["id"] for one in terminal.json("lineage", berlin["id"])["replaced"]] == [rome["id"]]
    assert "lives in\tBerlin" in terminal("facts").out
    assert rome["id"] in terminal("lineage", berlin["id"]).out
    assert terminal.json("add", "x", "--fact", '{"subject": "a", "predicate": "b", "object": "c"}')["memories"]
    assert terminal("add", "y", "--supersedes", berlin["id"]).code == 0
    assert terminal("add", "z", "--supersedes", "nobody").code == 3


def test_a_damaged_fact_stops_no_search_for_facts(memories: Memories, clock: HandClock) -> None:
    journal = store_of(memories).journal
    facets: list[Any] = ["Rome", {"subject": "Ada"}, {"subject": 7, "valid_from": "soon"}, ["a"], None]
    answers = {}
    for number, facet in enumerate(facets):
        view = memories.view(user=f"user {number}")
        view.facts.add("Ada", "lives in", "Rome")
        damaged = view.facts.add("Bob", "lives in", "Oslo")
        [stored] = journal.get({damaged.owner}, [damaged.id])
        journal.rewrite([stored._replace(facets={**stored.facets, "fact": facet})])
        answers[str(facet)] = (
            objects(view.facts.find()),
            objects(view.facts.find(subject="Ada", valid_at=clock.time)),
        )
    assert answers == dict.fromkeys(answers, (["Rome"], ["Rome"]))
