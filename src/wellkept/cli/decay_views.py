"""Decay curves: as a plot in a terminal, and as a picture."""

from collections.abc import Sequence
from typing import Any

from wellkept.cli.screen import Screen
from wellkept.operations.decay import Curve, Curves

_ROWS = 11
_MARKS, _PLAIN_MARKS = "●■▲◆○□△◇", "ox+*#@%&"
_STYLES = ("red", "yellow", "cyan", "green")
_COLOURS = ("#dc2626", "#d97706", "#0891b2", "#16a34a", "#7c3aed", "#db2777", "#4b5563", "#111827")
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT, _LINE = 48, 24, 560, 240, 20


def plot(screen: Screen, answer: Curves, _: Any) -> None:
    """The curves over the days; for a pipe, a line for each type."""
    if not screen.terminal:
        screen.rows(
            (kind.value, _half_life(one), *(f"{factor:.3f}" for factor in one.factors))
            for one in answer.curves
            for kind in one.types
        )
        return
    width = max(20, min(72, screen.width - 8))
    marks = _PLAIN_MARKS if screen.plain else _MARKS
    grid = [[" "] * width for _ in range(_ROWS)]
    for number, one in reversed(list(enumerate(answer.curves))):
        style = _STYLES[number % len(_STYLES)]
        for column in range(width):
            factor = one.factors[round(column * answer.days / (width - 1))]
            grid[_ROWS - 1 - round(factor * (_ROWS - 1))][column] = screen.styled(marks[number % len(marks)], style)
    for row, cells in enumerate(grid):
        screen.line(f"{1 - row / (_ROWS - 1):4.1f} {'|' if screen.plain else '│'}{''.join(cells)}".rstrip())
    rule = "-" if screen.plain else "─"
    screen.line(f"     {'+' if screen.plain else '└'}{rule * width}")
    screen.line(f"      0{f'{answer.days} days':>{width - 1}}", "dim")
    for number, one in enumerate(answer.curves):
        mark = screen.styled(marks[number % len(marks)], _STYLES[number % len(_STYLES)])
        screen.line(f"{mark} {_named(one)}: {_half_life(one)}")


def _named(one: Curve) -> str:
    return ", ".join(kind.value for kind in one.types)


def _half_life(one: Curve) -> str:
    return "never fades" if one.half_life_hours is None else f"half after {one.half_life_hours / 24:g} days"


def svg(answer: Curves) -> str:
    """The curves as a self-contained SVG."""
    width, height = _LEFT + _PLOT_WIDTH + 24, _TOP + _PLOT_HEIGHT + 32 + _LINE * (len(answer.curves) + 1)
    bottom = _TOP + _PLOT_HEIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" font-family="sans-serif" font-size="12">',
            f"<title>How memories fade within {answer.days} days</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{_LEFT + _PLOT_WIDTH}" fill="none" stroke="#6b7280"/>',
            *(
                f'<text x="{_LEFT - 8}" y="{_TOP + _PLOT_HEIGHT * (1 - part) + 4:g}" text-anchor="end">{part:g}</text>'
                for part in (0, 0.5, 1)
            ),
            f'<text x="{_LEFT}" y="{bottom + 18}">0</text>',
            f'<text x="{_LEFT + _PLOT_WIDTH}" y="{bottom + 18}" text-anchor="end">{answer.days} days</text>',
            *(_drawn(number, one, answer.days, bottom) for number, one in enumerate(answer.curves)),
            "</svg>\n",
        ]
    )


def _drawn(number: int, one: Curve, days: int, bottom: int) -> str:
    colour = _COLOURS[number % len(_COLOURS)]
    y = bottom + 32 + _LINE * (number + 1)
    return (
        f'<polyline points="{_points(one.factors, days)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        f'<rect x="{_LEFT}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        f'<text x="{_LEFT + 20}" y="{y}">{_named(one)}: {_half_life(one)}</text>'
    )


def _points(factors: Sequence[float], days: int) -> str:
    return " ".join(
        f"{_LEFT + _PLOT_WIDTH * day / days:.1f},{_TOP + _PLOT_HEIGHT * (1 - factor):.1f}"
        for day, factor in enumerate(factors)
    )
