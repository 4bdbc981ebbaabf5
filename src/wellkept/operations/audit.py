"""Verbs of the audit log: audit, audit.verify, audit.prune."""

from dataclasses import dataclass
from datetime import datetime

from wellkept import fields
from wellkept.errors import InvalidInput
from wellkept.operations.conditions import MANY
from wellkept.operations.verb import Caller, Example, Verb, option, result
from wellkept.types import AuditEntry, Verification
from wellkept.types.bounds import Bounds

_ENTRIES = Bounds(minimum=1, maximum=10_000)
_ANCHOR = Bounds(max_length=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEntries:
    """Which entries."""

    limit: int = option("How many entries at most.", 50, bounds=_ENTRIES)
    verb: str | None = option("Only entries of this verb, such as forget.", bounds=fields.LINE)
    who: str | None = option("Only what this user did.", bounds=fields.ID)
    id: str | None = option("Only entries about this id.", bounds=fields.ID)
    since: datetime | None = option("Only entries since this time.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Entries of the audit log."""

    entries: tuple[AuditEntry, ...] = result("The entries, the newest first.", bounds=MANY)


def _audit(caller: Caller, given: ListEntries) -> Entries:
    found = caller.memories.audit.list(
        limit=given.limit, verb=given.verb, user=given.who, id=given.id, since=given.since
    )
    return Entries(entries=found)


AUDIT = Verb(
    name="audit",
    input=ListEntries,
    output=Entries,
    run=_audit,
    method="AuditTrail.list",
    description="The setting audit.file turns the log on. It says who did what to which ids, and holds no contents.",
    examples=(Example(line="wellkept audit --verb forget", says="who forgot what"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyLog:
    """Up to where."""

    anchor: str | None = option("An anchor that an earlier call told, kept elsewhere.", bounds=_ANCHOR)


def _verify(caller: Caller, given: VerifyLog) -> Verification:
    return caller.memories.audit.verify(anchor=given.anchor)


def _valid(answer: Verification) -> bool:
    return answer.valid


AUDIT_VERIFY = Verb(
    name="audit.verify",
    input=VerifyLog,
    output=Verification,
    run=_verify,
    method="AuditTrail.verify",
    agrees=_valid,
    examples=(Example(line="wellkept audit verify", says="finds an entry that was altered or removed"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """From before when."""

    before: datetime | None = option("Drop the entries from before this time, such as 90d.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was dropped."""

    dropped: int = result("How many entries were dropped.", bounds=fields.COUNT)


def _prune(caller: Caller, given: Prune) -> Pruned:
    if given.before is None:
        raise InvalidInput("no time was given", details={"field": "before"}, hint="give one, such as 90d")
    return Pruned(dropped=caller.memories.audit.prune(given.before))


AUDIT_PRUNE = Verb(
    name="audit.prune",
    input=Prune,
    output=Pruned,
    run=_prune,
    method="AuditTrail.prune",
    description="The rest stays chained to the last entry that was dropped.",
    examples=(Example(line="wellkept audit prune --before 90d", says="keeps a quarter of a year"),),
)
