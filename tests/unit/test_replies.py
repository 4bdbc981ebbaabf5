"""A question about what the assistant said gets the assistant's words; any other one, the user's before them."""

import pytest

from tests.support.stand_ins import Opener
from wellkept import View
from wellkept.text import answer_types

TURNS = [
    ("I am looking for a quiet hotel in Bandung", "user"),
    ("The Padma is a quiet hotel in Bandung, above a valley", "assistant"),
    ("Thanks! I also want to eat well in Bandung.", "user"),
    ("Then have the Nasi Goreng at Miss Bee Providore", "assistant"),
]


@pytest.fixture
def view(opener: Opener) -> View:
    """A chat."""
    made = opener(embedder="default").view(user="ada")
    for content, role in TURNS:
        made.add(content, role=role, session="chat")
    return made


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Which quiet hotel in Bandung did you recommend?", "assistant"),
        ("Can you remind me of the quiet hotel in Bandung?", "assistant"),
        ("What kind of hotel in Bandung am I looking for?", "user"),
    ],
)
def test_who_is_asked_about_comes_first(view: View, question: str, role: str) -> None:
    hits = view.search(question, explain=True).hits
    assert hits[0].memory.role == role
    assert hits[0].reasons["role"] > 0


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What was the seventh job in the list you provided?", True),
        ("What have you already suggested for the garden?", True),
        ("Which chapter did we discuss? I mean in our last chat.", True),
        ("I wonder if you could remind me of the name of that deli", True),
        ("Can you remind me what my locker code is?", False),
        ("What did I tell you yesterday?", False),
        ("Do you have any suggestions for a new guitar?", False),
        ("", False),
    ],
)
def test_what_asks_for_a_reply(question: str, asks: bool) -> None:
    assert answer_types.asks_reply(question) is asks
