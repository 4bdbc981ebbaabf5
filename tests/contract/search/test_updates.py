"""Of two memories about one subject the later one comes first; stored questions and acknowledgements do not."""

from datetime import timedelta
from itertools import product

import pytest

from tests.support.stand_ins import HandClock, Opener, somebody
from wellkept import Hit, Memories, View
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases


@pytest.fixture
def memories(ram_opener: Opener, clock: HandClock) -> Memories:
    """An empty database with the built-in embedder."""
    return ram_opener(clock=clock, embedder="default")


def contents(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.memory.content for hit in hits]


UPDATES = [
    ("Bo lives in Rome", "Bo moved to Berlin, no longer in Rome", "Where does Bo live?"),
    ("Sanjay leads the checkout squad", "Leonie took over the checkout squad from Sanjay", "Who leads checkout?"),
    ("The newsroom writes in Drupal", "We left Drupal, the newsroom writes in Sanity", "What does the newsroom use?"),
    ("La librairie ouvre à neuf heures", "Désormais la librairie ouvre à dix heures", "Quand ouvre la librairie ?"),
    ("The budget for travel is 4,000 euros", "The budget for travel is 6,500 euros", "What is the budget for travel?"),
    (
        "The fire drill took 48 minutes, as planned",
        "The fire drill took 71 minutes, the stairs were blocked",
        "How long did the latest fire drill take?",
    ),
]


@pytest.mark.req("L4")
def test_the_later_of_two_comes_first(memories: Memories) -> None:
    """What happened later counts, whatever was recorded first."""
    with Cases() as cases:
        for (earlier, later, question), recorded_first in product(UPDATES, ("earlier", "later")):
            with cases.case(later, recorded_first):
                view = somebody(memories)
                told = [(earlier, START - timedelta(days=90)), (later, START - timedelta(days=2))]
                for content, at in told if recorded_first == "earlier" else reversed(told):
                    view.add(content, occurred_at=at)
                view.add("Bo plays the cello", occurred_at=START - timedelta(days=1))
                hits = view.search(question, explain=True).hits
                assert contents(hits)[:2] == [later, earlier]
                assert hits[0].score > hits[1].score


@pytest.mark.req("L4")
def test_the_last_of_several_updates_comes_first(view: View) -> None:
    for days, room in ((90, "blue"), (60, "green"), (30, "red")):
        view.add(f"Stand-up takes place in the {room} room", occurred_at=START - timedelta(days=days))
    found = contents(view.search("Where does stand-up take place?").hits)
    assert found == [f"Stand-up takes place in the {room} room" for room in ("red", "green", "blue")]


@pytest.mark.req("L4")
def test_a_question_about_the_past_gets_what_matches_best(view: View) -> None:
    earlier, later, _ = UPDATES[0]
    view.add(earlier, occurred_at=START - timedelta(days=90))
    view.add(later, occurred_at=START - timedelta(days=2))
    hits = view.search("Where did Bo live before?", explain=True).hits
    assert all("later" not in hit.reasons for hit in hits)


@pytest.mark.req("L4")
def test_something_else_about_the_same_person_is_no_update(view: View) -> None:
    view.add("Bo likes green tea with honey", occurred_at=START - timedelta(days=90))
    view.add("Bo moved to Berlin", occurred_at=START - timedelta(days=2))
    assert contents(view.search("Which tea does Bo like?").hits)[0] == "Bo likes green tea with honey"


@pytest.mark.req("L4")
def test_a_stored_question_counts_less_the_more_it_repeats_the_question(view: View) -> None:
    view.add("Which theme shall the editor have?")
    view.add("The theme of the editor is gruvbox")
    hits = view.search("Which theme shall the editor have?", explain=True).hits
    by_content = {hit.memory.content: hit for hit in hits}
    assert by_content["Which theme shall the editor have?"].reasons["echo"] < -1
    assert "echo" not in by_content["The theme of the editor is gruvbox"].reasons


@pytest.mark.req("L4")
def test_an_acknowledgement_is_no_answer(view: View) -> None:
    for turn, role in (
        ("Which paint shall I buy for the kitchen?", "user"),
        ("Take the washable paint for the kitchen.", "assistant"),
        ("OK.", "user"),
        ("Great, thanks!", "user"),
    ):
        view.add(turn, role=role, session="kitchen")
    hits = view.search("Which paint was recommended for the kitchen?", min_score=0, explain=True).hits
    empty = {hit.memory.content for hit in hits if "empty" in hit.reasons}
    assert empty == {"OK.", "Great, thanks!"}
    assert set(contents(hits)[-2:]) == empty
