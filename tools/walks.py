"""Writes into docs/architecture.md which files a call passes, by tracing real calls on a SQLite file.

A file is passed if a function of it runs. The rooms of values (types, codec, validation and so on) and constructors are
left out. Each call is made once before it is traced, with another text: what is loaded or cached once does not count,
and a text that is there already would be merged.
"""

import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import wellkept
from wellkept.cli import main

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = Path(wellkept.__file__).parent
BEGIN, END = "<!-- walks: written by tools/walks.py -->", "<!-- end of walks -->"
LEFT_OUT = tuple(
    "types/ codec/ events/ settings/ errors.py exports.py fields.py ids.py logs.py open_files.py validation.py".split()
)


class Walk(NamedTuple):
    """The files that a call passes, in order, each with the functions that ran in it."""

    name: str
    wanted: int | None
    files: dict[str, list[str]]


@contextmanager
def traced(files: dict[str, list[str]]) -> Iterator[None]:
    """Note every function of the package that is called within."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        file = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
        function = frame.f_code.co_name
        if file.startswith(LEFT_OUT) or function.startswith(("<", "__")):
            return
        ran = files.setdefault(file, [])
        if function not in ran:
            ran.append(function)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def walk(name: str, wanted: int | None, call: Callable[[str], object], texts: tuple[str, str] = ("", "")) -> Walk:
    """Make a call twice, each time with a text of its own, and trace the second one."""
    call(texts[0])
    files: dict[str, list[str]] = {}
    with traced(files):
        call(texts[1])
    return Walk(name, wanted, files)


def walks(folder: Path) -> list[Walk]:
    """The calls that every user makes, on a new file in a folder."""
    path = folder / "memory.db"
    with wellkept.open(path) as memories:
        view = memories.view(user="ada", project="api")
        memory = view.add("The user prefers dark mode", type="preference")
        view.add_many([f"Fact number {number} about the build" for number in range(50)])
        session = view.sessions.create("monday").view
        decisions = ("Use tabs for indentation", "Releases are built on Thursdays")
        questions = ("How do we indent?", "What theme does the user prefer?")
        calls = [
            walk("get", 7, lambda _: view.get(memory.id)),
            walk("add", 15, lambda text: view.add(text, layer="project", type="decision"), decisions),
            walk("search", 20, view.search, questions),
            walk("a session's write", None, lambda text: session.add(text, type="decision"), decisions),
        ]
    return [*calls, walk("`wellkept count`", None, lambda _: command(["--db", str(path), "--user", "ada", "count"]))]


def command(arguments: list[str]) -> None:
    """The command line, in this process; what it prints is of no interest."""
    before, sys.argv = sys.argv, ["wellkept", *arguments]
    try:
        with redirect_stdout(io.StringIO()):
            main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.argv = before


def section(found: list[Walk]) -> str:
    """The tables of the page."""
    lines = [BEGIN, "", "| call | files passed | wanted |", "| --- | --- | --- |"]
    lines += [f"| {one.name} | {len(one.files)} | {one.wanted or ''} |" for one in found]
    for one in found:
        lines += ["", f"### {one.name[0].upper()}{one.name[1:]}" if one.name[0] != "`" else f"### {one.name}", ""]
        lines += [f"{place}. `{file}`: {_named(ran)}" for place, (file, ran) in enumerate(one.files.items(), start=1)]
    return "\n".join([*lines, "", END])


def _named(functions: list[str]) -> str:
    shown = [f"`{name}`" for name in functions[:6]]
    return ", ".join(shown) + (f" and {len(functions) - 6} more" if len(functions) > 6 else "")


def page() -> str:
    """The page with the walks of now."""
    with tempfile.TemporaryDirectory() as folder:
        written = section(walks(Path(folder)))
    text = PAGE.read_text(encoding="utf-8")
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: written, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
