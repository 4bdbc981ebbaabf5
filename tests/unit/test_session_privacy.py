"""Forgetting by topic, time and session, in one transaction; and exports that hold everything."""

import json
from datetime import timedelta
from typing import Any

import pytest

import wellkept
from tests.support.histories import plain as plain_versions
from tests.support.stand_ins import HandClock
from wellkept import Filter, Memories, Memory, View, codec
from wellkept.errors import Conflict, InvalidInput, NotFound, StoreFull
from wellkept.events import MemoryForgotten
from wellkept.memories import Session, Sessions
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import START
from wellkept.types import Operation, Removal, Version

HOUR = timedelta(hours=1)


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


@pytest.fixture
def session(sessions: Sessions, clock: HandClock) -> Session:
    """Four memories, an hour apart."""
    session = sessions.create("monday")
    for number, tags in enumerate((["personal"], ["personal.home"], ["personality"], [])):
        clock.time = START + number * HOUR
        session.view.add(f"number {number}", tags=tags)
    return session


def contents(view: View) -> list[str]:
    return [memory.content for memory in view.list(sort_by="oldest")]


@pytest.mark.req("J8")
def test_forgetting_a_topic(session: Session) -> None:
    view = session.view
    before = {memory.content: memory.id for memory in view.list()}
    preview = session.forget(topic="personal", dry_run=True)
    assert preview == Removal(ids=(before["number 1"], before["number 0"]), permanent=False, dry_run=True)
    assert view.count() == 4
    removed = session.forget(topic="personal", reason="asked to")
    assert (removed.count, removed.ids, removed.dry_run) == (2, preview.ids, False)
    assert contents(view) == ["number 2", "number 3"]
    last = view.history(removed.ids[0])[-1]
    assert (last.operation, last.reason, last.recorded_at) == (Operation.FORGOTTEN, "asked to", START + 3 * HOUR)
    assert session.forget(topic="personal").count == 0
    assert view.restore(removed.ids[0])


@pytest.mark.req("J8")
@pytest.mark.parametrize(
    ("span", "left"),
    [
        ({"after": START + HOUR, "before": START + 3 * HOUR}, "03"),
        ({"after": START + HOUR}, "0"),
        ({"before": START + HOUR}, "123"),
        ({"before": START + HOUR, "topic": "personality"}, "0123"),
        ({"after": START, "topic": "personal"}, "23"),
    ],
    ids=str,
)
def test_forgetting_a_span_of_time(session: Session, span: dict[str, Any], left: str) -> None:
    session.forget(**span)
    assert "".join(one[-1] for one in contents(session.view)) == left


@pytest.mark.req("J8")
def test_erasing_takes_what_was_forgotten_before(session: Session, clock: HandClock) -> None:
    session.forget(topic="personal.home")
    session.view.add("expired", tags=["personal"], expires_at=clock.time + HOUR)
    clock.time += HOUR
    erased = session.forget(topic="personal", permanent=True, reason="asked to")
    assert (erased.count, erased.permanent) == (3, True)
    for id in erased.ids:
        [mark] = session.view.history(id)
        assert (mark.operation, mark.memory, mark.reason) == (Operation.ERASED, None, "asked to")
        assert not session.view.restore(id)
    assert "number 0" not in session.export(history=True)


