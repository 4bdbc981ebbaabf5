"""Exports of sessions hold everything, as the codec reads it."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.stand_ins import HandClock
from wellkept import Memories, Memory, codec
from wellkept.memories import Session, Sessions
from wellkept.testing.builders import START
from wellkept.types import Version

HOUR = timedelta(hours=1)


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


@pytest.fixture
def session(sessions: Sessions, clock: HandClock) -> Session:
    return hourly(sessions, clock)


def hourly(sessions: Sessions, clock: HandClock) -> Session:
    """A session with four memories, an hour apart."""
    session = sessions.create("monday")
    for number, tags in enumerate((["personal"], ["personal.home"], ["personality"], [])):
        clock.time = START + number * HOUR
        session.view.add(f"number {number}", tags=tags)
    return session


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
    assert history == [replace(version, position=None) for version in session.view.changes()]
    head, *lines = [json.loads(line) for line in session.export("jsonl", history=True).split("\n")[:-1]]
    assert head["session"] == plain["session"]
    assert [line["memory"] for line in lines if "memory" in line] == plain["memories"]
    assert [line["history"] for line in lines if "history" in line] == told["history"]
    assert len(lines) == 4 + len(history)
    assert sessions.create("empty").export("jsonl").count("\n") == 1
