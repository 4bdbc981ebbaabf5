"""Verbs about whose memories there are: owners, owners.export."""

from dataclasses import dataclass

from wellkept.errors import InvalidInput
from wellkept.operations.conditions import MANY
from wellkept.operations.verb import Caller, Example, Verb, argument, option, result
from wellkept.types import OwnerCount, SubjectExport
from wellkept.types.bounds import Bounds
from wellkept.types.owners import DEFAULT_USER

_PAGE = Bounds(minimum=1, maximum=1_000)
_CURSOR = Bounds(max_length=4_096)
PATH = Bounds(max_length=4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOwners:
    """Which owners."""

    everybody: bool = option("All owners, not only those that have the ids of the caller.", False)
    limit: int = option("How many owners at most.", 100, bounds=_PAGE)
    cursor: str | None = option("Continue behind the page before: its next_cursor.", bounds=_CURSOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Whose memories there are."""

    owners: tuple[OwnerCount, ...] = result("The owners, with what each has.", bounds=MANY)
    next_cursor: str | None = result("Continues the list; null at its end.", bounds=_CURSOR)


def _owners(caller: Caller, given: ListOwners) -> Owners:
    ids = {} if given.everybody else _ids(caller)
    page = caller.memories.owners(**ids, limit=given.limit, cursor=given.cursor)
    return Owners(owners=page.owners, next_cursor=page.next_cursor)


def _ids(caller: Caller) -> dict[str, str]:
    names = ("agent", "user", "session", "project", "team", "org", "company")
    return {name: id for name in names if (id := getattr(caller.identity, name)) is not None}


OWNERS = Verb(
    name="owners",
    input=ListOwners,
    output=Owners,
    run=_owners,
    method="Memories.owners",
    description="A user stands for the user layer, every agent and every session of that user.",
    examples=(
        Example(line="wellkept owners --user bob", says="everything that is kept about one person, by layer"),
        Example(line="wellkept owners --everybody", says="all owners of the database"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Where to."""

    path: str = argument("The archive to write; it must not exist.", bounds=PATH)


def person(caller: Caller) -> str:
    """The user that the caller names; not the one that stands in where nobody is named."""
    user = caller.identity.user
    if user is None or user == DEFAULT_USER:
        raise InvalidInput("no user was named", details={"field": "user"}, hint="name the person: --user bob")
    return user


def _export(caller: Caller, given: Export) -> SubjectExport:
    return caller.memories.privacy.export(given.path, user=person(caller))


OWNERS_EXPORT = Verb(
    name="owners.export",
    input=Export,
    output=SubjectExport,
    run=_export,
    method="Privacy.export",
    description="A zip of JSON Lines that people can read: memories of every layer with their history, and sessions.",
    examples=(Example(line="wellkept owners export bob.zip --user bob", says="everything about one person"),),
)
