"""Verbs of quarantine: quarantine, quarantine.plan, quarantine.release, quarantine.erase."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wellkept import fields
from wellkept.errors import Conflict, Held, NotFound
from wellkept.operations.conditions import IDS
from wellkept.operations.verb import Caller, Example, Verb, argument, option
from wellkept.types import SourceType, Undone, UpkeepAction, UpkeepPlan, UpkeepRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the memories came from: all that is given must hold."""

    source: SourceType | None = option("Memories that came from this kind of source.")
    reference: str | None = option("Memories whose source has this reference, such as an address.", bounds=fields.LINE)
    author: str | None = option("Memories by this author.", bounds=fields.LINE)
    session: str | None = option("Memories of this conversation.", bounds=fields.LINE, flag="from-session")
    since: datetime | None = option("Memories recorded at this time or later.")
    until: datetime | None = option("Memories recorded before this time.")
    ids: tuple[str, ...] = option("Memories with these ids.", (), bounds=IDS, flag="id")

    def arguments(self) -> dict[str, Any]:
        """The fields as the engine takes them."""
        every = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {**every, "ids": self.ids or None}


def _plan(caller: Caller, given: Origin) -> UpkeepPlan:
    return caller.view.plan_quarantine(**given.arguments())


QUARANTINE_PLAN = Verb(
    name="quarantine.plan",
    input=Origin,
    output=UpkeepPlan,
    run=_plan,
    method="View.plan_quarantine",
    examples=(Example(line="wellkept quarantine plan --source web", says="what would go, and why; nothing changes"),),
)


def _quarantine(caller: Caller, given: Origin) -> UpkeepRun:
    return caller.view.quarantine(**given.arguments())


def _taken(caller: Caller, given: Origin) -> str:
    count = _plan(caller, given).count(UpkeepAction.QUARANTINE)
    return f"put {count} {'memory' if count == 1 else 'memories'} into quarantine" if count else ""


QUARANTINE = Verb(
    name="quarantine",
    input=Origin,
    output=UpkeepRun,
    run=_quarantine,
    method="View.quarantine",
    errors=(Conflict,),
    asks=_taken,
    description="Takes what came from there, and everything that was derived from it, out of recall. Released, it is as"
    " it was before; erased, it is gone for good.",
    examples=(
        Example(line="wellkept quarantine --source web --since 7d --yes", says="what the web said in the last week"),
        Example(line="wellkept quarantine --author mallory --yes", says="what one author wrote"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """Which quarantine."""

    id: str | None = argument(
        "The id of the run that took the memories; the last one without it.", None, bounds=fields.ID
    )


def _release(caller: Caller, given: Decide) -> Undone:
    return caller.view.release(given.id)


QUARANTINE_RELEASE = Verb(
    name="quarantine.release",
    input=Decide,
    output=Undone,
    run=_release,
    method="View.release",
    errors=(Conflict, NotFound),
    description="Every memory is as it was before, or nothing changes if one of them was changed since.",
    examples=(Example(line="wellkept quarantine release", says="the last one"),),
)


def _erase(caller: Caller, given: Decide) -> UpkeepRun:
    return caller.view.erase_quarantined(given.id)


def _erased(_: Caller, given: Decide) -> str:
    return f"erase what {given.id or 'the last quarantine'} took, for good"


QUARANTINE_ERASE = Verb(
    name="quarantine.erase",
    input=Decide,
    output=UpkeepRun,
    run=_erase,
    method="View.erase_quarantined",
    errors=(Conflict, NotFound, Held),
    asks=_erased,
    description="What was released or changed since stays.",
    examples=(Example(line="wellkept quarantine erase --yes", says="the last one, without being asked"),),
)
