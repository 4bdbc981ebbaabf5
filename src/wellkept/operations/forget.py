"""Verbs that forget and erase memories and restore forgotten ones: forget, restore."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wellkept import fields
from wellkept.errors import Conflict, InvalidInput, InvalidLayer
from wellkept.operations.conditions import IDS, MANY_IDS, Conditions, layers_field
from wellkept.operations.verb import Caller, Example, Takes, Verb, argument, group, option, result
from wellkept.types import Layer, Operation
from wellkept.types.bounds import Bounds

if TYPE_CHECKING:
    from wellkept.memories.view import View


_SHOWN = 100
_EXCERPT = 280
_EXCERPTS = Bounds(max_length=_SHOWN, each=Bounds(max_length=_EXCERPT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The ids that were forgotten (or would be, in a dry run), and those for which there was nothing to forget."""

    ids: tuple[str, ...] = result("Ids of the memories that were forgotten, or would be.", bounds=MANY_IDS)
    deleted: int = result("How many memories were forgotten; 0 in a dry run.", bounds=fields.COUNT)
    failed: tuple[str, ...] = result("Ids for which there was nothing to forget.", bounds=MANY_IDS)
    permanent: bool = result("Whether the memories were erased.")
    dry_run: bool = result("Whether nothing was changed.")
    excerpts: Mapping[str, str] = result(
        "In a dry run, the beginning of the content of each of the first hundred memories, by id.", {}, bounds=_EXCERPTS
    )


