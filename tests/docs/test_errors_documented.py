"""Every error is in the table of docs/errors.md, with its code and whether it can be tried again."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from wellkept import errors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<code>\w+)` \| (?P<retryable>yes|no) \|(?P<rest>.*)\|$", re.MULTILINE)


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


def test_each_row_has_the_code_whether_to_retry_when_it_is_raised_and_what_to_do() -> None:
    wrong = {}
    for name, kind in error_classes().items():
        row = documented()[name]
        cells = [cell.strip() for cell in row["rest"].split(" | ")]
        shown = (row["code"], row["retryable"], len(cells), all(cells))
        if shown != (kind.code, "yes" if kind.retryable else "no", 2, True):
            wrong[name] = shown
    assert wrong == {}


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in error_classes().values()]
    assert len(set(codes)) == len(codes)
