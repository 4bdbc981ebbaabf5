"""Exported sessions are read in again: every form, on every store, once however often, all or none."""

import json
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.refusals import error_of
from tests.support.stand_ins import HandClock, Opener, one_store
from tests.support.terminal import Terminal
from wellkept import Filter, Memories
from wellkept.errors import Conflict, InvalidInput, KeyUnavailable, NotFound, QuotaExceeded
from wellkept.memories import Sessions
from wellkept.testing.builders import START
from wellkept.types import DecayPolicy, ExportFormatName, Layer, Memory, Owner, Source, SourceType, State

OURS: tuple[ExportFormatName, ...] = ("json", "jsonl")
FORMS: tuple[ExportFormatName, ...] = (*OURS, "entries")
HERE = ("owner", "created_at", "updated_at", "forgotten_at", "source", "trust", "access_count", "last_accessed_at")
SEED = (
    '{"id":"mem_001","session_id":"sess_001","timestamp":"2026-01-10T10:00:00Z","type":"conversation",'
    '"content":{"role":"user","message":"Hello","metadata":{"n":1}},"importance":0.5,"decay_factor":1.0,"tags":["a.b"],'
    '"references":[]}\n'
    '{"id":"mem_002","session_id":"sess_001","timestamp":"2026-01-10T10:01:00Z","type":"decision",'
    '"content":{"decision":"Use PKCE"},"importance":0.9,"decay_factor":1.0,"tags":[],"references":["mem_001"]}\n'
)


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


@pytest.fixture
def exported(clock: HandClock) -> dict[str, str]:
    """A session of another store with something of everything, in every form."""
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        session = memories.view(user="grace").sessions.create(
            "monday",
            preferences={"language": "en"},
            config={"decay": DecayPolicy(half_life_hours=24), "limit_bytes": 100_000},
            metadata={"about": "OAuth"},
        )
        view = session.view
        asked = view.add("How do I log in?", type="conversation", role="user", tags=["oauth2"], importance=0.8)
        view.add(
            "Use the code flow",
            type="decision",
            references=[asked.id],
            metadata={"sure": True, "deep": {"er": [1, None]}},
            source=Source(type=SourceType.WEB, reference="page 7"),
            title="Flow",
            key="flow",
            derived_from=[asked.id],
        )
        view.add({"decision": "Use PKCE", "why": ["safer"]}, occurred_at=START.replace(year=2020))
        clock.forward(hours=1)
        view.facts.add("Ada", "lives in", "Rome")
        view.facts.add("Ada", "lives in", "Oslo")
        view.forget(view.add("Use passwords").id)
        session.close()
        clock.forward(hours=1)
        return {form: session.export(form, history=form != "entries") for form in FORMS}


def stored(sessions: Sessions, id: str) -> list[Memory]:
    """What a session has, forgotten and superseded memories too."""
    everything = Filter(include_forgotten=True, include_superseded=True)
    return list(sessions.load(id).view.list(sort_by="oldest", filter=everything))


def memories_in(text: str) -> list[dict[str, Any]]:
    """The memories in an export, without what an import gives anew."""
    memories: list[dict[str, Any]] = json.loads(text)["memories"]
    return [
        {name: value for name, value in one.items() if name not in (*HERE, "version", "session")} for one in memories
    ]


@pytest.mark.req("P3")
@pytest.mark.parametrize("form", OURS)
def test_what_was_exported_is_read_in_with_everything(form: str, exported: dict[str, str], sessions: Sessions) -> None:
    report = sessions.import_session(exported[form])
    assert (report.session_id, report.form, report.created, report.added, report.known) == ("monday", form, True, 6, 0)
    again = sessions.load("monday").export()
    assert memories_in(again) == memories_in(exported["json"])
    created = [[one["created_at"] for one in json.loads(text)["memories"]] for text in (again, exported["json"])]
    assert created[0] == created[1]
    found = stored(sessions, "monday")
    assert len(found) == 6
    assert {one.owner for one in found} == {Owner(Layer.SESSION, ("ada", "monday"))}
    assert [one.state for one in found].count(State.FORGOTTEN) == 1
    assert [one.state for one in found].count(State.SUPERSEDED) == 1
    session = sessions.load("monday")
    assert session.preferences.language == "en"
    assert session.config.decay.half_life_hours == 24
    assert session.metadata == {"about": "OAuth"}
    assert session.closed_at is not None


