"""How plans and runs of upkeep, retention policies and holds are shown."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from wellkept.cli import charts, widgets
from wellkept.cli.screen import Screen, one_line, safe
from wellkept.cli.short_ids import short
from wellkept.operations.hold import Holds, Placed
from wellkept.operations.policies import Consolidating, ConsolidationPolicies, Ending, Endings
from wellkept.operations.retention import Policies, Policy
from wellkept.operations.undo import Reverted
from wellkept.operations.upkeep import Overview, Runs
from wellkept.text import plurals
from wellkept.types import Merge, Owner, Undone, UpkeepJob, UpkeepPlan, UpkeepRun

_STEPS = 20
_OWNERS = 10


def overview(screen: Screen, answer: Overview, _: Any) -> None:
    """Policies, holds, and the last run."""
    pairs = [("policies", str(answer.policies)), ("holds", str(answer.holds))]
    due, last = answer.next_due, answer.last_run
    pairs.append(("next run", "by hand" if due is None else f"{due.astimezone():%Y-%m-%d %H:%M}"))
    widgets.pairs(screen, [*pairs, ("last run", f"{widgets.time(last.started_at)}, {done(last)}" if last else "none")])
    if screen.terminal and last is not None:
        _warnings(screen, last.errors[:_OWNERS])


def plan(screen: Screen, answer: UpkeepPlan, _: Any) -> None:
    """A table of what would go of each owner, then the memories."""
    if not screen.terminal:
        screen.rows(
            (one.memory_id, _named(one.owner), str(one.version), one.action.value, one.reason, str(one.bytes_used))
            for one in answer.steps
        )
        return
    taking = [one for one in answer.owners if one.taken]
    if not answer.steps:
        screen.line(
            f"Nothing to do; {plurals.counted(len(answer.owners), 'owner has', 'owners have')} a policy.", "yellow"
        )
    rows = [
        (_named(one.owner), f"{one.taken} of {one.memories}", f"{100 * one.share:.0f} %", str(one.erased))
        for one in taking[:_OWNERS]
    ]
    widgets.table(screen, ("owner", "taken", "share", "erased"), rows)
    _more(screen, len(taking) - _OWNERS, "owner", "owners")
    if answer.merges:
        _merges(screen, answer.merges)
    else:
        widgets.table(
            screen,
            ("memory", "action", "why"),
            [(short(one.memory_id), one.action.value, one.reason) for one in answer.steps[:_STEPS]],
        )
        _more(screen, len(answer.steps) - _STEPS, "memory", "memories")
    if answer.steps:
        screen.line(f"{plurals.memories(len(answer.steps))}, {charts.size(answer.bytes_freed)} freed", "bold")
        job = "" if answer.job is UpkeepJob.RETENTION else f" --job {answer.job.value}"
        screen.line(f"wellkept upkeep run{job} applies it; wellkept upkeep undo takes back all but erasures", "dim")
    _warnings(screen, [*answer.errors, *answer.notes, *([answer.clock_doubt] if answer.clock_doubt else [])])


def _merges(screen: Screen, merges: Sequence[Merge]) -> None:
    """A table of the memories that would be made, with the words in which their sources differ."""
    rows = [(str(len(one.sources)), one.content, ", ".join(one.differing) or "nothing") for one in merges[:_STEPS]]
    widgets.table(screen, ("of", "become", "differing in"), rows)
    _more(screen, len(merges) - _STEPS, "merge", "merges")


def run(screen: Screen, answer: UpkeepRun, _: Any) -> None:
    """What a run did, and what it could not do."""
    if not screen.terminal:
        screen.rows([_row(answer)])
        return
    screen.line(f"{answer.job.value}: {done(answer)}", "green")
    screen.line(f"wellkept upkeep undo {answer.id} takes back all but erasures", "dim")
    _warnings(screen, [*answer.errors, *answer.notes])


def quarantine_plan(screen: Screen, answer: UpkeepPlan, _: Any) -> None:
    """The memories that would go, with the reason."""
    if not screen.terminal:
        plan(screen, answer, _)
        return
    if not answer.steps:
        screen.line("Nothing came from there.", "yellow")
    rows = [(short(one.memory_id), _named(one.owner), one.action.value, one.reason) for one in answer.steps[:_STEPS]]
    widgets.table(screen, ("memory", "owner", "what", "why"), rows)
    _more(screen, len(answer.steps) - _STEPS, "memory", "memories")


def quarantined(screen: Screen, answer: UpkeepRun, _: Any) -> None:
    """How many memories were taken, and how to decide on them."""
    if not screen.terminal:
        screen.rows([_row(answer)])
        return
    screen.line(plurals.counted(answer.quarantined, "memory is in quarantine", "memories are in quarantine"), "green")
    screen.line(f"wellkept quarantine release {answer.id} brings them back, erase {answer.id} erases them", "dim")
    _warnings(screen, answer.errors)


def runs(screen: Screen, answer: Runs, _: Any) -> None:
    """A table, the newest run first."""
    if not screen.terminal:
        screen.rows(_row(one) for one in answer.runs)
        return
    if not answer.runs:
        screen.line("No runs.", "yellow")
        return
    for one in answer.runs:
        by = "by itself" if one.automatic else "by hand"
        screen.line(f"{one.id}  {widgets.time(one.started_at)}, {one.job.value} {by}: {done(one)}")
        _warnings(screen, [f"   {error}" for error in one.errors[:_OWNERS]])


def undone(screen: Screen, answer: Undone, _: Any) -> None:
    """How many memories are back, and how many stay erased."""
    screen.line(_as_before(len(answer.ids)), "green")
    if answer.removed:
        gone = "is gone" if len(answer.removed) == 1 else "are gone"
        screen.line(f"{len(answer.removed)} that the run had made {gone}", "dim")
    if answer.erased:
        screen.line(plurals.counted(len(answer.erased), "was erased and stays so", "were erased and stay so"), "yellow")


def _as_before(count: int) -> str:
    return plurals.counted(count, "memory is as it was before", "memories are as they were before")


def reverted(screen: Screen, answer: Reverted, _: Any) -> None:
    """What was taken back; or what could be, one line each."""
    if answer.id is not None:
        screen.line(_as_before(len(answer.ids)), "green")
    elif screen.terminal and not answer.undoable:
        screen.line("There is nothing to undo.", "yellow")
    what_of = [
        (one, "run" if one.run_id else ", ".join(operation.value for operation in one.operations))
        for one in answer.undoable
    ]
    if not screen.terminal:
        screen.rows(
            (one.id, one.at.isoformat(), what, str(len(one.memory_ids)), one_line(one.blocked or ""))
            for one, what in what_of
        )
        return
    for one, what in what_of:
        count = plurals.memories(len(one.memory_ids))
        line = f"{one.id}  {widgets.time(one.at)}  {what}: {count}"
        screen.line(line if one.blocked is None else f"{line}  ({safe(one.blocked)})", "" if not one.blocked else "dim")


def policies(screen: Screen, answer: Policies, _: Any) -> None:
    """Each policy under its owner."""
    if screen.terminal and not answer.policies:
        screen.line("No policy: nothing is taken.", "yellow")
        screen.line("wellkept retention set --default sets the usual one.", "dim")
    for one in answer.policies:
        policy(screen, one, None)


def merging_policies(screen: Screen, answer: ConsolidationPolicies, _: Any) -> None:
    """Each consolidation policy under its owner."""
    if screen.terminal and not answer.policies:
        screen.line("No policy: nothing is merged.", "yellow")
        screen.line("wellkept consolidation set sets one.", "dim")
    for one in answer.policies:
        policy(screen, one, None)


def ending_policies(screen: Screen, answer: Endings, _: Any) -> None:
    """Each policy for the end of sessions under its owner."""
    if screen.terminal and not answer.policies:
        screen.line("No policy: everything stays when a session ends.", "yellow")
        screen.line("wellkept endings set --promote 0.8 takes what is important to the user.", "dim")
    for one in answer.policies:
        policy(screen, one, None)


def policy(screen: Screen, answer: Policy | Consolidating | Ending, _: Any) -> None:
    """The fields that are set."""
    screen.line("whole database" if answer.owner is None else _named(answer.owner), "bold")
    given = [(one.name, getattr(answer, one.name)) for one in fields(answer) if one.name != "owner"]
    widgets.pairs(screen, [(name, widgets.shown(value)) for name, value in given if value not in (None, ())])


def hold(screen: Screen, answer: Placed, _: Any) -> None:
    """One line."""
    _held(screen, answer, "held")


def holds(screen: Screen, answer: Holds, _: Any) -> None:
    """One line each."""
    if screen.terminal and not answer.holds:
        screen.line("No holds.", "yellow")
    for one in answer.holds:
        _held(screen, one)


def released(screen: Screen, answer: Placed, _: Any) -> None:
    """One line."""
    _held(screen, answer, "released")


def _held(screen: Screen, one: Placed, what: str = "") -> None:
    whose = "all owners" if one.owner is None else _named(one.owner)
    cells = (one.id, whose, one_line(widgets.shown(one.filter)), one_line(one.reason))
    if screen.terminal:
        screen.line("  ".join((screen.styled(what, "green"), *cells) if what else cells))
    else:
        screen.rows([(what, *cells) if what else cells])


def _named(owner: Owner) -> str:
    return safe(f"{owner.layer.value} {'/'.join(owner.ids)}")


def done(one: UpkeepRun) -> str:
    """What a run did, in a few words."""
    counts = [("forgotten", one.forgotten), ("erased", one.erased), ("archived", one.archived)]
    counts += [("quarantined", one.quarantined)]
    counts += [("merged", one.merged), ("promoted", one.promoted)]
    counts += [("restored", one.restored), ("working entries removed", one.working_removed)]
    told = [f"{count} {what}" for what, count in counts if count] or ["nothing taken"]
    if one.completed_at is None:
        told.append("interrupted")
    if one.errors:
        told.append(f"{plurals.counted(len(one.errors), 'owner', 'owners')} left out")
    if one.undone_at is not None:
        told.append("undone")
    return ", ".join([*told, f"{charts.size(one.bytes_freed)} freed"])


def _row(one: UpkeepRun) -> tuple[str, ...]:
    """For a pipe: id, job, began, ended, forgotten, erased, archived, restored, merged, promoted, quarantined, bytes,
    owners, errors, undone.
    """
    times = ("" if at is None else at.isoformat() for at in (one.started_at, one.completed_at))
    numbers: tuple[int, ...] = (one.forgotten, one.erased, one.archived, one.restored, one.merged, one.promoted)
    numbers += (one.quarantined, one.bytes_freed, one.owners_processed)
    undone_at = "" if one.undone_at is None else one.undone_at.isoformat()
    return (one.id, one.job.value, *times, *map(str, numbers), str(len(one.errors)), undone_at)


def _more(screen: Screen, count: int, one: str, many: str) -> None:
    if count > 0:
        screen.line(f"and {plurals.counted(count, f'more {one}', f'more {many}')}", "dim")


def _warnings(screen: Screen, lines: Sequence[str]) -> None:
    for line in lines:
        screen.line(safe(line), "yellow")
