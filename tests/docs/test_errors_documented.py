"""Every error is in the table of docs/errors.md, with its code and whether it can be tried again."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from wellkept import errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<code>\w+)` \| (?P<retryable>yes|no) \|(?P<rest>.*)\|$", re.MULTILINE)
COLUMNS_LEFT = 2  # when, and what to do


def error_classes() -> dict[str, type[errors.WellkeptError]]:
    return {
        name: kind
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.WellkeptError)
    }


def documented() -> dict[str, re.Match[str]]:
    return {row["name"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_the_table_names_every_error_and_no_other() -> None:
    assert set(documented()) == set(error_classes())


@pytest.mark.parametrize("name", sorted(error_classes()))
def test_the_row_is_right(name: str) -> None:
    kind, row = error_classes()[name], documented()[name]
    assert row["code"] == kind.code
    assert row["retryable"] == ("yes" if kind.retryable else "no")
    cells = [cell.strip() for cell in row["rest"].split(" | ")]
    assert len(cells) == COLUMNS_LEFT
    assert all(cells), "say when it is raised and what to do"


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in error_classes().values()]
    assert len(set(codes)) == len(codes)
