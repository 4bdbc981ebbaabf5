"""The verb that counts memories by type, tag and time: stats."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from wellkept import fields
from wellkept.errors import InvalidLayer
from wellkept.operations.conditions import MANY, layers_field
from wellkept.operations.verb import Caller, Example, Verb, result
from wellkept.types import Filter, Layer, Stats

_PERIODS = 30
_STEPS = (timedelta(hours=1), timedelta(days=1), timedelta(weeks=1), timedelta(days=30), timedelta(days=365))


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """How many memories were recorded from ``start`` until ``end``."""

    start: datetime = result("When the period begins.")
    end: datetime = result("When the period ends.")
    count: int = result("How many memories were recorded in the period.", bounds=fields.COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of a view, and when its memories were recorded."""

    stats: Stats = result("Counts and sizes of the memories.")
    timeline: tuple[Period, ...] = result(
        "How many memories were recorded in each of some equal periods.", (), bounds=MANY
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Which memories."""

    layers: tuple[Layer, ...] = layers_field()


def _stats(caller: Caller, given: Summary) -> Statistics:
    view, layers = caller.view, given.layers or None
    stats = view.stats(layers=layers)
    if stats.oldest is None or stats.newest is None:
        return Statistics(stats=stats)
    timeline = []
    for start, end in periods(stats.oldest, stats.newest):
        within = Filter(created_after=start, created_before=end)
        timeline.append(Period(start=start, end=end, count=view.count(filter=within, layers=layers)))
    return Statistics(stats=stats, timeline=tuple(timeline))


def periods(oldest: datetime, newest: datetime) -> list[tuple[datetime, datetime]]:
    """Equal periods that contain both times: hours, days, weeks, months or years, at most thirty of them.

    >>> from datetime import UTC
    >>> len(periods(datetime(2030, 1, 1, 9, tzinfo=UTC), datetime(2030, 1, 7, 8, tzinfo=UTC)))
    7
    """
    wide = (step for step in _STEPS if (newest - oldest) / step <= _PERIODS - 2)
    step = next(wide, (newest - oldest) / (_PERIODS - 2))
    start = oldest.replace(minute=0, second=0, microsecond=0)
    if step >= timedelta(days=1):
        start = start.replace(hour=0)
    found = []
    while start <= newest:
        found.append((start, start + step))
        start += step
    return found


STATS = Verb(
    name="stats",
    input=Summary,
    output=Statistics,
    run=_stats,
    method="View.stats",
    errors=(InvalidLayer,),
    examples=(Example(line="wellkept stats --layer user", says="with a timeline, and bars for types and tags"),),
)
