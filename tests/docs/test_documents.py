"""What the documents show works: code runs, and commands exist.

All blocks of one document run in order, in an empty folder; those of Python share a namespace. A block with `>>>` is
checked as a session, and `python no-run` is only compiled. `toml NAME` is written into that file. `sh` blocks run in a
shell that stops at the first command that fails, on a database of their own; it has our commands and no terminal.
`sh no-run` is for what installs, builds, or needs more than an empty folder. Each `make` target that a block names must
exist.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.terminal import environment

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
MAKE_COMMAND = re.compile(r"(?:^|[;&|]|\b)\s*make(?: +[A-Z_]+=\S+)* +(?P<target>[a-z][\w-]*)")
MAKE_TARGET = re.compile(r"^(?P<target>[a-z][\w%-]*)\s*:(?!=)", re.MULTILINE)
# What the blocks of the guide of the command line read.
FILES = {
    "notes.txt": "Likes tea\nLives in Rome\n",
    "minutes.md": "# Minutes\n\nReleases go out on Fridays.\n",
}


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


def run(text: str, name: str) -> None:
    """Run the blocks of a document in the working directory; the first failure raises."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(text):
        match block.words:
            case ("python", "no-run"):
                compile(block.code, name, "exec")
            case ("python",) if ">>>" in block.code:
                _run_session(block, namespace, name)
            case ("python",):
                # Empty lines in front let a traceback point at the line of the document.
                exec(compile("\n" * block.line + block.code, name, "exec"), namespace)
            case ("sh",):
                _run_in_shell(block)
            case ("toml", file):
                Path(file).write_text(block.code, encoding="utf-8")
            case _:
                pass


def _run_in_shell(block: Block) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", block.code],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path, "WELLKEPT_DB": "shell.db"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"line {block.line}: exit code {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)


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
    patterns = [re.compile(target.replace("%", ".+")) for target in known if "%" in target]
    named = {
        match["target"]
        for block in blocks(text)
        if block.words[:1] == ("sh",)
        for line in block.code.splitlines()
        for match in MAKE_COMMAND.finditer(line.partition("#")[0])
    }
    return {name for name in named - known if not any(pattern.fullmatch(name) for pattern in patterns)}


def documents() -> dict[str, str]:
    files = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def with_code() -> list[str]:
    """The documents with blocks that run: each is a program of its own."""
    kinds = {("python",), ("python", "no-run"), ("sh",)}
    return [name for name, text in documents().items() if any(block.words in kinds for block in blocks(text))]


@pytest.mark.parametrize("name", with_code())
def test_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    text = documents()[name]
    for file, content in FILES.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for variable, value in environment(tmp_path).items():  # also for blocks that start Python
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("WELLKEPT_DB")
    if 'os.environ["DATABASE_URL"]' in text:
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    run(text, name)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    unknown = {name: targets for name, text in documents().items() if (targets := unknown_targets(text, makefile))}
    assert unknown == {}


def test_make_alone_lists_every_target_as_contributors_are_told(require_tool: Callable[[str], str]) -> None:
    command = [require_tool("make"), "--no-print-directory"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = dict(re.findall(r"^make ([\w-]+) +(.+)$", listing, re.MULTILINE))
    targets = MAKE_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(texts) == {target.replace("%", "NAME") for target in targets}
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
    run("".join(blocks_of_both_kinds), "d")


def test_a_failing_block_points_at_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run(document("python", "x = 1", "1 / 0"), "d")
    assert raised.traceback[-1].lineno == 4  # counted from zero: the fifth line of the document


def test_a_wrong_answer_in_a_session_is_found() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run(document("python", ">>> 1 + 1", "3"), "d")


def test_no_run_blocks_are_compiled_only() -> None:
    run(document("python no-run", "undefined()"), "d")
    with pytest.raises(SyntaxError):
        run(document("python no-run", "def"), "d")


def test_blocks_in_lists_are_found() -> None:
    [block] = blocks("- item\n  ```python\n  if True:\n      pass\n  ```\n")
    assert block.code == "if True:\n    pass\n"


def test_unknown_make_targets_are_found() -> None:
    makefile = "test: lint\n\techo\ntest-%: lint\nlint:\nx := 1\n"
    text = document(
        "sh no-run", "make test  # or make never", "make test-docs", "make lint && make PYTHON=p nonsense x"
    )
    assert unknown_targets(text, makefile) == {"nonsense"}


def test_shell_blocks_run_and_a_command_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(document("sh", "wellkept add Likes tea", "wellkept list > listed.txt") + document("sh no-run", "exit 1"), "d")
    assert "Likes tea" in (tmp_path / "listed.txt").read_text(encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match=r"line 3: exit code 2\n.*nonsense"):
        run(document("sh", "wellkept nonsense", "true"), "d")
