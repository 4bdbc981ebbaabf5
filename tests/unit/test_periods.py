"""The periods that a question names, and whether it asks for nothing else."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import asked_times, periods

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)  # a Friday

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)  # a Friday

CALENDAR: tuple[tuple[str, str, int], ...] = (
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
)


@pytest.mark.req("L4")
def test_periods_of_the_calendar() -> None:
    with Cases() as cases:
        for text, start, days in CALENDAR:
            with cases.case(text):
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


BOUNDED: tuple[tuple[str, str, str], ...] = (
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
)


@pytest.mark.req("L4")
def test_times_between_since_and_before_others() -> None:
    with Cases() as cases:
        for question, start, end in BOUNDED:
            with cases.case(question):
                assert periods.of_time_alone(question)
                first = datetime(2025, 4, 1, tzinfo=UTC)
                [found] = asked_times.asked_about(question, at=NOW, first=first, last=NOW)
                wanted = [
                    NOW if one == "now" else datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (start, end)
                ]
                assert [datetime.fromtimestamp(one, UTC) for one in (found.start, found.end)] == wanted


def test_days_are_those_of_the_time_zone_of_the_question() -> None:
    [found] = periods.periods("today", at=datetime(2026, 3, 20, 1, tzinfo=timezone(timedelta(hours=9))))
    assert datetime.fromtimestamp(found.start, UTC) == datetime(2026, 3, 19, 15, tzinfo=UTC)


OF_TIME_ALONE: tuple[tuple[str, bool], ...] = (
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
)


def test_questions_of_time_alone() -> None:
    with Cases() as cases:
        for question, alone in OF_TIME_ALONE:
            with cases.case(question):
                assert periods.of_time_alone(question) is alone


@given(st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_no_text_is_a_mistake(text: str, at: datetime) -> None:
    for said in (text, f"last year {text} in 999 years, next month, on Monday, 12 March"):
        periods.periods(said, at=at)
        told = periods.told(said, at=at)
        assert told is None or told[0] < told[1]
        for one in asked_times.asked_about(f"since {said} between May and {said}", at=at, first=at, last=at):
            assert one.start < one.end
