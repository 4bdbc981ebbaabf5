"""Sessions: made, loaded, closed, configured; what they tell, and whose they are."""

import json
from contextlib import suppress
from typing import Any

import pytest

from tests.support.refusals import error_of, refusal
from tests.support.stand_ins import HandClock, Opener, one_store, store_of
from wellkept import Layer, Memories, MemoryType
from wellkept import open as open_database
from wellkept.entitlements import Plan
from wellkept.errors import (
    Conflict,
    InvalidInput,
    InvalidLayer,
    MissingIdentifier,
    NotFound,
    PlanRestriction,
    QuotaExceeded,
    StoreCorrupt,
    StoreFull,
)
from wellkept.memories import Sessions
from wellkept.ports import Record
from wellkept.stores.ram import RamStore
from wellkept.testing import FaultyStore
from wellkept.testing.builders import START
from wellkept.types import DecayPolicy, Owner, SessionConfig

ADA = Owner(Layer.USER, ("ada",))


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


def body_of(memories: Memories, id: str) -> dict[str, Any]:
    record = store_of(memories).records.get(ADA, "session", id)
    assert record is not None
    found: dict[str, Any] = json.loads(record.body)
    return found


@pytest.mark.req("J2")
def test_a_session_lasts(opener: Opener, clock: HandClock) -> None:
    memories = opener(clock=clock)
    session = memories.view(user="ada").sessions.create(
        "monday", preferences={"language": "en"}, config={"limit_bytes": 1000}, metadata={"about": "OAuth"}
    )
    session.view.add("Use OAuth")
    if opener.kind != "ram":
        memories.close()
        memories = opener(clock=clock)
    again = memories.view(user="ada").sessions.load("monday")
    assert again.id == "monday"
    assert again.preferences.language == "en"
    assert again.config == SessionConfig(limit_bytes=1000)
    assert again.metadata == {"about": "OAuth"}
    assert [memory.content for memory in again.view.list()] == ["Use OAuth"]


@pytest.mark.req("J2")
def test_the_record_has_the_fields_of_the_metadata_file(memories: Memories, sessions: Sessions) -> None:
    preferences = {"language": "en", "verbosity": "medium", "theme": "dark"}
    sessions.create("monday", preferences=preferences, config=SessionConfig())
    assert body_of(memories, "monday") == {
        "session_id": "monday",
        "user_id": "ada",
        "created_at": "2026-01-01T12:00:00Z",
        "last_accessed": "2026-01-01T12:00:00Z",
        "decay_config": {"enabled": True, "half_life_hours": None, "min_decay_factor": 0.1, "by_type_hours": {}},
        "compaction_config": {"auto_compact": True, "threshold": 0.9},
        "preferences": {"language": "en", "verbosity": "medium", "custom": {"theme": "dark"}},
        "config": {"limit_bytes": 10 * 1024 * 1024},
        "metadata": {},
        "closed_at": None,
        "deleted_at": None,
        "deleted_reason": None,
    }


@pytest.mark.req("J2")
def test_a_record_of_other_software_is_read_and_its_fields_are_kept(memories: Memories, sessions: Sessions) -> None:
    foreign = {
        "session_id": "sess_20260110_user123",
        "user_id": "ada",
        "created_at": "2026-01-10T14:00:00.000Z",
        "last_accessed": "2026-01-10T14:30:00.000Z",
        "total_entries": 42,
        "decay_config": {"enabled": True, "half_life_hours": 168, "min_decay_factor": 0.2},
        "preferences": {"language": "en", "verbosity": "medium", "custom": {"a": 1}},
        "statistics": {"conversations": 15},
    }
    name = "sess_20260110_user123"
    body = json.dumps(foreign).encode()
    store_of(memories).records.put(Record(owner=ADA, kind="session", name=name, body=body, version=1, updated_at=START))
    session = sessions.load(name)
    assert session.config == SessionConfig(decay=DecayPolicy(half_life_hours=168, min_decay_factor=0.2))
    session.preferences.set("b", 2)
    assert session.preferences.all() == {"language": "en", "verbosity": "medium", "a": 1, "b": 2}
    assert body_of(memories, name)["statistics"] == {"conversations": 15}
    assert body_of(memories, name)["total_entries"] == 42