@pytest.mark.req("P3")
def test_plain_entries_come_back_as_they_went(exported: dict[str, str], sessions: Sessions) -> None:
    report = sessions.import_session(exported["entries"], "copy")
    assert (report.session_id, report.form, report.added) == ("copy", "entries", 4)
    again = sessions.load("copy").export("entries")
    kept = ("id", "timestamp", "type", "content", "importance", "tags", "references")
    first, second = (
        [{name: json.loads(line)[name] for name in kept} for line in text.splitlines()]
        for text in (exported["entries"], again)
    )
    assert first == second


@pytest.mark.req("P3")
def test_the_entries_of_other_software_are_read(sessions: Sessions) -> None:
    assert sessions.import_session(SEED).session_id == "sess_001"
    said, decided = stored(sessions, "sess_001")
    assert (said.content, said.role, said.type.value, dict(said.metadata)) == (
        "Hello",
        "user",
        "conversation",
        {"n": 1},
    )
    assert (said.tags, said.importance, said.occurred_at.isoformat()) == (("a.b",), 0.5, "2026-01-10T10:00:00+00:00")
    assert decided.data == {"decision": "Use PKCE"}
    assert decided.references == ("mem_001",)
    assert sessions.load("sess_001").view.count() == 2


@pytest.mark.req("P3")
def test_an_import_can_be_repeated(exported: dict[str, str], memories: Memories) -> None:
    for form in FORMS:
        sessions = memories.view(user=f"reads {form}").sessions
        first = sessions.import_session(exported[form])
        before = stored(sessions, "monday")
        again = sessions.import_session(exported[form])
        assert (again.created, again.added, again.known) == (False, 0, first.added), form
        assert stored(sessions, "monday") == before, form


@pytest.mark.req("P3")
def test_what_became_of_a_memory_here_stays(exported: dict[str, str], sessions: Sessions) -> None:
    sessions.import_session(SEED)
    view = sessions.load("sess_001").view
    view.update("mem_001", content="Good morning")
    view.forget("mem_002")
    assert sessions.import_session(SEED).known == 2
    assert [one.content for one in view.list()] == ["Good morning"]
    view.forget("mem_001", permanent=True)
    for dry_run in (True, False):
        report = sessions.import_session(SEED, dry_run=dry_run)
        assert (report.added, report.known, report.erased) == (0, 1, 1)
    assert view.get("mem_001") is None


@pytest.mark.req("P3")
def test_another_memory_of_the_id_is_a_conflict_and_nothing_is_changed(sessions: Sessions) -> None:
    sessions.import_session(SEED.splitlines()[1])
    before = stored(sessions, "sess_001")
    with pytest.raises(Conflict, match="mem_002") as caught:
        sessions.import_session(SEED.replace("Use PKCE", "Use passwords"))
    assert caught.value.details["memory_id"] == "mem_002"
    assert "passwords" not in str(caught.value)
    assert stored(sessions, "sess_001") == before


@pytest.mark.req("P3")
def test_a_key_that_another_memory_has_is_a_conflict(exported: dict[str, str], sessions: Sessions) -> None:
    taken = sessions.create("monday").view.add("Something else", key="flow")
    with pytest.raises(Conflict, match=taken.id):
        sessions.import_session(exported["json"])
    assert len(stored(sessions, "monday")) == 1


def bad(line: str) -> str:
    return SEED + line


ENTRY = '"timestamp":"2026-01-10T10:00:00Z","content":"SECRET"'

