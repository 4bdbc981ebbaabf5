"""Summaries that quote: which sentences there are, and which are taken."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.window_items import COUNTERS
from wellkept.testing.cases import Cases
from wellkept.text.tokens import Meter, TokenCounter
from wellkept.window import (
    summary,
)

# --- sentences ------------------------------------------------------------------------------------


SENTENCES: tuple[tuple[str, list[str]], ...] = (
    ("One tea. Two teas! Three?", ["One tea.", "Two teas!", "Three?"]),
    ("first line\nsecond line\r\n\r\nthird", ["first line", "second line", "third"]),
    ("\u8336\u304c\u597d\u304d\u3002\u96e8\u3060\u3002", ["\u8336\u304c\u597d\u304d\u3002", "\u96e8\u3060\u3002"]),
    ("It is. The. ?! ...", []),
    ("Version 3.5 is out", ["Version 3.5 is out"]),
)


def test_sentences_are_told_apart() -> None:
    with Cases() as cases:
        for text, expected in SENTENCES:
            with cases.case(text):
                assert [sentence.text for sentence in summary.sentences("user", text)] == expected


@given(st.lists(st.text(max_size=40), max_size=8), st.integers(0, 80), st.sampled_from(list(COUNTERS.values())))
def test_an_extract_fits_and_quotes(texts: list[str], room: int, counter: TokenCounter) -> None:
    said = [sentence for text in texts for sentence in summary.sentences("user", text)]
    text = summary.extract(said, "So far:", room, Meter(counter))
    if text is not None:
        assert counter(text) <= room
        lead, *lines = text.split("\n")
        assert lead == "So far:"
        places = [[sentence.line for sentence in said].index(line) for line in lines]
        assert places == sorted(places) != [], "as they were said"


def test_a_sentence_is_not_chosen_for_its_length() -> None:
    rare = "Nobody expected seven purple elephants juggling forty copper kettles yesterday."
    said = summary.sentences("", f"{rare} Green tea. Hot green tea. Cold green tea.")
    assert summary.extract(said, "So far:", 90, Meter(len)) == (
        "So far:\n- Green tea.\n- Hot green tea.\n- Cold green tea."
    )
