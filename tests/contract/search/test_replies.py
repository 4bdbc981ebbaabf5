"""A question about what the assistant said gets the assistant's words; any other one, the user's before them."""

import pytest

from tests.support.stand_ins import Opener
from wellkept import View
from wellkept.testing.cases import Cases

TURNS = [
    ("I am looking for a quiet hotel in Bandung", "user"),
    ("The Padma is a quiet hotel in Bandung, above a valley", "assistant"),
    ("Thanks! I also want to eat well in Bandung.", "user"),
    ("Then have the Nasi Goreng at Miss Bee Providore", "assistant"),
]


@pytest.fixture
def view(ram_opener: Opener) -> View:
    """A chat."""
    made = ram_opener(embedder="default").view(user="ada")
    for content, role in TURNS:
        made.add(content, role=role, session="chat")
    return made


WHO: tuple[tuple[str, str], ...] = (
    ("Which quiet hotel in Bandung did you recommend?", "assistant"),
    ("Can you remind me of the quiet hotel in Bandung?", "assistant"),
    ("What kind of hotel in Bandung am I looking for?", "user"),
)


@pytest.mark.req("L4")
def test_who_is_asked_about_comes_first(view: View) -> None:
    with Cases() as cases:
        for question, role in WHO:
            with cases.case(question):
                hits = view.search(question, explain=True).hits
                assert hits[0].memory.role == role
                assert hits[0].reasons["role"] > 0
