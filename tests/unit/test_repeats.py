"""A stored question that repeats the one that is asked comes just behind what answers it, and is never hidden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stand_ins import Opener
from wellkept import View
from wellkept.text import answer_types

ASKED = "Which train do I take to Porto?"
ANSWER = "The train to Porto is the one at 7:15"


@pytest.fixture
def view(opener: Opener) -> View:
    """A database with the built-in embedder, and something beside what is asked for."""
    made = opener(embedder="default").view(user="maya")
    made.add("She prefers window seats")
    return made


def found(view: View, question: str) -> list[str]:
    return [hit.memory.content for hit in view.search(question)]


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    "stored",
    [
        ASKED,
        "Do you know which train I take to Porto?",
        "which train do I take to Porto",
        "Which train do I take to Porto, and when?",
    ],
)
def test_an_answer_comes_before_the_question(view: View, stored: str) -> None:
    view.add(stored, role="user", session="chat")
    view.add(ANSWER, type="fact")
    assert found(view, ASKED)[:2] == [ANSWER, stored]


@pytest.mark.req("L4")
def test_questions_keep_their_order_behind_the_answer(view: View) -> None:
    for stored in (ASKED, "Do you know which train I take to Porto?"):
        view.add(stored, role="user", session=stored)
    view.add(ANSWER, type="fact")
    hits = view.search(ASKED, explain=True).hits
    assert hits[0].memory.content == ANSWER
    assert {hit.memory.content for hit in hits[1:3]} == {ASKED, "Do you know which train I take to Porto?"}
    assert hits[1].score > hits[2].score


@pytest.mark.req("L4")
def test_a_question_without_an_answer_is_found(view: View) -> None:
    """Somebody may look for what was asked."""
    view.add(ASKED, role="user", session="chat")
    hits = view.search(ASKED, explain=True).hits
    assert hits[0].memory.content == ASKED
    assert "repeats" not in hits[0].reasons


@pytest.mark.req("L4")
def test_the_reason_is_told(view: View) -> None:
    view.add(ASKED, role="user", session="chat")
    view.add(ANSWER, type="fact")
    reasons = {hit.memory.content: hit.reasons for hit in view.search(ASKED, explain=True)}
    assert reasons[ASKED]["repeats"] < 0
    assert "repeats" not in reasons[ANSWER]


@pytest.mark.req("L4")
def test_a_turn_that_tells_something_beside_its_question_is_left_alone(view: View) -> None:
    told = "I take the 7:15 train to Porto. Which train do you take?"
    view.add(told, role="user", session="chat")
    view.add("The train to Porto has a dining car", type="fact")
    reasons = {hit.memory.content: hit.reasons for hit in view.search(ASKED, explain=True)}
    assert "repeats" not in reasons[told]


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Wo liegt der Schlüssel?", True),
        ("钥匙在哪里？", True),
        ("Why the red one? Is it cheaper?", True),
        ("Can you write to the city? They ignore me.", False),
        ("We pay three months in advance, is that legal?", False),
        ("When Ada travels she takes the train", False),
        ("How to restart: run make", False),
        ("What I like is tea", False),
        ("", False),
        ("?", True),
    ],
)
def test_what_only_asks(text: str, asks: bool) -> None:
    assert answer_types.only_asks(text) is asks


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert answer_types.only_asks(text) in (True, False)
