"""The times that a question of time alone is about: dates, periods, and what lies between, since or before them."""

import re
from datetime import datetime, timedelta
from functools import cache

from wellkept.text import date_words, dates, periods, tense
from wellkept.text.dates import DateRange

_YEAR = timedelta(days=330)
_READ = 1_000  # characters
_MONTHS = "|".join(dates.MONTHS)


def asked_about(question: str, *, at: datetime, first: datetime, last: datetime) -> list[DateRange]:
    """The times that a question asked at some time is about; dates without a year are in the years of the memories,
    ``first`` to ``last``, or in the next one.

    >>> from datetime import UTC
    >>> now, long_ago = datetime(2026, 3, 20, 12, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    >>> [found] = asked_about("What happened between October and January?", at=now, first=long_ago, last=now)
    >>> [datetime.fromtimestamp(one, UTC).date().isoformat() for one in found[:2]]
    ['2025-10-01', '2026-02-01']
    """
    text = _dated(dates.plainly(date_words.in_english(question[:_READ])), at)
    last = max(last, dates.shift(at, _YEAR))
    towards = tense.of(text)

    def named(part: str) -> list[DateRange]:
        found = dates.in_english(part, asked_at=None, first=first, last=last)
        found = found or periods.in_english(part, at=at, towards=towards)
        began = [one for one in found if one.start < at.timestamp()]
        return began if towards < 0 and began else found

    if (pair := _pair().search(text)) and (ends := named(f"of {pair[2]}")) and (starts := named(f"of {pair[1]}")):
        return _between(starts, ends)
    if (side := _side().search(text)) and (found := named(f"of {side[2]}")):
        return _beside(side[1], found, at, first)
    return named(text)[: dates.RANGES]


def _between(starts: list[DateRange], ends: list[DateRange]) -> list[DateRange]:
    """From the start of one to the end of the other; of several years, from the last one before."""
    found = []
    for end in ends[: dates.RANGES]:
        before = [one.start for one in starts if one.start < end.end]
        found += [DateRange(max(before), end.end, dates.NAMED)] if before else []
    return found


def _beside(word: str, found: list[DateRange], at: datetime, first: datetime) -> list[DateRange]:
    """What is since, after or before a time. Of several, the last that has begun is meant, or else the first."""
    now, far = at.timestamp(), dates.shift(at, _YEAR).timestamp()
    begun = [one for one in found if one.start < now]
    one = max(begun) if begun else min(found)
    if word in ("since", "after"):
        start, end = one.start if word == "since" else one.end, now if begun else far
    else:  # from the first memory on, or where the time is still to come, from now on
        start, end = min(first.timestamp(), now) if begun else now, one.start if word == "before" else one.end
    return [DateRange(start, end, dates.NAMED)] if start < end else [one]


def _dated(text: str, at: datetime) -> str:
    """A text whose months have the year that "last" and "next" give them, and weekdays a word before them."""

    def of_month(match: re.Match[str]) -> str:
        ahead = dates.MONTHS[match[2]] - at.month
        year = at.year - (ahead >= 0) if match[1] == "last" else at.year + (ahead <= 0)
        return f"in {match[2]} {year}"

    def of_year(match: re.Match[str]) -> str:
        return f"{match[1]} {at.year + periods.STEPS[match[2]]}"

    text = _month_of_year().sub(of_year, _stepped_month().sub(of_month, text))
    return _weekday().sub(lambda match: match[0] if match[1] else f"on {match[2]}", text)


# --- patterns: compiled on first use, as in dates -------------------------------------------------


@cache
def _pair() -> re.Pattern[str]:
    return re.compile(r"\b(?:between|from) (.{3,40}?) (?:and|to|until|till|through) (.{3,40})")


@cache
def _side() -> re.Pattern[str]:
    return re.compile(r"\b(since|after|before|until|till) (.{3,40})")


@cache
def _stepped_month() -> re.Pattern[str]:
    return re.compile(rf"\b(?:in )?(last|next) ({_MONTHS})\b(?!\.? \d)")


@cache
def _month_of_year() -> re.Pattern[str]:
    return re.compile(rf"\b({_MONTHS}) (?:of )?(last|this|next) year\b")


@cache
def _weekday() -> re.Pattern[str]:
    before = "|".join((*periods.STEPS, "on", "every", "each"))
    return re.compile(rf"\b((?:{before}) )?({'|'.join(dates.WEEKDAYS)})\b")
