"""Whose memories there are: the owners of a person, and all owners page by page."""

from collections.abc import Iterator, Mapping

from wellkept import codec, layers
from wellkept.engine.core import Engine
from wellkept.errors import InvalidInput
from wellkept.types import Identity, Owner, OwnerCount, OwnersPage
from wellkept.types.owners import DATABASE

_PAGE = 1_000


def every(engine: Engine, after: Owner | None = None) -> Iterator[Owner]:
    """All owners that the journal tells of, behind one."""
    while page := engine.journal.owners(after=after, limit=_PAGE):
        yield from page
        after = page[-1]


def belonging(engine: Engine, user: Owner) -> list[Owner]:
    """The owners of a person: the user, and every agent and session of the user, those with records or keys alone too:
    an agent of which nothing is kept but snapshots has a key.
    """
    found = {user, *(owner for owner in every(engine) if layers.belongs(owner, user))}
    found.update(
        record.owner for record in engine.records.list(None, opened=False) if layers.belongs(record.owner, user)
    )
    if engine.keyring is not None:
        found.update(owner for owner in engine.keyring.owners() if layers.belongs(owner, user))
    return list(layers.ordered(found))


def page(engine: Engine, wanted: Mapping[str, str], cursor: str | None, limit: int) -> OwnersPage:
    """The owners that have all the wanted ids, behind a cursor."""
    found: list[Owner] = []
    for owner in every(engine, None if cursor is None else _behind(cursor)):
        if wanted.items() <= _ids(owner).items():
            found.append(owner)
        if len(found) > limit:
            break
    shown, more = found[:limit], len(found) > limit
    return OwnersPage(owners=tuple(counts(engine, shown)), next_cursor=codec.encode_owner(shown[-1]) if more else None)


def counts(engine: Engine, owners: list[Owner]) -> Iterator[OwnerCount]:
    """What some owners have."""
    usage = engine.journal.usage(frozenset(owners))
    records: dict[Owner, int] = {}
    for record in engine.records.list(frozenset(owners), opened=False) if owners else ():
        records[record.owner] = records.get(record.owner, 0) + 1
    for owner in owners:
        used = usage.get(owner)
        yield OwnerCount(
            owner=owner,
            memories=used.memories if used else 0,
            bytes_used=used.bytes_used if used else 0,
            records=records.get(owner, 0),
        )


def given(identity: Identity) -> dict[str, str]:
    """The ids of an identity by their names."""
    names = ("agent", "user", "session", "project", "team", "org", "company")
    return {name: id for name in names if (id := getattr(identity, name)) is not None}


def named(identity: Identity) -> Owner:
    """The one owner that an identity names: a user, an agent of a user, a project."""
    ids = given(identity)
    for layer, names in layers.REQUIRED_IDS.items():
        if ids.keys() == set(names):
            return layers.owner_of(identity, layer)
    raise InvalidInput(
        f"{', '.join(ids)} together name no single owner",
        details={"field": next(iter(ids), "user")},
        hint="pass the ids of one layer: user, or user and session, or user and agent, or project, team, org, company",
    )


def _ids(owner: Owner) -> dict[str, str]:
    return dict(zip(layers.REQUIRED_IDS[owner.layer], owner.ids, strict=False)) if owner != DATABASE else {}


def _behind(cursor: str) -> Owner:
    try:
        return codec.decode_owner(cursor)
    except codec.UNREADABLE:
        raise InvalidInput(
            "cursor is not a cursor", details={"field": "cursor"}, hint="pass next_cursor of the page before"
        ) from None
