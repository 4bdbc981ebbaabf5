"""A bar chart as SVG, in plain text: nothing to install, and a change of a figure is a change of a line."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#2f6db3", "#e08a2c", "#4c9a57", "#a94f8b", "#7a7a7a", "#c0504d", "#3aa6a6", "#8064a2", "#9b8b3c")
LEFT, TOP, BOTTOM, HEIGHT, WIDTH = 44, 84, 40, 220, 860


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars in groups: for each group, one bar of each series. What is not a number has no bar."""

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]
    ticks: Sequence[float]
    logarithmic: bool = False

    def height_of(self, value: float) -> float:
        """From 0 to 1: where a value stands between the lowest and the highest tick."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.logarithmic:
            value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
        return min(1.0, max(0.0, (value - low) / (high - low)))


def draw(charts: Sequence[Chart]) -> str:
    """The charts, one below the other, as one picture."""
    each = TOP + HEIGHT + BOTTOM
    size = f'width="{WIDTH}" height="{each * len(charts)}" viewBox="0 0 {WIDTH} {each * len(charts)}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" fill="#222">']
    lines.append('<rect width="100%" height="100%" fill="#fff"/>')
    for number, chart in enumerate(charts):
        lines += [f'<g transform="translate(0 {number * each})">', *_chart(chart), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _chart(chart: Chart) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(chart.title)}</text>'
    yield from _legend(chart)
    for tick in chart.ticks:
        y = TOP + HEIGHT * (1 - chart.height_of(tick))
        yield f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    room = (WIDTH - LEFT - 10) / len(chart.groups)
    for number, group in enumerate(chart.groups):
        x = LEFT + number * room
        yield f'<text x="{x + room / 2:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{escape(group)}</text>'
        yield from _group(chart, number, x + room * 0.1, room * 0.8)


def _group(chart: Chart, number: int, x: float, room: float) -> Iterator[str]:
    width = room / len(chart.series)
    for place, values in enumerate(chart.series.values()):
        value = values[number]
        if math.isnan(value):
            continue
        height = HEIGHT * chart.height_of(value)
        box = f'x="{x + place * width:.1f}" y="{TOP + HEIGHT - height:.1f}" width="{width * 0.92:.1f}"'
        yield f'<rect {box} height="{height:.1f}" fill="{COLOURS[place % len(COLOURS)]}"/>'
        middle = x + place * width + width * 0.46
        label = f"{value:.3g}"
        if width > 7 * len(label) * 0.9:
            yield f'<text x="{middle:.1f}" y="{TOP + HEIGHT - height - 4:.1f}" text-anchor="middle">{label}</text>'


def _legend(chart: Chart) -> Iterator[str]:
    """Names beside their colours, in as many rows as they need; two fit above the bars."""
    x, y = LEFT, 32
    for place, name in enumerate(chart.series):
        width = 30 + 7 * len(name)
        if x + width > WIDTH:
            x, y = LEFT, y + 18
        yield f'<rect x="{x}" y="{y}" width="10" height="10" fill="{COLOURS[place % len(COLOURS)]}"/>'
        yield f'<text x="{x + 15}" y="{y + 9}">{escape(name)}</text>'
        x += width
