"""Every kind of file of a folder, damaged in every way: nothing intact is lost, what is lost is told, and repairing
never makes it worse.
"""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import pytest

import wellkept
from tests.support.stand_ins import HandClock, store_of
from wellkept import Memories
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import Layer, Owner

LINES = ("memory.jsonl", "archive.jsonl", "tombstones.jsonl")
SESSION = "sessions/monday@ada"
FILES = (
    *(f"{SESSION}/{name}" for name in (*LINES, "damaged.jsonl", "metadata.json")),
    "users/ada/memory.jsonl",
    "settings.json",
    "config.json",
    "lock",
    "records/leases.json",
    *(f"derived/{SESSION}/{name}" for name in ("vectors.jsonl", "accesses.jsonl", "numbers.json", "index.json")),
    "derived/indices/global_index.json",
    "derived/indices/topic_index.json",
    "derived/epoch.json",
)


def flipped(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 0x15
    path.write_bytes(bytes(data))


def emptied(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def doubled(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def deleted(path: Path, _: Path) -> None:
    path.unlink()


def older(path: Path, copy: Path) -> None:
    if copy.exists():
        shutil.copyfile(copy, path)
    else:
        path.unlink()


DAMAGES = (flipped, emptied, truncated, doubled, deleted, older)


def opened(root: Path) -> Memories:
    clock = HandClock(START + timedelta(days=1))
    return wellkept.open(f"jsonl:{root}", embedder=HashingEmbedder(64), clock=clock)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with every kind of file, and an older copy of it."""
    root = tmp_path_factory.mktemp("doctor") / "memory"
    with wellkept.open(f"jsonl:{root}", embedder=HashingEmbedder(64), clock=HandClock()) as memories:
        ada = memories.view(user="ada")
        session = ada.sessions.create("monday")
        first = [session.view.add(f"First note {number}", tags=["note"]) for number in range(4)]
        session.view.add("For an hour", expires_at=START + timedelta(hours=1))
        ada.add_many([f"About ada {number}" for number in range(4)])
        session.view.get(first[0].id)
        session.view.forget(first[1].id, permanent=True)
    older_copy = root.with_name("older")
    shutil.copytree(root, older_copy)
    with opened(root) as memories:
        session_view = memories.view(user="ada", session="monday")
        for number in range(5):
            session_view.add(f"Second note {number}", layer="session", tags=["note"])
        session_view.update(first[2].id, content="First note, changed")
        session_view.forget(first[3].id, permanent=True, reason="asked for")
        session_view.get(first[0].id)
        memories.view(user="ada").sessions.compact("monday")  # what has expired is archived
        memories.view(user="ada").add("About ada, later")
        store = store_of(memories)  # a lease is a matter of the store's
        store.records.lease("upkeep", "here", 1)
    (root / f"{SESSION}/damaged.jsonl").write_text('{"file":"memory.jsonl","reason":"damaged","line":"{half"}\n')
    for name, mode in (("notes.txt", 0o644), ("hooks/pre-commit", 0o755), ("sessions/readme.md", 0o644)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of somebody else\n")
        path.chmod(mode)
    return root, older_copy


def foreign(root: Path) -> dict[str, tuple[int, bytes]]:
    names = ("notes.txt", "hooks/pre-commit", "sessions/readme.md")
    return {name: (stat.S_IMODE((root / name).stat().st_mode), (root / name).read_bytes()) for name in names}


def lines_of(root: Path) -> set[bytes]:
    found = [path.read_bytes().split(b"\n") for path in root.rglob("*.jsonl") if path.name in LINES]
    return {line for lines in found for line in lines if line}


def served(memories: Memories) -> dict[str, str]:
    owners = {Owner(Layer.SESSION, ("ada", "monday")), Owner(Layer.USER, ("ada",))}
    found = store_of(memories).journal.scan(owners)  # archived ones too
    return {one.id: one.facets["text"] for one in found}


def intact(root: Path, written: set[bytes]) -> dict[str, str]:
    """By memory, the newest text of which an untouched line tells; tombstones count."""
    found: dict[str, tuple[int, str]] = {}
    gone = set()
    for fields in map(json.loads, written & lines_of(root)):
        if fields["operation"] == "erased":
            gone.add(fields["id"])
        elif found.get(fields["id"], (0, ""))[0] < fields["version"]:
            found[fields["id"]] = (fields["version"], fields["content"]["message"])
    return {memory_id: text for memory_id, (_, text) in found.items() if memory_id not in gone}


@pytest.mark.req("J4", "J11")
def test_damage(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with Cases() as cases:
        for name, damage in product(FILES, DAMAGES):
            with cases.case(f"{name} {damage.__name__}"):
                _damaged(name, damage, folders, Path(mkdtemp(dir=tmp_path)))


def _damaged(name: str, damage: Callable[[Path, Path], None], folders: tuple[Path, Path], tmp_path: Path) -> None:
    sound, copy = folders
    root = tmp_path / "memory"
    shutil.copytree(sound, root)
    written = lines_of(root)
    with opened(sound) as memories:
        whole = served(memories)
    damage(root / name, copy / name)
    others, kept = foreign(root), intact(root, written)
    if name == "config.json":
        try:
            opened(root).close()
        except ConfigurationError:  # it names the key and the line; a person corrects or removes the file
            (root / name).unlink()
    with opened(root) as memories:
        found = served(memories)
        assert found.items() >= kept.items()
        told = memories.doctor()
        assert served(memories) == found
        if found != whole:
            assert told.findings, "something is lost, and nobody says so"
            lost = name if name.endswith(LINES) else ""
            assert any(lost.rpartition("/")[0] in finding.message for finding in told.findings)
        if told.findings:
            assert memories.health().status in ("healthy", "degraded")
        repaired = memories.doctor(repair=True)
        assert all(finding.repaired for finding in repaired.findings), repaired
        assert served(memories).items() >= kept.items()
        after = served(memories)
        assert after.items() >= {one: text for one, text in found.items() if one in after}.items()
        assert found.keys() <= after.keys(), "repairing made it worse"
        added = memories.view(user="ada", session="monday").add("Written later", layer="session")
    with opened(root) as memories:
        assert served(memories) == after | {added.id: "Written later"}
        assert memories.doctor().findings == ()
    assert foreign(root) == others
