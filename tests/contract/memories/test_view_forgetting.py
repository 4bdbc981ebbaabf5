"""Forgetting for a while, for good, and taking it back."""

from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.stand_ins import CountingEmbedder, HandClock, Opener, places, sequence
from wellkept import Memories, View
from wellkept.errors import Conflict, InvalidInput
from wellkept.types import Operation, State


@pytest.mark.req("L7", "H3")
def test_forgotten_and_restored(view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea", tags=["t"], key="k")
    clock.forward(hours=1)
    assert view.forget(memory.id, reason="changed her mind") is True
    assert view.get(memory.id) is None
    assert view.count() == len(view.search("tea")) == view.count(filter={"tags": ["t"]}) == 0
    assert view.count(filter={"include_forgotten": True}) == 1
    clock.forward(hours=1)
    assert view.restore(memory.id) is True
    found = view.get(memory.id)
    assert found is not None
    assert (found.content, found.state, found.version, found.updated_at) == (
        "Likes tea",
        State.ACTIVE,
        3,
        clock.time,
    )
    assert view.count() == len(view.search("tea")) == view.count(filter={"tags": ["t"]}) == 1


@pytest.mark.req("L7")
@pytest.mark.parametrize("url", ["ram:", "forgotten.db", "jsonl:forgotten"])
def test_a_forgotten_memory_says_since_when(
    clock: HandClock, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with wellkept.open(url, embedder=None, clock=clock) as memories:
        view = memories.view(user="ada")
        memory, other = view.add_many(["Likes tea", "Likes cake"])
        clock.forward(hours=1)
        view.forget(memory.id)
        forgotten_at, before = clock.time, view.position()
        view.forget_many(filter={"content_contains": "cake"})
        clock.forward(hours=1)
        found = view.get_many([memory.id, other.id], include_forgotten=True)
        assert {one.forgotten_at for one in found.values()} == {forgotten_at}
        assert [m.forgotten_at for m in view.list(filter={"include_forgotten": True})] == [forgotten_at] * 2
        view.restore(memory.id)
        restored = view.get(memory.id)
        assert restored is not None
        assert restored.forgotten_at is None
        as_it_was = view.get(memory.id, as_of=before, include_forgotten=True)
        assert as_it_was is not None
        assert as_it_was.forgotten_at == forgotten_at
        told = [version.memory.forgotten_at for version in view.history(memory.id) if version.memory]
        assert told == [None, forgotten_at, None]


@pytest.mark.req("L7")
def test_history_tells_what_happened(view: View, clock: HandClock) -> None:
    memory = view.add("Likes tea")
    times = [clock.time]
    for step in (
        lambda: view.update(memory.id, content="Likes coffee"),
        lambda: view.forget(memory.id, reason="why"),
        lambda: view.restore(memory.id),
    ):
        times.append(clock.forward(hours=1))
        step()
    history = view.history(memory.id)
    assert [(v.version, v.operation, v.reason, v.recorded_at) for v in history] == [
        (1, Operation.ADDED, None, times[0]),
        (2, Operation.UPDATED, None, times[1]),
        (3, Operation.FORGOTTEN, "why", times[2]),
        (4, Operation.RESTORED, None, times[3]),
    ]
    assert [(v.memory.content, v.memory.state, v.memory.version) for v in history if v.memory] == [
        ("Likes tea", State.ACTIVE, 1),
        ("Likes coffee", State.ACTIVE, 2),
        ("Likes coffee", State.FORGOTTEN, 3),
        ("Likes coffee", State.ACTIVE, 4),
    ]
    assert {(v.memory_id, v.owner) for v in history} == {(memory.id, memory.owner)}


@pytest.mark.req("L7")
def test_there_is_nothing_to_forget_twice(memories: Memories, view: View) -> None:
    memory = view.add("Likes tea")
    assert view.restore(memory.id) is False
    assert view.forget(memory.id)
    assert view.forget(memory.id) is False
    assert view.restore(memory.id)
    assert view.restore(memory.id) is False
    assert view.forget("missing") is view.forget("missing", permanent=True) is view.restore("missing") is False
    assert sequence(memories) == 3


@pytest.mark.req("L7", "J8")
@pytest.mark.parametrize("forgotten_before", [False, True])
def test_erased_memories_are_gone_for_good(opener: Opener, clock: HandClock, forgotten_before: bool) -> None:
    memories = opener(clock=clock, embedder=CountingEmbedder())
    view = memories.view(user="ada")
    memory = view.add("secret tea", tags=["hidden"], key="k", metadata={"a": "secret"}, title="secret", author="spy")
    other = view.add("plain tea")
    view.update(memory.id, content="secret coffee")
    view.get(memory.id)
    if forgotten_before:
        view.forget(memory.id, reason="first")
    before = places(view)
    at = clock.forward(hours=1)
    assert view.forget(memory.id, permanent=True, reason="asked to") is True

    assert view.get(memory.id, include_forgotten=True) is None
    assert view.get_many([memory.id], include_forgotten=True) == {}
    moments: list[datetime | str] = [*before, view.position(), clock.time]
    for as_of in moments:
        assert view.get(memory.id, as_of=as_of, include_forgotten=True) is None
        assert [m.id for m in view.list(as_of=as_of, filter={"include_forgotten": True})] in ([], [other.id])
        assert [hit.memory.id for hit in view.search("secret tea", as_of=as_of)] in ([], [other.id])
    assert [m.id for m in view.list(filter={"include_forgotten": True})] == [other.id]
    assert [hit.memory.id for hit in view.search("secret")] in ([], [other.id])
    assert view.count(filter={"tags": ["hidden"]}) == view.count(filter={"authors": ["spy"]}) == 0
    (mark,) = view.history(memory.id)
    assert (mark.operation, mark.memory, mark.reason, mark.recorded_at) == (Operation.ERASED, None, "asked to", at)
    assert "secret" not in repr([asdict(version) for version in view.changes()])
    stats = view.stats()
    assert (stats.active, stats.forgotten, stats.top_tags) == (1, 0, ())


@pytest.mark.req("L7")
def test_what_is_erased_cannot_be_touched_again(memories: Memories, view: View) -> None:
    memory = view.add("secret")
    view.forget(memory.id, permanent=True)
    before = sequence(memories)
    assert view.forget(memory.id) is view.forget(memory.id, permanent=True) is view.restore(memory.id) is False
    assert sequence(memories) == before
    assert view.add("secret").id != memory.id


@pytest.mark.req("L7", "N7")
def test_erased_content_is_in_no_file(file_opener: Opener, tmp_path: Any) -> None:
    with file_opener() as memories:
        view = memories.view(user="ada")
        memory = view.add("UNSPEAKABLE one", metadata={"a": "UNSPEAKABLE"}, tags=["UNSPEAKABLE"], title="UNSPEAKABLE")
        view.update(memory.id, content="UNSPEAKABLE two")
        view.add("harmless")
        assert any(b"UNSPEAKABLE" in file.read_bytes() for file in tmp_path.iterdir())
        view.forget(memory.id, permanent=True)
    files = list(tmp_path.iterdir())
    assert files
    assert not any(b"UNSPEAKABLE" in file.read_bytes() for file in files)


@pytest.mark.req("L7")
def test_an_expired_memory_can_be_forgotten_and_erased(view: View, clock: HandClock) -> None:
    ends = clock.time + timedelta(seconds=1)
    one, two = (view.add(text, expires_at=ends) for text in ("one", "two"))
    clock.forward(seconds=1)
    assert view.get(one.id) is None
    assert view.forget(one.id)
    assert view.forget(two.id, permanent=True)
    assert [version.operation.value for version in view.changes()] == ["added", "forgotten", "erased"]


@pytest.mark.req("H11", "L7")
@pytest.mark.parametrize("permanent", [False, True])
def test_forgetting_and_restoring_can_demand_a_version(memories: Memories, view: View, permanent: bool) -> None:
    memory = view.add("Likes tea")
    view.update(memory.id, content="Likes coffee")
    for wrong in (1, 3):
        with pytest.raises(Conflict) as caught:
            view.forget(memory.id, permanent=permanent, if_version=wrong)
        assert caught.value.details == {"memory_id": memory.id, "version": 2, "if_version": wrong}
        assert caught.value.operation == "forget"
    assert sequence(memories) == 2
    assert view.forget(memory.id, permanent=permanent, if_version=2)
    if not permanent:
        with pytest.raises(Conflict) as caught:
            view.restore(memory.id, if_version=2)
        assert caught.value.operation == "restore"
        assert view.restore(memory.id, if_version=3)
    assert view.forget("unknown", if_version=1) is view.restore("unknown", if_version=1) is False
    with pytest.raises(InvalidInput):
        view.forget(memory.id, if_version=0)
