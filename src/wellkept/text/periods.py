"""Questions of time alone ("What did I do yesterday?", "What is next week?"), and the dates that memories tell of."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache

from wellkept.text import date_words, dates, languages, tense, words
from wellkept.text.dates import DateRange

_DAY = timedelta(days=1)
_SOON, _LATELY = 60 * _DAY, 14 * _DAY
_READ = 1_000  # characters of a text in which a date is looked for
_NUMBER = rf"\d{{1,3}}|{'|'.join(dates.NUMBERS)}"
_DAYS = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1}
_UNITS = {**dates.UNITS, "hour": timedelta(hours=1)}
STEPS = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1, "following": 1}
_TIME = frozenset(
    """today tonight yesterday tomorrow last past previous this next coming upcoming following soon recently lately
    recent ago earlier later before after during until till since between over early late mid now
    beginning start middle end fortnight hour hours
    day days week weeks weekend month months year years morning afternoon evening night time date
    st nd rd th""".split()
)
_ANYTHING = frozenset(
    """happen happened happens happening go going went gone plan plans planned planning schedule scheduled event events
    thing things anything everything something new done make made up any all most
    remember tell show list know say said talk talked talking discuss discussed mention mentioned spoke
    decide decided decision decisions learn learned learnt find found finding findings note noted notes fact facts
    happening's appointment appointments calendar agenda""".split()
)
_PARTS_OF_DAYS = ("morning", "afternoon", "evening", "night")
_PERIODS = frozenset(
    (*_DAYS, *_UNITS, *(f"{unit}s" for unit in _UNITS), "weekend", *_PARTS_OF_DAYS, *dates.WEEKDAYS)
) | {"upcoming", "coming", "soon", "recent", "recently", "lately"}
"""No pattern of a period matches without one of these."""

_DATED = frozenset((*dates.MONTHS, *dates.WEEKDAYS, *dates.NUMBERS))


def of_time_alone(question: str) -> bool:
    """Whether a question has no other words than those for a time, and for whatever happened then.

    >>> of_time_alone("What did I do last week?"), of_time_alone("What did I paint last week?"), of_time_alone("What?")
    (True, False, False)
    """
    question = date_words.in_english(question[:_READ])
    said = words.tokens(question)
    spoken = words.languages_of(said)
    spoken = spoken if len(spoken) < len(languages.STOPS) else ()
    telling = [word for word in said if word in _TIME or word in _DATED or word[0].isdigit()]
    return bool(telling) and all(
        word in _TIME or word in _DATED or word in _ANYTHING or word[0].isdigit() or words.is_stop(word, spoken)
        for word in said
    )


def periods(text: str, *, at: datetime) -> list[DateRange]:
    """The periods that a text names relative to a time, by the calendar of its time zone.

    >>> from datetime import UTC
    >>> [week] = periods("What is on next week?", at=datetime(2026, 3, 20, 12, tzinfo=UTC))
    >>> datetime.fromtimestamp(week.start, UTC).date().isoformat(), (week.end - week.start) / 86_400
    ('2026-03-23', 7.0)
    """
    return in_english(date_words.in_english(text), at=at)


def in_english(text: str, *, at: datetime, towards: int | None = None) -> list[DateRange]:
    """The same of a text whose dates are in English; ``towards`` is its tense, where it is part of another text.

    >>> from datetime import UTC
    >>> len(in_english("today or tomorrow", at=datetime(2026, 3, 20, tzinfo=UTC)))
    2
    """
    lowered = dates.plainly(text)
    if _PERIODS.isdisjoint(dates.words_of(lowered)):  # most texts name none, and the patterns are slow
        return []
    exact = _relative(lowered, at, tense.of(lowered) if towards is None else towards)
    found = dict.fromkeys(exact) or dict.fromkeys(_vague(lowered, at))
    return [DateRange(start.timestamp(), end.timestamp(), dates.NAMED) for start, end in found if start < end]


