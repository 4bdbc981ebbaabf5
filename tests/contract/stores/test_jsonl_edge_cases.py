"""The ten edge cases that the source of the store in plain files lists, one test for each."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import wellkept
from tests.support.jsonl_files import read
from tests.support.stand_ins import HandClock
from wellkept import Memories, View
from wellkept.errors import ContentTooLong, QuotaExceeded, StoreError
from wellkept.testing.builders import START
from wellkept.types import Status

pytestmark = pytest.mark.req("J11")

SESSION = "sessions/monday@ada"
WRITER = """
import sys, wellkept
with wellkept.open(sys.argv[1], embedder=None) as memories:
    session = memories.view(user="ada").sessions.load("monday")
    for number in range(20):
        session.view.add(f"{sys.argv[2]} {number}")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


def opened(root: Path, clock: HandClock | None = None) -> Memories:
    return wellkept.open(f"jsonl:{root}", embedder=None, clock=clock)


def monday(memories: Memories) -> View:
    sessions = memories.view(user="ada").sessions
    known = [one.id for one in sessions.list()]
    return (sessions.load("monday") if known else sessions.create("monday")).view


def contents(view: View) -> list[str]:
    return [one.content for one in view.list(sort_by="oldest", limit=100)]


@pytest.mark.req("J9")
def test_case_1_a_session_exactly_at_its_limit(root: Path) -> None:
    with opened(root) as memories:
        sessions = memories.view(user="ada").sessions
        session = sessions.create("monday")
        limit = session.config.limit_bytes
        assert limit == 10 * 1024 * 1024
        for letter in "abcdefghi":
            session.view.add(letter * 1024 * 1024)
        used = session.stats().bytes_used
        probe = session.view.add("y")  # tells what a memory takes besides its text
        besides = session.stats().bytes_used - used - 1
        session.view.forget(probe.id, permanent=True)
        session.view.add("z" * (limit - used - besides))
        assert (session.stats().bytes_used, session.stats().percent_used) == (limit, 100.0)
        with pytest.raises(QuotaExceeded) as caught:
            session.view.add("one more")
        assert caught.value.details["usage"] == caught.value.details["limit"] == limit
        assert session.stats().bytes_used == limit
        assert session.view.count() == 10
    with opened(root) as memories:
        assert memories.view(user="ada").sessions.load("monday").stats().bytes_used == limit


@pytest.mark.slow
@pytest.mark.req("J3")
def test_case_2_concurrent_writes_to_one_session(root: Path) -> None:
    with opened(root) as memories:
        monday(memories)
    names = ("a", "b", "c")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, f"jsonl:{root}", name]) for name in names]
    assert [one.wait() for one in running] == [0, 0, 0]
    with opened(root) as memories:
        found = contents(monday(memories))
        assert len(found) == 60
        for name in names:
            assert [one for one in found if one.startswith(name)] == [f"{name} {number}" for number in range(20)]
        assert memories.doctor().healthy


def test_case_3_a_power_failure_during_a_write(root: Path) -> None:
    with opened(root) as memories:
        monday(memories).add("whole")
    with (root / SESSION / "memory.jsonl").open("ab") as file:
        file.write(b'{"id":"0199","session_id":"monday","content":{"mess')
    with opened(root) as memories:
        assert contents(monday(memories)) == ["whole"]
        assert memories.health().status == "healthy", "what was never acknowledged is no damage"
        monday(memories).add("next")
        assert contents(monday(memories)) == ["whole", "next"]
        assert memories.doctor().healthy
    assert [line["content"]["message"] for line in read(root / SESSION / "memory.jsonl")] == ["whole", "next"]


@pytest.mark.parametrize("garbage", [b"", b"{", b"\x00" * 100, b"[]"], ids=["empty", "torn", "zeros", "other"])
def test_case_4_a_corrupted_index(root: Path, garbage: bytes) -> None:
    with opened(root) as memories:
        monday(memories).add("kept", tags=["topic"])
    names = [
        f"derived/{one}" for one in (f"{SESSION}/index.json", "indices/global_index.json", "indices/topic_index.json")
    ]
    for name in names:
        (root / name).write_bytes(garbage)
    with opened(root) as memories:
        view = monday(memories)
        assert contents(view) == ["kept"]
        assert [one.id for one in memories.view(user="ada").sessions.sessions_about("topic")] == ["monday"]
        assert memories.doctor(repair=True).healthy
        memories.rebuild()
        for name in names:
            assert json.loads((root / name).read_bytes())["version"] == 1


