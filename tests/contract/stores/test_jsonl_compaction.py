"""Compaction in plain files: bytes come back, what can be read stays, and settings of the folder take effect."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

import wellkept
from tests.support.jsonl_files import edit, read
from tests.support.stand_ins import HandClock
from wellkept import Memories
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.errors import ConfigurationError, QuotaExceeded
from wellkept.events import SessionCompacted
from wellkept.testing.builders import START
from wellkept.testing.cases import Cases
from wellkept.types import DecayPolicy, SessionConfig

MONDAY = "sessions/monday@ada"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def opened(root: Path, **options: Any) -> Memories:
    return wellkept.open(f"jsonl:{root}", **{"embedder": None, "clock": HandClock(), **options})


def configure(root: Path, **sections: dict[str, Any]) -> None:
    root.mkdir(exist_ok=True)
    (root / "config.json").write_text(json.dumps({"version": "1.0", **sections}))


def sizes(root: Path) -> dict[str, int]:
    folders = (root / MONDAY, root / "derived" / MONDAY)
    return {path.name: path.stat().st_size for folder in folders for path in folder.glob("*.jsonl")}


def everything(memories: Memories) -> tuple[Any, ...]:
    """All that can be asked about monday."""
    session = memories.view(user="ada").sessions.load("monday")
    listed = session.view.list(sort_by="oldest").memories
    vectors = session.view.get_many([one.id for one in listed], include_vector=True)
    return listed, session.view.changes(), {id: one.vector for id, one in vectors.items()}


# --- the files ------------------------------------------------------------------------------------


@pytest.mark.req("J9")
def test_files_become_shorter_and_nothing_else_changes(root: Path) -> None:
    with opened(root, embedder=HashingEmbedder(64)) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        kept = [session.view.add(f"number {number}") for number in range(5)]
        for one in kept:
            session.view.update(one.id, content=f"{one.content} again")
        gone = session.view.add("secret")
        session.view.forget(gone.id)
    for _ in range(3):  # each process writes what it counted
        with opened(root, embedder=HashingEmbedder(64)) as memories:
            memories.view(user="ada").sessions.load("monday").view.get(kept[0].id)
    with opened(root, embedder=HashingEmbedder(64)) as memories, opened(root) as other:
        session = memories.view(user="ada").sessions.load("monday")
        before = sizes(root)
        session.compact(purge=True)
        after = sizes(root)
        assert after["vectors.jsonl"] < before["vectors.jsonl"] / 2
        assert after["accesses.jsonl"] < before["accesses.jsonl"]
        assert [line["operation"] for line in read(root / MONDAY / "tombstones.jsonl")] == ["erased"]
        now = session.view.list(sort_by="oldest").memories
        assert [one.access_count for one in now] == [3, 0, 0, 0, 0]
        assert [len(session.view.history(one.id)) for one in kept] == [2] * 5, "history stays"
        seen = everything(memories)
        assert everything(other)[:2] == seen[:2], "another process follows"
        memories.doctor()
        session.compact()
        assert sizes(root) == after, "there is nothing more to gain"
    assert b"secret" not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    with opened(root, embedder=HashingEmbedder(64)) as memories:
        assert [one.content for one in everything(memories)[0]] == [f"number {number} again" for number in range(5)]
        assert memories.doctor().healthy


@pytest.mark.parametrize("written", [0, 3], ids=["none on the disk", "some on the disk"])
def test_accesses_that_were_not_written_yet_are_counted_once(root: Path, written: int) -> None:
    with opened(root) as memories:
        view = memories.view(user="ada").sessions.create("monday").view
        kept = view.add("kept")
        gone = view.add("gone")
        view.forget(gone.id)
    for _ in range(written):
        with opened(root) as memories:
            memories.view(user="ada").sessions.load("monday").view.get(kept.id)
    with opened(root) as memories:
        session = memories.view(user="ada").sessions.load("monday")
        session.view.get(kept.id)
        session.compact()
    with opened(root) as memories:
        [found] = memories.view(user="ada").sessions.load("monday").view.list()
        assert found.access_count == written + 1


def test_lines_that_only_a_person_can_judge_stay(root: Path) -> None:
    with opened(root) as memories:
        session = memories.view(user="ada").sessions.create("monday")
        session.view.add("first")
        session.view.forget(session.view.add("second").id)
    file = root / MONDAY / "memory.jsonl"
    edit(file, lambda lines: lines.__setitem__(0, lines[0].replace(b"first", b"FIRST")))
    with file.open("ab") as appended:
        appended.write(b"my own note\n")
    with opened(root) as memories:
        memories.view(user="ada").sessions.load("monday").compact(purge=True)
    assert b"FIRST" in file.read_bytes()
    assert b"my own note" in file.read_bytes()
    assert b"second" not in file.read_bytes()


def test_a_torn_rest_goes(root: Path) -> None:
    with opened(root) as memories:
        memories.view(user="ada").sessions.create("monday").view.add("first")
    file = root / MONDAY / "memory.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"id": "half')
    with opened(root) as memories:
        memories.view(user="ada").sessions.load("monday").compact()
        assert file.read_bytes() == whole


@pytest.mark.req("J9", "N3")
def test_a_full_session_moves_memories_to_a_file_of_their_own(root: Path) -> None:
    config = {"limit_bytes": 10_000, "compaction_threshold": 0.4}
    with opened(root) as memories:
        session = memories.view(user="ada").sessions.create("monday", config=config)
        faded = session.view.add("faded" * 700, importance=0)
        session.view.add("newer" * 600)
        assert session.stats().archived == 1
        assert memories.doctor().healthy
    assert b"faded" not in (root / MONDAY / "memory.jsonl").read_bytes()
    assert b"faded" in (root / MONDAY / "archive.jsonl").read_bytes()
    with opened(root) as memories:
        session = memories.view(user="ada").sessions.load("monday")
        used = session.stats().bytes_used
        assert (session.stats().archived, used < 4_000) == (1, True)
        assert session.view.restore(faded.id)
        assert session.stats().bytes_used > used
        assert memories.doctor().healthy


@pytest.mark.slow
@pytest.mark.req("J9")
def test_readers_see_everything_that_stays_while_others_compact(root: Path) -> None:
    with opened(root) as memories, opened(root) as other:
        session = memories.view(user="ada").sessions.create("monday")
        kept = {session.view.add(f"kept {number}").content for number in range(20)}
        done = threading.Event()

        def read_on() -> int:
            reads = 0
            while not done.is_set() or not reads:
                found = {one.content for one in other.view(user="ada", session="monday").list(limit=100)}
                assert kept <= found
                assert len(found - kept) <= 1
                reads += 1
            return reads

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_on)
            try:
                for number in range(30):
                    session.view.forget(session.view.add(f"gone {number}").id)
                    assert session.compact(purge=True).count == 1
            finally:
                done.set()
            assert reading.result() > 0


# --- settings ---------------------------------------------------------------------------------------


@pytest.mark.req("J13")
def test_a_mistake_in_the_file_is_told_with_its_place(root: Path) -> None:
    opened(root).close()
    text = (root / "config.json").read_text().replace('"auto_compact": true', '"auto_compact": "yes"')
    (root / "config.json").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        opened(root)
    assert caught.value.details == {"file": "config.json", "line": 7, "key": "storage.auto_compact"}
    assert caught.value.operation == "open"


@pytest.mark.req("J9")
@pytest.mark.req("J13")
def test_the_size_of_sessions_is_a_setting_that_holds_for_all_of_them(root: Path) -> None:
    with opened(root) as memories:
        memories.view(user="ada").sessions.create("monday")
        memories.view(user="ada").sessions.create("tuesday", config={"limit_bytes": 50_000})
    configure(root, storage={"max_session_size_mb": 0.01})
    with opened(root) as memories:
        sessions = memories.view(user="ada").sessions
        for view in (
            sessions.load("monday").view,
            memories.view(user="ada", session="monday"),
            memories.view(user="ada", session="nobody made it"),
        ):
            with pytest.raises(QuotaExceeded) as caught:
                view.add("x" * 11_000, layer="session")
            assert caught.value.details["limit"] == int(0.01 * 1024 * 1024)
        sessions.load("tuesday").view.add("x" * 11_000)
        memories.view(user="ada").add("x" * 11_000)
        assert sessions.load("monday").stats().bytes_limit == 10_485


STORAGES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, False),
    ({"compaction_threshold": 0.4}, {}, True),
    ({"compaction_threshold": 0.4, "auto_compact": False}, {}, False),
    ({"compaction_threshold": 0.4}, {"auto_compact": False}, False),
    ({"auto_compact": False}, {"auto_compact": True, "compaction_threshold": 0.4}, True),
]


@pytest.mark.req("J9")
@pytest.mark.req("J13")
def test_when_to_compact_is_a_setting(tmp_path: Path) -> None:
    with Cases() as cases:
        for storage, own, compacts in STORAGES:
            with cases.case(f"{storage} {own}"):
                _compacts(Path(mkdtemp(dir=tmp_path)) / "memory", storage, own, compacts)


def _compacts(root: Path, storage: dict[str, Any], own: dict[str, Any], compacts: bool) -> None:
    configure(root, storage={"max_session_size_mb": 0.01, **storage})
    told: list[SessionCompacted] = []
    with opened(root) as memories:
        memories.on(SessionCompacted, told.append)
        session = memories.view(user="ada").sessions.create("monday", config=own)
        session.view.add("x" * 3_500, importance=0)
        session.view.add("y" * 3_000)
    assert len(told) == compacts


FADING: list[tuple[dict[str, Any], float]] = [
    ({}, 0.25),
    ({"enabled": False}, 1.0),
    ({"min_decay_factor": 0.3}, 0.3),
    ({"type_specific": {"conversation": {"half_life_hours": 336}}}, 0.5),
    ({"type_specific": {"conversation": {"decay_enabled": False}}}, 1.0),
]


@pytest.mark.req("J7")
@pytest.mark.req("J13")
def test_how_memories_fade_is_a_setting(tmp_path: Path) -> None:
    with Cases() as cases:
        for fading, factor in FADING:
            with cases.case(fading):
                _fades(Path(mkdtemp(dir=tmp_path)) / "memory", fading, factor)


def _fades(root: Path, fading: dict[str, Any], factor: float) -> None:
    configure(root, decay=fading)
    clock = HandClock()
    with opened(root, clock=clock) as memories:
        user = memories.view(user="ada")
        session = user.sessions.create("monday")
        own = user.sessions.create("own", config=SessionConfig(decay=DecayPolicy(half_life_hours=168 * 2 / 3)))
        for view in (user, session.view, own.view):
            view.add("said", type="conversation", importance=1)
        clock.time = START + timedelta(days=14)
        asked: list[Callable[[], Any]] = [
            lambda: user.list(sort_by="relevance").reasons[0],
            lambda: session.view.list(sort_by="relevance").reasons[0],
            lambda: next(iter(session.view.search("said", ranking="relevance", explain=True, min_score=0))).reasons,
        ]
        assert [ask()["decay"] for ask in asked] == [pytest.approx(factor)] * 3
        assert own.view.list(sort_by="relevance").reasons[0]["decay"] == pytest.approx(0.125)


# --- across sessions ----------------------------------------------------------------------------------


@pytest.mark.req("J5")
def test_the_indices_of_all_sessions_say_what_is_asked(root: Path) -> None:
    with opened(root) as memories:
        sessions = memories.view(user="ada").sessions
        first = sessions.create("monday").view.add("Use OAuth", tags=["security.oauth"])
        second = sessions.create("tuesday").view.add("Rotate keys", tags=["security", "keys"])
        gone = sessions.load("tuesday").view.add("Passwords", tags=["security"])
        sessions.load("tuesday").view.forget(gone.id)
        assert [(one.tag, one.count) for one in sessions.topics()] == [
            ("keys", 1),
            ("security", 1),
            ("security.oauth", 1),
        ]
        assert [one.id for one in sessions.sessions_about("security")] == ["monday", "tuesday"]
    about = json.loads((root / "derived/indices/topic_index.json").read_text())["topics"]
    assert about == {
        "keys": {"sessions/tuesday@ada": [second.id]},
        "security": {"sessions/tuesday@ada": [second.id]},
        "security.oauth": {MONDAY: [first.id]},
    }
    places = json.loads((root / "derived/indices/global_index.json").read_text())["entries"]
    assert places == {first.id: MONDAY, second.id: "sessions/tuesday@ada"}