BAD_LINES: list[tuple[str, dict[str, Any]]] = [
    (bad("{broken"), {"line": 3}),
    (bad("[1]"), {"line": 3}),
    (bad('{"a":' * 100_000), {"line": 3}),
    (bad('{"id":"x","timestamp":"2026-01-10T10:00:00Z","content":' + '{"a":' * 40 + "1" + "}" * 41), {"line": 3}),
    (bad('\n{"id":"x","timestamp":"yesterday","content":"SECRET"}'), {"line": 4, "field": "timestamp"}),
    (bad('{"id":"x","timestamp":"2026-01-10T10:00:00","content":"SECRET"}'), {"line": 3, "field": "timestamp"}),
    (bad(f"{{{ENTRY}}}"), {"line": 3, "field": "id"}),
    (bad('{"id":"x","timestamp":"2026-01-10T10:00:00Z","content":""}'), {"line": 3, "field": "content"}),
    (bad('{"id":"x","timestamp":"2026-01-10T10:00:00Z"}'), {"line": 3, "field": "content"}),
    (bad(f'{{"id":"x",{ENTRY},"importance":7}}'), {"line": 3, "field": "importance"}),
    (bad(f'{{"id":"x",{ENTRY},"tags":"SECRET"}}'), {"line": 3, "field": "tags"}),
    (bad('{"id":"x","timestamp":"2026-01-10T10:00:00Z","content":{"message":7}}'), {"line": 3, "field": "content"}),
    (bad(f'{{"id":"x","stamp":"1",{ENTRY}}}'), {"line": 3}),
    (bad(f'{{"id":"x","session_id":"other",{ENTRY}}}'), {}),
    ("", {"field": "text"}),
    ("\ud800", {"field": "text"}),
    ("nonsense", {"line": 1}),
]


@pytest.mark.req("P3", "J11")
@one_store
def test_a_bad_line_is_named_and_nothing_is_stored(sessions: Sessions) -> None:
    wrong: dict[str, object] = {}
    for text, place in BAD_LINES:
        name = ascii(text.removeprefix(SEED))[:120]
        error = error_of(sessions.import_session, text)
        if not isinstance(error, InvalidInput) or not place.items() <= error.details.items():
            wrong[name] = error
        elif "line" in place and f"line {place['line']}" not in error.message:
            wrong[f"{name}, no line"] = error
        if error and "SECRET" in f"{error}{error.details}":
            wrong[f"{name}, shown"] = error
        if sessions.list() != ():
            wrong[f"{name}, a session"] = sessions.list()
    assert wrong == {}
    with pytest.raises(NotFound):
        sessions.load("sess_001")


BAD_OBJECTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"memories": 7}, {"field": "memories"}),
    ({"memories": [7]}, {"memory": 1}),
    ({"memories": [{"id": "x", "content": "SECRET"}]}, {"memory": 1}),
    ({"session": None}, {"field": "session"}),
    ({"session": {"session_id": "monday"}}, {"field": "session"}),
    ({"version": 2}, {"field": "version"}),
    ({"version": "1"}, {"field": "version"}),
]


@pytest.mark.req("P3")
@one_store
def test_a_bad_object_is_named(exported: dict[str, str], sessions: Sessions) -> None:
    wrong = {}
    for change, place in BAD_OBJECTS:
        error = error_of(sessions.import_session, json.dumps({**json.loads(exported["json"]), **change}))
        if not isinstance(error, InvalidInput) or not place.items() <= error.details.items() or "SECRET" in str(error):
            wrong[str(change)] = error and (error, error.details)
    assert wrong == {}
    assert sessions.list() == ()


@one_store
def test_bad_values_in_our_own_forms_are_named(exported: dict[str, str], sessions: Sessions) -> None:
    whole = json.loads(exported["json"])
    first = whole["memories"][0]
    for name, value in (("importance", 7), ("tags", ["a\nb"]), ("id", ""), ("created_at", "2026-01-10T10:00:00")):
        with pytest.raises(InvalidInput, match="memory 1"):
            sessions.import_session(json.dumps({**whole, "memories": [{**first, name: value}]}))
    circle = [{**first, "id": "a", "derived_from": ["b"]}, {**first, "id": "b", "derived_from": ["a"]}]
    with pytest.raises(InvalidInput, match="derived from itself"):
        sessions.import_session(json.dumps({**whole, "memories": circle}))
    with pytest.raises(InvalidInput, match="memory 2: the id stands twice"):
        sessions.import_session(json.dumps({**whole, "memories": [first, first]}))
    with pytest.raises(InvalidInput, match="line 2 is neither"):
        sessions.import_session(exported["jsonl"].splitlines()[0] + '\n{"other": 1}\n')
    assert sessions.list() == ()


def test_the_object_may_be_spread_over_lines(exported: dict[str, str], sessions: Sessions) -> None:
    assert sessions.import_session("\ufeff" + json.dumps(json.loads(exported["json"]), indent=2)).added == 6


@pytest.mark.req("P3")
def test_what_is_imported_is_trusted_as_such(exported: dict[str, str], sessions: Sessions) -> None:
    sessions.import_session(exported["json"])
    found = {one.content: one for one in stored(sessions, "monday")}
    asked, flow = found["How do I log in?"], found["Use the code flow"]
    assert asked.source == Source(type=SourceType.IMPORT)
    assert asked.trust == 0.5
    assert flow.source == Source(type=SourceType.WEB, reference="page 7")
    assert flow.trust == 0.2


