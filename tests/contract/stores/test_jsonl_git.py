"""A folder of JSON Lines in git: small diffs, and merges that keep both sides."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import wellkept
from tests.support.jsonl_files import every_file
from tests.support.terminal import Terminal
from wellkept import Memories
from wellkept.stores.jsonl import JsonlStore

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of memories, committed."""
    root = tmp_path / "memory"
    with opened(root) as memories:
        memories.view(user="ada").add("Likes tea")
        memories.view(user="ada").sessions.create("monday").view.add("Use tabs")
    JsonlStore.git_files(f"jsonl:{root}")()
    git(root, "init", "-q", "-b", "main")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("core.filemode", "true")):
        git(root, "config", name, value)
    commit(root)
    return root


def git(root: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "memories")


def opened(root: Path) -> Memories:
    return wellkept.open(f"jsonl:{root}", embedder="hashing-64")


def contents(root: Path) -> list[str]:
    with opened(root) as memories:
        return sorted(one.content for one in memories.view(user="ada", session="monday").list())


@pytest.mark.req("J1")
@pytest.mark.parametrize("session", [None, "monday"])
def test_one_add_changes_one_line_of_one_file(root: Path, session: str | None) -> None:
    with opened(root) as memories:
        view = memories.view(user="ada", session=session)
        view.add("One more", layer="session" if session else "user")
        view.search("tabs")
        view.list()
    changed = git(root, "diff", "--numstat").split()
    assert changed[:2] == ["1", "0"]
    assert len(changed) == 3
    assert git(root, "status", "--porcelain").count("\n") == 1


@pytest.mark.req("J1")
def test_merging_two_branches_keeps_both_sides(root: Path) -> None:
    with opened(root) as memories:
        before = memories.view(user="ada", session="monday").add("Seen by a follower").id
        position = memories.view(user="ada").changes().next
    commit(root)
    git(root, "checkout", "-q", "-b", "side")
    with opened(root) as memories:
        memories.view(user="ada").add("From the side")
        memories.view(user="ada", session="monday").add("Said on the side", layer="session")
        memories.view(user="ada").update(before, content="Changed on the side")
    commit(root)
    git(root, "checkout", "-q", "main")
    with opened(root) as memories:
        memories.view(user="ada").add("From main")
        memories.view(user="ada", session="monday").add("Said on main", layer="session")
        memories.view(user="ada").update(before, content="Changed on main, later")
    commit(root)
    git(root, "merge", "-q", "side", "-m", "both")
    both = {"From the side", "Said on the side", "From main", "Said on main", "Changed on main, later"}
    assert set(contents(root)) == {"Likes tea", "Use tabs", *both}
    with opened(root) as memories:
        told = memories.doctor()
        assert told.healthy, told.findings
        assert before in told.facts["changed_on_both_sides"]
        history = [one.memory and one.memory.content for one in memories.view(user="ada").history(before)]
        assert history == ["Seen by a follower", "Changed on the side", "Changed on main, later"]
        followed = {one.memory.content for one in memories.view(user="ada").changes(after=position) if one.memory}
        assert {"From the side", "From main", "Changed on main, later"} <= followed
    clone = root.with_name("clone")
    git(root.parent, "clone", "-q", str(root), str(clone))
    assert contents(clone) == contents(root)
    with opened(clone) as memories:
        assert memories.doctor().findings == (), "modes after a checkout are git's, and a search makes vectors again"
        [made] = memories.doctor(repair=True).findings
        assert (made.check, made.repaired) == ("embedder", True), "who cannot wait for a search"


@pytest.mark.req("J1")
def test_another_branch_is_no_loss(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    with opened(root) as memories:
        memories.view(user="ada").add("From the side")
    commit(root)
    git(root, "checkout", "-q", "main")
    with opened(root) as memories:
        assert memories.doctor().healthy
        memories.view(user="ada").add("From main")
    commit(root)
    git(root, "merge", "-q", "side", "-m", "both")
    assert contents(root) == ["From main", "From the side", "Likes tea", "Use tabs"]


@pytest.mark.req("J1")
def test_init_writes_what_git_must_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    terminal = Terminal(tmp_path, monkeypatch, capsys)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/.gitignore").write_text("*.swp")
    done = terminal("--db", "jsonl:memory", "--json", "init", "--git")
    assert done.result == {"database": "jsonl:memory", "files": [".gitattributes", ".gitignore"]}
    assert (tmp_path / "memory/.gitignore").read_text().splitlines()[:2] == ["*.swp", "/derived/"]
    before = every_file(tmp_path / "memory")
    assert terminal("--db", "jsonl:memory", "--json", "init", "--git").result["files"] == []
    assert every_file(tmp_path / "memory") == before
    assert terminal("--db", "memory.db", "init").code == 0
    assert terminal("--db", "memory.db", "init", "--git").code != 0


@pytest.mark.req("J1", "L4")
def test_a_clone_is_searched_by_meaning_and_stays_unchanged(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(root), str(copy))
    with opened(copy) as memories:
        found = memories.view(user="ada").search("Likes tea", ranking="similarity")
        assert [hit.memory.content for hit in found][:1] == ["Likes tea"]
        assert memories.doctor().findings == ()
    assert git(copy, "status", "--porcelain") == ""


@pytest.mark.req("J1")
def test_a_clone_that_cannot_be_written_is_searched_by_words(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(root), str(copy))
    with opened(copy):
        pass
    shutil.rmtree(copy / "derived")
    (copy / "derived").write_text("")  # nothing can be made below it
    with opened(copy) as memories:
        assert [hit.memory.content for hit in memories.view(user="ada").search("tea")] == ["Likes tea"]
