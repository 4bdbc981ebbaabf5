"""Hints that the library gives to programs, in the words of the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.cli.short_ids import short
from wellkept.cli.wording import in_commands


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ("run doctor with repair=True: it counts again", "run wellkept doctor --repair: it counts again"),
        ("erase something (forget with permanent=True)", "erase something (wellkept forget --permanent)"),
        ("delete the session with permanent=True", "delete the session with --permanent"),
        ("keys.list() has their ids", "wellkept keys lists their ids"),
        ("run memories.reembed() with the other one", "run wellkept reembed with the other one"),
        ("pass one, such as memories.reembed('static')", "pass one, such as wellkept reembed --embedder static"),
        ("to let nothing fade, use enabled=False", "to let nothing fade, use --no-decay"),
        ("pass user= as well: a session belongs to a user", "pass --user as well: a session belongs to a user"),
    ],
)
def test_hints_of_the_library_become_commands(python: str, typed: str) -> None:
    assert in_commands(python) == typed


@given(st.uuids(), st.text(max_size=40))
def test_short_ids_are_beginnings_of_16_hexadecimal_digits(id: object, other: str) -> None:
    assert str(id).startswith(short(str(id)))
    assert len(short(str(id)).replace("-", "")) >= 16
    assert short(other) == other