def _if_version() -> Any:
    return option("Only if the memory is still at this version.", bounds=fields.MEMORY["version"].bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """What to forget, by ids or by conditions, and whether for good."""

    ids: tuple[str, ...] = argument(
        "Ids of the memories to forget; without ids, the filter and the layers say which.",
        (),
        takes=Takes.EACH,
        bounds=IDS,
    )
    filter: Conditions = group("Forget the memories for which these conditions hold.", Conditions)
    layers: tuple[Layer, ...] = layers_field()
    permanent: bool = option("Erase the memories with all their versions; this cannot be undone.", False)
    reason: str | None = option("The reason, kept in the history.", bounds=fields.LINE)
    if_version: int | None = _if_version()
    dry_run: bool = option("Only report what would be forgotten; change nothing.", False, short="n")

    @property
    def conditions(self) -> list[str]:
        """The names of the conditions that are set."""
        return [*(f"filter.{name}" for name in self.filter.given), *(["layers"] if self.layers else [])]


def _forget(caller: Caller, given: Forget) -> Forgotten:
    _check(given)
    gone, failed = _by_ids(caller.view, given) if given.ids else _by_conditions(caller.view, given)
    return Forgotten(
        ids=tuple(gone),
        deleted=0 if given.dry_run else len(gone),
        failed=tuple(failed),
        permanent=given.permanent,
        dry_run=given.dry_run,
        excerpts=_excerpts(caller.view, gone[:_SHOWN]) if given.dry_run else {},
    )


def _excerpts(view: "View", ids: list[str]) -> dict[str, str]:
    """The beginnings of contents, read as of now: reading the present would count as an access."""
    found = view.get_many(ids, as_of=view.position(), include_forgotten=True) if ids else {}
    return {id: memory.content[:_EXCERPT] for id, memory in found.items()}


def _check(given: Forget) -> None:
    """Either ids or conditions: a call that gives neither by mistake must not forget everything."""
    if bool(given.ids) == bool(given.conditions):
        both = bool(given.ids)
        raise InvalidInput(
            "both ids and conditions were given" if both else "neither an id nor a condition was given",
            operation="forget",
            details={"field": given.conditions[0] if both else "ids"},
            hint="give ids, or conditions such as a tag; a layer alone selects everything in it",
        )
    _check_single("forget", given.ids, given.if_version)


def _check_single(verb: str, ids: tuple[str, ...], if_version: int | None) -> None:
    """A version is that of one memory."""
    if if_version is not None and len(set(ids)) != 1:
        raise InvalidInput(
            "if_version was given for something else than one memory",
            operation=verb,
            details={"field": "if_version"},
            hint="name one id, or leave the version out",
        )


def _by_ids(view: "View", given: Forget) -> tuple[list[str], list[str]]:
    if given.if_version is None:
        how: dict[str, Any] = {"permanent": given.permanent, "reason": given.reason, "dry_run": given.dry_run}
        removal = view.forget_many(given.ids, **how)
        return list(removal.ids), list(removal.failed)
    [id] = set(given.ids)
    if given.dry_run:
        done = _forgettable(view, id, given)
    else:
        done = view.forget(id, permanent=given.permanent, reason=given.reason, if_version=given.if_version)
    return ([id], []) if done else ([], [id])


def _by_conditions(view: "View", given: Forget, *, dry_run: bool = False) -> tuple[list[str], list[str]]:
    removal = view.forget_many(
        filter=given.filter.to_filter(),
        layers=given.layers or None,
        reason=given.reason,
        permanent=given.permanent,
        dry_run=dry_run or given.dry_run,
    )
    return list(removal.ids), []


def _forgettable(view: "View", id: str, given: Forget) -> bool:
    """Whether there is something to forget. Reads the history, because reading the memory would count as an access."""
    versions = view.history(id)
    gone = {Operation.ERASED} if given.permanent else {Operation.ERASED, Operation.FORGOTTEN}
    if not versions or versions[-1].operation in gone:
        return False
    return given.if_version in (None, versions[-1].version)


def _taken_away(caller: Caller, given: Forget) -> str:
    """What a person should confirm: what cannot be undone, and what conditions select."""
    if given.dry_run or (given.ids and not given.permanent):
        return ""
    _check(given)
    count = len(set(given.ids)) or len(_by_conditions(caller.view, given, dry_run=True)[0])
    what = "this memory" if len(given.ids) == 1 else f"{count} {'memory' if count == 1 else 'memories'}"
    how = f"erase {what} for good, with all versions" if given.permanent else f"forget {what}"
    return how if count else ""


def _none_failed(answer: Forgotten) -> bool:
    return not answer.failed


FORGET = Verb(
    name="forget",
    input=Forget,
    output=Forgotten,
    run=_forget,
    method="View.forget_many",
    errors=(InvalidLayer, Conflict),
    asks=_taken_away,
    agrees=_none_failed,
    description="A forgotten memory is left out of everything and can be restored; with permanent it is erased."
    " Memories selected by conditions are forgotten together: all of them, or none.",
    examples=(
        Example(line="wellkept forget $ID --reason outdated", says="restore brings it back"),
        Example(line="wellkept forget --tag personal --before 2026-01-01 --dry-run", says="which it would be"),
        Example(line="wellkept forget --tag personal --within 7d --yes", says="all of them, without being asked"),
        Example(line="wellkept forget $ID --permanent --dry-run", says="what would be erased"),
        Example(line="wellkept forget $ID --permanent --yes", says="erased, without being asked"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The ids that were restored, and those for which there was nothing to restore."""

    ids: tuple[str, ...] = result("Ids of the memories that were restored.", bounds=MANY_IDS)
    missing: tuple[str, ...] = result("Ids for which there was nothing to restore.", bounds=MANY_IDS)
    erased: Mapping[str, str] = result(
        "Of these, the ones that were erased and cannot be restored, each with the reason.", {}, bounds=_EXCERPTS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """What to restore."""

    ids: tuple[str, ...] = argument("Ids of the memories to restore.", takes=Takes.EACH, bounds=IDS)
    if_version: int | None = _if_version()


def _restore(caller: Caller, given: Restore) -> Restored:
    _check_single("restore", given.ids, given.if_version)
    view = caller.view
    found = {id: view.restore(id, if_version=given.if_version) for id in given.ids}
    missing = tuple(id for id, back in found.items() if not back)
    last = {id: versions[-1] for id in missing[:_SHOWN] if (versions := view.history(id))}
    return Restored(
        ids=tuple(id for id, back in found.items() if back),
        missing=missing,
        erased={id: (one.reason or "")[:_EXCERPT] for id, one in last.items() if one.operation is Operation.ERASED},
    )


def _none_missing(answer: Restored) -> bool:
    return not answer.missing


RESTORE = Verb(
    name="restore",
    input=Restore,
    output=Restored,
    run=_restore,
    method="View.restore",
    errors=(Conflict,),
    agrees=_none_missing,
    examples=(Example(line="wellkept restore $ID", says="as if it had not been forgotten"),),
)