def told(text: str, *, at: datetime) -> tuple[float, float] | None:
    """The first date that a text told at some time tells of; without a year, the one that is nearest to that time.

    >>> from datetime import UTC
    >>> start, _ = told("The flight is on March 27", at=datetime(2026, 3, 16, tzinfo=UTC))
    >>> datetime.fromtimestamp(start, UTC).date().isoformat()
    '2026-03-27'
    """
    text = date_words.in_english(text[:_READ])
    half = timedelta(days=183)
    found = dates.in_english(text, asked_at=None, first=dates.shift(at, -half), last=dates.shift(at, half))
    found = found or in_english(text, at=at)
    if not found:
        return None
    now = at.timestamp()
    best = min(found, key=lambda one: max(one.start - now, now - one.end, 0.0))
    return best.start, best.end


def _relative(text: str, at: datetime, towards: int) -> Iterator[tuple[datetime, datetime]]:
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for word in _single().findall(text):
        yield _days(today, _DAYS[word], 1)
    for step, unit in _stepped().findall(text):
        if step == "past" and unit in _UNITS:  # up to now, not the one of the calendar
            yield dates.shift(at, -_UNITS[unit]), at
        else:
            yield from _unit(today, unit, STEPS[step] - _was_last(today, step, unit, towards))
    if _the_weekend().search(text):
        yield from _unit(today, "weekend", -_was_last(today, "this", "weekend", towards or today.weekday() - 2))
    for step, number, unit in _several().findall(text):
        span = dates.count(number) * _UNITS[unit]
        past = STEPS[step] < 0
        yield (dates.shift(at, -span), at) if past else (at, dates.shift(at, span))
    for number, unit in _ago().findall(text):
        yield from _around(at, -dates.count(number), unit)
    for number, unit, later, other in _ahead().findall(text):
        yield from _around(at, dates.count(number or later), unit or other)
    for step, name in _weekday().findall(text):
        yield _on_weekday(today, name, step, towards)


def _vague(text: str, at: datetime) -> Iterator[tuple[datetime, datetime]]:
    """What is soon or was recently."""
    if _soon().search(text):
        yield at, dates.shift(at, _SOON)
    if _recently().search(text):
        yield dates.shift(at, -_LATELY), at


def _days(today: datetime, first: int, count: int) -> tuple[datetime, datetime]:
    start = dates.shift(today, first * _DAY)
    return start, dates.shift(start, count * _DAY)


def _unit(today: datetime, unit: str, step: int) -> Iterator[tuple[datetime, datetime]]:
    """The last, this or the next week, weekend, month or year of the calendar."""
    if unit in (*_PARTS_OF_DAYS, "day"):
        yield _days(today, step, 1)
    elif unit == "week":
        yield _days(today, 7 * step - today.weekday(), 7)
    elif unit == "weekend":
        yield _days(today, 7 * step - today.weekday() + 5, 2)
    else:
        months = (today.year * 12 + today.month - 1 + step) if unit == "month" else (today.year + step) * 12
        length = 1 if unit == "month" else 12
        if months >= 12 and months + length < 12 * 10_000:
            yield _month(today, months), _month(today, months + length)


