"""Search and the text of questions: possessives, numbers, pronouns, fields beside the text, words nobody ever said."""

import math

import pytest

from tests.support.stand_ins import Opener
from wellkept import NewMemory, View
from wellkept.testing.cases import Cases


def contents(view: View, query: str) -> list[str]:
    return [hit.memory.content for hit in view.search(query)]


@pytest.fixture(params=["default", None], ids=["meaning", "words"])
def notes(request: pytest.FixtureRequest, ram_opener: Opener) -> View:
    return ram_opener(embedder=request.param, name="text").view(user="ada")


@pytest.mark.req("L4", "L15")
def test_a_possessive_is_found_by_its_owner_and_the_other_way_round(notes: View) -> None:
    notes.add_many(["Maya's bag is red", "The bag of Maya is red", "Tom's coat is blue"])
    for query in ("Maya", "Maya's", "maya\u2019s"):
        assert set(contents(notes, query)[:2]) == {"Maya's bag is red", "The bag of Maya is red"}


@pytest.mark.req("L4", "J5")
def test_an_exact_number_is_found_and_no_other(ram_opener: Opener) -> None:
    notes = ram_opener(embedder=None, name="numbers").view(user="ada")
    said = [
        "The rate is 2.9 percent",
        "Ticket #451 is open",
        "We run v1.2.3",
        "Stand-up is at 10:30",
        "Paid 1,500 euros",
    ]
    notes.add_many(said)
    for query, found in {
        "2+2": [],
        "2": [],
        "2.9": said[:1],
        "what about 451?": said[1:2],
        "452": [],
        "version 1.2.3": said[2:3],
        "1.2": [],
        "10:30": said[3:4],
        "10:31": [],
        "1500": said[4:],
    }.items():
        assert contents(notes, query) == found, query


@pytest.mark.req("L4")
def test_of_numbers_that_look_alike_the_exact_one_comes_first(notes: View) -> None:
    tickets = [f"Ticket {number} waits for a reply" for number in range(450, 470)]
    notes.add_many(tickets)
    assert contents(notes, "ticket 457")[0] == tickets[7]


@pytest.mark.req("J5")
def test_titles_tags_and_texts_in_metadata_are_searched(notes: View) -> None:
    notes.add_many(
        [
            NewMemory(content="Use four spaces", title="Indentation"),
            NewMemory(content="Ask before noon", tags=["kubernetes"]),
            NewMemory(content="Call on Monday", metadata={"customer": "Zanzibar Foods", "seats": 7}),
            NewMemory(content="Send the form", metadata={"places": ["Reykjavik", "Oslo"]}),
            NewMemory(content="Paid at last", metadata={"invoice": 22175, "copies": 7, "paid": True}),
            NewMemory(content="In the cellar", metadata={"host": {"name": "gandalf", "racks": [{"row": "Umbriel"}]}}),
            NewMemory(content="It was sunny", metadata={"session_id": "quixote"}),
        ]
    )
    for query, found in {
        "indentation": "Use four spaces",
        "kubernetes": "Ask before noon",
        "Zanzibar": "Call on Monday",
        "Reykjavik": "Send the form",
        "invoice 22175": "Paid at last",
        "gandalf": "In the cellar",
        "Umbriel": "In the cellar",
    }.items():
        assert contents(notes, query)[0] == found
    assert contents(notes, "quixote") == []


@pytest.mark.req("L4", "L15")
def test_pronouns_neither_make_nor_break_a_hit(notes: View) -> None:
    notes.add_many(["She eats rye bread", "I went home and so did we", "Our house is hers", "You and they are theirs"])
    with Cases() as cases:
        for query in ("What does the user eat?", "What do I eat?", "What does she eat?", "What did we eat?"):
            with cases.case(query):
                assert contents(notes, query)[0] == "She eats rye bread"
                assert notes.search(query).hits[0].score > 0.5


@pytest.mark.req("N8")
def test_a_lone_word_that_nobody_ever_said_finds_nothing(notes: View) -> None:
    notes.add_many(
        [
            *("Maya is allergic to penicillin", "Maya drinks oat-milk flat whites, no sugar"),
            *("Maya uses Neovim with the gruvbox color scheme", "Maya wants short answers with code first"),
            *(
                "Maya's main programming language is Rust",
                "Maya lives in Lisbon",
                "Maya is vegetarian but eats fish",
            ),
        ]
    )
    with Cases() as cases:
        for query in ("zebra", "zxqv", "zebras?"):
            with cases.case(query):
                results = notes.search(query)
                assert results.hits == ()
                assert results.known == 0


@pytest.mark.req("C2", "L15")
def test_facts_come_before_turns_that_say_the_same(notes: View) -> None:
    notes.add_many(
        [
            NewMemory(content="We could go to Porto for the offsite", role="user", session="s"),
            NewMemory(content="Porto for the offsite sounds good", role="assistant", session="s"),
            NewMemory(content="The offsite is in Porto", type="decision"),
        ]
    )
    hits = notes.search("Where is the offsite?", explain=True).hits
    assert hits[0].memory.type == "decision"


@pytest.mark.req("N8")
def test_a_memory_that_stands_alone_is_explained_without_a_conversation(notes: View) -> None:
    notes.add_many(["Prefers dark mode", "Lives in Rome", NewMemory(content="Dark!", role="user", session="s")])
    hits = notes.search("dark mode", explain=True, min_score=0).hits
    assert len(hits) > 1
    assert not any(name.startswith("conversation") for name in hits[0].reasons)
    assert 1 / (1 + math.exp(-sum(hits[0].reasons.values()))) == pytest.approx(hits[0].score, abs=0.01)
