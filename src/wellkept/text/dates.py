"""Dates in questions: extract the date ranges that a question names, and score times by their distance."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain, islice
from types import MappingProxyType
from typing import NamedTuple

from wellkept.text import date_words, words

RANGES = 64
"""The maximum number of ranges per question."""

NAMED = 1.0
RELATIVE = 0.3
"""The weight of dates relative to the time of asking, which are rarely exact."""

_DAY = timedelta(days=1)
_SLACK = 31 * _DAY
_BLUR_SECONDS = 3 * 86_400
_YEAR = r"((?:19|20)\d\d)\b"
MONTHS = MappingProxyType(
    {
        name: number
        for number, names in enumerate(
            """january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep
            |october oct|november nov|december dec""".split("|"),
            start=1,
        )
        for name in names.split()
    }
)
_THIRDS = MappingProxyType({"": 0, "early": 0, "mid": 10, "late": 20})
_PARTS = MappingProxyType(
    {name: name for name in ("early", "mid", "late")}
    | {"beginning of": "early", "start of": "early", "middle of": "mid", "end of": "late"}
)
_ALSO_WORDS = frozenset({"may", "march", "mar"})
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERS = MappingProxyType(
    {
        name: number
        for number, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
    }
    | {"a": 1, "an": 1, "couple": 2, "few": 3}
)
_TIME_WORDS = frozenset(
    word.encode()
    for word in (
        *"yesterday today tonight tomorrow ago last next week weekend month year morning recently since".split(),
        *WEEKDAYS,
        *MONTHS,
    )
)
_DATE_WORDS = frozenset((*MONTHS, *"ago before earlier last past previous this yesterday".split()))
UNITS = MappingProxyType({"day": _DAY, "week": 7 * _DAY, "month": 30.4 * _DAY, "year": 365 * _DAY})
_IDIOMS = MappingProxyType(
    {
        **dict.fromkeys(("day before yesterday", "day-before-yesterday"), "2 days ago"),
        **dict.fromkeys(("day after tomorrow", "day-after-tomorrow"), "in 2 days"),
        **dict.fromkeys(("a fortnight", "fortnight"), "2 weeks"),
    }
)
_LATELY = MappingProxyType({"weekend": 8 * _DAY, "week": 10 * _DAY, "month": 45 * _DAY, "year": 400 * _DAY})


class DateRange(NamedTuple):
    """A date range named by a question, in seconds since the epoch, and its weight.

    >>> DateRange(0.0, 86_400.0, NAMED).weight
    1.0
    """

    start: float
    end: float
    weight: float


def ranges(question: str, *, asked_at: datetime | None, first: datetime, last: datetime) -> list[DateRange]:
    """The distinct date ranges that a question names, at most ``RANGES``.

    A date without a year yields a range for each year from ``first`` to ``last``, the times of the stored memories.
    Relative dates such as "two weeks ago" need ``asked_at``.

    >>> start, end = datetime(2022, 1, 20, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC)
    >>> [found] = ranges("What did Ada paint on May 7th, 2023?", asked_at=None, first=start, last=end)
    >>> datetime.fromtimestamp(found.start, UTC).isoformat(), (found.end - found.start) / 86_400, found.weight
    ('2023-05-07T00:00:00+00:00', 1.0, 1.0)
    >>> len(ranges("And in March?", asked_at=None, first=start, last=end))
    2
    >>> len(ranges("And two weeks ago?", asked_at=end, first=start, last=end))
    1
    """
    return in_english(date_words.in_english(question), asked_at=asked_at, first=first, last=last)


def in_english(question: str, *, asked_at: datetime | None, first: datetime, last: datetime) -> list[DateRange]:
    """The same of a question whose dates are in English.

    >>> start, end = datetime(2022, 1, 20, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC)
    >>> len(in_english("And in March?", asked_at=None, first=start, last=end))
    2
    """
    if not _names_time(question):  # most questions name none, and the patterns are slow
        return []
    text = plainly(question)
    named = list(islice(_named(text, first, last), RANGES)) or _years(text)
    relative = () if asked_at is None else _relative(text, asked_at)
    found = ((start, end, NAMED) for start, end in named), ((start, end, RELATIVE) for start, end in relative)
    distinct = dict.fromkeys(
        DateRange(start.timestamp(), end.timestamp(), weight)
        for start, end, weight in chain.from_iterable(found)
        if start < end
    )
    return list(islice(distinct, RANGES))


def plainly(text: str) -> str:
    """A text in lower case and with single spaces, which keep the patterns simple and their time linear; idioms for
    days are numbers of them.

    >>> plainly("The day  before yesterday, a fortnight ago")
    'the 2 days ago, 2 weeks ago'
    """
    lowered = " ".join(text.lower().split())
    for idiom, said in _IDIOMS.items():
        lowered = lowered.replace(idiom, said)
    return lowered


def _names_time(question: str) -> bool:
    """A fast pre-check: no date is found without a digit or one of these words."""
    return _digit().search(question) is not None or not _DATE_WORDS.isdisjoint(words.words(question))


def words_of(text: str) -> list[str]:
    """Whatever stands between word boundaries in a text: a pattern that needs a word finds nothing without it.

    >>> words_of("last week's trip")
    ['last', 'week', 's', 'trip']
    """
    return words.words(text) if text.isascii() else _word().findall(text)


def nearness(moment: float, ranges: Iterable[DateRange]) -> float:
    """The proximity of a time (seconds since the epoch) to the nearest range, from 0 to 1.

    Decays exponentially with the distance, more slowly for longer ranges.

    >>> week = DateRange(0.0, 7 * 86_400.0, NAMED)
    >>> [round(nearness(days * 86_400.0, [week]), 2) for days in (3, 8, 30)]
    [1.0, 0.86, 0.03]
    """
    return max((one.weight * math.exp(-_outside(moment, one) / _scale(one)) for one in ranges), default=0.0)


def tell_time(said: Sequence[bytes]) -> bool:
    """Whether ``words.folded`` contain a time expression: a date, a weekday, a number, a word such as "recently".

    >>> tell_time([b"ada", b"moved", b"last", b"week"]), tell_time([b"in", b"2023"]), tell_time([b"ada", b"moved"])
    (True, True, False)
    """
    # A set lookup takes a fifth of the time of an equivalent pattern.
    return (
        not _TIME_WORDS.isdisjoint(said)
        or any(len(word) <= 4 for word in filter(bytes.isdigit, said))
        or any(word.count(b".") == 2 and _numeric_days().fullmatch(word.decode()) for word in said)
    )


def asks_when(question: str) -> bool:
    """Whether a question asks for a time.

    >>> asks_when("When did Ada move?"), asks_when("Where did Ada move?")
    (True, False)
    """
    return _questions_of_time().match(question.lower()) is not None


def _outside(moment: float, one: DateRange) -> float:
    return max(one.start - moment, moment - one.end, 0.0)


def _scale(one: DateRange) -> float:
    return max(one.end - one.start, _DAY.total_seconds()) / 2 + _BLUR_SECONDS


# --- absolute dates -------------------------------------------------------------------------------


def _named(text: str, first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The days and months that a text names; without a year, one range per possible year, newest first."""
    for year, month, day in dict.fromkeys(_iso_days().findall(text)):
        yield from _day_or_month(int(year), int(month), int(day))
    for one, mark, other, year in dict.fromkeys(_numeric_days().findall(text)):
        yield from _day_or_month(int(year), int(other), int(one))
        if mark != "." and one != other:  # some write the month first; with points nobody does
            yield from _day_or_month(int(year), int(one), int(other))
    if MONTHS.keys().isdisjoint(words_of(text)):
        return
    early, late = shift(first, -_SLACK), shift(last, _SLACK)
    for part, day, month, year in _mentions(text):
        if year:
            yield from _day_or_month(year, month, day, part)
        elif any(_day_or_month(2000, month, day)):  # 2000 is a leap year: a date invalid there is invalid in every year
            for guess in range(late.year, early.year - 1, -1):
                spans = _day_or_month(guess, month, day, part)
                yield from (span for span in spans if span[0] <= late and span[1] >= early)


