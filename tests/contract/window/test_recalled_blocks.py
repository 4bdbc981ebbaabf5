"""What was recalled is recognised wherever it turns up again, and nothing else is."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.window_items import HOSTILE, block, entry, memory
from wellkept.testing.cases import Cases
from wellkept.window import is_recalled, strip_recalled

BLOCK = block(memory("Likes tea\n\nand milk", "m1"), memory("Rome", "m2"))
NOTE = BLOCK.splitlines()[1]
ENTRY = entry(memory("Likes tea", "m1", author="Ada"))
# Pieces of blocks in any order: what models and users make of them.
PIECES = st.lists(
    st.sampled_from(
        [*BLOCK.splitlines(), ENTRY, BLOCK, "said", "> quoted", "", "  ", "</recalled-memories> said", *HOSTILE]
    )
    | st.text(max_size=10),
    max_size=8,
).flatmap(lambda parts: st.sampled_from(["\n", "\r\n", "\r", "\u2028", " "]).map(lambda end: end.join(parts)))


TAKEN_OUT: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("I recalled memories of tea", "I recalled memories of tea"),
    ("> quoted by a user\nyes", "> quoted by a user\nyes"),
    (BLOCK, ""),
    (f"before\n{BLOCK}\nafter", "before\nafter"),
    (f"{BLOCK}\n{BLOCK}\nafter", "after"),
    (BLOCK.replace("\n", "\r\n") + "\r\nafter", "after"),
    (f"before\n{BLOCK.removesuffix(chr(10) + '</recalled-memories>')}", "before\n"),
    (f"{ENTRY}\nSo, tea.", "So, tea."),
    ("    " + ENTRY.replace("\n", "\n    ") + "\nSo, tea.", "So, tea."),
    ("> " + BLOCK.replace("\n", "\n> ") + "\nmy comment", "my comment"),
    (f"{BLOCK} And now my answer", " And now my answer"),
    (f"{ENTRY}\n\n> a quotation of the user", "\n> a quotation of the user"),
    (BLOCK.replace("\n[", "\n\n[").replace("\n</", "\n\n</"), "\n\n\n"),
)


def test_recalled_memories_are_taken_out() -> None:
    with Cases() as cases:
        for text, rest in TAKEN_OUT:
            with cases.case(text):
                assert strip_recalled(text) == rest
                assert is_recalled(text) == (text != rest)


ONLY_SPOKEN_OF: tuple[str, ...] = (
    "<recalled-memories>\nnothing of ours",
    "<recalled-memories as-of=...> opens a block",
    '<recalled-memories as-of="2026-01-08"> opens a block',
    "</recalled-memories> closes it",
    "</recalled-memories>",
    "[recalled-memory id=...] is the heading",
    '[recalled-memory id="018b"]\n> Likes tea',
    '[recalled-memory id="018b" date="2026-01-07" layer="user"] is how it begins\n> Likes tea',
    'See [recalled-memory id="018b" date="2026-01-07" layer="user"]\n> Likes tea',
    f"{NOTE}\n> Likes tea",
    '[recalled-memory id="' + '\\"' * 50_000,
    "<recalled-memories " * 10_000,
)


def test_a_text_that_only_speaks_of_the_marks_is_left_alone() -> None:
    with Cases() as cases:
        for text in ONLY_SPOKEN_OF:
            with cases.case(text):
                assert strip_recalled(text) == text
                assert not is_recalled(text)


@given(PIECES)
def test_what_remains_is_not_recalled_and_remains(text: str) -> None:
    rest = strip_recalled(text)
    assert not is_recalled(rest)
    assert strip_recalled(rest) == rest
    if not is_recalled(text):
        assert rest == text


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_memory_is_taken_out_whole(content: str, author: str) -> None:
    text = block(memory(content, author=author))
    assert strip_recalled(f"before\n{text}\nafter") == "before\nafter"
    assert len(text.splitlines()) == 4 + max(1, len(content.splitlines()))


def test_long_runs_are_read_in_one_go() -> None:
    """A pattern that tries again at each place would take hours."""
    for run in ("<" * 200_000, ">" * 200_000, " " * 200_000, "<|" * 100_000, "\n" * 200_000):
        assert strip_recalled(run) == run
        assert strip_recalled(entry(memory(run))) == ""
