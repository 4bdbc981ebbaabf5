"""What a text on the command line becomes: times, numbers of the journal, fields of one's own, values as JSON."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import click

from recollect.errors import InvalidInput

_SEQUENCE_DIGITS = 19


def moment(text: str, now: datetime, *, ahead: bool = False) -> datetime:
    """A time from a date, a date and time, ``now``, or a span such as ``7d`` or ``last week``, which lies back.

    A time without a zone is meant in the zone of ``now``.

    >>> moment("2030-01-07", datetime(2030, 1, 8, tzinfo=UTC)).isoformat()
    '2030-01-07T00:00:00+00:00'
    >>> moment("2d", datetime(2030, 1, 8, tzinfo=UTC), ahead=True).day
    10
    """
    if text.strip().lower() == "now":
        return now
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        span = _span(text)
        return now + span if ahead else now - span
    return given if given.tzinfo else given.replace(tzinfo=now.tzinfo)


def _span(text: str) -> timedelta:
    from recollect import filters  # lazy: most times are dates

    try:
        return filters.relative(text)
    except InvalidInput:
        raise ValueError("not a time: write 2030-01-07, 2030-01-07T09:30, 7d, 12h or 'last week'") from None


def local_now() -> datetime:
    """The time in the zone of this machine."""
    return datetime.now(UTC).astimezone()


def to_moment(*, ahead: bool = False, sequences: bool = False) -> Callable[[str], datetime | int]:
    """Reads times for an option; with ``sequences``, also numbers of the journal."""

    def read(value: str) -> datetime | int:
        if sequences and value.isascii() and value.isdigit() and len(value) < _SEQUENCE_DIGITS:
            return int(value)
        try:
            return moment(value, local_now(), ahead=ahead)
        except (ValueError, OverflowError) as error:
            raise click.BadParameter(str(error)) from None

    return read


def to_pair(value: str) -> tuple[str, Any]:
    """Reads ``name=value`` for an option; the value is JSON if it can be read so, and otherwise a text.

    >>> to_pair("pages=3"), to_pair("city=Rome")
    (('pages', 3), ('city', 'Rome'))
    """
    name, sign, text = value.partition("=")
    if not sign or not name:
        raise click.BadParameter("write it as name=value, such as pages=3 or city=Rome")
    import json  # lazy: few commands have fields of their own

    try:
        return name, json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return name, text


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def to_value(kind: type) -> Callable[[str], Any]:
    """Reads the JSON of one of our values for an option."""

    def read(value: str) -> Any:
        from recollect import codec  # lazy: brings in msgspec

        decode = cast("Callable[[str, type], Any]", codec.decode_as)
        try:
            return decode(value, kind)
        except (ValueError, TypeError, RecursionError) as error:
            raise click.BadParameter(f"not the JSON of a {kind.__name__}: {str(error)[:200]}") from None

    return read
