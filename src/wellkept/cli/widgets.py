"""Widgets that several answers are shown with: tables of names and values, bars, times."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum

from wellkept.cli import charts
from wellkept.cli.converters import local_now
from wellkept.cli.screen import Screen, one_line

_LEAST = 20  # columns; with less space, a value is shown below its name


def pairs(screen: Screen, rows: Iterable[tuple[str, str]]) -> None:
    """Names and values in two columns; long values are wrapped."""
    safe_rows = [(one_line(name), one_line(value)) for name, value in rows]
    if not screen.terminal:
        screen.rows(safe_rows)
        return
    import textwrap  # lazy: programs need none of it

    names = max((len(name) for name, _ in safe_rows), default=0)
    room = screen.width - names - 2
    beside = room >= _LEAST
    for name, value in safe_rows:
        label = screen.styled(name.ljust(names) if beside else name, "dim")
        lines = textwrap.wrap(value, max(_LEAST, room) if beside else screen.width - 2, break_on_hyphens=False)
        if beside:
            screen.line(f"{label}  {lines[0] if lines else ''}")
        else:
            screen.line(label)
        for line in lines[1:] if beside else lines:
            screen.line(f"{'':{names + 2 if beside else 2}}{line}")


def table(screen: Screen, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under the names of their columns; without names for a pipe. Nothing if there are none."""
    if not screen.terminal:
        screen.rows(rows)
        return
    if not rows:
        return
    from rich.table import Table  # lazy: slow to import, and most commands do not need it

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*map(one_line, row))  # a terminal must not act on what somebody wrote
    screen.show(shown)


def shown(value: object) -> str:
    """A value as text."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return ", ".join(f"{shown(name)}={shown(one)}" for name, one in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(shown, value))
    return "" if value is None else str(value)


def bars(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    """Counts under a title, the largest first."""
    if not counts:
        return
    if title:
        screen.line()
        screen.line(title, "bold")
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    most = ordered[0][1]
    names = min(max(len(name) for name in counts), max(8, screen.width // 3))
    room = max(5, min(40, screen.width - names - 12))
    for name, count in ordered:
        label = charts.cut(one_line(name), names)
        drawn = screen.styled(charts.bar(count / max(1, most), room, plain=screen.plain), "cyan")
        screen.line(f"  {label.ljust(names)} {drawn} {count}")


def time(moment: datetime) -> str:
    """A time, and how long ago it was."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M} ({charts.ago(moment, local_now())})"
