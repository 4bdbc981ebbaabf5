"""Preferences of a session: set, merged and removed, by several writers at once."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bad_values import JSON
from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, Opener, one_store
from wellkept import Memories
from wellkept.memories import Session
from wellkept.testing.concurrency import at_once

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120
WRITES = 40
# Runs in another process: sets many preferences, one by one.
ELSEWHERE = """
import sys
import wellkept
path, name, count = sys.argv[1:]
with wellkept.open(path, embedder=None) as memories:
    preferences = memories.view(user="ada").sessions.load("shared").preferences
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        preferences.set(f"{name}{number}", number)
        preferences.merge({"both": name})
"""
NAMES = st.sampled_from(["language", "verbosity", "theme", "a.b", "ü", " "])
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "merge"]), st.dictionaries(NAMES, JSON, min_size=1, max_size=3))
    | st.tuples(st.just("remove"), NAMES),
    max_size=6,
)


@pytest.fixture
def session(memories: Memories) -> Session:
    return memories.view(user="ada").sessions.create("shared")


@pytest.mark.req("J2")
def test_preferences_are_set_merged_and_removed(session: Session, clock: HandClock) -> None:
    preferences = session.preferences
    assert (preferences.language, preferences.verbosity, preferences.custom, preferences.all()) == (None, None, {}, {})
    preferences.set("language", "de")
    later = clock.forward(hours=1)
    preferences.merge({"verbosity": "high", "theme": {"dark": True}, "custom": {"units": "metric"}})
    assert preferences.language == "de"
    assert preferences.verbosity == "high"
    assert preferences.custom == {"theme": {"dark": True}, "units": "metric"}
    assert preferences.get("units") == "metric"
    assert preferences.get("nothing", 7) == 7
    assert session.stats().last_accessed == later
    assert preferences.remove("language")
    assert preferences.remove("units")
    assert not preferences.remove("units")
    assert preferences.all() == {"verbosity": "high", "theme": {"dark": True}}
    preferences.set("verbosity", None)
    assert preferences.all() == {"theme": {"dark": True}}


@pytest.mark.req("J2")
@one_store
def test_what_was_read_is_a_copy(session: Session) -> None:
    session.preferences.set("list", [1])
    session.preferences.get("list").append(2)
    session.preferences.custom.clear()
    assert session.preferences.all() == {"list": [1]}


@pytest.mark.req("J2")
@one_store
def test_what_is_not_json_is_refused_and_nothing_changes(session: Session) -> None:
    session.preferences.set("kept", True)
    refusals = {}
    for value in (object(), float("inf"), b"bytes", {1: 2}, 2**70):
        refusals[f"set {value!r}"] = refusal(session.preferences.set, "x", value)
        refusals[f"merge {value!r}"] = refusal(session.preferences.merge, {"kept": 1, "x": value})
    wrong = {
        asked: answer for asked, answer in refusals.items() if not answer.endswith(": InvalidInput of preferences")
    }
    assert wrong == {}
    assert session.preferences.all() == {"kept": True}


@pytest.mark.req("J2")
@one_store
def test_bad_names_are_refused(session: Session) -> None:
    preferences = session.preferences
    names: list[Any] = ["", 5, None, "a\nb", "x" * 1001]
    refusals = {}
    for name in names:
        refusals[f"set {name!r}"] = refusal(preferences.set, name, 1)
        refusals[f"get {name!r}"] = refusal(preferences.get, name)
        refusals[f"remove {name!r}"] = refusal(preferences.remove, name)
    wrong = {asked: answer for asked, answer in refusals.items() if ": InvalidInput of " not in answer}
    assert wrong == {}


@pytest.mark.req("J2")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(STEPS)
def test_preferences_are_a_dictionary(memories: Memories, steps: list[tuple[str, Any]]) -> None:
    session = memories.view(user="ada").sessions.create()
    model: dict[str, Any] = {}
    for step, what in steps:
        if step == "remove":
            assert session.preferences.remove(what) == (what in model)
            model.pop(what, None)
            continue
        given = {name: "text" if name in ("language", "verbosity") else value for name, value in what.items()}
        if step == "merge":
            session.preferences.merge(given)
        else:
            for name, value in given.items():
                session.preferences.set(name, value)
        model |= given
        assert session.preferences.all() == model


@pytest.mark.req("J2", "J3")
def test_threads_lose_nothing(session: Session) -> None:
    def work(thread: int) -> None:
        for number in range(10):
            session.preferences.set(f"{thread}.{number}", number)

    at_once([partial(work, thread) for thread in range(4)])
    assert session.preferences.all() == {f"{thread}.{number}": number for thread in range(4) for number in range(10)}


@pytest.mark.slow
@pytest.mark.req("J2", "J3")
def test_two_processes_lose_nothing(file_opener: Opener, tmp_path: Path) -> None:
    with file_opener() as memories:
        memories.view(user="ada").sessions.create("shared")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", ELSEWHERE, str(tmp_path / "memory.db"), name, str(WRITES)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, errors = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0, errors
    with file_opener() as memories:
        kept = memories.view(user="ada").sessions.load("shared").preferences.all()
        assert kept.pop("both") in ("a", "b")
        assert kept == {f"{name}{number}": number for name in "ab" for number in range(WRITES)}
