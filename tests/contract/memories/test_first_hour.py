"""What goes wrong in the first hour with a memory: one example of each, asked as a user would."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.stand_ins import HandClock, Opener
from wellkept import View
from wellkept.testing.builders import START

MEMORIES: list[tuple[str, dict[str, Any]]] = [
    ("Maya's sister is called Inês and plays the harp", {"days": 200}),
    ("It's cold in the workshop, so bring a jumper", {"days": 120}),
    ("The loan has an interest rate of 2.9 percent", {"days": 90}),
    ("2+2 is the name of the band that plays on Saturday", {"days": 60}),
    ("She prefers window seats on trains", {"days": 80, "type": "preference"}),
    ("Repaired the fence behind the barn", {"days": 1, "type": "event"}),
    ("Dentist appointment on 28 May at nine", {"days": 3, "type": "event"}),
    ("Sold the sailing boat", {"days": 700, "type": "event"}),
    ("Rafters are ordered from Holm & Son", {"days": 30, "tags": ["roof"]}),
    ("Bring two copies", {"days": 20, "title": "Passport office"}),
    ("Costs are to be split in half", {"days": 25, "metadata": {"project": "Skylark"}}),
    ("Bo lives in Rome", {"days": 300}),
    ("Bo moved to Berlin, no longer in Rome", {"days": 10}),
]
TURNS = [
    ("Which colour shall the shutters have?", "user"),
    ("Green would suit the house.", "assistant"),
    ("OK.", "user"),
    ("Do you know which train I take to Porto?", "user"),
]


@pytest.fixture
def view(opener: Opener, clock: HandClock) -> View:
    """What somebody told it in a year, and one chat."""
    made = opener(clock=clock, embedder="default").view(user="maya")
    for content, how in MEMORIES:
        options = {name: value for name, value in how.items() if name != "days"}
        made.add(content, occurred_at=START - timedelta(days=how["days"]), **options)
    for content, role in TURNS:
        made.add(content, role=role, session="chat", occurred_at=START - timedelta(days=2))
    return made


def found(view: View, question: str) -> list[str]:
    return [hit.memory.content for hit in view.search(question, asked_at=START)]


ANSWERS = {
    "What is Maya's sister called?": "Maya's sister",
    "Where is it cold?": "It's cold",
    "What is the interest rate?": "The loan",
    "What is 2+2?": "2+2 is",
    "What do I prefer on trains?": "She prefers",
    "What does the user prefer on trains?": "She prefers",
    "What did I do yesterday?": "Repaired",
    "What did I do this week?": "Repaired",
    "What did I do two years ago?": "Sold the sailing boat",
    "What about the roof?": "Rafters",
    "What do I need at the passport office?": "Bring two copies",
    "What was agreed on for Skylark?": "Costs are",
    "Where does Bo live?": "Bo moved",
    'Who says "interest rate of" and what is it?': "The loan",
    'Where is the "sailing ship"?': "Sold the sailing boat",
}


@pytest.mark.req("L4")
def test_the_first_hit_answers(view: View) -> None:
    hits = {question: found(view, question)[:1] for question in ANSWERS}
    wrong = {
        question: hits[question] for question, first in ANSWERS.items() if not "".join(hits[question]).startswith(first)
    }
    assert wrong == {}


@pytest.mark.req("L4")
def test_a_contraction_is_not_what_texts_have_in_common(view: View) -> None:
    """Otherwise "it's" finds everything that has an "s"."""
    assert not any("Maya's" in content for content in found(view, "it's")[:1])


@pytest.mark.req("L4")
def test_an_answer_comes_before_the_question_that_was_stored(view: View) -> None:
    view.add("The train to Porto is the one at 7:15", type="fact", occurred_at=START - timedelta(days=1))
    hits = found(view, "Which train do I take to Porto?")
    assert hits[0].startswith("The train to Porto")


@pytest.mark.req("L4")
def test_an_acknowledgement_is_no_answer_to_anything(view: View) -> None:
    hits = found(view, "Which colour shall the shutters have?")
    assert "OK." not in hits[:2]


@pytest.mark.req("L4")
def test_a_memory_that_stands_alone_has_no_reasons_of_a_conversation(view: View) -> None:
    for hit in view.search("Where does Bo live?", explain=True):
        if hit.memory.session is None:
            assert not [name for name in hit.reasons if name.startswith("conversation")]


@pytest.mark.req("L4")
def test_what_was_decided_comes_before_what_was_said(view: View) -> None:
    view.add("The shutters will be painted green", type="decision", occurred_at=START - timedelta(days=1))
    assert found(view, "What colour do the shutters have?")[0] == "The shutters will be painted green"