def test_case_5_timestamps_in_the_future(root: Path) -> None:
    clock = HandClock(START + timedelta(days=365))
    with opened(root, clock) as memories:
        ahead = monday(memories).add("from the future", type="conversation", importance=0.5)
    clock.time = START  # the clock was put right
    with opened(root, clock) as memories:
        view = monday(memories)
        view.add("from now", type="conversation", importance=0.5)
        page = view.list(sort_by="relevance")
        factors = [reasons["decay"] for reasons in page.reasons]
        assert (len(page), factors) == (2, [1.0, 1.0]), "nothing counts more than fully"
        assert contents(view) == ["from the future", "from now"], "the order of recording is not the clock's"
        assert view.update(ahead.id, importance=0.9).version == 2
        assert memories.doctor().healthy


def test_case_6_unicode_and_special_characters(root: Path) -> None:
    odd = [
        "line\nfeed\r\nand\u2028separators\u2029and\x85and\ttabs",
        '"quotes" \\ {"id": "injected"}\n{"id": "next line"}',
        "😀 👩‍👩‍👧‍👦 e\u0301 \u202eright to left",
        "日本語 العربية עברית",
        "../../etc/passwd",
    ]
    with opened(root) as memories:
        view = monday(memories)
        for text in odd:
            view.add(text, metadata={"said": text})
    with opened(root) as memories:
        found = monday(memories).list(sort_by="oldest").memories
        assert [(one.content, one.metadata["said"]) for one in found] == [(one, one) for one in odd]
        assert memories.doctor().healthy
    assert (root / SESSION / "memory.jsonl").read_bytes().count(b"\n") == len(odd), "one line each"


def test_case_7_a_very_large_entry(root: Path) -> None:
    large = "much to say " * 200_000
    with opened(root) as memories:
        view = monday(memories)
        view.add(large)
        with pytest.raises(ContentTooLong):
            view.add("x" * (10 * 1024 * 1024 + 1))
        assert view.count() == 1
    with opened(root) as memories:
        assert contents(monday(memories)) == [large]
        assert memories.doctor().healthy


def test_case_8_circular_references(root: Path) -> None:
    with opened(root) as memories:
        view = monday(memories)
        first = view.add("first")
        second = view.add("second", references=[first.id])
        third = view.add("third", references=[second.id, "nobody"], dangling=True)
        view.update(first.id, references=[third.id, first.id])
        view.add("apart")
    with opened(root) as memories:
        view = monday(memories)
        reached = {
            depth: {one.content for one in view.list(filter={"references": [first.id], "max_depth": depth})}
            for depth in (1, 2, 10)
        }
        assert reached == {1: {"third"}, 2: {"second", "third"}, 10: {"second", "third"}}


@pytest.mark.req("J8")
def test_case_9_deleting_what_is_not_there(root: Path) -> None:
    with opened(root) as memories:
        view = monday(memories)
        memory = view.add("kept")
        before = (root / SESSION / "memory.jsonl").read_bytes()
        for permanent in (False, True):
            assert view.forget("nobody", permanent=permanent) is False
            assert memories.view(user="bob", session="monday").forget(memory.id, permanent=permanent) is False
        assert view.forget_many(filter={"tags": ["nothing"]}, permanent=True).count == 0
        with pytest.raises(wellkept.errors.NotFound):
            memories.view(user="ada").sessions.delete("sunday")
        assert not (root / SESSION / "tombstones.jsonl").exists()
        assert (root / SESSION / "memory.jsonl").read_bytes() == before


@pytest.mark.req("J5")
def test_case_10_queries_without_results(root: Path) -> None:
    with opened(root) as memories:
        for filled in (False, True):
            view = monday(memories)
            if filled:
                view.add("something", tags=["tag"])
            sessions = memories.view(user="ada").sessions
            assert len(view.search("zebra", min_score=0.99)) == 0
            page = view.list(filter={"tags": ["nothing"]})
            assert (page.memories, page.next_cursor, page.total) == ((), None, 0)
            assert sessions.sessions_about("nothing") == ()
            assert view.get("nobody") is None
            assert len(view.list(filter={"text": "zebra*"})) == 0
            assert len(view.list(filter={"created_before": START - timedelta(days=9_000)})) == 0


@pytest.mark.req("J1")
def test_a_folder_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    root, aside = tmp_path / "memory", tmp_path / "aside"
    with wellkept.open(f"jsonl:{root}", embedder=None) as memories:
        view = memories.view(user="ada")
        view.add("Likes tea")
        root.rename(aside)
        for ask in (view.list, view.count, lambda: view.add("Likes coffee")):
            with pytest.raises(StoreError):
                ask()
        assert memories.health().status is Status.UNHEALTHY
        aside.rename(root)
        assert [one.content for one in view.list()] == ["Likes tea"]
        assert memories.health().status is Status.HEALTHY