@pytest.mark.req("J2")
@one_store
def test_ids_are_made_and_differ(sessions: Sessions) -> None:
    made = {sessions.create().id for _ in range(20)}
    assert len(made) == 20
    assert all(id.startswith("sess_20260101_") and len(id) <= 64 for id in made)


BAD_IDS: list[Any] = ["", " ", "a b", "a/b", "../up", "a\\b", ".", "-a", "ü", "a\n", "a\x00", "a" * 65]

BAD_IDS += [5, None, b"a", ["a"]]


@pytest.mark.req("J2", "J12")
@one_store
def test_bad_ids_are_refused(sessions: Sessions) -> None:
    calls: list[Any] = [sessions.load, sessions.close, sessions.delete, sessions.restore, sessions.create]
    refusals = {
        f"{call.__name__} {id!a}": refusal(call, id)
        for call in calls
        for id in BAD_IDS
        if (call, id) != (sessions.create, None)  # that is a session with an id of its own making
    }
    wrong = {
        asked: answer for asked, answer in refusals.items() if answer != f"{asked.split()[0]}: InvalidInput of session"
    }
    assert wrong == {}
    assert sessions.list() == ()


@pytest.mark.req("J2")
def test_an_id_is_taken_once(sessions: Sessions) -> None:
    sessions.create("monday", metadata={"first": True})
    with pytest.raises(Conflict) as caught:
        sessions.create("monday")
    assert caught.value.details["session_id"] == "monday"
    assert sessions.load("monday").metadata == {"first": True}


@pytest.mark.req("J2")
def test_an_unknown_session_is_not_found(sessions: Sessions) -> None:
    for call in (sessions.load, sessions.close, sessions.delete, sessions.restore):
        with pytest.raises(NotFound) as caught:
            call("nowhere")
        assert caught.value.details["session_id"] == "nowhere"
        assert caught.value.hint


BAD: dict[str, list[tuple[Any, str]]] = {
    "preferences": [
        ("text", "preferences"),
        ({"language": 5}, "preferences.language"),
        ({"verbosity": ""}, "preferences.verbosity"),
        ({"custom": 5}, "preferences.custom"),
        ({"custom": {"language": 5}}, "preferences.language"),
        ({"": 1}, "preferences"),
        ({"x": object()}, "preferences"),
        ({"x": float("nan")}, "preferences"),
        ({1: 2}, "preferences"),
    ],
    "config": [
        (5, "config"),
        ({"nonsense": 1}, "config"),
        ({"limit_bytes": 0}, "config.limit_bytes"),
        ({"limit_bytes": True}, "config.limit_bytes"),
        ({"limit_bytes": "1"}, "config.limit_bytes"),
        ({"decay": 5}, "config.decay"),
        ({"decay": {"half_life": 5}}, "config.decay"),
        ({"decay": {"enabled": "no"}}, "config.decay.enabled"),
        ({"decay": {"half_life_hours": 0}}, "config.decay.half_life_hours"),
        ({"decay": {"half_life_hours": -1}}, "config.decay.half_life_hours"),
        ({"decay": {"half_life_hours": float("inf")}}, "config.decay.half_life_hours"),
        ({"decay": {"half_life_hours": "7"}}, "config.decay.half_life_hours"),
        (SessionConfig(decay=DecayPolicy(min_decay_factor=1.1)), "config.decay.min_decay_factor"),
    ],
    "metadata": [("text", "metadata"), ({"x": object()}, "metadata")],
}


@pytest.mark.req("J2")
@one_store
def test_bad_fields_are_named_and_nothing_is_made(sessions: Sessions) -> None:
    cases = [(name, value, field) for name, cases in BAD.items() for value, field in cases]
    refusals = {f"{name}={value}": refusal(sessions.create, "monday", **{name: value}) for name, value, _ in cases}
    assert refusals == {f"{name}={value}": f"create: InvalidInput of {field}" for name, value, field in cases}
    assert sessions.list() == ()


@pytest.mark.req("J2")
@one_store
def test_sessions_need_a_user(memories: Memories) -> None:
    with pytest.raises(MissingIdentifier) as caught:
        _ = memories.view(project="api").sessions
    assert caught.value.details["field"] == "user"
    assert memories.view(agent="debugger").sessions.create("x").owner.ids == ("default", "x")


