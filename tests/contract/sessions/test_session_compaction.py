"""Sessions near their limit are compacted: what hardly counts is archived, and nothing is erased unless asked for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.refusals import refusal
from tests.support.stand_ins import HandClock, Opener, one_store
from wellkept import Memories
from wellkept.entitlements import Plan
from wellkept.errors import Conflict, InvalidInput, NotFound, QuotaExceeded, UpkeepRefused
from wellkept.events import MemoryArchived, MemoryForgotten, SessionCompacted
from wellkept.memories import Session, Sessions
from wellkept.testing.builders import START
from wellkept.types import Operation, SessionConfig, State, UpkeepJob

LIMIT = 4_000
MONTHS = timedelta(days=400)


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


@pytest.fixture
def session(sessions: Sessions) -> Session:
    return sessions.create("monday", config={"limit_bytes": LIMIT})


def contents(session: Session) -> set[str]:
    return {one.content[:5] for one in session.view.list(limit=100)}


def heard(memories: Memories) -> list[SessionCompacted]:
    told: list[SessionCompacted] = []
    memories.on(SessionCompacted, told.append)
    return told


@pytest.mark.req("N3", "J9")
def test_a_compaction_can_be_undone_also_later(memories: Memories, session: Session, clock: HandClock) -> None:
    ids = {session.view.add("x" * 400, type="conversation", importance=0.1).id for _ in range(8)}
    clock.time = START + MONTHS
    report = session.compact()
    assert report.archived
    assert report.run_id is not None
    assert memories.upkeep.runs()[0].job is UpkeepJob.COMPACTION
    clock.forward(days=10)
    assert set(memories.upkeep.undo(report.run_id).ids) == {one.id for one in report.archived}
    assert {one.id for one in session.view.list(limit=100)} == ids
    with pytest.raises(Conflict):
        memories.upkeep.undo(report.run_id)


@pytest.mark.req("N3")
def test_a_compaction_that_takes_too_much_is_refused(sessions: Sessions, clock: HandClock) -> None:
    session = sessions.create("full", config={"limit_bytes": 1_000_000})
    for _ in range(40):
        session.view.add("x" * 100, type="conversation", importance=0.1)
    session.configure({"limit_bytes": 4_000})
    clock.time = START + MONTHS
    with pytest.raises(UpkeepRefused) as error:
        session.compact()
    assert error.value.details["session_id"] == "full"
    assert session.view.count() == 40
    assert session.compact(max_share=1.0).archived


@pytest.mark.req("N3", "J9")
def test_a_write_archives_no_more_at_once_than_the_breaker_allows(sessions: Sessions, clock: HandClock) -> None:
    session = sessions.create("full", config={"limit_bytes": 40_000})
    for _ in range(60):
        session.view.add("x" * 400, type="conversation", importance=0.1)
    clock.time = START + MONTHS
    session.configure({"limit_bytes": 30_000})
    session.view.add("y" * 4_000)
    assert session.stats().archived <= 18


@pytest.mark.req("N3")
def test_what_is_held_is_not_archived_by_a_compaction(memories: Memories, session: Session, clock: HandClock) -> None:
    for number in range(8):
        tags = ["legal"] if number < 4 else []
        session.view.add("x" * 400, type="conversation", importance=0.1, tags=tags)
    memories.upkeep.hold({"tags": ["legal"]}, reason="case 17")
    clock.time = START + MONTHS
    assert session.compact().archived
    assert session.view.count(filter={"tags": ["legal"]}) == 4


@pytest.mark.req("J9")
def test_a_session_that_was_never_created_is_compacted_and_closed_like_any_other(memories: Memories) -> None:
    memories.view(user="ada", session="loose").add("Talked about rain", type="conversation", layer="session")
    sessions = memories.view(user="ada").sessions
    assert sessions.compact("loose").count == 0
    sessions.close("loose")
    [stats] = sessions.list()
    assert (stats.id, stats.entries, stats.closed_at is None) == ("loose", 1, False)
    with pytest.raises(NotFound):
        sessions.close("nobody")


# -- what goes -------------------------------------------------------------------------------------------------


@pytest.mark.req("J9", "N3")
def test_a_session_with_room_loses_nothing_that_can_be_recalled(session: Session, clock: HandClock) -> None:
    session.view.add("faded", type="conversation", importance=0.1)
    session.view.forget(session.view.add("ended").id, reason="wrong")
    session.view.add("until", expires_at=START + timedelta(days=1))
    clock.time = START + MONTHS
    assert [one.reason for one in session.compact(dry_run=True).archived] == ["expired"]
    report = session.compact(purge=True, dry_run=True)
    assert [(one.reason, one.bytes_used > 0) for one in report.erased] == [("forgotten", True), ("expired", True)]
    assert report.archived == ()
    before = session.stats().bytes_used
    assert (report.session_id, report.dry_run, report.bytes_before, report.bytes_limit) == (
        "monday",
        True,
        before,
        LIMIT,
    )
    assert session.view.count() == 1
    done = session.compact(purge=True)
    assert done == replace(report, dry_run=False, run_id=done.run_id)
    assert session.stats().bytes_used == done.bytes_after < before
    assert contents(session) == {"faded"}


@pytest.mark.req("J8")
@pytest.mark.req("J9")
def test_what_a_purge_took_is_gone_for_good(session: Session) -> None:
    forgotten = session.view.add("secret plans")
    session.view.update(forgotten.id, content="secret plans, second version")
    session.view.forget(forgotten.id)
    assert session.compact().count == 0, "what was forgotten can be restored"
    assert session.compact(purge=True).count == 1
    assert not session.view.restore(forgotten.id)
    [mark] = session.view.history(forgotten.id)
    assert (mark.operation, mark.memory) == (Operation.ERASED, None)
    assert mark.reason is not None
    assert mark.reason.startswith("compaction (run ")
    assert "secret" not in session.export(history=True)


@pytest.mark.req("J9")
def test_what_is_pinned_stays(session: Session, clock: HandClock) -> None:
    pinned = session.view.add("pinned", importance=0, metadata={"pinned": True})
    session.view.forget(pinned.id)
    session.view.add("other", importance=0)
    clock.time = START + MONTHS
    session.configure({"limit_bytes": 1})
    assert session.compact().count == 1
    assert session.compact(purge=True).count == 1
    session.configure({"limit_bytes": None})
    assert session.view.restore(pinned.id)


@pytest.mark.req("J9", "N3")
def test_what_was_archived_counts_for_nothing_and_comes_back(
    memories: Memories, session: Session, clock: HandClock
) -> None:
    told: list[MemoryArchived] = []
    memories.on(MemoryArchived, told.append)
    faded = session.view.add("faded" * 500, type="conversation", importance=0.1)
    session.view.add("stays" * 200, type="decision", importance=0.9)
    clock.time = START + MONTHS
    before = session.stats()
    session.view.add("newer" * 100)
    after = session.stats()
    assert (before.archived, after.archived, after.forgotten, after.entries) == (0, 1, 0, 2)
    assert after.bytes_used < before.bytes_used
    assert [(one.memory_id, one.owner, one.reason) for one in told] == [(faded.id, session.owner, "compaction")]
    assert session.view.get(faded.id) is None
    assert not session.view.search("faded")
    kept = session.view.get(faded.id, include_forgotten=True)
    assert kept is not None
    assert (kept.state, kept.content) == (State.ARCHIVED, faded.content)
    assert [one.operation for one in session.view.history(faded.id)] == [Operation.ADDED, Operation.ARCHIVED]
    assert memories.doctor().healthy
    with pytest.raises(QuotaExceeded):
        session.view.restore(faded.id)
    session.configure({"limit_bytes": 2 * LIMIT})
    assert session.view.restore(faded.id)
    assert session.view.get(faded.id) is not None
    assert session.stats().archived == 0


@pytest.mark.req("J9")
def test_verbose_metadata_of_old_memories_goes_first_and_stays_in_the_history(
    memories: Memories, session: Session, clock: HandClock
) -> None:
    told = heard(memories)
    log = {"log": "x" * 300, "page": 3}
    old = []
    for number in range(4):
        clock.time = START + timedelta(minutes=number)
        old.append(session.view.add(f"old {number}", metadata=log, type="finding"))
    kept = [
        session.view.add("pinned", metadata={**log, "pinned": True}, type="finding"),
        session.view.add("never old", metadata=log, type="preference"),
    ]
    clock.time = START + timedelta(days=20)
    session.view.add("new", metadata={"log": "y" * 300})
    assert not session.compact(dry_run=True).condensed, "there is room"
    size = LIMIT - session.stats().bytes_used + 400
    session.view.add("z" * size)
    [done] = told
    assert (done.condensed, done.archived, done.erased, done.automatic) == (2, 0, 0, True)
    assert [(one := session.view.get(memory.id)) and dict(one.metadata) for memory in old] == [
        *({"page": 3}, {"page": 3}),
        *(log, log),
    ]
    assert all((one := session.view.get(memory.id)) and one.metadata["log"] for memory in kept)
    first, second = session.view.history(old[0].id)
    assert first.memory is not None
    assert (first.memory.metadata, second.reason) == (log, "compaction")
    assert session.stats().bytes_used == done.bytes_after + size + len("{}")
    memories.rebuild()
    assert session.stats().bytes_used == done.bytes_after + size + len("{}")
    assert memories.doctor().healthy


@pytest.mark.req("J8")
def test_the_reason_of_forgetting_is_the_reason_of_the_tombstone(memories: Memories, session: Session) -> None:
    told: list[MemoryForgotten] = []
    memories.on(MemoryForgotten, told.append)
    asked, plain = session.view.add("Asked to be forgotten"), session.view.add("Forgotten")
    session.view.forget(asked.id, reason="asked for")
    session.view.forget(plain.id)
    session.compact(purge=True)
    reasons = {one.id: [version.reason for version in session.view.history(one.id)] for one in (asked, plain)}
    assert reasons[asked.id] == ["asked for"]
    assert [str(reason).partition(" (run ")[0] for reason in reasons[plain.id]] == ["compaction"]
    assert {one.reason for one in told if one.permanent} == {"asked for", "compaction"}


@pytest.mark.req("J9", "N3")
def test_a_purge_erases_what_was_archived(session: Session, clock: HandClock) -> None:
    faded = session.view.add("faded" * 500, type="conversation", importance=0.1)
    clock.time = START + MONTHS
    session.view.add("newer" * 300)
    assert [(one.id, one.reason) for one in session.compact(purge=True).erased] == [(faded.id, "archived")]
    assert not session.view.restore(faded.id)


# -- by itself ---------------------------------------------------------------------------------------------------


@pytest.mark.req("J9")
def test_a_write_beyond_the_threshold_compacts_first(memories: Memories, session: Session, clock: HandClock) -> None:
    told = heard(memories)
    forgotten: list[MemoryForgotten] = []
    memories.on(MemoryForgotten, forgotten.append)
    session.view.add("faded" * 200, type="conversation", importance=0.1)
    session.view.add("stays" * 200, type="decision", importance=0.9)
    session.view.add("pinned" * 100, importance=0, metadata={"pinned": True})
    clock.time = START + MONTHS
    preview = session.compact(dry_run=True)
    session.view.add("newer" * 100)
    assert told == [], "there was room"
    session.view.add("last." * 150)
    assert contents(session) == {"stays", "pinne", "newer", "last."}
    [event] = told
    assert (event.session_id, event.archived, event.erased) == ("monday", 1, 0)
    assert (event.automatic, event.owner) == (True, session.owner)
    assert event.bytes_after < event.bytes_before
    assert forgotten == []
    assert preview.count == 0, "nothing had to go then"


@pytest.mark.req("J9")
def test_without_help_the_error_tells_the_sizes_and_nothing_is_written(memories: Memories, session: Session) -> None:
    told = heard(memories)
    session.view.add("first" * 700)
    used = session.stats().bytes_used
    with pytest.raises(QuotaExceeded) as caught:
        session.view.add("second" * 200)
    details = caught.value.details
    assert (details["usage"], details["limit"]) == (used, LIMIT)
    assert used + details["needed"] > LIMIT
    assert str(LIMIT) in str(caught.value)
    assert session.stats().bytes_used == used
    assert told == []
    session.view.add("fits")
    assert session.view.count() == 2


@pytest.mark.req("J9")
def test_a_session_may_forbid_it(memories: Memories, sessions: Sessions) -> None:
    told = heard(memories)
    session = sessions.create("tuesday", config={"limit_bytes": LIMIT, "auto_compact": False})
    session.view.forget(session.view.add("ended" * 700).id)
    with pytest.raises(QuotaExceeded):
        session.view.add("next." * 200)
    assert told == []
    assert session.compact(purge=True).count == 1
    session.view.add("next." * 200)


@pytest.mark.req("J9")
def test_the_threshold_can_be_set(memories: Memories, sessions: Sessions, clock: HandClock) -> None:
    told = heard(memories)
    session = sessions.create("tuesday", config={"limit_bytes": LIMIT, "compaction_threshold": 0.5})
    session.view.add("faded" * 350, importance=0)
    clock.time = START + MONTHS
    session.view.add("next." * 200)
    assert [event.archived for event in told] == [1]


@pytest.mark.req("J9")
def test_every_way_into_a_session_has_its_limit(memories: Memories, session: Session) -> None:
    wide = memories.view(user="ada", session="monday")
    wide.add("wide" * 800, layer="session")
    with pytest.raises(QuotaExceeded):
        wide.add("more" * 800, layer="session")
    wide.add("wide" * 800, layer="user")
    assert session.view.count() == 1


@pytest.mark.req("J9")
@pytest.mark.parametrize(("planned", "characters"), [(1_000_000, 6_000), (1_000, 2_000)])
def test_plan_and_session_both_hold(opener: Opener, planned: int, characters: int) -> None:
    with opener(
        plan=Plan(name="Trial", features=["long_term_memory"], limit_bytes=planned), name="planned"
    ) as memories:
        session = memories.view(user="ada").sessions.create("monday", config={"limit_bytes": LIMIT})
        for view in (session.view, memories.view(user="ada", session="monday")):
            with pytest.raises(QuotaExceeded) as caught:
                view.add("x" * characters, layer="session")
            assert caught.value.details["limit"] == min(planned, LIMIT)
            assert ("plan" in caught.value.details) == (planned < LIMIT)
        assert session.view.count() == 0


def test_an_update_never_loses_what_it_updates(session: Session, clock: HandClock) -> None:
    faded = session.view.add("faded" * 120, type="conversation", importance=0.1)
    session.view.add("stays" * 400, importance=1)
    clock.time = START + MONTHS
    updated = session.view.update(faded.id, content="again" * 220, importance=0.9)
    assert session.view.get(faded.id) is not None
    assert updated.version == 2


@one_store
def test_bad_settings_change_nothing(session: Session) -> None:
    settings: list[tuple[dict[str, Any], str]] = [
        ({"auto_compact": 1}, "config.auto_compact"),
        ({"compaction_threshold": 1.5}, "config.compaction_threshold"),
        ({"compaction_threshold": "high"}, "config.compaction_threshold"),
        ({"decay": {"by_type_hours": {"planet": 5}}}, "config.decay.by_type_hours"),
        ({"decay": {"by_type_hours": {"fact": 0}}}, "config.decay.by_type_hours"),
        ({"decay": {"by_type_hours": 5}}, "config.decay.by_type_hours"),
    ]
    refusals = {str(wrong): refusal(session.configure, wrong) for wrong, _ in settings}
    assert refusals == {str(wrong): f"configure: InvalidInput of {field}" for wrong, field in settings}
    assert session.config == SessionConfig(limit_bytes=LIMIT)


def test_compacting_what_is_not_there(sessions: Sessions, session: Session) -> None:
    with pytest.raises(NotFound):
        sessions.compact("sunday")
    with pytest.raises(InvalidInput):
        session.compact(dry_run=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        session.compact(purge=1)  # type: ignore[arg-type]
    assert sessions.compact("monday").count == 0


def test_half_lives_of_types_can_be_set(session: Session, clock: HandClock) -> None:
    session.configure({"decay": {"by_type_hours": {"preference": 24, "event": None}}})
    session.view.add("likes", type="preference")
    session.view.add("event", type="event")
    clock.time = START + timedelta(days=1)
    page = session.view.list(sort_by="relevance")
    factors = {one.content: parts["decay"] for one, parts in zip(page, page.reasons, strict=True)}
    assert factors == {"likes": 0.5, "event": 1.0}
