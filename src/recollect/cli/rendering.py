"""What people see of an answer. A verb that has no entry here is shown field by field."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recollect.cli import listing, pictures
from recollect.cli.kinds import local_now
from recollect.cli.screen import Screen, one_line, safe
from recollect.types import Diagnosis, Health, Status

if TYPE_CHECKING:
    from recollect.operations.keeping import Reembedded, Settings
    from recollect.operations.looking import Statistics
    from recollect.operations.recalling import Count, Prompt
    from recollect.operations.writing import Added, Forgotten, Restored

_MEMORIES = 10


def added(screen: Screen, answer: "Added", _: Any) -> None:
    """One line for each memory, if they are few."""
    if len(answer.memories) > _MEMORIES and screen.terminal:
        screen.line(f"{len(answer.memories)} memories stored", "green")
        return
    for memory in answer.memories:
        if screen.terminal:
            owner = f"{memory.layer.value} {'/'.join(memory.owner.ids)}"
            screen.line(f"{screen.styled('stored', 'green')} {memory.id} {screen.styled(safe(owner), 'dim')}")
        else:
            screen.line(memory.id)


def counted(screen: Screen, answer: "Count", _: Any) -> None:
    """The number."""
    screen.line(str(answer.count))


def forgotten(screen: Screen, answer: "Forgotten", _: Any) -> None:
    """What went, and what was not there."""
    done = "erased" if answer.permanent else "forgotten"
    for id in answer.ids:
        screen.line(f"{'would be ' if answer.dry_run else ''}{done}  {safe(id)}")
    for id in answer.missing:
        screen.line(f"nothing to forget  {safe(id)}", "yellow")


def restored(screen: Screen, answer: "Restored", _: Any) -> None:
    """What is back, and what was not forgotten."""
    for id in answer.ids:
        screen.line(f"restored  {safe(id)}")
    for id in answer.missing:
        screen.line(f"nothing to restore  {safe(id)}", "yellow")


def prompt(screen: Screen, answer: "Prompt", _: Any) -> None:
    """The text; for a person also how much of the budget it takes."""
    if not screen.terminal:
        screen.line(answer.text)  # for a program: not a letter changed
        return
    screen.line(safe(answer.text) or "Nothing here seems to be about that.")
    room = max(10, min(40, screen.width - 30))
    filled = pictures.bar(answer.total_tokens / max(1, answer.budget_tokens), room, plain=screen.plain)
    screen.line()
    screen.line(f"{filled} {answer.total_tokens} of {answer.budget_tokens} tokens", "cyan")
    shares = [f"{part} {tokens}" for part, tokens in answer.tokens_by_part.items() if tokens]
    left = f"{len(answer.left_out)} memories left out" if answer.left_out else ""
    screen.line(" · ".join(filter(None, [*shares, left])), "dim")


def statistics(screen: Screen, answer: "Statistics", _: Any) -> None:
    """Counts, and bars for types, tags and times."""
    stats = answer.stats
    pairs = [
        ("active", str(stats.active)),
        ("forgotten", str(stats.forgotten)),
        ("size", pictures.size(stats.bytes_used)),
    ]
    if stats.bytes_limit:
        pairs.append(("of", f"{pictures.size(stats.bytes_limit)} ({stats.percent_used:.0f} %)"))
    if stats.oldest and stats.newest:
        pairs += [("oldest", _time(stats.oldest)), ("newest", _time(stats.newest))]
    _pairs(screen, pairs)
    _bars(screen, "Types", {kind.value: count for kind, count in stats.by_type.items()})
    _bars(screen, "Tags", {use.tag: use.count for use in stats.top_tags})
    if answer.timeline:
        screen.line()
        screen.line("Recorded", "bold")
        screen.line(
            "  " + screen.styled(pictures.sparkline([one.count for one in answer.timeline], plain=screen.plain), "cyan")
        )
        first, last = answer.timeline[0], answer.timeline[-1]
        most = max(one.count for one in answer.timeline)
        screen.line(f"  {first.start.astimezone():%Y-%m-%d} to {last.end.astimezone():%Y-%m-%d}, at most {most}", "dim")


def _bars(screen: Screen, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    screen.line()
    screen.line(title, "bold")
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    most = ordered[0][1]
    names = min(max(len(name) for name in counts), max(8, screen.width // 3))
    room = max(5, min(40, screen.width - names - 12))
    for name, count in ordered:
        shown = one_line(name)
        cut = shown if len(shown) <= names else shown[: names - 1] + "…"
        drawn = screen.styled(pictures.bar(count / max(1, most), room, plain=screen.plain), "cyan")
        screen.line(f"  {cut.ljust(names)} {drawn} {count}")


def health(screen: Screen, answer: Health, _: Any) -> None:
    """The state, and that of the parts."""
    style = {Status.HEALTHY: "green", Status.DEGRADED: "yellow", Status.UNHEALTHY: "red"}[answer.status]
    screen.line(f"{screen.styled(answer.status.value, style)} ({answer.latency_ms:.1f} ms)")
    _pairs(screen, list(answer.components.items()))


def diagnosis(screen: Screen, answer: Diagnosis, _: Any) -> None:
    """What was checked, what was found, and what mends it."""
    if answer.healthy:
        screen.line(f"{screen.styled('healthy', 'green')}: {len(answer.checks)} checks passed")
    for finding in answer.findings:
        state, style = ("repaired", "green") if finding.repaired else ("wrong", "red")
        screen.line(f"{screen.styled(state, style)}  {finding.check}: {safe(finding.message)}")
        if not finding.repaired:
            screen.line(f"       to mend it: {safe(finding.repair)}", "dim")
    if any(not finding.repaired for finding in answer.findings):
        screen.line("recollect doctor --repair mends what can be mended", "yellow")
    _pairs(screen, list(answer.facts.items()))


def rebuilt(screen: Screen, _: None, __: Any) -> None:
    """That it was done."""
    screen.line("rebuilt from the journal", "green")


def reembedded(screen: Screen, answer: "Reembedded", _: Any) -> None:
    """How many, and of what."""
    screen.line(f"{answer.embedded} memories embedded; the embedder is {answer.embedder or 'none'}", "green")


def settings(screen: Screen, answer: "Settings", _: Any) -> None:
    """Name and value."""
    _pairs(screen, sorted(answer.settings.items()))


def _pairs(screen: Screen, pairs: list[tuple[str, str]]) -> None:
    if not screen.terminal:
        screen.rows(pairs)
        return
    names = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        screen.line(f"{screen.styled(name.ljust(names), 'dim')}  {one_line(value)}")


def _time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M} ({pictures.ago(moment, local_now())})"


def field_by_field(screen: Screen, answer: Any, _: Any) -> None:
    """Any answer: the names of its fields and what they hold."""
    if not is_dataclass(answer):
        screen.line(one_line(_plain(answer)))
        return
    _pairs(screen, [(one.name, _plain(getattr(answer, one.name))) for one in fields(answer)])


def _plain(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_plain(name)}={_plain(one)}" for name, one in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(map(_plain, value))
    return "" if value is None else str(value)


RENDERERS: Mapping[str, Callable[[Screen, Any, Any], None]] = MappingProxyType(
    {
        "add": added,
        "update": listing.memory,
        "forget": forgotten,
        "restore": restored,
        "search": listing.results,
        "list": listing.page,
        "show": listing.memory,
        "count": counted,
        "context": prompt,
        "history": listing.history,
        "watch": listing.changes,
        "stats": statistics,
        "graph": listing.graph,
        "health": health,
        "doctor": diagnosis,
        "rebuild": rebuilt,
        "reembed": reembedded,
        "config": settings,
    }
)


def render(screen: Screen, verb: str, answer: Any, given: Any) -> None:
    """Show the answer of a verb."""
    RENDERERS.get(verb, field_by_field)(screen, answer, given)
