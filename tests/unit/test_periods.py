"""Questions of time alone, and the dates that memories tell of."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import Opener
from wellkept import NewMemory, View
from wellkept.text import asked_times, periods

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)  # a Friday


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("text", "start", "days"),
    [
        ("today", "2026-03-20", 1),
        ("this morning", "2026-03-20", 1),
        ("yesterday", "2026-03-19", 1),
        ("tomorrow", "2026-03-21", 1),
        ("last week", "2026-03-09", 7),
        ("this week", "2026-03-16", 7),
        ("next week", "2026-03-23", 7),
        ("next weekend", "2026-03-28", 2),
        ("last month", "2026-02-01", 28),
        ("next month", "2026-04-01", 30),
        ("last year", "2025-01-01", 365),
        ("two days ago", "2026-03-18", 1),
        ("in 3 days", "2026-03-23", 1),
        ("last Tuesday", "2026-03-17", 1),
        ("next Friday", "2026-03-27", 1),
        ("on Thursday", "2026-03-19", 1),
        ("on Sunday", "2026-03-22", 1),
        ("What happened on Sunday?", "2026-03-15", 1),
        ("What did I do on Friday?", "2026-03-20", 1),
        ("What is on Thursday?", "2026-03-26", 1),
        ("The party is on Wednesday", "2026-03-25", 1),
        ("What was planned on Sunday?", "2026-03-22", 1),
        ("What is there this Friday?", "2026-03-20", 1),
        ("What did I do this weekend?", "2026-03-14", 2),
        ("What is this weekend?", "2026-03-21", 2),
        ("What did I do over the weekend?", "2026-03-14", 2),
        ("Are you free at the weekend?", "2026-03-21", 2),
        ("the day before yesterday", "2026-03-18", 1),
        ("the day after tomorrow", "2026-03-22", 1),
        ("vorgestern", "2026-03-18", 1),
        ("anteayer", "2026-03-18", 1),
        ("anteontem", "2026-03-18", 1),
        ("eergisteren", "2026-03-18", 1),
        ("dopodomani", "2026-03-22", 1),
        ("three days from now", "2026-03-23", 1),
        ("What is coming up next week?", "2026-03-23", 7),
        ("What happened recently, say last week?", "2026-03-09", 7),
    ],
)
def test_periods_of_the_calendar(text: str, start: str, days: int) -> None:
    [found] = periods.periods(text, at=NOW)
    assert datetime.fromtimestamp(found.start, UTC) == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert (found.end - found.start) / 86_400 == days


@pytest.mark.req("L4")
def test_a_speed_is_no_time() -> None:
    assert periods.periods("How many can we fold in an hour?", at=NOW) == []


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("text", "hours"), [("in the last 24 hours", 24), ("the past week", 168), ("a fortnight ago", 168)]
)
def test_spans_up_to_now_end_now(text: str, hours: int) -> None:
    [found] = periods.periods(text, at=NOW)
    assert found.end == (NOW - timedelta(days=10.5) if "ago" in text else NOW).timestamp()
    assert found.end - found.start == hours * 3600


@pytest.mark.req("L4")
@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What happened between October and January?", "2025-10-01", "2026-02-01"),
        ("What happened from 3 May to 7 June 2025?", "2025-05-03", "2025-06-08"),
        ("What happened between Monday and Wednesday?", "2026-03-16", "2026-03-19"),
        ("What happened since Monday?", "2026-03-16", "now"),
        ("What happened since September?", "2025-09-01", "now"),
        ("What happened after March 3?", "2026-03-04", "now"),
        ("What happened before May?", "2025-04-01", "2025-05-01"),
        ("What happened before this week?", "2025-04-01", "2026-03-16"),
        ("What is planned until Tuesday?", "now", "2026-03-25"),
        ("What is scheduled before next month?", "now", "2026-04-01"),
        ("What happened last January?", "2026-01-01", "2026-02-01"),
        ("What happened last May?", "2025-05-01", "2025-06-01"),
        ("What is next January?", "2027-01-01", "2027-02-01"),
        ("What happened in November last year?", "2025-11-01", "2025-12-01"),
        ("What did I do Tuesday morning?", "2026-03-17", "2026-03-18"),
        ("What happened in December?", "2025-12-01", "2026-01-01"),
    ],
)
def test_times_between_since_and_before_others(question: str, start: str, end: str) -> None:
    assert periods.of_time_alone(question)
    first = datetime(2025, 4, 1, tzinfo=UTC)
    [found] = asked_times.asked_about(question, at=NOW, first=first, last=NOW)
    wanted = [NOW if one == "now" else datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (start, end)]
    assert [datetime.fromtimestamp(one, UTC) for one in (found.start, found.end)] == wanted


def test_days_are_those_of_the_time_zone_of_the_question() -> None:
    [found] = periods.periods("today", at=datetime(2026, 3, 20, 1, tzinfo=timezone(timedelta(hours=9))))
    assert datetime.fromtimestamp(found.start, UTC) == datetime(2026, 3, 19, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("What did I do yesterday?", True),
        ("What happened last week?", True),
        ("next week", True),
        ("What's upcoming?", True),
        ("What did we talk about in July?", True),
        ("What happened on March 3rd?", True),
        ("What did we decide in September?", True),
        ("What happened between June and August?", True),
        ("What did I do over the weekend?", True),
        ("What did I eat yesterday?", False),
        ("What did Maya do yesterday?", False),
        ("What do I do?", False),
        ("", False),
    ],
)
def test_questions_of_time_alone(question: str, alone: bool) -> None:
    assert periods.of_time_alone(question) is alone


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_no_text_is_a_mistake(text: str, at: datetime) -> None:
    for said in (text, f"last year {text} in 999 years, next month, on Monday, 12 March"):
        periods.periods(said, at=at)
        told = periods.told(said, at=at)
        assert told is None or told[0] < told[1]
        for one in asked_times.asked_about(f"since {said} between May and {said}", at=at, first=at, last=at):
            assert one.start < one.end


@pytest.fixture(params=["default", None], ids=["meaning", "words"])
def diary(request: pytest.FixtureRequest, opener: Opener) -> View:
    view = opener(embedder=request.param, name="diary").view(user="ada")
    said = {
        "Painted the fence": 1,
        "Repaired the tap": 2,
        "Met Bob about yesterday's match": 30,
        "Bought two chairs": 9,
        "Went to Rome by train": 250,
        "The dentist is on April 2 at 9:30": 5,
        "The flight to Berlin leaves on March 27": 4,
        "The offsite is from June 8 to June 11": 9,
        "Likes tea": 600,
    }
    view.add_many([NewMemory(content=one, occurred_at=NOW - timedelta(days=ago)) for one, ago in said.items()])
    return view


@pytest.mark.req("L4", "L15", "J6")
@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What did I do yesterday?", ["Painted the fence"]),
        ("What happened last week?", ["Bought two chairs"]),
        ("What is on next week?", ["The flight to Berlin leaves on March 27"]),
        (
            "What is upcoming?",
            ["The flight to Berlin leaves on March 27", "The dentist is on April 2 at 9:30"],
        ),
        ("What happens in June?", ["The offsite is from June 8 to June 11"]),
        ("What happened in July?", ["Went to Rome by train"]),
        ("What did I do last year?", ["Went to Rome by train"]),
        ("And two days ago?", ["Repaired the tap"]),
    ],
)
def test_what_is_dated_there_is_found_and_nothing_else_first(diary: View, question: str, found: list[str]) -> None:
    hits = diary.search(question, asked_at=NOW, explain=True).hits
    assert [hit.memory.content for hit in hits][: len(found)] == found
    assert all(set(hit.reasons) == {"date"} for hit in hits)
    for hit in hits:
        assert 1 / (1 + math.exp(-hit.reasons["date"])) == pytest.approx(hit.score, abs=0.001)


@pytest.mark.req("L4")
def test_where_nothing_is_dated_there_words_decide(diary: View) -> None:
    hits = diary.search("What was said yesterday?", asked_at=NOW + timedelta(days=4000), explain=True).hits
    assert all("words" in hit.reasons for hit in hits[:1])
    assert not any(set(hit.reasons) == {"date"} for hit in hits)


@pytest.mark.req("L4")
def test_a_time_beside_other_words_prefers_and_does_not_filter(diary: View) -> None:
    diary.add("Bought two lamps", occurred_at=NOW - timedelta(days=100))
    found = [hit.memory.content for hit in diary.search("Which two things were bought last week?", asked_at=NOW)]
    assert found[0] == "Bought two chairs"
    assert "Bought two lamps" in found


@pytest.mark.req("L4", "H10")
def test_filters_hold_for_questions_of_time(diary: View) -> None:
    diary.add("Tagged", occurred_at=NOW - timedelta(days=1), tags=["kept"])
    question = "What did I do yesterday?"
    assert [hit.memory.content for hit in diary.search(question, asked_at=NOW, filter={"tags": ["kept"]})] == ["Tagged"]
    forgotten = diary.search(question, asked_at=NOW).hits[0].memory
    diary.forget(forgotten.id)
    assert forgotten.id not in [hit.memory.id for hit in diary.search(question, asked_at=NOW)]


@pytest.mark.req("L4")
def test_what_is_upcoming_is_not_what_was_stored_a_moment_ago() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add_many(["The project uses PostgreSQL", "Tom plays the cello", "The dentist sees me tomorrow"])
        assert [hit.memory.content for hit in view.search("What is upcoming?")][:1] == ["The dentist sees me tomorrow"]
        assert len(view.search("What is upcoming?")) == 1


@pytest.mark.req("L4", "L15")
@pytest.mark.parametrize("embedder", ["default", None], ids=["meaning", "words"])
@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What did I do yesterday?", ["Borrowed the drill until April 5", "Painted the fence"]),
        (
            "What happened yesterday?",
            ["The dentist is on April 2", "Borrowed the drill until April 5", "Painted the fence"],
        ),
        (
            "What was said yesterday?",
            ["The dentist is on April 2", "Borrowed the drill until April 5", "Painted the fence"],
        ),
        ("What happened in 2025?", ["Went to Rome by train"]),
        ("What happened in February?", ["Sold the piano"]),
    ],
)
def test_what_is_only_near_a_time_is_left_out_beside_what_is_within_it(
    opener: Opener, embedder: str | None, question: str, found: list[str]
) -> None:
    view = opener(embedder=embedder, name="days").view(user="ada")
    said = {
        "Painted the fence": NOW - timedelta(days=1),
        "The dentist is on April 2": NOW - timedelta(days=1),
        "Borrowed the drill until April 5": NOW - timedelta(days=1),
        "Watered the beans": NOW - timedelta(hours=9),
        "Went to Rome by train": datetime(2025, 12, 29, tzinfo=UTC),
        "Shovelled snow": datetime(2026, 1, 3, tzinfo=UTC),
        "Sold the piano": datetime(2026, 2, 20, tzinfo=UTC),
        "Oiled the bike": datetime(2026, 3, 2, tzinfo=UTC),
    }
    view.add_many([NewMemory(content=one, occurred_at=at) for one, at in said.items()])
    hits = view.search(question, asked_at=NOW)
    assert {hit.memory.content for hit in hits} == {*found}


@pytest.mark.req("L4")
def test_an_announcement_is_found_where_nothing_else_is_dated_then() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add("The dentist is on April 2", occurred_at=NOW - timedelta(days=1))
        assert len(view.search("What did I do yesterday?", asked_at=NOW)) == 1


@pytest.mark.req("L4")
def test_verbs_of_other_languages_are_given_the_benefit_of_the_doubt() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        for said in ("Ich habe das Buch bis zum 2. April ausgeliehen", "Ich habe den Zaun gestrichen"):
            view.add(said, occurred_at=NOW - timedelta(days=1))
        assert len(view.search("Was habe ich gestern gemacht?", asked_at=NOW)) == 2


@pytest.mark.req("L4")
def test_the_number_of_a_ticket_is_no_year() -> None:
    with wellkept.open("ram:") as database:
        view = database.view(user="ada")
        view.add("The review of INC-2031 is on Tuesday", occurred_at=NOW)
        view.add("Painted the fence", occurred_at=NOW)
        found = view.search("What is on next week?", asked_at=NOW).hits
        assert [hit.memory.content for hit in found] == ["The review of INC-2031 is on Tuesday"]