def _month(today: datetime, months: int) -> datetime:
    return today.replace(year=months // 12, month=months % 12 + 1, day=1)


def _around(at: datetime, count: int, unit: str) -> Iterator[tuple[datetime, datetime]]:
    middle = dates.shift(at, count * _UNITS[unit])
    if unit == "day":
        yield _days(middle.replace(hour=0, minute=0, second=0, microsecond=0), 0, 1)
    else:
        yield dates.shift(middle, -_UNITS[unit] / 2), dates.shift(middle, _UNITS[unit] / 2)


def _was_last(today: datetime, step: str, unit: str, towards: int) -> bool:
    """Whether "this weekend" is the one before: what happened there is not still to come."""
    return unit == "weekend" and step == "this" and towards < 0 and today.weekday() < dates.WEEKDAYS.index("saturday")


def _on_weekday(today: datetime, name: str, step: str, towards: int) -> tuple[datetime, datetime]:
    """The last or the next such day. Without a word for either the tense decides, or else the one that is nearer."""
    ahead = (dates.WEEKDAYS.index(name) - today.weekday()) % 7
    if STEPS.get(step, 0) > 0:
        return _days(today, ahead or 7, 1)
    if STEPS.get(step, 0) < 0:
        return _days(today, ahead - 7, 1)
    if ahead and (towards < 0 or (not towards and not step and ahead > 3)):
        return _days(today, ahead - 7, 1)
    return _days(today, ahead, 1)


def nearness(start: float, end: float, ranges: Sequence[DateRange], now: float) -> float:
    """How near a stretch of time is to the nearest of some ranges, from 0 to 1: 0.9 and more inside, where what is
    nearest to now comes first. What lasts longer than what was asked about is less about it.

    >>> day = DateRange(0.0, 86_400.0, 1.0)
    >>> nearness(50.0, 50.0, [day], 86_400.0) > 0.9 > nearness(200_000.0, 200_000.0, [day], 86_400.0)
    True
    """
    best = 0.0
    for one in ranges:
        if end <= now <= one.start:  # it is over, and was asked about as what is still to come
            continue
        span = max(one.end - one.start, 86_400.0)
        outside = max(one.start - end, start - one.end, 0.0)
        if start < end and (end <= one.start or start >= one.end):  # beside it: how far is the middle?
            outside += (end - start) / 2
        away = min(1.0, abs((start + end) / 2 - now) / (max(abs(one.start - now), abs(one.end - now)) + 1.0))
        wide = max(0.5, min(1.0, span / max(end - start, 1.0)))
        best = max(best, (1 - 0.1 * away) * wide * 2 ** (-outside / (0.15 * span + 0.15 * 86_400)))
    return best


def within(start: float, end: float, ranges: Sequence[DateRange]) -> bool:
    """Whether a stretch of time overlaps one of some ranges.

    >>> day = DateRange(0.0, 86_400.0, 1.0)
    >>> within(50.0, 50.0, [day]), within(86_400.0, 90_000.0, [day])
    (True, False)
    """
    return any(start < one.end and (end > one.start or start == end == one.start) for one in ranges)


def stretch(one: DateRange) -> tuple[float, float]:
    """A range with margins: outside of them nothing is near.

    >>> stretch(DateRange(0.0, 86_400.0, 1.0))
    (-43200.0, 129600.0)
    """
    margin = 0.25 * max(one.end - one.start, 86_400.0) + 0.25 * 86_400.0
    return one.start - margin, one.end + margin


# --- patterns: compiled on first use, as in dates -------------------------------------------------


@cache
def _single() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(_DAYS)})\b")


@cache
def _stepped() -> re.Pattern[str]:
    units = "|".join(("weekend", "week", "month", "year", *_PARTS_OF_DAYS))
    return re.compile(rf"\b({'|'.join(STEPS)}) ({units})\b")


@cache
def _the_weekend() -> re.Pattern[str]:
    return re.compile(r"\b(?:over|at|on|for|during) the weekend\b")


@cache
def _several() -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(STEPS)}) ({_NUMBER}) (?:of )?({'|'.join(_UNITS)})s?\b")


@cache
def _ago() -> re.Pattern[str]:
    return re.compile(rf"\b({_NUMBER}) (?:of )?({'|'.join(_UNITS)})s? (?:ago|earlier)\b")


@cache
def _ahead() -> re.Pattern[str]:
    units = "|".join(dates.UNITS)  # "in an hour" is a speed more often than a time
    return re.compile(rf"\b(?:in ({_NUMBER}) (?:of )?({units})s?\b(?! ago)|({_NUMBER}) ({units})s? from now\b)")


@cache
def _weekday() -> re.Pattern[str]:
    return re.compile(rf"\b(?:({'|'.join(STEPS)}) |on )({'|'.join(dates.WEEKDAYS)})\b")


@cache
def _soon() -> re.Pattern[str]:
    return re.compile(r"\b(?:upcoming|coming up|soon)\b")


@cache
def _recently() -> re.Pattern[str]:
    return re.compile(r"\b(?:recent|recently|lately)\b")
