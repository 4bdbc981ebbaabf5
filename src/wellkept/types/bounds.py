"""The limits of a value that a caller gives or gets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a value: of a number its range, of a text, a list or an object its length.

    ``each`` bounds the items of a list and the values of an object. ``words`` are the texts that are allowed, where
    no enumeration lists them.

    >>> Bounds(max_length=100, each=Bounds(max_length=256)).each.max_length
    256
    """

    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None
    each: "Bounds | None" = None
    words: tuple[str, ...] = ()


UNBOUNDED = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """How a field is described to other programs: a sentence, and its bounds.

    >>> Property(description="The highest score first.").bounds == UNBOUNDED
    True
    """

    description: str
    bounds: Bounds = UNBOUNDED
