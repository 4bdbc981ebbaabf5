"""Verbs that take memories away and bring them back: forget, restore."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from recollect.errors import InvalidInput, InvalidLayer
from recollect.operations.conditions import Conditions
from recollect.operations.verb import Caller, Example, Needs, Takes, Verb, argument, option
from recollect.types import Layer, Operation

if TYPE_CHECKING:
    from recollect.memories.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ids that were forgotten (or would be: ``dry_run``), and those where there was nothing to forget."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    permanent: bool
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget(Conditions):
    """What to forget, by ids or by conditions, and whether for good."""

    ids: tuple[str, ...] = argument(
        "the ids of the memories; without any, all for which the conditions hold", (), takes=Takes.EACH
    )
    layers: tuple[Layer, ...] = option("only of this layer", (), flag="layer", short="l")
    permanent: bool = option("erase them with all their versions; nothing brings them back", False, needs=Needs.ERASE)
    reason: str | None = option("why, for the history")
    dry_run: bool = option("only say what would be forgotten", False, short="n")

    @property
    def conditions(self) -> list[str]:
        """The names of the conditions that were given."""
        every = [one for one in fields(Conditions) if one.name != "max_depth"]
        given = [one.name for one in every if getattr(self, one.name) not in (None, (), {})]
        return [*given, *(["layers"] if self.layers else [])]


def _forget(caller: Caller, given: Forget) -> Forgotten:
    _check(given)
    gone, missing = _by_ids(caller.view, given) if given.ids else _by_conditions(caller.view, given)
    return Forgotten(ids=tuple(gone), missing=tuple(missing), permanent=given.permanent, dry_run=given.dry_run)


def _check(given: Forget) -> None:
    """Ids or conditions, one of the two: what was forgotten to be said must not take everything."""
    if bool(given.ids) == bool(given.conditions):
        both = bool(given.ids)
        raise InvalidInput(
            "both ids and conditions were given" if both else "neither an id nor a condition was given",
            operation="forget",
            details={"field": given.conditions[0] if both else "ids"},
            hint="give ids, or conditions such as a tag; a layer alone takes all that is in it",
        )


def _by_ids(view: "View", given: Forget) -> tuple[list[str], list[str]]:
    gone: list[str] = []
    missing: list[str] = []
    for id in dict.fromkeys(given.ids):
        if given.dry_run:
            done = _forgettable(view, id, permanent=given.permanent)
        else:
            done = view.forget(id, permanent=given.permanent, reason=given.reason)
        (gone if done else missing).append(id)
    return gone, missing


def _by_conditions(view: "View", given: Forget, *, dry_run: bool = False) -> tuple[list[str], list[str]]:
    removal = view.forget_many(
        filter=given.filter(),
        layers=given.layers or None,
        reason=given.reason,
        permanent=given.permanent,
        dry_run=dry_run or given.dry_run,
    )
    return list(removal.ids), []


def _forgettable(view: "View", id: str, *, permanent: bool) -> bool:
    """Whether there is something to forget. The history tells, and unlike reading counts as no access."""
    versions = view.history(id)
    gone = {Operation.ERASED} if permanent else {Operation.ERASED, Operation.FORGOTTEN}
    return bool(versions) and versions[-1].operation not in gone


def _taken_away(caller: Caller, given: Forget) -> str:
    """What somebody should be asked about: what cannot be undone, and what nobody counted."""
    if given.dry_run or (given.ids and not given.permanent):
        return ""
    _check(given)
    count = len(set(given.ids)) or len(_by_conditions(caller.view, given, dry_run=True)[0])
    what = "this memory" if len(given.ids) == 1 else f"{count} {'memory' if count == 1 else 'memories'}"
    how = f"erase {what} for good, with all versions" if given.permanent else f"forget {what}"
    return how if count else ""


def _none_missing(answer: "Forgotten | Restored") -> bool:
    return not answer.missing


FORGET = Verb(
    name="forget",
    input=Forget,
    output=Forgotten,
    run=_forget,
    needs=Needs.WRITE,
    errors=(InvalidLayer,),
    asks=_taken_away,
    agrees=_none_missing,
    description="A forgotten memory is left out of everything and can be restored. A permanent one is erased."
    " By conditions all go together, or none.",
    examples=(
        Example(line="recollect forget $ID --reason outdated", says="restore brings it back"),
        Example(line="recollect forget --tag personal --before 2026-01-01 --dry-run", says="how many it would be"),
        Example(line="recollect forget --tag personal --within 7d --yes", says="all of them, without being asked"),
        Example(line="recollect forget $ID --permanent --dry-run", says="what would be erased"),
        Example(line="recollect forget $ID --permanent --yes", says="erased, without being asked"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The ids that are back, and those where nothing was forgotten."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What to bring back."""

    ids: tuple[str, ...] = argument("the ids of the memories", takes=Takes.EACH)


def _restore(caller: Caller, given: Restore) -> Restored:
    view = caller.view
    found = {id: view.restore(id) for id in given.ids}
    return Restored(
        ids=tuple(id for id, back in found.items() if back),
        missing=tuple(id for id, back in found.items() if not back),
    )


RESTORE = Verb(
    name="restore",
    input=Restore,
    output=Restored,
    run=_restore,
    needs=Needs.WRITE,
    agrees=_none_missing,
    examples=(Example(line="recollect restore $ID", says="as if it had not been forgotten"),),
)
