"""How answers are shown to people. A verb without an entry here is shown field by field."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wellkept.cli import charts, widgets
from wellkept.cli.screen import Screen, one_line, safe
from wellkept.cli.short_ids import short
from wellkept.cli.wording import in_commands
from wellkept.text import plurals

if TYPE_CHECKING:
    from wellkept.operations.add import Added
    from wellkept.operations.configuration import Checked
    from wellkept.operations.count import Count
    from wellkept.operations.forget import Forgotten, Restored
    from wellkept.operations.maintenance import Reembedded, Settings
    from wellkept.operations.prompt import Prompt
    from wellkept.operations.stats import Statistics
    from wellkept.types import ConversionReport, Diagnosis, Health, MigrationReport, Scrubbed

_MEMORIES = 10


def added(screen: Screen, answer: "Added", _: Any) -> None:
    """One line for each memory, or their number if there are many."""
    if len(answer.memories) > _MEMORIES and screen.terminal:
        screen.line(f"{plurals.memories(len(answer.memories))} stored", "green")
        return
    for memory in answer.memories:
        if screen.terminal:
            owner = f"{memory.layer.value} {'/'.join(memory.owner.ids)}"
            screen.line(f"{screen.styled('stored', 'green')} {short(memory.id)} {screen.styled(safe(owner), 'dim')}")
        else:
            screen.line(memory.id)


def counted(screen: Screen, answer: "Count", _: Any) -> None:
    """The number of memories."""
    screen.line(str(answer.count))


def forgotten(screen: Screen, answer: "Forgotten", _: Any) -> None:
    """The ids that were forgotten, and those that were not there; in a dry run, the contents as well."""
    done = f"{'would be ' if answer.dry_run else ''}{'erased' if answer.permanent else 'forgotten'}"
    if screen.terminal and len(answer.ids) > _MEMORIES:
        screen.line(f"{plurals.memories(len(answer.ids))} {done}")
        if answer.dry_run:
            _excerpts(screen, answer)
        return
    if screen.terminal and not (answer.ids or answer.failed):
        screen.line("Nothing matches.", "yellow")
    for id in answer.ids:
        shown = safe(short(id) if screen.terminal else id)
        text = one_line(answer.excerpts.get(id, ""))
        screen.line(f"{done}  {shown}{'  ' if text else ''}{text}")
    for id in answer.failed:
        screen.line(f"nothing to forget  {safe(id)}", "yellow")


def _excerpts(screen: Screen, answer: "Forgotten") -> None:
    """What would go, one line each."""
    for id, text in answer.excerpts.items():
        screen.line(f"{screen.styled(short(id), 'dim')}  {charts.cut(one_line(text), max(20, screen.width - 26))}")
    if len(answer.ids) > len(answer.excerpts):
        screen.line(f"and {len(answer.ids) - len(answer.excerpts)} more", "dim")


def restored(screen: Screen, answer: "Restored", _: Any) -> None:
    """The ids that were restored, and those that were not forgotten."""
    for id in answer.ids:
        screen.line(f"restored  {safe(id)}")
    for id in answer.missing:
        why = one_line(answer.erased.get(id, ""))
        told = "erased, cannot be restored" if id in answer.erased else "nothing to restore"
        screen.line(f"{told}  {safe(id)}{'  ' if why else ''}{why}", "yellow")


def prompt(screen: Screen, answer: "Prompt", _: Any) -> None:
    """The text; on a terminal also how much of the budget it takes."""
    if not screen.terminal:
        screen.line(answer.text)  # for a program: unchanged
        return
    screen.line(safe(answer.text) or "Nothing here seems to be about that.")
    room = max(10, min(40, screen.width - 30))
    filled = charts.bar(answer.total_tokens / max(1, answer.budget_tokens), room, plain=screen.plain)
    screen.line()
    screen.line(f"{filled} {answer.total_tokens} of {answer.budget_tokens} tokens", "cyan")
    shares = [f"{part} {tokens}" for part, tokens in answer.tokens_by_part.items() if tokens]
    left = f"{plurals.memories(len(answer.left_out))} left out" if answer.left_out else ""
    screen.line(" · ".join(filter(None, [*shares, left])), "dim")


def statistics(screen: Screen, answer: "Statistics", _: Any) -> None:
    """Counts, and bars for types, tags and times."""
    stats = answer.stats
    pairs = [
        ("active", str(stats.active)),
        ("forgotten", str(stats.forgotten)),
        ("size", charts.size(stats.bytes_used)),
    ]
    if stats.bytes_limit:
        pairs.append(("of", f"{charts.size(stats.bytes_limit)} ({stats.percent_used:.0f} %)"))
    if stats.oldest and stats.newest:
        pairs += [("oldest", widgets.time(stats.oldest)), ("newest", widgets.time(stats.newest))]
    widgets.pairs(screen, pairs)
    widgets.bars(screen, "Types", {kind.value: count for kind, count in stats.by_type.items()})
    widgets.bars(screen, "Tags", {use.tag: use.count for use in stats.top_tags})
    if answer.timeline:
        screen.line()
        screen.line("Recorded", "bold")
        screen.line(
            "  " + screen.styled(charts.sparkline([one.count for one in answer.timeline], plain=screen.plain), "cyan")
        )
        first, last = answer.timeline[0], answer.timeline[-1]
        most = max(one.count for one in answer.timeline)
        form = "%Y-%m-%d" if first.end - first.start >= timedelta(days=1) else "%Y-%m-%d %H:%M"
        span = f"{first.start.astimezone():{form}} to {last.end.astimezone():{form}}"
        screen.line(f"  {span}{f', at most {most}' if len(answer.timeline) > 1 else ''}", "dim")


def health(screen: Screen, answer: "Health", _: Any) -> None:
    """The status, and that of the components."""
    style = {"healthy": "green", "degraded": "yellow", "unhealthy": "red"}[answer.status.value]
    screen.line(f"{screen.styled(answer.status.value, style)} ({answer.latency_ms:.1f} ms)")
    widgets.pairs(screen, [(name, f"{one.status.value}: {one.message}") for name, one in answer.components.items()])


def diagnosis(screen: Screen, answer: "Diagnosis", _: Any) -> None:
    """What was checked, what is wrong, and what repairs it."""
    if answer.healthy:
        screen.line(f"{screen.styled('healthy', 'green')}: {len(answer.checks)} checks passed")
    for finding in answer.findings:
        state, style = ("repaired", "green") if finding.repaired else ("wrong", "red")
        screen.line(f"{screen.styled(state, style)}  {finding.check}: {safe(finding.message)}")
        if not finding.repaired:
            screen.line(f"       to repair it: {safe(in_commands(finding.repair))}", "dim")
    if any(not finding.repaired for finding in answer.findings):
        screen.line("wellkept doctor --repair repairs what can be repaired", "yellow")
    widgets.pairs(screen, list(answer.facts.items()))


def rebuilt(screen: Screen, _: None, __: Any) -> None:
    """A confirmation."""
    screen.line("rebuilt from the journal", "green")


def scrubbed(screen: Screen, answer: "Scrubbed", _: Any) -> None:
    """Where bytes of erased memories may remain."""
    for place in answer.remains:
        screen.line(f"bytes of erased memories may remain: {place}", "yellow")
    if not answer.remains:
        screen.line("no bytes of erased memories remain", "green")


def reembedded(screen: Screen, answer: "Reembedded", _: Any) -> None:
    """How many memories, and which embedder."""
    screen.line(f"{plurals.memories(answer.embedded)} embedded; the embedder is {answer.embedder or 'none'}", "green")


def converted(screen: Screen, answer: "ConversionReport", given: Any) -> None:
    """What was copied, and the comparison of both sides."""
    if not screen.terminal:
        field_by_field(screen, answer, given)
        return
    done = f"{plurals.counted(answer.copied, 'version', 'versions')} copied" if answer.copied else "nothing new to copy"
    screen.line(f"{done} into {one_line(given.target)}", "green")
    rows = [
        ("memories", f"{answer.memories} of {plurals.counted(answer.owners, 'owner', 'owners')}"),
        ("versions", str(answer.versions)),
    ]
    widgets.pairs(screen, [*rows, ("compared", f"the same on both sides, checksum {answer.checksum}")])
    if answer.damaged:
        lost = plurals.counted(answer.damaged, "line is", "lines are")
        screen.line(f"{lost} damaged in the source and left behind: see wellkept doctor there", "yellow")


def migrated(screen: Screen, answer: "MigrationReport", given: Any) -> None:
    """From which schema to which, what is lost, and where the copy is."""
    if not screen.terminal:
        field_by_field(screen, answer, given)
        return
    did = "would go" if answer.dry_run else "is at" if answer.before == answer.after else "went"
    way = (
        f"schema {answer.after}" if answer.before == answer.after else f"from schema {answer.before} to {answer.after}"
    )
    screen.line(f"{one_line(given.file)} {did} {way}", "green")
    for loss in answer.losses:
        screen.line(f"  {loss}", "yellow")
    if answer.copy is not None:
        screen.line(f"copy: {one_line(answer.copy)}")


def settings(screen: Screen, answer: "Settings", _: Any) -> None:
    """Names and values."""
    widgets.pairs(screen, sorted(answer.settings.items()))


def checked(screen: Screen, answer: "Checked", _: Any) -> None:
    """Each problem with its line, or that there is none."""
    for problem in answer.problems:
        place = f"{answer.file}:{problem.line}" if problem.line else answer.file
        screen.line(f"{screen.styled(safe(place), 'red')}: {safe(problem.message)}; {safe(problem.hint)}")
    if not answer.problems:
        screen.line(f"{safe(answer.file)} is sound", "green")


def field_by_field(screen: Screen, answer: Any, _: Any) -> None:
    """Any answer: the names and values of its fields."""
    if not is_dataclass(answer):
        screen.line(one_line(widgets.shown(answer)))
        return
    widgets.pairs(screen, [(one.name, widgets.shown(getattr(answer, one.name))) for one in fields(answer)])


RENDERERS: Mapping[str, str] = MappingProxyType(
    {
        "add": "renderers:added",
        "put": "show_memories:memory",
        "facts": "show_memories:facts",
        "facts.add": "show_memories:memory",
        "lineage": "show_memories:lineage",
        "update": "show_memories:memory",
        "move": "show_memories:memory",
        "messages": "show_memories:conversation",
        "undo": "show_upkeep:reverted",
        "forget": "renderers:forgotten",
        "restore": "renderers:restored",
        "search": "show_memories:results",
        "list": "show_memories:page",
        "show": "show_memories:memory",
        "count": "renderers:counted",
        "context": "renderers:prompt",
        "history": "show_memories:history",
        "watch": "show_memories:changes",
        "stats": "renderers:statistics",
        "decay": "decay_views:plot",
        "graph": "show_memories:graph",
        "sessions": "show_sessions:listing",
        "sessions.create": "show_sessions:details",
        "sessions.show": "show_sessions:details",
        "sessions.preferences": "show_sessions:preferences",
        "sessions.configure": "show_sessions:details",
        "sessions.close": "show_sessions:closed",
        "sessions.reopen": "show_sessions:details",
        "sessions.delete": "show_sessions:deleted",
        "sessions.restore": "show_sessions:details",
        "sessions.export": "show_sessions:exported",
        "sessions.import": "show_sessions:imported",
        "sessions.topics": "show_sessions:topics",
        "sessions.about": "show_sessions:listing",
        "sessions.search": "show_memories:results",
        "sessions.memories": "show_memories:page",
        "compact": "show_sessions:compacted",
        "upkeep": "show_upkeep:overview",
        "upkeep.plan": "show_upkeep:plan",
        "upkeep.run": "show_upkeep:run",
        "upkeep.runs": "show_upkeep:runs",
        "upkeep.undo": "show_upkeep:undone",
        "quarantine": "show_upkeep:quarantined",
        "quarantine.plan": "show_upkeep:quarantine_plan",
        "quarantine.release": "show_upkeep:undone",
        "quarantine.erase": "show_upkeep:run",
        "retention": "show_upkeep:policies",
        "retention.set": "show_upkeep:policy",
        "consolidation": "show_upkeep:merging_policies",
        "consolidation.set": "show_upkeep:policy",
        "endings": "show_upkeep:ending_policies",
        "endings.set": "show_upkeep:policy",
        "hold": "show_upkeep:hold",
        "hold.list": "show_upkeep:holds",
        "hold.release": "show_upkeep:released",
        "owners": "show_privacy:owners",
        "erase": "show_privacy:erased",
        "erase.receipts": "show_privacy:receipts",
        "erase.replay": "show_privacy:replayed",
        "erase.verify": "show_privacy:verified",
        "audit": "show_privacy:audit",
        "audit.verify": "show_privacy:verified",
        "keys": "show_api_keys:keys",
        "keys.list": "show_api_keys:keys",
        "keys.create": "show_api_keys:created",
        "keys.revoke": "show_api_keys:revoked",
        "health": "renderers:health",
        "doctor": "renderers:diagnosis",
        "rebuild": "renderers:rebuilt",
        "scrub": "renderers:scrubbed",
        "reembed": "renderers:reembedded",
        "convert": "renderers:converted",
        "migrate": "renderers:migrated",
        "config": "renderers:settings",
        "config.check": "renderers:checked",
    }
)
"""The module and the function that show the answer of a verb; a command loads only the one it needs."""


def renderer(verb: str) -> Callable[[Screen, Any, Any], None]:
    """The function that shows the answer of a verb."""
    if verb not in RENDERERS:
        return field_by_field
    module, function = RENDERERS[verb].split(":")
    found: Callable[[Screen, Any, Any], None] = getattr(import_module(f"wellkept.cli.{module}"), function)
    return found


def render(screen: Screen, verb: str, answer: Any, given: Any) -> None:
    """Show the answer of a verb."""
    renderer(verb)(screen, answer, given)
