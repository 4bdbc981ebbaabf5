"""Which dates a question names."""

import math
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.testing.cases import Cases
from wellkept.text import dates, words
from wellkept.text.dates import DateRange

DAY = 86_400.0
FIRST = datetime(2022, 1, 20, tzinfo=UTC)
LAST = datetime(2023, 6, 1, tzinfo=UTC)
ASKED = datetime(2023, 6, 1, 12, tzinfo=UTC)  # a Thursday
MOMENTS = st.datetimes(timezones=st.just(UTC))
PARTS = st.sampled_from(
    """in may march mar january sept. 7 7th 31 of , 2023 1999 2023-05-07 two a couple 9999 0 weeks year days ago before
    last past this week weekend tuesday yesterday - \u0663 12345""".split()
)
QUESTIONS = st.text(max_size=40) | st.lists(PARTS, max_size=12).map(" ".join)


def named(question: str) -> set[str]:
    """The ranges of a question without a time of asking, as text."""
    found = dates.ranges(question, asked_at=None, first=FIRST, last=LAST)
    assert all(one.weight == 1.0 for one in found)
    return {f"{day(one.start)}/{day(one.end)}" for one in found}


def day(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    assert moment == moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return moment.date().isoformat()


NAMED_DATES: tuple[tuple[str, set[str]], ...] = (
    ("What happened on 7 May 2023?", {"2023-05-07/2023-05-08"}),
    ("on the 7th of May, 2023", {"2023-05-07/2023-05-08"}),
    ("on MAY 7TH,\n 2023", {"2023-05-07/2023-05-08"}),
    ("on 2023-05-07", {"2023-05-07/2023-05-08"}),
    ("at 2023-05-07T10:00", {"2023-05-07/2023-05-08"}),
    ("May 7th", {"2022-05-07/2022-05-08", "2023-05-07/2023-05-08"}),
    ("7 dec", {"2022-12-07/2022-12-08"}),
    ("in March", {"2022-03-01/2022-04-01", "2023-03-01/2023-04-01"}),
    ("in June 2022", {"2022-06-01/2022-07-01"}),
    ("in June of 1999", {"1999-06-01/1999-07-01"}),
    ("in Sept. 2022", {"2022-09-01/2022-10-01"}),
    ("in December 2022", {"2022-12-01/2023-01-01"}),
    ("February or April", {f"{y}-0{m}-01/{y}-0{m + 1}-01" for y in (2022, 2023) for m in (2, 4)}),
    ("in July", {"2022-07-01/2022-08-01", "2023-07-01/2023-08-01"}),  # a month of slack after the last memory
    ("in August", {"2022-08-01/2022-09-01"}),
    ("in December", {"2021-12-01/2022-01-01", "2022-12-01/2023-01-01"}),  # and before the first
    ("in November", {"2022-11-01/2022-12-01"}),
    ("on 29 February", set()),
    ("on 29 February 2024", {"2024-02-29/2024-03-01"}),
    ("in 2022", {"2022-01-01/2023-01-01"}),
    ("in 2021 or 2022", {"2021-01-01/2022-01-01", "2022-01-01/2023-01-01"}),
    ("in June 2022, not 2021", {"2022-06-01/2022-07-01"}),
    ("on 31 June 2022", {"2022-01-01/2023-01-01"}),
    ("on 5/7/2023", {"2023-05-07/2023-05-08", "2023-07-05/2023-07-06"}),  # May or July, but not all of the year
    ("on 10/23/2022", {"2022-10-23/2022-10-24"}),
    ("on 23.10.2022", {"2022-10-23/2022-10-24"}),
    ("am 5.7.2023", {"2023-07-05/2023-07-06"}),
    ("on 2022/10/23", {"2022-10-23/2022-10-24"}),
    ("v1.10.2022 and 40/50/2022", {"2022-01-01/2023-01-01"}),
    ("INC-2031, CVE-2022-1123 or #2022", set()),
    ("since mid-2022", {"2022-01-01/2023-01-01"}),
    ("on 2023-13-01", {"2023-01-01/2024-01-01"}),
    ("What may I eat, and where did they march?", set()),
    ("mar", set()),
    ("mid-may", {"2022-05-11/2022-05-21", "2023-05-11/2023-05-21"}),
    ("at the end of July 2022", {"2022-07-21/2022-08-01"}),
    ("early in 2022, a finales de mayo", {"2022-05-21/2022-06-01", "2023-05-21/2023-06-01"}),
    ("Ende Februar 2022", {"2022-02-21/2022-03-01"}),
    ("May 2022, if I may", {"2022-05-01/2022-06-01"}),
    ("two weeks ago, last week, yesterday", set()),
    ("marchers decided on junebugs 12023", set()),
    ("", set()),
)


def test_dates_with_a_name() -> None:
    with Cases() as cases:
        for question, found in NAMED_DATES:
            with cases.case(question):
                assert named(question) == found


RECKONED: tuple[tuple[str, float, float], ...] = (
    ("two weeks ago", -17.5, -10.5),
    ("a couple of weeks ago", -17.5, -10.5),
    ("a month ago", -45.6, -15.2),
    ("3 days earlier", -4, -2),
    ("an year before", -547.5, -182.5),
    ("in the past 3 months", -91.2, 0),
    ("the last few days", -3, 0),
    ("the last couple of days", -2, 0),
    ("Yesterday", -2, 0),
    ("last\tweek", -10, 0),
    ("last weekend", -8, 0),
    ("this month", -45, 0),
    ("this year", -400, 0),
    ("last Tuesday", -2.5, -1.5),
    ("last Thursday", -7.5, -6.5),
    ("last Friday", -6.5, -5.5),
)


def test_dates_reckoned_from_the_day_of_asking() -> None:
    with Cases() as cases:
        for question, start, end in RECKONED:
            with cases.case(question):
                [found] = dates.ranges(f"What did Ada do {question}?", asked_at=ASKED, first=FIRST, last=LAST)
                assert found.weight == 0.3
                assert (found.start - ASKED.timestamp()) / DAY == pytest.approx(start, abs=1e-6)
                assert (found.end - ASKED.timestamp()) / DAY == pytest.approx(end, abs=1e-6)


def test_what_is_no_date() -> None:
    with Cases() as cases:
        for question in ("0 days", "last zero days", "next week", "weeks ago", "12345 days ago", "week"):
            with cases.case(question):
                assert dates.ranges(question, asked_at=ASKED, first=FIRST, last=LAST) == []


def test_a_question_can_name_several_dates() -> None:
    found = dates.ranges("In May 2023 or last week, or May 2023?", asked_at=ASKED, first=FIRST, last=LAST)
    assert [one.weight for one in found] == [1.0, 0.3]


@given(QUESTIONS, st.none() | MOMENTS, MOMENTS, MOMENTS)
def test_no_question_and_no_time_is_too_strange(
    question: str, asked_at: datetime | None, first: datetime, last: datetime
) -> None:
    found = dates.ranges(question, asked_at=asked_at, first=first, last=last)
    assert len(found) == len(set(found)) <= dates.RANGES
    for one in found:
        assert one.start < one.end
        assert 0 < one.weight <= 1
        assert 0 < dates.nearness(one.start, found) <= 1
    assert asked_at is not None or all(one.weight == 1 for one in found)
    dates.tell_time(words.folded(question))
    dates.asks_when(question)


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar(moment: datetime) -> None:
    question = "9999 years ago, last year, yesterday, last monday, in december, in january, on 31 december"
    for one in dates.ranges(question, asked_at=moment, first=moment, last=moment):
        assert one.start < one.end


@given(st.integers(1, 12), st.integers(1, 28), st.integers(1900, 2099))
def test_every_way_to_write_a_day_names_it(month: int, number: int, year: int) -> None:
    when = datetime(year, month, number, tzinfo=UTC)
    name = when.strftime("%B")
    expected = [DateRange(when.timestamp(), (when + timedelta(days=1)).timestamp(), 1.0)]
    for text in (
        f"{number} {name} {year}",
        f"{number}th of {name}, {year}",
        f"{name} {number}, {year}",
        f"{name[:3]}. {number} {year}",
        when.date().isoformat(),
    ):
        assert dates.ranges(f"on {text}?", asked_at=None, first=FIRST, last=LAST) == expected
    for text in (f"{number} {name}", f"{name} {number}"):
        assert dates.ranges(text, asked_at=None, first=when, last=when) == expected


RANGES = st.builds(
    lambda start, width, weight: DateRange(start, start + width, weight),
    st.floats(-1e9, 1e9),
    st.floats(1, 1e8),
    st.sampled_from([1.0, 0.3]),
)


@given(st.floats(-2e9, 2e9), st.lists(RANGES, max_size=4))
def test_nearness_is_that_of_the_nearest(moment: float, found: list[DateRange]) -> None:
    expected = 0.0
    for start, end, weight in found:
        outside = 0.0 if start <= moment <= end else min(abs(moment - start), abs(moment - end))
        width = max(end - start, DAY)
        expected = max(expected, weight * math.exp(-outside / (0.5 * width + 3 * DAY)))
    assert dates.nearness(moment, found) == pytest.approx(expected)


def test_nearness_fades() -> None:
    one_day = DateRange(0.0, DAY, 1.0)
    assert dates.nearness(0.0, []) == 0.0
    assert dates.nearness(DAY / 2, [one_day]) == 1.0
    assert dates.nearness(4.5 * DAY, [one_day]) == dates.nearness(-3.5 * DAY, [one_day]) == pytest.approx(math.exp(-1))
    assert dates.nearness(10 * DAY, [one_day]) < dates.nearness(10 * DAY, [DateRange(0.0, 5 * DAY, 1.0)])


MENTIONS: tuple[tuple[str, bool], ...] = (
    ("We met on Tuesday", True),
    ("LAST time", True),
    ("room 12", True),
    ("since then", True),
    ("Sept", True),
    ("Ada likes tea", False),
    ("weekly lasting 12345 a1", False),
    ("", False),
)


def test_mentions_of_time() -> None:
    with Cases() as cases:
        for text, timely in MENTIONS:
            with cases.case(text):
                assert dates.tell_time(words.folded(text)) is timely


ASKING_WHEN: tuple[tuple[str, bool], ...] = (
    (" When did Ada move?", True),
    ("HOW LONG did it take?", True),
    ("What day was it?", True),
    ("Which year was it?", True),
    ("Which day is best?", False),
    ("How did Ada know when to move?", False),
    ("What did Ada do?", False),
    ("", False),
)


def test_questions_of_time() -> None:
    with Cases() as cases:
        for question, asks in ASKING_WHEN:
            with cases.case(question):
                assert dates.asks_when(question) is asks


def test_importing_compiles_no_pattern() -> None:
    assert [name for name, value in vars(dates).items() if isinstance(value, re.Pattern)] == []


HOSTILE: tuple[str, ...] = (
    *("1" * 32_000, "1 " * 16_000, "a" * 30_000, "may " * 8_000, "in may " * 4_600, "7 of " * 6_400),
    *("last 2 " * 4_600, "2 weeks " * 4_000, "29 feb " * 4_600, "31 feb 30 feb " * 2_300, "\u0130" * 32_000),
    *("7" + " " * 32_000, "1999-01-01 2023-01-01" * 1_500),
    " ".join(f"{number} days ago" for number in range(2_500)),
    ", ".join(f"{number} {month}" for number in range(32, 100) for month in "jan feb apr jun jul sep oct".split()),
)


def test_hostile_questions_come_to_an_end() -> None:
    """Were the time to grow with the square of the length, this would take minutes."""
    with Cases() as cases:
        for text in HOSTILE:
            with cases.case(text):
                found = dates.ranges(
                    text, asked_at=ASKED, first=datetime.min.replace(tzinfo=UTC), last=datetime.max.replace(tzinfo=UTC)
                )
                dates.tell_time(words.folded(text))
                dates.asks_when(text)
                assert len(found) <= dates.RANGES