@pytest.mark.req("P3")
def test_the_limit_of_the_session_holds(sessions: Sessions) -> None:
    sessions.create("sess_001", config={"limit_bytes": 50, "auto_compact": False})
    with pytest.raises(QuotaExceeded):
        sessions.import_session(SEED)
    assert sessions.load("sess_001").view.count() == 0


def test_a_file_does_not_choose_its_own_limit(clock: HandClock, exported: dict[str, str]) -> None:
    with wellkept.open("ram:", embedder=None, clock=clock, settings={"sessions": {"limit_bytes": 50}}) as memories:
        sessions = memories.view(user="ada").sessions
        with pytest.raises(QuotaExceeded):
            sessions.import_session(exported["json"])
        assert sessions.list() == ()
        with pytest.raises(NotFound):
            sessions.load("monday")


def test_a_session_that_could_not_be_filled_is_not_made(sessions: Sessions) -> None:
    marked = SEED.replace('"n":1', '"sensitive":true')
    with pytest.raises(KeyUnavailable):
        sessions.import_session(marked)
    assert sessions.list() == ()


def test_a_dry_run_counts_and_changes_nothing(exported: dict[str, str], sessions: Sessions) -> None:
    report = sessions.import_session(exported["jsonl"], dry_run=True)
    assert (report.dry_run, report.created, report.added) == (True, True, 6)
    assert sessions.list() == ()


def test_a_deleted_session_is_not_imported_into(sessions: Sessions) -> None:
    sessions.import_session(SEED)
    sessions.delete("sess_001")
    with pytest.raises(Conflict, match="was deleted"):
        sessions.import_session(SEED)


@one_store
def test_entries_without_a_session_need_one(sessions: Sessions) -> None:
    with pytest.raises(InvalidInput, match="do not tell their session"):
        sessions.import_session('{"id":"1","timestamp":"2026-01-10T10:00:00Z","content":"Tea"}')


def test_adding_the_same_again_finds_what_was_imported(sessions: Sessions) -> None:
    sessions.import_session('{"id":"1","timestamp":"2025-01-10T10:00:00Z","content":"Likes tea"}', "monday")
    assert sessions.load("monday").view.add("Likes tea").id == "1"


def test_an_import_lasts(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    memories.view(user="ada").sessions.import_session(SEED)
    if opener.kind != "ram":
        memories.close()
        memories = opener(clock=clock)
    sessions = memories.view(user="ada").sessions
    assert sessions.import_session(SEED).known == 2
    assert [one.reason for one in sessions.load("sess_001").view.history("mem_001")] == ["imported"]


@pytest.mark.req("J8")
def test_a_session_that_was_never_created_is_deleted_like_one_that_was(memories: Memories, sessions: Sessions) -> None:
    view = memories.view(user="ada", session="used")
    view.add("Use OAuth", layer="session")
    assert sessions.delete("used", dry_run=True).count == 1
    assert sessions.delete("used").count == 1
    assert view.count() == 0
    assert sessions.restore("used").view.count() == 1
    assert sessions.delete("used", permanent=True).count == 1
    with pytest.raises(NotFound):
        sessions.delete("used")


@pytest.mark.req("P3")
def test_the_command_reads_a_file_and_a_pipe(terminal: Terminal) -> None:
    Path("memory.jsonl").write_text(SEED, encoding="utf-8")
    assert terminal.json("sessions", "import", "memory.jsonl", "--dry-run")["added"] == 2
    done = terminal("sessions", "import", "memory.jsonl", "--id", "copy")
    assert (done.code, done.out) == (0, "2 memories imported into the session copy\n")
    again = terminal("sessions", "import", "-", "--id", "copy", stdin=SEED.encode())
    assert again.out == "0 memories imported into the session copy\n2 here already\n"
    missing = terminal("sessions", "import", "nowhere.jsonl")
    assert (missing.code, "nowhere.jsonl cannot be read" in missing.err) == (2, True)
    Path("bad.jsonl").write_text(SEED + "{", encoding="utf-8")
    refused = terminal("sessions", "import", "bad.jsonl")
    assert (refused.code, "line 3" in refused.err) == (2, True)