@pytest.mark.req("J2")
def test_what_is_added_goes_to_the_session(memories: Memories, sessions: Sessions) -> None:
    session = sessions.create("monday")
    memory = session.view.add("Use OAuth", type="conversation")
    assert memory.owner == Owner(Layer.SESSION, ("ada", "monday"))
    assert memory.session == "monday"
    assert session.view.layers == (Layer.SESSION,)
    everything = memories.view(user="ada", session="monday", project="api")
    everything.add("The user likes tea")
    everything.add("Use tabs", layer="project")
    assert [found.content for found in session.view.list()] == ["Use OAuth"]
    assert session.view.count(layers=["session"]) == session.view.count(layers="session") == 1
    assert everything.count() == 3


@pytest.mark.req("J2")
def test_a_session_reaches_no_other_layer(memories: Memories, sessions: Sessions) -> None:
    view = sessions.create("monday").view
    mine = memories.view(user="ada").add("Likes tea")
    calls: list[Any] = [
        lambda: view.add("x", layer="user"),
        lambda: view.list(layers=["user"]),
        lambda: view.search("tea", layers=["session", "user"]),
        lambda: view.count(layers="team"),
        lambda: view.forget_many(filter={}, layers=["user"]),
    ]
    for call in calls:
        with pytest.raises(InvalidLayer):
            call()
    assert view.get(mine.id) is None
    assert not view.forget(mine.id)
    with pytest.raises(NotFound):
        view.update(mine.id, content="x")


@pytest.mark.req("J2")
def test_making_a_session_takes_what_was_added_under_its_id(memories: Memories, sessions: Sessions) -> None:
    memories.view(user="ada", session="monday").add("Before", layer="session")
    assert sessions.list() == ()
    assert [memory.content for memory in sessions.create("monday").view.list()] == ["Before"]


@pytest.mark.req("J2", "L11")
def test_users_with_equal_session_ids_are_kept_apart(memories: Memories) -> None:
    ada, bob = memories.view(user="ada").sessions, memories.view(user="bob").sessions
    mine, theirs = ada.create("monday", preferences={"language": "en"}), bob.create("monday")
    mine.view.add("Ada's secret about OAuth", tags=["oauth"])
    assert theirs.preferences.language is None
    theirs.preferences.set("language", "fr")
    assert mine.preferences.language == "en"
    assert theirs.view.count() == 0
    assert len(bob.search("OAuth")) == len(bob.list_memories()) == 0
    assert [*bob.topics(), *bob.sessions_about("oauth")] == []
    assert "secret" not in theirs.export(history=True)
    assert theirs.forget(topic="oauth", permanent=True).count == 0
    assert bob.delete("monday", permanent=True).count == 0
    assert [one.entries for one in ada.list()] == [1]
    assert bob.list() == ()


@pytest.mark.req("J2")
def test_closing_is_noted_and_the_session_stays_readable(sessions: Sessions, clock: HandClock) -> None:
    session = sessions.create("monday")
    session.view.add("Use OAuth")
    assert session.closed_at is None
    closed = clock.forward(hours=1)
    session.close()
    clock.forward(hours=1)
    sessions.close("monday")
    assert session.closed_at == closed
    again = sessions.load("monday")
    assert again.closed_at == closed
    assert again.view.count() == 1
    assert sessions.list()[0].closed_at == closed
    again.reopen()
    assert session.closed_at is None


@pytest.mark.req("J2")
def test_a_with_block_opens_and_closes(sessions: Sessions, clock: HandClock) -> None:
    with sessions.create("monday") as session:
        assert session.closed_at is None
    assert session.closed_at == clock.time
    with suppress(ZeroDivisionError), sessions.load("monday") as session:
        assert session.closed_at is None
        clock.forward(minutes=1)
        _ = 1 / 0
    assert session.closed_at == clock.time
    with session:
        sessions.delete("monday", permanent=True)
    assert sessions.list() == ()


