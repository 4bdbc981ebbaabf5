"""Sessions on the screen."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from wellkept.cli import charts, show_upkeep, widgets
from wellkept.cli.converters import local_now
from wellkept.cli.screen import NARROW, Screen, one_line, safe
from wellkept.text import plurals

if TYPE_CHECKING:
    from rich.table import Table

    from wellkept.operations.session_queries import Topics
    from wellkept.operations.sessions import Closed, Details, Exported, Preferred, SessionList
    from wellkept.types import CompactionReport, ImportReport, Removal, SessionStats

_BAR = 10
_FULL = 90  # percent


def listing(screen: Screen, answer: SessionList, _: Any) -> None:
    """A table, or cards on a narrow terminal."""
    if not screen.terminal:
        screen.rows(_row(one) for one in answer.sessions)
        return
    if not answer.sessions:
        screen.line("No sessions.", "yellow")
        screen.line("wellkept sessions create creates one.", "dim")
        return
    now = local_now()
    if screen.width >= NARROW:
        screen.show(_table(screen, answer.sessions, now))
        return
    for one in answer.sessions:
        entries = plurals.counted(one.entries, "entry", "entries")
        state = f"  {screen.styled(_state(one), 'yellow')}" if _state(one) else ""
        screen.line(f"{screen.styled(one_line(one.id), 'bold')}  {entries}{state}")
        screen.line(f"   {screen.styled(_bar(screen, one), _style(one))} {_used(one)}")
        screen.line(f"   created {charts.ago(one.created_at, now)}, used {charts.ago(one.last_accessed, now)}", "dim")


def _row(one: SessionStats) -> tuple[str, ...]:
    """For a pipe: id, entries, bytes, limit, created, last used, closed, deleted."""
    times = (one.created_at, one.last_accessed, one.closed_at, one.deleted_at)
    numbers = (one.entries, one.bytes_used, one.bytes_limit)
    return (
        one.id,
        *("" if number is None else str(number) for number in numbers),
        *("" if moment is None else moment.isoformat() for moment in times),
    )


def _table(screen: Screen, sessions: tuple[SessionStats, ...], now: datetime) -> Table:
    from rich.table import Table  # lazy: as in the screen
    from rich.text import Text  # lazy: as above

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("session", overflow="fold")
    table.add_column("entries", justify="right", no_wrap=True)
    table.add_column("used", no_wrap=True)
    table.add_column("created", no_wrap=True, style="dim")
    table.add_column("last used", no_wrap=True, style="dim")
    table.add_column("", no_wrap=True, style="yellow")
    for one in sessions:
        used = Text.assemble((_bar(screen, one), _style(one)), f" {_used(one)}")
        when = (charts.ago(one.created_at, now), charts.ago(one.last_accessed, now))
        table.add_row(Text(one_line(one.id)), str(one.entries), used, *when, _state(one))
    return table


def _bar(screen: Screen, one: SessionStats) -> str:
    return charts.bar(one.percent_used / 100, _BAR, plain=screen.plain, rest="░")


def _style(one: SessionStats) -> str:
    return "red" if one.percent_used >= _FULL else "cyan"


def _used(one: SessionStats) -> str:
    limit = f" of {charts.size(one.bytes_limit)}" if one.bytes_limit else ", no limit"
    return charts.size(one.bytes_used) + limit


def _state(one: SessionStats) -> str:
    if one.deleted_at:
        return "deleted"
    return "closed" if one.closed_at else ""


def details(screen: Screen, answer: Details, _: Any) -> None:
    """The statistics, preferences and configuration of a session."""
    stats, decay = answer.stats, answer.config.decay
    rows = [
        ("session", stats.id),
        ("state", _state(stats) or "open"),
        ("entries", _entries(stats)),
        ("created", widgets.time(stats.created_at)),
        ("last used", widgets.time(stats.last_accessed)),
    ]
    if stats.closed_at:
        rows.append(("closed", widgets.time(stats.closed_at)))
    half = "as its type says" if decay.half_life_hours is None else f"half in {decay.half_life_hours:g} hours"
    rows.append(("fades", f"{half}, to {decay.min_decay_factor:g} at least" if decay.enabled else "never"))
    own = {kind.value: hours for kind, hours in decay.by_type_hours.items()} if decay.enabled else {}
    rows += [(f"fades {kind}", "never" if hours is None else f"half in {hours:g} hours") for kind, hours in own.items()]
    room = f"when it is {answer.config.compaction_threshold:.0%} full" if answer.config.auto_compact else "when asked"
    rows.append(("compacts", room))
    rows += [(f"prefers {name}", widgets.shown(value)) for name, value in answer.preferences.items()]
    rows += [(f"meta.{name}", widgets.shown(value)) for name, value in answer.metadata.items()]
    rows.insert(3, ("used", f"{_bar(screen, stats)} {_used(stats)}" if screen.terminal else _used(stats)))
    widgets.pairs(screen, rows)
    if screen.terminal:
        widgets.bars(screen, "Types", {kind.value: count for kind, count in stats.by_type.items()})


def closed(screen: Screen, answer: Closed, _: Any) -> None:
    """A session that has ended, and what became of its memories."""
    details(screen, answer, _)
    if answer.run is not None:
        widgets.pairs(screen, [("ended", show_upkeep.done(answer.run))])
        hint = f"wellkept upkeep undo {answer.run.id}"
        widgets.pairs(screen, [("", f"{hint} takes back all but erasures")])


def preferences(screen: Screen, answer: Preferred, _: Any) -> None:
    """Names and values."""
    if screen.terminal and not (answer.preferences or answer.missing):
        screen.line("No preferences.", "yellow")
    widgets.pairs(screen, [(name, widgets.shown(value)) for name, value in answer.preferences.items()])
    for name in answer.missing:
        screen.line(f"not set  {one_line(name)}", "yellow")


def deleted(screen: Screen, answer: Removal, given: Any) -> None:
    """What was deleted, and how to restore it."""
    done = "erased" if answer.permanent else "forgotten"
    memories = plurals.memories(answer.count)
    if answer.dry_run:
        screen.line(f"{memories} would be {done} with the session {safe(given.id)}")
        return
    screen.line(f"session {safe(given.id)} {'erased' if answer.permanent else 'deleted'}, {memories} {done}")
    if screen.terminal and not answer.permanent:
        screen.line(f"wellkept sessions restore {safe(given.id)} brings it back", "dim")


def _entries(stats: SessionStats) -> str:
    """The number of memories, and how many more are kept without taking part in recall."""
    hidden = (("forgotten", stats.forgotten), ("archived", stats.archived))
    told = ", ".join(f"{count} {name}" for name, count in hidden if count)
    return f"{stats.entries} ({told})" if told else f"{stats.entries}"


def compacted(screen: Screen, answer: CompactionReport, _: Any) -> None:
    """How full the session was and is, what was archived and what was erased."""
    done = (
        ("archived", "would archive", answer.archived),
        ("erased", "would erase", answer.erased),
        ("condensed", "would condense", answer.condensed),
    )
    if not screen.terminal:
        screen.rows(
            (one.id, what, one.reason, f"{one.relevance:.3f}", str(one.bytes_used))
            for what, _, some in done
            for one in some
        )
        return
    if not answer.count and not answer.condensed:
        screen.line("Nothing to take.", "yellow")
    limit = answer.bytes_limit or answer.bytes_before or 1
    for name, used in (("before", answer.bytes_before), ("after", answer.bytes_after)):
        share = charts.bar(used / limit, 2 * _BAR, plain=screen.plain, rest="░")
        style = "red" if 100 * used / limit >= _FULL else "cyan"
        of = f" of {charts.size(answer.bytes_limit)}" if answer.bytes_limit else ""
        screen.line(f"{name:<6}  {screen.styled(share, style)} {charts.size(used)}{of}")
    for past, future, some in done:
        if some:
            reasons = Counter(one.reason for one in some)
            told = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
            screen.line(f"{future if answer.dry_run else past} {len(some)}: {told}", "dim")


def exported(screen: Screen, answer: Exported, _: Any) -> None:
    """The text unchanged for a program; with control characters made visible on a terminal."""
    text = safe(answer.text) if screen.terminal else answer.text
    screen.out.write(text if text.endswith("\n") else f"{text}\n")


def imported(screen: Screen, answer: ImportReport, _: Any) -> None:
    """What was imported, and what was here already."""
    memories = plurals.memories(answer.added)
    done = "would be imported" if answer.dry_run else "imported"
    screen.line(f"{memories} {done} into the session {safe(answer.session_id)}", "green")
    rest = ((answer.known, "here already"), (answer.erased, "erased here before"), (answer.omitted, "moved elsewhere"))
    if told := ", ".join(f"{count} {what}" for count, what in rest if count):
        screen.line(told, "dim")


def topics(screen: Screen, answer: Topics, _: Any) -> None:
    """The tags with bars."""
    if not screen.terminal:
        screen.rows((one.tag, str(one.count)) for one in answer.topics)
    elif not answer.topics:
        screen.line("No topics: no memory of a session has a tag.", "yellow")
    else:
        widgets.bars(screen, "", {one.tag: one.count for one in answer.topics})
