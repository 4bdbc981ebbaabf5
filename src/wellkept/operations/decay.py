"""The verb that shows how memories fade: decay."""

from dataclasses import dataclass

from wellkept import fields
from wellkept.lifecycle import decay
from wellkept.operations.verb import Caller, Example, Verb, option, result
from wellkept.types import MemoryType, Need
from wellkept.types.bounds import Bounds

_DAYS = Bounds(minimum=1, maximum=3_650)
_TYPES = Bounds(max_length=len(MemoryType))
_POINTS = Bounds(max_length=3_651, each=fields.UNIT)
_HOURS = Bounds(minimum=0, maximum=1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How memories of some types fade."""

    types: tuple[MemoryType, ...] = result("The types that fade alike.", bounds=_TYPES)
    half_life_hours: float | None = result("The hours in which they fade by half; null if never.", bounds=_HOURS)
    factors: tuple[float, ...] = result("The decay factor of each day, from the first on.", bounds=_POINTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of all types, those that fade fastest first."""

    days: int = result("How many days the curves show.", bounds=_DAYS)
    curves: tuple[Curve, ...] = result("The curves, those that fade fastest first.", bounds=_TYPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading:
    """How far to look ahead."""

    days: int = option("How many days to show.", 90, bounds=_DAYS, short="d")


def _decay(caller: Caller, given: Fading) -> Curves:
    policy = caller.memories._engine.defaults.decay
    alike: dict[float | None, list[MemoryType]] = {}
    for kind in MemoryType:
        alike.setdefault(decay.half_life_hours(kind, policy), []).append(kind)
    ordered = sorted(alike.items(), key=lambda pair: float("inf") if pair[0] is None else pair[0])
    return Curves(
        days=given.days,
        curves=tuple(
            Curve(
                types=tuple(kinds),
                half_life_hours=hours,
                factors=tuple(decay.factor_at(24.0 * day, hours, policy) for day in range(given.days + 1)),
            )
            for hours, kinds in ordered
        ),
    )


DECAY = Verb(
    name="decay",
    input=Fading,
    output=Curves,
    run=_decay,
    method=Need.READ,
    description="The factor counts in the order and the ranking by relevance, and when memories are archived.",
    examples=(
        Example(line="wellkept decay", says="a plot of the next 90 days"),
        Example(line="wellkept decay --days 30 --svg decay.svg", says="a picture of the next 30"),
    ),
)
