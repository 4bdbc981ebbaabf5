"""How owners, erasures, receipts and the audit log are shown."""

from collections.abc import Iterable
from typing import Any

from wellkept.cli import charts, widgets
from wellkept.cli.screen import Screen, safe
from wellkept.cli.short_ids import short
from wellkept.operations.audit import Entries
from wellkept.operations.erase import Erased, Receipts
from wellkept.operations.owners import Owners
from wellkept.text import plurals
from wellkept.types import AuditEntry, ErasureCounts, ErasureReceipt, Owner, OwnerCount, Replayed, Verification


def owners(screen: Screen, answer: Owners, _: Any) -> None:
    """A table of owners."""
    _owners(screen, answer.owners)
    if screen.terminal and answer.next_cursor is not None:
        screen.line(f"more: --cursor {safe(answer.next_cursor)!r}", "dim")


def _owners(screen: Screen, found: Iterable[OwnerCount]) -> None:
    rows = [(_named(one.owner), str(one.memories), charts.size(one.bytes_used), str(one.records)) for one in found]
    widgets.table(screen, ("owner", "memories", "size", "records"), rows)


def erased(screen: Screen, answer: Erased, _: Any) -> None:
    """What went, or would go, and the receipt."""
    if answer.dry_run:
        _owners(screen, answer.owners)
    screen.line(f"{'would erase' if answer.dry_run else 'erased'} {_counted(answer.counts)}", "bold")
    for id in answer.derived:
        screen.line(f"derived: {short(id) if screen.terminal else id}", "dim")
    if answer.receipt is not None:
        _receipt(screen, answer.receipt)


def receipts(screen: Screen, answer: Receipts, _: Any) -> None:
    """One line for each receipt."""
    rows = [(one.id, one.erased_at.isoformat(), one.scope.value, str(one.counts.memories)) for one in answer.receipts]
    widgets.table(screen, ("receipt", "erased up to", "scope", "memories"), rows)


def _receipt(screen: Screen, receipt: ErasureReceipt) -> None:
    screen.line(f"receipt {receipt.id}, entry {receipt.ledger_seq} of the ledger, signed by {receipt.signed_by}")
    for line in receipt.remains:
        screen.line(f"may remain: {line}", "yellow")


def _counted(counts: ErasureCounts) -> str:
    parts = (
        (counts.memories, "memory", "memories"),
        (counts.versions, "version", "versions"),
        (counts.derived, "derived", "derived"),
        (counts.records, "record", "records"),
        (counts.reasons, "reason", "reasons"),
        (counts.keys, "key", "keys"),
    )
    return ", ".join(plurals.counted(*part) for part in parts if part[0]) or "nothing"


def replayed(screen: Screen, answer: Replayed, _: Any) -> None:
    """What had to be erased again."""
    screen.line(f"{plurals.counted(answer.entries, 'entry was', 'entries were')} new; erased {_counted(answer.counts)}")


def verified(screen: Screen, answer: Verification, _: Any) -> None:
    """Whether it fits, and what does not."""
    for problem in answer.problems:
        screen.line(problem, "red")
    if answer.valid:
        signed = ", the signature fits" if answer.signed else ""
        screen.line(f"valid: {plurals.counted(answer.checked, 'entry', 'entries')}{signed}", "green")
    if answer.missing:
        screen.line(f"{plurals.counted(answer.missing, 'entry', 'entries')} could not be written", "yellow")
    screen.line(f"anchor {answer.anchor}", "dim")


def audit(screen: Screen, answer: Entries, _: Any) -> None:
    """One line for each entry."""
    widgets.table(screen, ("when", "who", "verb", "ids", "error"), [_row(one) for one in answer.entries])


def _row(one: AuditEntry) -> tuple[str, ...]:
    who = "/".join(filter(None, (one.user, one.agent, one.session))) or "-"
    ids = " ".join(map(short, one.ids[:3])) + (f" and {len(one.ids) - 3} more" if len(one.ids) > 3 else "")
    ended = one.error or ("unfinished" if one.unfinished else "")
    if one.count and not one.ids:  # how many entries are missing
        ids = str(one.count)
    return (widgets.time(one.at), f"{who} ({one.grant})" if one.grant else who, one.verb, ids, ended)


def _named(owner: Owner) -> str:
    return f"{owner.layer.value} {'/'.join(owner.ids)}"