def _mentions(text: str) -> Iterable[tuple[str, int, int, int]]:
    """Part, day, month and year of each date with a month name; 0 or nothing for what is missing."""
    return dict.fromkeys(
        (_PARTS.get(evidence, ""), int(day or later_day or 0), MONTHS[name], int(year or 0))
        for day, evidence, name, later_day, year in _days_and_months().findall(text)
        if name not in _ALSO_WORDS or evidence or day or later_day or year
    )


def _day_or_month(year: int, month: int, day: int, part: str = "") -> list[tuple[datetime, datetime]]:
    """The range of a day, or of the whole month or a third of it if ``day`` is 0; empty for an invalid date."""
    try:
        start = datetime(year, month, day or 1, tzinfo=UTC)
    except ValueError:
        return []
    if day:
        return [(start, shift(start, _DAY))]
    first, end = shift(start, _THIRDS[part] * _DAY), shift(start, 31 * _DAY).replace(day=1)
    return [(first, shift(first, 10 * _DAY) if part in ("early", "mid") else end)]


def _years(text: str) -> list[tuple[datetime, datetime]]:
    """The years that a text names."""
    years = islice(dict.fromkeys(map(int, _bare_years().findall(text))), RANGES)
    return [(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)) for year in years]


# --- relative dates -------------------------------------------------------------------------------


