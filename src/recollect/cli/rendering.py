"""What people see of an answer. A verb that has no entry here is shown field by field."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recollect.cli import parts, pictures
from recollect.cli.screen import Screen, one_line, safe

if TYPE_CHECKING:
    from recollect.operations.adding import Added
    from recollect.operations.composing import Prompt
    from recollect.operations.configuration import Checked
    from recollect.operations.counting import Count
    from recollect.operations.forgetting import Forgotten, Restored
    from recollect.operations.keeping import Reembedded, Settings
    from recollect.operations.looking import Statistics
    from recollect.types import ConversionReport, Diagnosis, Health

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
    if screen.terminal and len(answer.ids) > _MEMORIES:
        screen.line(f"{len(answer.ids)} memories {'would be ' if answer.dry_run else ''}{done}")
        return
    if screen.terminal and not (answer.ids or answer.missing):
        screen.line("Nothing matches.", "yellow")
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
        pairs += [("oldest", parts.time(stats.oldest)), ("newest", parts.time(stats.newest))]
    parts.pairs(screen, pairs)
    parts.bars(screen, "Types", {kind.value: count for kind, count in stats.by_type.items()})
    parts.bars(screen, "Tags", {use.tag: use.count for use in stats.top_tags})
    if answer.timeline:
        screen.line()
        screen.line("Recorded", "bold")
        screen.line(
            "  " + screen.styled(pictures.sparkline([one.count for one in answer.timeline], plain=screen.plain), "cyan")
        )
        first, last = answer.timeline[0], answer.timeline[-1]
        most = max(one.count for one in answer.timeline)
        form = "%Y-%m-%d" if first.end - first.start >= timedelta(days=1) else "%Y-%m-%d %H:%M"
        span = f"{first.start.astimezone():{form}} to {last.end.astimezone():{form}}"
        screen.line(f"  {span}{f', at most {most}' if len(answer.timeline) > 1 else ''}", "dim")


def health(screen: Screen, answer: "Health", _: Any) -> None:
    """The state, and that of the parts."""
    style = {"healthy": "green", "degraded": "yellow", "unhealthy": "red"}[answer.status.value]
    screen.line(f"{screen.styled(answer.status.value, style)} ({answer.latency_ms:.1f} ms)")
    parts.pairs(screen, list(answer.components.items()))


def diagnosis(screen: Screen, answer: "Diagnosis", _: Any) -> None:
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
    parts.pairs(screen, list(answer.facts.items()))


def rebuilt(screen: Screen, _: None, __: Any) -> None:
    """That it was done."""
    screen.line("rebuilt from the journal", "green")


def reembedded(screen: Screen, answer: "Reembedded", _: Any) -> None:
    """How many, and of what."""
    screen.line(f"{answer.embedded} memories embedded; the embedder is {answer.embedder or 'none'}", "green")


def converted(screen: Screen, answer: "ConversionReport", given: Any) -> None:
    """What was copied, and that it is the same."""
    if not screen.terminal:
        field_by_field(screen, answer, given)
        return
    done = f"{answer.copied} versions copied" if answer.copied else "nothing new to copy"
    screen.line(f"{done} into {one_line(given.target)}", "green")
    rows = [("memories", f"{answer.memories} of {answer.owners} owners"), ("versions", str(answer.versions))]
    parts.pairs(screen, [*rows, ("compared", f"the same on both sides, checksum {answer.checksum}")])


def settings(screen: Screen, answer: "Settings", _: Any) -> None:
    """Name and value."""
    parts.pairs(screen, sorted(answer.settings.items()))


def checked(screen: Screen, answer: "Checked", _: Any) -> None:
    """Each problem with its line, or that there is none."""
    for problem in answer.problems:
        place = f"{answer.file}:{problem.line}" if problem.line else answer.file
        screen.line(f"{screen.styled(safe(place), 'red')}: {safe(problem.message)}; {safe(problem.hint)}")
    if not answer.problems:
        screen.line(f"{safe(answer.file)} is sound", "green")


def field_by_field(screen: Screen, answer: Any, _: Any) -> None:
    """Any answer: the names of its fields and what they hold."""
    if not is_dataclass(answer):
        screen.line(one_line(parts.shown(answer)))
        return
    parts.pairs(screen, [(one.name, parts.shown(getattr(answer, one.name))) for one in fields(answer)])


RENDERERS: Mapping[str, str] = MappingProxyType(
    {
        "add": "rendering:added",
        "update": "listing:memory",
        "forget": "rendering:forgotten",
        "restore": "rendering:restored",
        "search": "listing:results",
        "list": "listing:page",
        "show": "listing:memory",
        "count": "rendering:counted",
        "context": "rendering:prompt",
        "history": "listing:history",
        "watch": "listing:changes",
        "stats": "rendering:statistics",
        "graph": "listing:graph",
        "sessions": "rooms:listing",
        "sessions.create": "rooms:details",
        "sessions.show": "rooms:details",
        "sessions.preferences": "rooms:preferences",
        "sessions.configure": "rooms:details",
        "sessions.close": "rooms:details",
        "sessions.reopen": "rooms:details",
        "sessions.delete": "rooms:deleted",
        "sessions.restore": "rooms:details",
        "sessions.export": "rooms:exported",
        "sessions.topics": "rooms:topics",
        "sessions.about": "rooms:listing",
        "sessions.search": "listing:results",
        "sessions.memories": "listing:page",
        "compact": "rooms:compacted",
        "health": "rendering:health",
        "doctor": "rendering:diagnosis",
        "rebuild": "rendering:rebuilt",
        "reembed": "rendering:reembedded",
        "convert": "rendering:converted",
        "config": "rendering:settings",
        "config.check": "rendering:checked",
    }
)
"""The module and the function that show the answer of a verb; a command loads only its own."""


def renderer(verb: str) -> Callable[[Screen, Any, Any], None]:
    """What shows the answer of a verb."""
    if verb not in RENDERERS:
        return field_by_field
    module, function = RENDERERS[verb].split(":")
    found: Callable[[Screen, Any, Any], None] = getattr(import_module(f"recollect.cli.{module}"), function)
    return found


def render(screen: Screen, verb: str, answer: Any, given: Any) -> None:
    """Show the answer of a verb."""
    renderer(verb)(screen, answer, given)