@pytest.mark.req("J2")
def test_statistics(sessions: Sessions, clock: HandClock) -> None:
    session = sessions.create("monday", config={"limit_bytes": 1000})
    empty = session.stats()
    assert (empty.entries, empty.oldest, empty.newest, empty.bytes_used) == (0, None, None, 0)
    assert (empty.created_at, empty.last_accessed) == (START, START)
    first = clock.forward(hours=1)
    session.view.add("Use OAuth", type="decision")
    session.view.add("Why?", type="conversation", role="user")
    last = clock.forward(hours=1)
    gone = session.view.add("Because", type="conversation")
    session.view.forget(gone.id)
    session.view.add("Dark mode", type="preference")
    stats = session.stats()
    assert (stats.id, stats.entries, stats.forgotten) == ("monday", 3, 1)
    assert dict(stats.by_type) == {
        MemoryType.CONVERSATION: 1,
        MemoryType.DECISION: 1,
        MemoryType.PREFERENCE: 1,
    }
    assert (stats.oldest, stats.newest, stats.created_at, stats.last_accessed) == (first, last, START, last)
    assert stats.bytes_used == session.view.stats().bytes_used > 0
    assert stats.percent_used == pytest.approx(stats.bytes_used / 10)
    assert sessions.list() == (stats,)


@pytest.mark.req("J2")
def test_loading_counts_as_a_use(sessions: Sessions, clock: HandClock) -> None:
    sessions.create("monday")
    later = clock.forward(days=1)
    sessions.load("monday")
    assert sessions.list()[0].last_accessed == later


@pytest.mark.req("J2", "J10")
def test_a_full_disk_does_not_keep_a_session_from_being_read() -> None:
    store = FaultyStore(RamStore())
    with open_database(store=store, embedder=None) as memories:
        sessions = memories.view(user="ada").sessions
        sessions.create("monday").view.add("Use OAuth")
        store.fail("records.put", StoreFull("no space left"))
        assert sessions.load("monday").view.count() == 1
        store.fail("records.put", StoreFull("no space left"))
        with pytest.raises(StoreFull):
            sessions.create("tuesday")
        assert [one.id for one in sessions.list()] == ["monday"]


# Such as say the same are one hit, so each is about something of its own.
PLANS = {
    "usual": "A plan for OAuth on the web",
    "quick": "OAuth: the rollout follows another plan",
    "off": "Nobody had a plan when OAuth arrived in spring",
    "floor": "Ask the auditors whether OAuth needs a written plan",
}


@pytest.mark.req("J2", "J7", "J6")
def test_the_decay_of_a_session_decides_on_relevance(memories: Memories, sessions: Sessions, clock: HandClock) -> None:
    configured: dict[str, Any] = {
        "usual": {},
        "quick": {"half_life_hours": 24},
        "off": {"enabled": False},
        "floor": {"half_life_hours": 1, "min_decay_factor": 0.4},
    }
    for id, decay in configured.items():
        view = sessions.create(id, config={"decay": decay}).view
        view.add(PLANS[id], type="conversation")
        view.add("Prefers OAuth", type="preference")
    clock.forward(hours=48)
    expected = {"usual": 0.5 ** (2 / 7), "quick": 0.25, "off": 1.0, "floor": 0.4}
    for id, factor in expected.items():
        view = sessions.load(id).view
        page = view.list(sort_by="relevance")
        assert [memory.type.value for memory in page] == (["preference", "conversation"])
        found = {memory.type.value: reasons["decay"] for memory, reasons in zip(page, page.reasons, strict=True)}
        assert found == {"conversation": round(factor, 4), "preference": 1.0}
        hits = view.search("OAuth", ranking="relevance", explain=True, min_score=0)
        assert {hit.memory.type.value: hit.reasons["decay"] for hit in hits} == found
    across = sessions.list_memories(sort_by="relevance", filter={"types": ["conversation"]})
    assert [memory.owner.ids[1] for memory in across] == ["off", "usual", "floor", "quick"]
    hits = sessions.search("plan", ranking="relevance", explain=True, min_score=0, filter={"types": ["conversation"]})
    assert {hit.memory.owner.ids[1]: hit.reasons["decay"] for hit in hits} == {
        id: round(factor, 4) for id, factor in expected.items()
    }
    usual = memories.view(user="ada", session="quick").list(sort_by="relevance", filter={"types": ["conversation"]})
    assert usual.reasons[0]["decay"] == round(expected["usual"], 4)


