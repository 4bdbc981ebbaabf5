"""What is typed becomes what is meant, or an error that says what to type."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.terminal import Terminal
from wellkept.cli.app import Commands
from wellkept.cli.converters import moment
from wellkept.cli.parameters import Kind, kind_of, lines_of, read_text, slots_of
from wellkept.cli.screen import standard_screens
from wellkept.errors import InvalidInput
from wellkept.operations import VERBS, Takes

NOW = datetime(2030, 1, 8, 12, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("now", NOW),
        ("2030-01-07", NOW.replace(day=7, hour=0)),
        ("2030-01-07T09:30", NOW.replace(day=7, hour=9, minute=30)),
        ("2030-01-07 09:30:00Z", datetime(2030, 1, 7, 9, 30, tzinfo=UTC)),
        ("2d", NOW - timedelta(days=2)),
        ("12h", NOW - timedelta(hours=12)),
        ("last week", NOW - timedelta(weeks=1)),
        ("2 days ago", NOW - timedelta(days=2)),
        ("3h  ago", NOW - timedelta(hours=3)),
        ("today", NOW.replace(hour=0)),
        (" Yesterday ", NOW.replace(day=7, hour=0)),
        ("tomorrow", NOW.replace(day=9, hour=0)),
        ("in 2 days", NOW + timedelta(days=2)),
    ],
)
def test_times_are_dates_or_spans(text: str, means: datetime) -> None:
    assert moment(text, NOW) == means


@pytest.mark.parametrize(
    ("text", "means"),
    [("2d", timedelta(days=2)), ("in 2 days", timedelta(days=2)), ("2 days ago", timedelta(days=-2))],
)
def test_where_spans_lie_ahead_ago_lies_back(text: str, means: timedelta) -> None:
    assert moment(text, NOW, ahead=True) == NOW + means


@given(st.text())
def test_every_line_that_says_something_is_a_memory(text: str) -> None:
    lines = [line.strip() for line in text.split("\n")]
    said = tuple(line for line in lines if line)
    if said:
        assert lines_of(text) == said
    else:
        with pytest.raises(InvalidInput):
            lines_of(text)


@given(st.binary())
def test_input_is_read_as_utf8_or_the_first_wrong_byte_is_named(content: bytes) -> None:
    try:
        expected = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        with pytest.raises(InvalidInput, match="byte") as raised:
            read_text(io.BytesIO(content))
        place = raised.value.details["byte"]
        assert f"0x{content[place]:02x}" in raised.value.message
        assert raised.value.details["line"] == content[:place].count(b"\n") + 1
    else:
        assert read_text(io.BytesIO(content)) == expected


def test_a_wrong_byte_behind_a_mark_is_named_by_its_place_in_the_file() -> None:
    with pytest.raises(InvalidInput, match="byte 5 "):
        read_text(io.BytesIO(b"\xef\xbb\xbfab\xff"))


def test_long_input_is_told_while_it_is_read(tmp_path: Path) -> None:
    text = "Likes tea\n" * 50_000
    file = tmp_path / "notes.txt"
    file.write_text(text)
    told: list[tuple[int, int]] = []
    with file.open("rb") as stream:
        assert read_text(stream, lambda *how: told.append(how)) == text
    assert told[-1] == (len(text), len(text)), "of a file, bytes of how many"
    assert told == sorted(set(told))
    counted: list[tuple[int, int]] = []
    assert read_text(io.BytesIO(text.encode()), lambda *how: counted.append(how)) == text
    assert counted[-1] == (0, 50_000), "of a pipe, lines"
    short: list[tuple[int, int]] = []
    read_text(io.BytesIO(b"Likes tea\n"), lambda *how: short.append(how))
    assert short == []


def test_words_of_a_literal_are_words_of_an_option() -> None:
    assert kind_of(Literal["full", "relaxed"] | None) == Kind(str, optional=True, words=("full", "relaxed"))
    assert kind_of(tuple[Literal["a", "b"], ...]) == Kind(str, many=True, words=("a", "b"))


# -- the options of all verbs -----------------------------------------------------------------------------------------


def command_of(name: str) -> click.Command:
    command: click.Command = Commands(*standard_screens())
    for part in name.split("."):
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), part)
        assert below is not None
        command = below
    return command


def test_every_field_of_a_verb_has_an_option_of_its_own(terminal: Terminal) -> None:
    wrong: dict[str, object] = {}
    for name, verb in VERBS.items():
        params, slots = command_of(name).params, list(slots_of(verb))
        names = [option for param in params for option in (*param.opts, *param.secondary_opts)]
        if repeated := sorted(option for option in set(names) if names.count(option) > 1):
            wrong[f"{name}, twice"] = repeated
        if missing := {slot.key for slot in slots} - {param.name for param in params}:
            wrong[f"{name}, missing"] = missing
        text = terminal(*name.split("."), "--help").out
        if untold := [s.flag for s in slots if s.parameter.takes is Takes.OPTION and s.flag not in text]:
            wrong[f"{name}, not in its help"] = untold
    assert wrong == {}