def _relative(text: str, asked_at: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The ranges of relative dates, with generous margins."""
    for number, unit in dict.fromkeys(_ago().findall(text)):
        middle, blur = shift(asked_at, -count(number) * UNITS[unit]), max(_DAY, UNITS[unit] / 2)
        yield shift(middle, -blur), shift(middle, blur)
    for number, unit in dict.fromkeys(_past_few().findall(text)):
        yield shift(asked_at, -count(number) * UNITS[unit]), asked_at
    if "yesterday" in text:
        yield shift(asked_at, -2 * _DAY), asked_at
    for unit in dict.fromkeys(_lately().findall(text)):
        yield shift(asked_at, -_LATELY[unit]), asked_at
    for name in dict.fromkeys(_last_weekday().findall(text)):
        back = (asked_at.weekday() - WEEKDAYS.index(name) - 1) % 7 + 1  # "last Tuesday" on a Tuesday is a week ago
        start = shift(asked_at.replace(hour=0, minute=0, second=0, microsecond=0), -back * _DAY)
        yield start, shift(start, _DAY)


def count(number: str) -> int:
    """A number of units: "two", "a few", "3".

    >>> count("two"), count("12")
    (2, 12)
    """
    return NUMBERS[number] if number in NUMBERS else int(number)


def shift(moment: datetime, span: timedelta) -> datetime:
    """``moment + span``, clamped to the calendar.

    >>> shift(datetime.max.replace(tzinfo=UTC), timedelta(days=1)).year
    9999
    """
    try:
        return moment + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if span > timedelta() else datetime.min.replace(tzinfo=UTC)


# --- patterns: compiled on first use, because compiling them takes longer than the whole import ---


@cache
def _days_and_months() -> re.Pattern[str]:
    """A month name with an optional day, year, and a word that shows that "may" is a month."""
    shows = f"{'|'.join(_PARTS)}|in|during|of|since|on|last|this|next|from|until|before|after|by"
    return re.compile(
        rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?|({shows})[ -])?({'|'.join(MONTHS)})\b\.?"
        rf"(?: (\d{{1,2}})(?:st|nd|rd|th)?\b)?,?(?: (?:of )?{_YEAR})?"
    )


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"[^\W_]+")


@cache
def _digit() -> re.Pattern[str]:
    return re.compile(r"\d")


@cache
def _iso_days() -> re.Pattern[str]:
    return re.compile(r"\b((?:19|20)\d\d)[-/.](\d\d)[-/.](\d\d)(?!\d)")


@cache
def _numeric_days() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-])(\d{{1,2}})([./-])(\d{{1,2}})\2{_YEAR}")


@cache
def _bare_years() -> re.Pattern[str]:
    """Not those in the name of something, such as a ticket (INC-2031)."""
    return re.compile(rf"(?:(?<!#)(?<![^\W\d_]-)\b|(?<=mid-)|(?<=early-)|(?<=late-)|(?<=pre-)|(?<=post-)){_YEAR}")


@cache
def _ago() -> re.Pattern[str]:
    return re.compile(rf"\b(\d{{1,4}}|{'|'.join(NUMBERS)}) (?:of )?({'|'.join(UNITS)})s? (?:ago|before|earlier)\b")


@cache
def _past_few() -> re.Pattern[str]:
    return re.compile(rf"\b(?:last|past|previous) (\d{{1,4}}|{'|'.join(NUMBERS)}) (?:of )?({'|'.join(UNITS)})s?\b")


@cache
def _lately() -> re.Pattern[str]:
    return re.compile(rf"\b(?:last|past|previous|this) ({'|'.join(_LATELY)})\b")


@cache
def _last_weekday() -> re.Pattern[str]:
    return re.compile(rf"\b(?:last|past|previous) ({'|'.join(WEEKDAYS)})\b")


@cache
def _questions_of_time() -> re.Pattern[str]:
    return re.compile(r"\s*(?:when|how long|what (?:date|day|month|year)|which (?:year|month))")
