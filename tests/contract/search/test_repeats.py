"""A stored question that repeats the one that is asked comes just behind what answers it, and is never hidden."""

import pytest

from tests.support.stand_ins import Opener, somebody
from wellkept import Memories, View
from wellkept.testing.cases import Cases

ASKED = "Which train do I take to Porto?"
ANSWER = "The train to Porto is the one at 7:15"


@pytest.fixture
def memories(ram_opener: Opener) -> Memories:
    """A database with the built-in embedder."""
    return ram_opener(embedder="default")


@pytest.fixture
def view(memories: Memories) -> View:
    """The view of somebody who has something beside what is asked for."""
    view = somebody(memories)
    view.add("She prefers window seats")
    return view


def found(view: View, question: str) -> list[str]:
    return [hit.memory.content for hit in view.search(question)]


@pytest.mark.req("L4")
def test_an_answer_comes_before_the_question(memories: Memories) -> None:
    with Cases() as cases:
        for stored in (
            ASKED,
            "Do you know which train I take to Porto?",
            "which train do I take to Porto",
            "Which train do I take to Porto, and when?",
        ):
            with cases.case(stored):
                view = somebody(memories)
                view.add("She prefers window seats")
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
