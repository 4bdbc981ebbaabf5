"""The reference is what the code says: current, complete, and with examples that the tests run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import wellkept
from tools import library_reference
from tools.library_reference import FOLDER, MARK, ROOT, Library, Module, UnknownName, Writer
from tools.reference_pages import Page

PAGES = library_reference.shown_pages(library_reference.entries(Library(ROOT)))

SESSION = re.compile(r"^```pycon\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^##+ (?P<name>.+)$", re.MULTILINE)


@cache
def pages() -> dict[str, str]:
    return library_reference.pages(ROOT)


def headings(page: str) -> set[str]:
    return set(HEADING.findall(pages()[page]))


@pytest.mark.parametrize("name", ["README.md", *(page.file for page in PAGES)])
def test_the_page_is_current(name: str) -> None:
    assert (ROOT / FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `make docs`"


def test_no_page_is_left_from_former_times() -> None:
    ours = [file.name for file in (ROOT / FOLDER).glob("*.md") if MARK in file.read_text(encoding="utf-8")]
    assert set(ours) == set(pages())


def test_every_public_name_has_a_section() -> None:
    shown = {name for page in PAGES for name in headings(page.file)}
    modules = {name for name in wellkept.__all__ if inspect.ismodule(getattr(wellkept, name))}
    assert set(wellkept.__all__) - modules - {"__version__"} - shown == set()


@pytest.mark.parametrize(
    ("module", "page"), [(shown, page.file) for page in PAGES for shown in page.shows if ":" not in shown]
)
def test_what_a_module_offers_at_run_time_is_on_its_page(module: str, page: str) -> None:
    loaded = importlib.import_module(module)
    own = (
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module
        if inspect.isclass(value) or inspect.isfunction(value)
    )
    assert set(getattr(loaded, "__all__", own)) - headings(page) == set()


@pytest.mark.parametrize("name", ["Memories", "View", "AgentMemory"])
def test_every_public_method_has_a_section(name: str) -> None:
    shown = headings("agent.md") | headings("database.md")
    methods = [method for method, _ in inspect.getmembers(getattr(wellkept, name), inspect.isfunction)]
    assert [method for method in methods if method[0] != "_" and f"{name}.{method}" not in shown] == []


def examples_of(text: str) -> Iterator[tuple[str, str]]:
    for example in doctest.DocTestParser().get_examples(text):
        yield example.source, example.want


@cache
def examples_that_run() -> frozenset[tuple[str, str]]:
    """What ``tests/test_surface.py`` runs: the examples of every module."""
    files = sorted((ROOT / "src" / "wellkept").rglob("*.py"))
    names = [".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__") for file in files]
    found = [test for name in names for test in doctest.DocTestFinder().find(importlib.import_module(name), name)]
    return frozenset((example.source, example.want) for test in found for example in test.examples)


@pytest.mark.parametrize("name", [page.file for page in PAGES])
def test_every_example_on_the_page_is_run_as_a_doctest(name: str) -> None:
    shown = [one for session in SESSION.finditer(pages()[name]) for one in examples_of(session["code"])]
    assert shown
    assert [one for one in shown if one not in examples_that_run()] == []


def test_a_public_name_without_a_page_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "src" / "wellkept"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('from wellkept.toys import Ball, Kite\n\n__all__ = ["Ball", "Kite"]\n')
    (package / "toys.py").write_text("class Ball: ...\nclass Kite: ...\n")
    page = Page(file="toys.md", title="Toys", intro="", shows=("wellkept.toys:Ball",))
    monkeypatch.setattr(library_reference, "PAGES", (page,))
    with pytest.raises(UnknownName, match=r"wellkept\.Kite is on no page"):
        library_reference.entries(Library(tmp_path))
    whole = replace(page, shows=("wellkept.toys",))
    monkeypatch.setattr(library_reference, "PAGES", (whole,))
    assert [entry.name for entry in library_reference.entries(Library(tmp_path))] == ["Ball", "Kite"]


SAMPLE = '''
class Box(Base, total=False):
    """A box."""

    name: str = "box"
    _secret = 1

    def __init__(self, size: int = 3) -> None:  # noqa: X1  # a reason
        self.size = size

    @overload
    def get(self, key: str) -> int: ...
    @overload
    def get(
        self,
        key: str,
        default: "int | str",
    ) -> int: ...
    def get(self, key, default=None):
        """Like :meth:`wellkept.View.get`, or ``default``.

        It is quick:
        >>> Box().get("a")
        1

        That was all.
        """

    @property
    def room(self) -> "int | None":
        """How much is left."""

    def _hidden(self) -> None: ...
'''


def sample() -> Module:
    return Module("wellkept.sample", SAMPLE, ast.parse(SAMPLE))


def test_heads_are_shown_as_they_stand_in_the_source() -> None:
    module = sample()
    [box] = [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
    assert library_reference.outline(module, box) == (
        'class Box(Base, total=False):\n    name: str = "box"\n    def __init__(self, size: int = 3) -> None: ...'
    )
    forms = [node for node in box.body if isinstance(node, ast.FunctionDef) and node.name == "get"]
    assert [library_reference.signature(module, form) for form in forms] == [
        "def get(self, key: str) -> int: ...",
        'def get(\n    self,\n    key: str,\n    default: "int | str",\n) -> int: ...',
        "def get(self, key, default=None): ...",
    ]


def test_docstrings_become_text_links_and_sessions() -> None:
    library = Library(ROOT)
    writer = Writer(library, library_reference.entries(library))
    [box] = [node for node in sample().tree.body if isinstance(node, ast.ClassDef)]
    text = "\n".join(writer._class(sample(), box))
    assert "| `room` | `int \\| None` | How much is left. |" in text
    assert text.count("### Box.get") == 1
    assert "Like [`View.get`](database.md#viewget), or `default`.\n\nIt is quick:\n\n```pycon\n>>> Box()" in text
    assert "1\n```\n\nThat was all." in text
    assert "_hidden" not in text