@pytest.mark.req("J8")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "topic"),
        ({"topic": ""}, "filter.tags"),
        ({"topic": 5}, "filter.tags"),
        ({"after": "yesterday"}, "filter.created_after"),
        ({"after": START.replace(tzinfo=None)}, "filter.created_after"),
        ({"after": START, "before": START}, "after"),
        ({"topic": "personal", "permanent": "no"}, "permanent"),
        ({"topic": "personal", "dry_run": 1}, "dry_run"),
        ({"topic": "personal", "reason": 5}, "reason"),
    ],
    ids=str,
)
def test_bad_requests_forget_nothing(session: Session, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.forget(**wrong)
    assert caught.value.details["field"] == field
    assert session.view.count() == 4


@pytest.mark.req("J8")
def test_forgetting_many_in_any_view(memories: Memories) -> None:
    view = memories.view(user="ada", project="api")
    heard: list[MemoryForgotten] = []
    memories.on(MemoryForgotten, heard.append)
    for layer in ("user", "project"):
        view.add(f"{layer} tea", layer=layer, tags=["tea"])
        view.add(f"{layer} cake", layer=layer)
    memories.view(user="bob").add("bob's tea", tags=["tea"])
    with pytest.raises(InvalidInput):
        view.forget_many(filter=None)
    with pytest.raises(InvalidInput):
        view.forget_many(filter={"nonsense": 1})
    assert view.forget_many(filter={"tags": ["tea"]}, layers=["project"], dry_run=True).count == 1
    assert heard == []
    assert view.forget_many(filter=Filter(tags=["tea"]), layers=["project"], reason="old").count == 1
    assert [(event.permanent, event.reason) for event in heard] == [(False, "old")]
    assert view.forget_many(filter=Filter(text="c*")).count == 2
    assert view.forget_many(filter={"include_forgotten": True}).count == 1
    assert view.forget_many(filter={}, permanent=True).count == 4
    assert view.list(filter={"include_forgotten": True}).total == 0
    assert memories.view(user="bob").count() == 1


@pytest.mark.req("J8")
def test_all_or_none() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        view = memories.view(user="ada")
        view.add_many([f"number {number}" for number in range(20)])
        calls = store.calls["append"]
        store.fail("append", StoreFull("no space left"))
        with pytest.raises(StoreFull):
            view.forget_many(filter={})
        assert view.count() == 20
        store.fail("append", Conflict("somebody was faster"))
        assert view.forget_many(filter={}).count == 20
        assert store.calls["append"] - calls == 3
        assert view.count() == 0


@pytest.mark.req("J8")
def test_a_deleted_session_comes_back_with_what_it_had(sessions: Sessions, session: Session, clock: HandClock) -> None:
    session.forget(topic="personality")
    clock.forward(hours=1)
    assert sessions.delete("monday", dry_run=True).count == 3
    assert [one.id for one in sessions.list()] == ["monday"]
    deleted = clock.time
    assert sessions.delete("monday", reason="asked to").count == 3
    assert sessions.list() == ()
    assert [(one.id, one.deleted_at) for one in sessions.list(include_deleted=True)] == [("monday", deleted)]
    assert len(sessions.search("number", min_score=0)) == 0
    with pytest.raises(NotFound) as caught:
        sessions.load("monday")
    assert "restore" in caught.value.hint
    with pytest.raises(Conflict):
        sessions.create("monday")
    assert sessions.delete("monday").count == 0
    clock.forward(hours=1)
    again = sessions.restore("monday")
    assert contents(again.view) == ["number 0", "number 1", "number 3"]
    assert [one.deleted_at for one in sessions.list()] == [None]
    assert contents(sessions.restore("monday").view) == ["number 0", "number 1", "number 3"]


@pytest.mark.req("J8")
def test_an_interrupted_deletion_can_be_repeated() -> None:
    store = FaultyStore(RamStore())
    with wellkept.open(store=store, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        sessions.create("monday").view.add("Use OAuth")
        for permanent, method in ((False, "append"), (True, "append"), (True, "records.drop")):
            store.fail(method, StoreFull("no space left"))
            with pytest.raises(StoreFull):
                sessions.delete("monday", permanent=permanent)
            sessions.delete("monday", permanent=permanent)
            if not permanent:
                sessions.restore("monday")
            elif method == "append":
                sessions.create("monday").view.add("Use OAuth")
        assert sessions.list(include_deleted=True) == ()
        assert memories.view(user="ada", session="monday").count(filter={"include_forgotten": True}) == 0


@pytest.mark.req("J8")
@pytest.mark.parametrize("deleted_before", [False, True])
def test_deleting_for_good(memories: Memories, sessions: Sessions, session: Session, deleted_before: bool) -> None:
    other = sessions.create("tuesday")
    other.view.add("kept")
    if deleted_before:
        sessions.delete("monday")
    removed = sessions.delete("monday", permanent=True, reason="asked to")
    assert removed.count == 4
    assert [one.id for one in sessions.list(include_deleted=True)] == ["tuesday"]
    with pytest.raises(NotFound):
        sessions.restore("monday")
    view = memories.view(user="ada", session="monday")
    assert view.count(filter={"include_forgotten": True}) == 0
    assert {mark.reason for id in removed.ids for mark in view.history(id)} == {"asked to"}
    assert other.view.count() == 1
    assert sessions.create("monday").stats().entries == 0


@pytest.mark.req("J8", "N11")
def test_an_export_holds_everything(sessions: Sessions, session: Session) -> None:
    changed = session.view.list(sort_by="oldest").memories[3]
    session.view.update(changed.id, content="two\nlines \u2028 and ü", metadata={"deep": [1, {"a": None}]})
    session.preferences.set("theme", "dark")
    session.forget(topic="personality", reason="asked to")
    kept = list(session.view.list(sort_by="oldest", filter={"include_forgotten": True}))
    plain = json.loads(session.export("json"))
    assert (plain["format"], plain["version"]) == ("wellkept.session", 1)
    assert plain["session"]["preferences"]["custom"] == {"theme": "dark"}
    assert plain["session"]["statistics"] == {"facts": 3}
    assert plain["session"]["total_entries"] == 3
    assert plain["session"]["total_size_bytes"] == session.stats().bytes_used
    assert "history" not in plain
    assert [codec.decode_as(json.dumps(one), Memory) for one in plain["memories"]] == kept
    told = json.loads(session.export("json", history=True))
    history = [codec.decode_as(json.dumps(one), Version) for one in told["history"]]
    assert history == plain_versions(session.view.changes())
    head, *lines = [json.loads(line) for line in session.export("jsonl", history=True).split("\n")[:-1]]
    assert head["session"] == plain["session"]
    assert [line["memory"] for line in lines if "memory" in line] == plain["memories"]
    assert [line["history"] for line in lines if "history" in line] == told["history"]
    assert len(lines) == 4 + len(history)
    assert sessions.create("empty").export("jsonl").count("\n") == 1


@pytest.mark.req("J8")
@pytest.mark.parametrize("wrong", ["xml", "", 5, None, "JSON"])
def test_unknown_formats_are_refused(session: Session, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.export(wrong)
    assert caught.value.details["field"] == "format"
