"""What the documents show works: code runs, and commands exist.

All `python` blocks of one document share a namespace and an empty working directory, in order.
A block with `>>>` is checked as a session; `python no-run` is only compiled. `sh` blocks are not
run, but each `make` target in them must exist.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
MAKE_COMMAND = re.compile(r"(?:^|[;&|]|\b)\s*make(?: +[A-Z_]+=\S+)* +(?P<target>[a-z][\w-]*)")
MAKE_TARGET = re.compile(r"^(?P<target>[a-z][\w-]*)\s*:(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a document."""

    words: tuple[str, ...]
    code: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    for fence in FENCE.finditer(text):
        yield Block(
            words=tuple(fence["info"].split()),
            code=textwrap.dedent(fence["body"]),
            line=text.count("\n", 0, fence.start("body")),
        )


def run_python(text: str, name: str) -> None:
    """Run the python blocks of a document; the first failure raises."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        if block.words[:1] != ("python",):
            continue
        if "no-run" in block.words:
            compile(block.code, name, "exec")
        elif ">>>" in block.code:
            _run_session(block, namespace, name)
        else:
            # Empty lines in front let a traceback point at the line of the document.
            exec(compile("\n" * block.line + block.code, name, "exec"), namespace)


def _run_session(block: Block, namespace: dict[str, object], name: str) -> None:
    session = doctest.DocTestParser().get_doctest(block.code, namespace, name, name, block.line)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(session, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    # The runner works on a copy of the namespace.
    namespace.update(session.globs)


def unknown_targets(text: str, makefile: str) -> set[str]:
    """The make targets that `sh` blocks name and the Makefile lacks."""
    known = {match["target"] for match in MAKE_TARGET.finditer(makefile)}
    named = {
        match["target"]
        for block in blocks(text)
        if block.words[:1] == ("sh",)
        for line in block.code.splitlines()
        for match in MAKE_COMMAND.finditer(line.partition("#")[0])
    }
    return named - known


def documents() -> list[str]:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(file.relative_to(ROOT).as_posix() for file in files)


@pytest.mark.parametrize("name", documents())
def test_python_blocks_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # for blocks that start Python, in whatever folder
    if 'os.environ["DATABASE_URL"]' in text:
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    run_python(text, name)


@pytest.mark.parametrize("name", documents())
def test_make_targets_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert unknown_targets((ROOT / name).read_text(encoding="utf-8"), makefile) == set()


def test_make_alone_lists_every_target_as_contributors_are_told(require_tool: Callable[[str], str]) -> None:
    command = [require_tool("make"), "--no-print-directory"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = dict(re.findall(r"^make ([\w-]+) +(.+)$", listing, re.MULTILINE))
    assert set(texts) == set(MAKE_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("`", "")
    assert texts == dict(re.findall(r"^\| make ([\w-]+) \| (.+) \|$", table, re.MULTILINE))


def document(info: str, *lines: str) -> str:
    return "\n".join(["Text", "", f"```{info}", *lines, "```", ""])


def test_blocks_share_a_namespace() -> None:
    blocks_of_both_kinds = (
        document("python", "x = 1"),
        document("python", ">>> x", "1", ">>> y = 2"),
        document("text", "not Python"),
        document("python", "assert y == 2"),
    )
    run_python("".join(blocks_of_both_kinds), "d")


def test_a_failing_block_points_at_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_python(document("python", "x = 1", "1 / 0"), "d")
    assert raised.traceback[-1].lineno == 4  # counted from zero: the fifth line of the document


def test_a_wrong_answer_in_a_session_is_found() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_python(document("python", ">>> 1 + 1", "3"), "d")


def test_no_run_blocks_are_compiled_only() -> None:
    run_python(document("python no-run", "undefined()"), "d")
    with pytest.raises(SyntaxError):
        run_python(document("python no-run", "def"), "d")


def test_blocks_in_lists_are_found() -> None:
    [block] = blocks("- item\n  ```python\n  if True:\n      pass\n  ```\n")
    assert block.code == "if True:\n    pass\n"


def test_unknown_make_targets_are_found() -> None:
    makefile = "test: lint\n\techo\nlint:\nx := 1\n"
    text = document("sh", "make test  # or make never", "make lint && make PYTHON=p nonsense x")
    assert unknown_targets(text, makefile) == {"nonsense"}
