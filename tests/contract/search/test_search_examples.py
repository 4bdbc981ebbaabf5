"""Examples that search find what they say: those of ``--help``, and the shell lines of the guides."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from wellkept.operations import VERBS

ROOT = Path(__file__).resolve().parents[3]
SEARCHING = [
    example.line
    for name, verb in VERBS.items()
    if name in ("search", "sessions.search")
    for example in verb.examples
    if not set(example.line) & set("|<")
]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
GUIDE = (ROOT / "docs" / "guides" / "cli.md").read_text(encoding="utf-8")
KNOWN = {
    "theme": "The user prefers a dark theme",
    "secur": "Security reviews come before every release",
    "tokens": "Access tokens expire after an hour",
    "flow": "Use the code flow for web apps",
}


@pytest.mark.req("L4")
@pytest.mark.parametrize("line", SEARCHING)
def test_what_help_searches_for_is_found(line: str, terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday")
    for content in KNOWN.values():
        terminal.add(content, "--type", "decision")
        terminal.json("add", content, "--type", "decision", "--session", "monday", "--layer", "session")
    answer = str(terminal.json(*[word for word in shlex.split(line)[1:] if word != "--json"]))
    assert any(content in answer for content in KNOWN.values()), answer


@pytest.mark.req("L4")
def test_what_the_guide_adds_its_searches_find(terminal: Terminal) -> None:
    """The first block of the guide, and the one on sessions, line by line."""
    lines = [line.partition("  #")[0] for block in BLOCK.findall(GUIDE) for line in block.splitlines()]
    said = [line for line in lines if re.match(r"wellkept (?:add|search|list|sessions(?: create| search|$))", line)]
    searches = 0
    for line in said:
        if set(line) & set("|<"):  # reads a file or another command, as in test_operations
            continue
        words = shlex.split(line)[1:]
        answer = str(terminal.json(*words))
        if words[0] == "search":
            assert "Prefers dark mode" in answer
            searches += 1
        elif words[:2] == ["sessions", "search"]:
            assert "Use the code flow" in answer
            searches += 1
    assert searches == 2


@pytest.mark.req("L4")
def test_the_first_example_of_the_readme_finds_what_it_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    exec(readme.partition("```python\n")[2].partition("```")[0], {})
    assert re.search(r"^1 0\.[5-9]\d* The user prefers dark mode \{", capsys.readouterr().out)
