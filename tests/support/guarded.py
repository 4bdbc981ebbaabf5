"""A store and an index that refuse every call that reaches past what the engine must check.

While somebody acts through a view, an agent's handle or a session, the store may be asked for the owners of that
identity alone, and for no more than its grant allows. Which these are is worked out here once more, from the identity
and the grant, so that a check that the engine forgets is noticed by every test that runs on this store. What the engine
asks for its own bookkeeping stands in ``BOOKKEEPING``, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from traceback import walk_stack
from typing import Any

from tests.support.watched import watch, watch_index
from wellkept import Identity, View
from wellkept.indexes.ram import RamIndex
from wellkept.memories import AgentMemory, Session, Sessions
from wellkept.ports import Index, Query, Record, Store
from wellkept.types import Grant, Layer, Need, Operation, Owner

DATABASE = Owner(Layer.COMPANY, ("",))
"""Whose the records are that belong to no person: runs of upkeep, holds, policies."""

BOOKKEEPING = {
    "Journal.owners": "a plan counts all owners of a user together",
    "Journal.usage": "the same",
    "Journal.set_settings": "the name of the embedder, and whether memories wait for their vectors",
    "Journal.embed": "memories that waited for their vectors get them from whoever adds next",
    "Journal.unembedded": "the same",
    "Records.lease": "no two runs of upkeep at once",
    "Records.release": "the same",
    "Records.list": "policies and runs of upkeep are listed to find those that concern the caller",
}
"""Calls that may reach further, and why."""

_ACTORS = (View, AgentMemory, Sessions, Session)
_WHOLE = ("adopt", "count_unembedded", "feed", "lease", "owners", "release", "set_settings", "unembedded")
_OF_A_USER = (Layer.AGENT, Layer.SESSION)


class PastTheChecks(BaseException):
    """The store was asked for what the caller has no right to. Not an ``Exception``, so that nothing swallows it."""


def guarded(store: Store) -> Store:
    """The same store; it refuses what no check of the engine can have let through."""
    return watch(store, _check)


def guarded_index() -> Index:
    """An index in RAM that refuses the same."""
    return watch_index(RamIndex(), _check)


def _check(call: str, arguments: dict[str, Any]) -> None:
    actor, undoes = _acting()
    if actor is None or call in BOOKKEEPING:
        return
    owners = set(_owners(call, arguments))
    past = [owner for owner in owners if owner is None or not _reaches(actor, owner, every_session=undoes)]
    if past:
        raise PastTheChecks(f"{call} of {past} for {actor!r}")
    _check_grant(actor._engine.grant, call, arguments, [owner for owner in owners if owner not in (None, DATABASE)])


def _acting() -> tuple[Any, bool]:
    """The object of the surface whose method was called first, and whether it undoes something; nobody where the
    database itself acts. What the handler of an event calls, it calls by itself.
    """
    actor, undoes = None, False
    for frame, _ in walk_stack(None):
        if frame.f_globals["__name__"] == "wellkept.events.bus":
            break
        if frame.f_globals["__name__"].startswith("wellkept."):  # to look at a test's own variables keeps them alive
            this = frame.f_locals.get("self")
            if isinstance(this, _ACTORS):
                actor, undoes = this, undoes or frame.f_code.co_name == "undo"
    return actor, undoes


def _owners(call: str, arguments: dict[str, Any]) -> Iterator[Owner | None]:
    """Whom a call is about; ``None`` is everybody. What a write is compared with is not asked for by anybody."""
    if call.partition(".")[2] in _WHOLE or arguments.get("owners", ()) is None:
        yield None
    for name, value in arguments.items():
        if name not in ("guards", "quotas"):
            yield from _named(value)


def _named(value: object) -> Iterator[Owner]:
    if isinstance(value, Owner):
        yield value
    elif isinstance(value, Query):
        yield from value.owners
    elif isinstance(value, Record) and value.kind == "session":
        yield Owner(Layer.SESSION, (value.owner.ids[0], value.name))
    elif isinstance(owner := getattr(value, "owner", None), Owner):
        yield owner
    elif isinstance(value, list | tuple | set | frozenset | dict):
        for part in value:
            yield from _named(part)


def _reaches(actor: Any, owner: Owner, *, every_session: bool) -> bool:
    """Whether an owner is one of the actor's. A user may list the own sessions, and undo the end of each."""
    identity: Identity = getattr(actor, "identity", None) or Identity(user=actor._records.user)
    user = identity.user or "default"
    every_session = every_session or isinstance(actor, Sessions | Session)
    ids = {
        Layer.AGENT: (user, identity.agent),
        Layer.USER: (identity.user,),
        Layer.SESSION: (user, owner.ids[-1] if every_session else identity.session),
        Layer.PROJECT: (identity.project,),
        Layer.TEAM: (identity.team,),
        Layer.ORG: (identity.org,),
        Layer.COMPANY: (identity.company,),
    }
    return owner == DATABASE or owner.ids == ids[owner.layer]


def _check_grant(grant: Grant, call: str, arguments: dict[str, Any], owners: list[Owner | None]) -> None:
    need = Need.READ
    if call == "Journal.append":
        erases = any(write.operation is Operation.ERASED for write in arguments["writes"])
        need = Need.ERASE if erases else Need.WRITE
    elif call in ("Records.put", "Records.drop"):
        need = Need.WRITE
    if not grant.need.covers(need):
        raise PastTheChecks(f"{call} needs {need.value}, the grant allows {grant.need.value}")
    past = [owner for owner in owners if owner is not None and not _covers(grant, owner)]
    if past:
        raise PastTheChecks(f"{call} of {past}, which the grant does not cover")


def _covers(grant: Grant, owner: Owner) -> bool:
    if grant.owners is None:
        return True
    return any(
        (named.layer is owner.layer and all(id in ("*", asked) for id, asked in zip(named.ids, owner.ids, strict=True)))
        or (named.layer is Layer.USER and owner.layer in _OF_A_USER and named.ids[0] in ("*", owner.ids[0]))
        for named in grant.owners
    )