@pytest.mark.req("J2")
def test_a_session_is_configured_anew_and_its_view_follows(sessions: Sessions, clock: HandClock) -> None:
    session = sessions.create("monday")
    view = session.view
    view.add("The plan", type="conversation")
    clock.forward(hours=24)
    assert session.configure(SessionConfig(decay=DecayPolicy(half_life_hours=24))).decay.half_life_hours == 24
    assert view.list(sort_by="relevance").reasons[0]["decay"] == 0.5
    with pytest.raises(InvalidInput):
        session.configure({"limit_bytes": -1})
    assert sessions.load("monday").config.decay == DecayPolicy(half_life_hours=24)


@pytest.mark.req("J2")
def test_a_session_that_was_deleted_meanwhile_says_so(sessions: Sessions) -> None:
    session = sessions.create("monday")
    sessions.delete("monday")
    calls: list[Any] = [
        *(session.stats, session.close, session.reopen, session.export, session.preferences.all),
        *(lambda: session.config, lambda: session.closed_at, lambda: session.preferences.set("a", 1)),
        *(lambda: session.configure({}), lambda: session.forget(topic="a"), lambda: sessions.load("monday")),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()


@pytest.mark.req("J2")
def test_a_record_that_makes_no_sense_is_corrupt(memories: Memories, sessions: Sessions) -> None:
    sessions.create("monday")
    sound = {"session_id": "odd", "user_id": "ada", "created_at": "2026-01-01T12:00:00Z"}
    sound["last_accessed"] = sound["created_at"]
    records = store_of(memories).records
    wrong: dict[str, object] = {}
    bodies: list[Any] = [{}, {**sound, "session_id": 5}, {**sound, "decay_config": {"half_life_hours": -1}}, [1]]
    for version, body in enumerate(bodies, 1):
        data = json.dumps(body).encode()
        records.put(Record(owner=ADA, kind="session", name="odd", body=data, version=version, updated_at=START))
        error = error_of(sessions.load, "odd")
        if not isinstance(error, StoreCorrupt) or "'odd'" not in str(error) or not error.hint:
            wrong[f"{body}, loaded"] = error
        if [one.id for one in sessions.list()] != ["monday"]:
            wrong[f"{body}, listed"] = sessions.list()
        findings = memories.doctor().findings
        if ["'odd'" in one.message for one in findings] != [True]:
            wrong[f"{body}, checked"] = findings
    assert wrong == {}


@pytest.mark.req("J9")
def test_a_session_that_is_full_takes_nothing_more_until_it_gets_more_room(sessions: Sessions) -> None:
    session = sessions.create("monday", config={"limit_bytes": 2_000})
    kept = session.view.add("a" * 1_000)
    with pytest.raises(QuotaExceeded, match="limit is 2000") as caught:
        session.view.add_many(["small", "b" * 1_000])
    assert caught.value.details["limit"] == 2_000
    assert "session.configure" in caught.value.hint
    with pytest.raises(QuotaExceeded):
        session.view.update(kept.id, content="c" * 3_000)
    assert (session.view.count(), session.view.get(kept.id).content) == (1, "a" * 1_000)  # type: ignore[union-attr]  # it is there
    session.configure({"limit_bytes": 10_000})
    assert len(session.view.add_many(["small", "b" * 1_000])) == 2
    session.configure({"limit_bytes": None})
    session.view.add("d" * 100_000)


@pytest.mark.req("L12", "J9")
@pytest.mark.parametrize(("session_limit", "named"), [(10_000, "Trial"), (500, None)])
def test_the_smaller_limit_of_plan_and_session_holds(session_limit: int, named: str | None) -> None:
    plan = Plan(name="Trial", features=["long_term_memory"], limit_bytes=1_000)
    with open_database("ram:", embedder=None, plan=plan) as memories:
        session = memories.view(user="ada").sessions.create(config={"limit_bytes": session_limit})
        with pytest.raises(QuotaExceeded) as caught:
            session.view.add("a" * 2_000)
        assert caught.value.details.get("plan") == named


@pytest.mark.req("L12")
def test_a_plan_without_long_term_memory_has_no_sessions() -> None:
    with (
        open_database("ram:", embedder=None, plan="core") as memories,
        pytest.raises(PlanRestriction, match="long-term memory"),
    ):
        _ = memories.view(user="ada").sessions
