"""What a person edits in the files is noticed, and can be taken over as a new version."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import wellkept
from tests.support.jsonl_files import edit, read
from tests.support.stand_ins import HandClock
from wellkept import Memories
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import Operation

MEMORY = "users/ada/memory.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def opened(root: Path, **options: Any) -> Memories:
    return wellkept.open(f"jsonl:{root}", **{"embedder": None, "clock": HandClock(), **options})


def rewrite(root: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a line as an editor would: the checksum stays what it was."""

    def changed(lines: list[bytes]) -> None:
        fields = json.loads(lines[number])
        change(fields)
        lines[number] = json.dumps(fields).encode() + b"\n"

    edit(root / MEMORY, changed)


def say(message: str) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["content"].update(message=message)


def contents(memories: Memories) -> list[str]:
    return [one.content for one in memories.view(user="ada").list(sort_by="oldest")]


@pytest.mark.req("J4")
def test_an_edited_line_is_taken_over_as_a_new_version(root: Path) -> None:
    with opened(root) as memories:
        memory = memories.view(user="ada").add("Lives in Paris", tags=["home"])
        memories.view(user="ada").update(memory.id, content="Lives in Rome")
        memories.view(user="ada").add("Likes tea")
    rewrite(root, 1, say("Lives in Oslo"))
    with opened(root) as memories:
        assert contents(memories) == ["Lives in Paris", "Likes tea"], "what was edited does not count yet"
        [finding] = memories.doctor().findings
        assert "line 2" in finding.message
        assert "accept" in finding.repair
        told = memories.doctor(accept=True)
        assert [(one.check, one.repaired) for one in told.findings] == [("edits", True)]
        assert memories.doctor().findings == ()
    with opened(root) as memories:
        assert contents(memories) == ["Lives in Oslo", "Likes tea"]
        history = memories.view(user="ada").history(memory.id)
        assert [(one.version, one.operation, one.reason) for one in history] == [
            (1, Operation.ADDED, None),
            (3, Operation.UPDATED, "edited by hand"),
        ]
        assert (history[1].recorded_at, history[1].memory.tags) == (START, ("home",))  # type: ignore[union-attr]  # it is there
        assert memories.view(user="ada").update(memory.id, content="Lives in Bonn").version == 4
        assert memories.doctor(accept=True).findings == ()


@pytest.mark.req("J4")
def test_a_process_that_read_the_former_line_brings_it_back(root: Path) -> None:
    with opened(root) as memories:
        memory = memories.view(user="ada").add("Lives in Paris")
        [line] = (root / MEMORY).read_bytes().splitlines()
        rewrite(root, 0, say("Lives in Oslo"))
        memories.doctor(accept=True)
        history = memories.view(user="ada").history(memory.id)
        assert [(one.version, one.memory and one.memory.content) for one in history] == [
            (1, "Lives in Paris"),
            (2, "Lives in Oslo"),
        ]
    assert (root / MEMORY).read_bytes().splitlines()[0] == line
    with opened(root) as memories:
        assert memories.view(user="ada").history(memory.id) == history


def test_another_process_sees_what_was_taken_over(root: Path) -> None:
    with opened(root) as first, opened(root) as second:
        first.view(user="ada").add("Lives in Paris")
        assert contents(second) == ["Lives in Paris"]
        rewrite(root, 0, say("Lives in Oslo"))
        first.doctor(accept=True)
        assert contents(second) == ["Lives in Oslo"]


def test_an_edited_text_is_embedded_anew(root: Path) -> None:
    with opened(root, embedder=HashingEmbedder(64)) as memories:
        memory = memories.view(user="ada").add("Lives in Paris")
    rewrite(root, 0, say("Drinks tea"))
    with opened(root, embedder=HashingEmbedder(64)) as memories:
        assert memories.doctor(accept=True).healthy
        view = memories.view(user="ada")
        found = view.get(memory.id, include_vector=True)
        assert found is not None
        assert found.vector is not None
        fresh = view.get(view.add("Drinks tea").id, include_vector=True)
        assert fresh is not None
        assert fresh.vector == found.vector


UNFIT: dict[str, Callable[[dict[str, Any]], object]] = {
    "id": lambda fields: fields.update(id="another"),
    "owner": lambda fields: fields.update(owner=["user", "bob"]),
    "version": lambda fields: fields.update(version=7),
    "importance": lambda fields: fields.update(importance=5),
    "type": lambda fields: fields.update(type="planet"),
    "tags": lambda fields: fields.update(tags=[""]),
    "key": lambda fields: fields.update(key="taken"),
    "no content": lambda fields: fields.pop("content"),
    "empty message": lambda fields: fields["content"].update(message=""),
}


@pytest.mark.req("J4")
def test_what_does_not_fit_is_not_taken_over(tmp_path: Path) -> None:
    with Cases() as cases:
        for name, change in UNFIT.items():
            with cases.case(name):
                _not_taken_over(Path(mkdtemp(dir=tmp_path)) / "memory", change)


def _not_taken_over(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with opened(root) as memories:
        memories.view(user="ada").add("first")
        memories.view(user="ada").add("second", key="taken")
        rewrite(root, 0, change)
        before = (root / MEMORY).read_bytes()
        checks = {finding.check for finding in memories.doctor(accept=True).findings}
        assert "handwritten" in checks
        assert "edits" not in checks
        assert (root / MEMORY).read_bytes() == before
        assert memories.view(user="bob").count() == 0


def test_neither_half_a_line_nor_a_former_version_is_taken_over(root: Path) -> None:
    with opened(root) as memories:
        view = memories.view(user="ada")
        memory = view.add("one")
        view.update(memory.id, content="two")
        view.add("three")
    rewrite(root, 0, say("ONE"))
    edit(root / MEMORY, lambda lines: lines.__setitem__(2, lines[2][:50] + b"\n"))
    with opened(root) as memories:
        found = {one.check: one.message for one in memories.doctor(accept=True).findings}
        assert "(line 1: not" in found["handwritten"]
        assert "(line 3 cannot be read)" in found["lines"]
        assert contents(memories) == ["two"]
        assert memories.doctor(repair=True, accept=True).healthy
    assert len(read(root / MEMORY)) == 1


def test_an_erased_memory_does_not_come_back(root: Path) -> None:
    with opened(root) as memories:
        view = memories.view(user="ada")
        memory = view.add("secret")
        line = (root / MEMORY).read_bytes().replace(b"secret", b"SECRET")
        view.add("other")
        view.forget(memory.id, permanent=True)
        edit(root / MEMORY, lambda lines: lines.insert(0, line))
    with opened(root) as memories:
        memories.doctor(accept=True)
        assert contents(memories) == ["other"]


def test_other_stores_have_nothing_to_accept() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        assert memories.doctor(accept=True).findings == ()
        with pytest.raises(wellkept.errors.InvalidInput):
            memories.doctor(accept="yes")  # type: ignore[arg-type]
