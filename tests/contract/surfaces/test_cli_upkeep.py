"""Upkeep in a terminal: policies, plans as tables, runs, undo, holds, and the curves of decay."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

import wellkept
from tests.support.terminal import Terminal
from wellkept.operations import Caller, call, request
from wellkept.types import Grant, Identity, Need

AGO = timedelta(days=400)


def aged(terminal: Terminal, count: int = 2) -> None:
    """Memories that were recorded more than a year ago."""
    then = datetime.now(UTC) - AGO
    file = terminal.folder / "memory.db"
    with wellkept.open(file, embedder=None, clock=lambda: then) as memories:
        memories.view(user="ada").add_many([f"Old fact {number}" for number in range(count)])


@pytest.mark.req("P4", "N3")
def test_the_way_from_a_policy_to_an_undone_run(terminal: Terminal) -> None:
    aged(terminal)
    assert terminal.json("retention")["policies"] == []
    assert terminal.json("upkeep", "plan")["steps"] == []
    kept = terminal.json("retention", "set", "--default", "--manual", "--exempt-tag", "legal")
    assert (kept["long_term_age"], kept["forgotten_age"], kept["automatic"]) == ("365d", "90d", False)
    plan = terminal.json("upkeep", "plan")
    assert [step["action"] for step in plan["steps"]] == ["forget", "forget"]
    refused = terminal("upkeep", "run")
    assert refused.code == 2, "nobody confirmed it"
    run = terminal.json("upkeep", "run", "--yes")
    assert (run["forgotten"], run["errors"]) == (2, [])
    assert terminal.json("upkeep")["last_run"]["id"] == run["id"]
    assert len(terminal.json("upkeep", "undo")["ids"]) == 2
    assert terminal.json("upkeep", "runs")["runs"][0]["undone_at"] is not None
    assert terminal("upkeep", "undo").code == 3
    assert terminal.json("retention", "clear") == {"cleared": True}


@pytest.mark.req("H8", "N3")
def test_a_consolidation_shows_the_words_that_differ_and_can_be_undone(terminal: Terminal) -> None:
    for text in ("Prefers dark mode", "Prefers the dark mode", "Likes tea"):
        terminal.add(text)
    assert terminal.json("consolidation")["policies"] == []
    policy = terminal.json("consolidation", "set", "--trigger", "2", "--manual", "--only-layer", "user")
    assert (policy["threshold"], policy["trigger"], policy["layers"]) == (0.95, 2, ["user"])
    plan = terminal.json("upkeep", "plan", "--job", "consolidation")
    assert [(one["content"], one["differing"]) for one in plan["merges"]] == [("Prefers the dark mode", ["the"])]
    assert terminal("upkeep", "run", "--job", "consolidation").code == 2, "nobody confirmed it"
    run = terminal.json("upkeep", "run", "--job", "consolidation", "--yes")
    assert (run["job"], run["merged"]) == ("consolidation", 2)
    assert terminal.json("count")["count"] == 2
    undone = terminal.json("upkeep", "undo")
    assert (len(undone["ids"]), len(undone["removed"])) == (2, 1)
    assert terminal.json("consolidation", "clear") == {"cleared": True}


@pytest.mark.req("H9")
def test_the_end_of_a_session_promotes_in_a_terminal(terminal: Terminal) -> None:
    policy = terminal.json("endings", "set", "--promote", "0.8", "--delete-after", "0d")
    assert (policy["promote_importance"], policy["delete_after"], policy["permanent"]) == (0.8, "0d", False)
    assert terminal("endings", "set", "--permanent").code == 2
    terminal.add("Is allergic to nuts", "--session", "monday", "--layer", "session", "--importance", "0.9")
    terminal.add("Talked about rain", "--session", "monday", "--layer", "session")
    terminal.json("sessions", "close", "monday")
    assert [one["content"] for one in terminal.json("list")["memories"]] == ["Is allergic to nuts"]
    run = terminal.json("upkeep", "runs")["runs"][0]
    assert (run["job"], run["promoted"], run["forgotten"]) == ("session_end", 1, 2)
    assert len(terminal.json("upkeep", "undo")["removed"]) == 1
    assert terminal.json("list")["memories"] == []
    assert len(terminal.json("endings")["policies"]) == 1
    assert terminal.json("endings", "clear") == {"cleared": True}


@pytest.mark.req("N3")
def test_the_breaker_ends_with_a_conflict(terminal: Terminal) -> None:
    aged(terminal, 11)
    terminal.json("retention", "set", "--long-term", "1d", "--manual")
    refused = terminal("upkeep", "run", "--yes")
    assert refused.code == 4
    assert "11 of 11 memories would go" in refused.err
    assert terminal.json("upkeep", "run", "--yes", "--max-share", "1")["forgotten"] == 11


@pytest.mark.req("P4")
def test_a_hold_refuses_an_erasure_until_it_is_released(terminal: Terminal) -> None:
    id = terminal.add("Signed the contract", "--tag", "legal")
    hold = terminal.json("hold", "--tag", "legal", "--reason", "case 17")
    assert hold["filter"] == {"tags": ["legal"]}
    assert [one["id"] for one in terminal.json("hold", "list")["holds"]] == [hold["id"]]
    refused = terminal("forget", id, "--permanent", "--yes")
    assert refused.code == 5
    assert hold["id"] in refused.err
    assert "case 17" not in refused.err, "the reason is for administrators"
    terminal.json("hold", "release", hold["id"])
    assert terminal("forget", id, "--permanent", "--yes").code == 0
    assert terminal("hold", "--reason", "everything by mistake").code == 2
    assert terminal("hold", "--tag", "legal").code == 2, "without a reason"


@pytest.mark.req("N3")
def test_upkeep_is_for_administrators() -> None:
    answers = {}
    with wellkept.open("ram:", embedder=None) as memories:
        caller = Caller(memories, Identity(user="ada"), grant=Grant(need=Need.ERASE))
        for name in ("upkeep", "upkeep.plan", "upkeep.run", "upkeep.undo", "retention.set", "hold", "hold.release"):
            try:
                answers[name] = call(name, caller, {"id": "x"} if name == "hold.release" else {})
            except wellkept.errors.Unauthorized:
                continue
    assert answers == {}


@pytest.mark.req("J7", "H7")
def test_the_curves_are_those_of_the_types() -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        answer = request("decay", Caller(memories, Identity(user="ada")), {"days": 14}).run()
    assert [one.half_life_hours for one in answer.curves] == [168, 336, 720, None]
    by_type = {kind.value: one.factors for one in answer.curves for kind in one.types}
    assert len(by_type) == len(wellkept.MemoryType)
    assert (by_type["conversation"][0], by_type["conversation"][7], by_type["conversation"][14]) == (1, 0.5, 0.25)
    assert set(by_type["preference"]) == {1.0}
    assert by_type["finding"][14] == 0.5


@pytest.mark.req("H7")
def test_the_picture_of_decay_is_svg_and_private(terminal: Terminal) -> None:
    assert terminal("decay", "--svg", "decay.svg").code == 0
    file = terminal.folder / "decay.svg"
    root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 4
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert terminal("decay").out.startswith("conversation\thalf after 7 days\t1.000\t")


@pytest.mark.req("P4", "L7")
def test_restore_says_that_a_policy_erased_a_memory(terminal: Terminal) -> None:
    aged(terminal, 1)
    terminal.json("retention", "set", "--long-term", "1d", "--forgotten", "1s", "--manual")
    [id] = [step["memory_id"] for step in terminal.json("upkeep", "plan")["steps"]]
    terminal.json("upkeep", "run", "--yes")
    file = terminal.folder / "memory.db"
    later = datetime.now(UTC) + timedelta(days=1)
    with wellkept.open(file, embedder=None, clock=lambda: later) as memories:
        assert memories.upkeep.run().erased == 1
    done = terminal("restore", id, "--user", "ada", "--json")
    assert done.code == 1
    assert "forgotten for 1 days, kept for 0:00:01" in done.answer["result"]["erased"][id]
    assert "cannot be restored" in terminal("restore", id, "--user", "ada").out


@pytest.mark.req("H7")
def test_a_daily_rate_can_be_said_in_a_terminal(terminal: Terminal) -> None:
    terminal.json("sessions", "create", "monday", "--daily-rate", "0.5")
    assert terminal.json("sessions", "show", "monday")["config"]["decay"]["half_life_hours"] == 24
    assert terminal("sessions", "configure", "monday", "--daily-rate", "0.5", "--half-life-hours", "24").code == 2
    assert terminal("sessions", "configure", "monday", "--daily-rate", "1").code == 2


@pytest.mark.req("H9", "N3")
def test_closing_a_session_says_what_became_of_it(terminal: Terminal) -> None:
    terminal.add("Is allergic to nuts", "--session", "monday", "--layer", "session", "--importance", "0.9")
    assert terminal.json("sessions", "close", "monday")["run"] is None
    terminal.json("endings", "set", "--promote", "0.8", "--delete-after", "0d")
    told = terminal("sessions", "close", "monday").out
    assert "1 forgotten, 1 promoted" in told
    [run] = terminal.json("upkeep", "runs")["runs"]
    assert f"wellkept upkeep undo {run['id']}" in told
    terminal.add("Talked about rain", "--session", "monday", "--layer", "session")
    assert terminal.json("sessions", "close", "monday")["run"]["forgotten"] == 1


@pytest.mark.req("P4")
def test_a_doubtful_clock_names_the_flag(terminal: Terminal) -> None:
    later = datetime.now(UTC) + timedelta(days=100)
    with wellkept.open(terminal.folder / "memory.db", embedder=None, clock=lambda: later) as memories:
        memories.view(user="ada").add("Likes tea")
    terminal.json("retention", "set", "--default", "--manual")
    refused = terminal("upkeep", "run", "--yes")
    assert refused.code == 4
    assert "pass --trust-clock if it is" in refused.err


@pytest.mark.req("N3")
def test_pipes_get_cells_with_tabs(terminal: Terminal) -> None:
    id = terminal.add("Likes tea")
    terminal("forget", id)
    [last, first] = [line.split("\t") for line in terminal("undo", "--list").out.splitlines()]
    assert [last[2:], first[2:]] == [["forgotten", "1", ""], ["added", "1", f"changed since: {id}"]]
    hold = terminal.json("hold", "--tag", "legal", "--reason", "case 17")
    placed = [hold["id"], "all owners", "tags=legal", "case 17"]
    assert terminal("hold", "list").out.rstrip("\n").split("\t") == placed
    assert terminal("hold", "release", hold["id"]).out.rstrip("\n").split("\t") == ["released", *placed]
    terminal.add("Pays Mallory", "--author", "mallory")
    assert terminal("quarantine", "--author", "mallory", "--yes").out.split("\t")[10] == "1"
