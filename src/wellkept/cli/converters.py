"""Converters from text on the command line to values: times, sequences of the journal, custom fields, JSON."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import click

from wellkept import filters
from wellkept.errors import InvalidInput
from wellkept.types import PointerType

_DAYS: Mapping[str, int] = MappingProxyType({"yesterday": -1, "today": 0, "tomorrow": 1})


def moment(text: str, now: datetime, *, ahead: bool = False) -> datetime:
    """A time from a date, a date and time, ``now``, ``today``, ``yesterday``, or a span before now such as ``7d``.

    A span is also written as ``2 days ago`` or ``last week``. With ``ahead``, a span lies after now unless ``ago``
    follows it. ``in 2 days`` lies after now in any case. Days begin at midnight. A time without a zone is in the zone
    of ``now``.

    >>> moment("2030-01-07", datetime(2030, 1, 8, tzinfo=UTC)).isoformat()
    '2030-01-07T00:00:00+00:00'
    >>> moment("2d", datetime(2030, 1, 8, tzinfo=UTC), ahead=True).day
    10
    """
    said = " ".join(text.lower().split())
    if said == "now":
        return now
    if said in _DAYS:
        day = now.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=_DAYS[said])
        return day.replace(tzinfo=now.tzinfo)
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        span = _span(said.removeprefix("in ").removesuffix(" ago"))
        return now + span if (ahead and not said.endswith(" ago")) or said.startswith("in ") else now - span
    return given if given.tzinfo else given.replace(tzinfo=now.tzinfo)


def _span(text: str) -> timedelta:
    try:
        return filters.relative(text)
    except InvalidInput:
        raise ValueError(
            "not a time: write 2030-01-07, 2030-01-07T09:30, 7d, '2 days ago', yesterday or 'last week'"
        ) from None


def local_now() -> datetime:
    """The time now, in the time zone of this machine."""
    return datetime.now(UTC).astimezone()


def to_moment(*, ahead: bool = False, position: type | None = None) -> Callable[[str], datetime | str]:
    """Reads times for an option; with the type of a position in the journal, also positions."""

    def read(value: str) -> datetime | str:
        try:
            return moment(value, local_now(), ahead=ahead)
        except (ValueError, OverflowError) as error:
            if position is str:
                return value
            raise click.BadParameter(str(error)) from None

    return read


def to_pair(value: str) -> tuple[str, Any]:
    """Reads ``name=value`` for an option; the value is JSON if it parses as JSON, and otherwise a text.

    >>> to_pair("pages=3"), to_pair("city=Rome")
    (('pages', 3), ('city', 'Rome'))
    """
    name, sign, text = value.partition("=")
    if not sign or not name:
        raise click.BadParameter("write it as name=value, such as pages=3 or city=Rome")
    try:
        return name, json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return name, text


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def to_json(value: str) -> Any:
    """Reads JSON for an option.

    >>> to_json('{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(value, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {str(error)[:200]}") from None


def to_pointer(value: str) -> Any:
    """Reads a pointer for an option: as JSON, or the path of a file, with its hash as it is now.

    >>> to_pointer('{"source_type": "adr"}')
    {'source_type': 'adr'}
    """
    if value.lstrip().startswith("{"):
        return to_json(value)
    from wellkept import pointed_files  # lazy: few commands need it

    try:
        found = pointed_files.pointer_to(value, PointerType.SPEC, datetime.now(UTC))
    except InvalidInput as error:
        raise click.BadParameter(f"neither JSON nor a file: {error.hint}") from None
    return {
        "source_type": found.source_type.value,
        "source_id": found.source_id,
        "content_hash": found.content_hash,
        "synced_at": found.synced_at.isoformat(),
    }


def to_object(value: str) -> dict[str, Any]:
    """Reads a JSON object as content.

    >>> to_object('{"decision": "Use tabs"}')
    {'decision': 'Use tabs'}
    """
    found = to_json(value)
    if not isinstance(found, dict):
        raise click.BadParameter("not a JSON object: write it as {...}, or leave --structured out for a text")
    return found


def to_word(value: str) -> str:
    """Reads the name of a field or a setting for an option, with hyphens or underscores.

    >>> to_word("limit-bytes")
    'limit_bytes'
    """
    return value.replace("-", "_")
