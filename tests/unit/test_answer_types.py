"""What a question asks for: a reply of the assistant, and whether a text only asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import answer_types

ASKING: tuple[tuple[str, bool], ...] = (
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
)


@pytest.mark.req("L4")
def test_what_only_asks() -> None:
    with Cases() as cases:
        for text, asks in ASKING:
            with cases.case(text):
                assert answer_types.only_asks(text) is asks


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert answer_types.only_asks(text) in (True, False)


REPLIES: tuple[tuple[str, bool], ...] = (
    ("What was the seventh job in the list you provided?", True),
    ("What have you already suggested for the garden?", True),
    ("Which chapter did we discuss? I mean in our last chat.", True),
    ("I wonder if you could remind me of the name of that deli", True),
    ("Can you remind me what my locker code is?", False),
    ("What did I tell you yesterday?", False),
    ("Do you have any suggestions for a new guitar?", False),
    ("", False),
)


@pytest.mark.req("L4")
def test_what_asks_for_a_reply() -> None:
    with Cases() as cases:
        for question, asks in REPLIES:
            with cases.case(question):
                assert answer_types.asks_reply(question) is asks
