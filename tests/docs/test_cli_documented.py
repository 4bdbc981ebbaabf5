"""The guide of the command line has every command, exit code, variable and flag of identity."""

from __future__ import annotations

import re
from pathlib import Path

from wellkept.cli.constants import BUILTINS, DATABASE_VARIABLE, IDS, variable_of
from wellkept.operations import EXIT_CODES, VERBS, family

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "cli.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[str]:
    """The rows of the table under a heading."""
    section = GUIDE.partition(heading)[2]
    return re.findall(r"^\| (?!---|code|command)(.*?) \|", section.partition("\n## ")[0], re.MULTILINE)


def commands(heading: str) -> set[str]:
    return {name for row in rows(heading) for name in re.findall(r"`(\w+)`", row)}


def test_every_command_is_in_the_guide() -> None:
    assert commands("# The command line") == {*(name for name in VERBS if "." not in name), *BUILTINS}
    assert commands("\n## Sessions") == set(family("sessions"))


def test_every_exit_code_is_in_the_guide() -> None:
    assert [int(row) for row in rows("## Exit codes")] == list(EXIT_CODES)


def test_every_variable_and_flag_is_in_the_guide() -> None:
    for name in IDS:
        assert f"`--{name}`" in GUIDE
        assert f"`{variable_of(name)}`" in GUIDE
    assert f"`{DATABASE_VARIABLE}`" in GUIDE
