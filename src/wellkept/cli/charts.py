"""Bars, sparklines, ages and sizes as text: pure functions."""

from collections.abc import Mapping, Sequence
from datetime import datetime

_PARTS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_ASCII_HEIGHTS = "_.-=+*%#"
_SPANS = ((31_536_000, "y"), (2_592_000, "mo"), (86_400, "d"), (3_600, "h"), (60, "min"))
_SIZES = ("B", "KB", "MB", "GB", "TB")


def bar(fraction: float, width: int, *, plain: bool = False, rest: str = " ") -> str:
    """A bar of a fixed width that is filled by a fraction; any fraction above 0 shows at least a sliver.

    >>> bar(0.5, 4), bar(0.5, 4, rest="░"), bar(0.5, 4, plain=True)
    ('██  ', '██░░', '##..')
    """
    share = min(1.0, max(0.0, fraction))
    if plain:
        full = round(share * width)
        return "#" * full + "." * (width - full)
    eighths = max(round(share * width * 8), 1 if share and width else 0)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_PARTS[part] if part else "")).ljust(width, rest)


def signed_bars(parts: Mapping[str, float], width: int, *, plain: bool = False) -> list[tuple[str, str, float]]:
    """Each part with its bar and its signed value, the largest first.

    >>> signed_bars({"words": 2.0, "age": -1.0}, 4, plain=True)
    [('words', '####', 2.0), ('age', '##..', -1.0)]
    """
    most = max((abs(value) for value in parts.values()), default=0.0) or 1.0
    ordered = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return [(name, bar(abs(value) / most, width, plain=plain), value) for name, value in ordered]


def sparkline(counts: Sequence[int], *, plain: bool = False) -> str:
    """One character for each count, as high as the count; a space for 0.

    >>> sparkline([0, 1, 4, 8])
    ' ▁▄█'
    """
    heights = _ASCII_HEIGHTS if plain else _HEIGHTS
    most = max(counts, default=0)
    return "".join(" " if not count else heights[max(0, -(-count * 8 // most) - 1)] for count in counts)


def ago(then: datetime, now: datetime) -> str:
    """How long ago a time was.

    >>> from datetime import UTC
    >>> ago(datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 3, tzinfo=UTC))
    '2d ago'
    """
    seconds = (now - then).total_seconds()
    for size, unit in _SPANS:
        if abs(seconds) >= size:
            count = int(abs(seconds) // size)
            return f"{count}{unit} ago" if seconds > 0 else f"in {count}{unit}"
    return "now"


def size(count: int) -> str:
    """A number of bytes with a unit.

    >>> size(900), size(12_345_678)
    ('900 B', '12.3 MB')
    """
    value, unit = float(count), 0
    while value >= 1000 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_SIZES[unit]}" if unit else f"{count} B"


def cut(text: str, room: int) -> str:
    """A text cut to a number of columns; wide characters take two, combining marks none.

    >>> cut("Lives in Rome", 8), cut("日本語です", 8), cut("short", 8)
    ('Lives i…', '日本語…', 'short')
    """
    from unicodedata import combining, east_asian_width  # lazy: few commands cut anything

    used = 0
    fits = 0  # characters that leave room for the ellipsis
    for place, letter in enumerate(text):
        used += 0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1
        if used > room:
            return text[:fits] + "…"
        fits = place + 1 if used < room else fits
    return text
