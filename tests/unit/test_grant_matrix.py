"""Every verb, for every kind of grant, about somebody else's memories: nothing is told, and nothing changes.

The cases are made of the table of verbs and the steps of the scenario, which has one for each verb.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import wellkept
from tests.contract.parity.test_scenario import STEPS
from wellkept import Memories
from wellkept.errors import Unauthorized, WellkeptError
from wellkept.operations import VERBS, Caller, call
from wellkept.operations.payloads import decoded
from wellkept.types import Grant, Identity, Layer, Need, Owner

CANARY = "zq7canary"
NOW = datetime(2030, 1, 7, tzinfo=UTC)
ADA, BOB = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("bob",))
API, WEB = Owner(Layer.PROJECT, ("api",)), Owner(Layer.PROJECT, ("web",))
EVERY_USER, EVERY_PROJECT = Owner(Layer.USER, ("*",)), Owner(Layer.PROJECT, ("*",))
FOREIGN = Identity(user="ada", agent="debugger", session="monday", project="api")
OWN = Identity(user="bob", agent="debugger", session="monday", project="web")
NEEDS = tuple(Need)


@pytest.fixture
def memories() -> Iterator[Memories]:
    with wellkept.open("ram:", embedder=None, clock=lambda: NOW) as opened:
        ada = opened.view(user="ada", agent="debugger", project="api")
        for layer in (Layer.AGENT, Layer.USER, Layer.PROJECT):
            ada.add(
                f"{CANARY} dark mode tabs Lives in Rome", layer=layer, tags=[f"ui.{CANARY}"], title=CANARY, author="ada"
            )
            ada.add(f"{CANARY} gone", layer=layer, metadata={"sure": CANARY})
        ada.put("home", f"{CANARY} Lives in Oslo", layer="user", tags=["home.now"])
        ada.facts.add("Ada", "lives in", f"{CANARY} Rome", layer="user")
        for user in ("ada", "bob"):
            created = opened.view(user=user).sessions.create(
                "monday", preferences={"theme": CANARY * (user == "ada") or "x"}
            )
            if user == "ada":
                created.view.add(f"{CANARY} Use OAuth", tags=["security"])
        opened.view(user="bob", project="web").add("dark mode of bob", layer="project")
        yield opened


def state(memories: Memories) -> str:
    """All that a database holds but access counts: every version of every owner, every record, every setting."""
    store = memories._engine.store
    versions = [one._replace(access_count=0, last_accessed_at=None) for one in store.journal.feed()]
    records = [record for record in store.records.list(None) if record.kind != "api_key"]
    return repr((versions, records, store.journal.settings()))


def cases(memories: Memories, name: str) -> list[dict[str, Any]]:
    """What the scenario asks a verb, with the foreign memories in the place of its ids."""
    ids = [one.id for one in memories._engine.store.journal.feed()]
    found = []
    for verb, fields in STEPS:
        if verb == name:
            text = re.sub(r"\$(\d+)", lambda number: ids[int(number[1]) % len(ids)], json.dumps(fields))
            found.append(json.loads(text))
    return found or [_least(name)]


def _least(name: str) -> dict[str, Any]:
    """The least that a verb can be asked, for one that the scenario leaves out."""
    needed = [one for one in dataclasses.fields(VERBS[name].input) if _is_needed(one)]
    return {one.name: ["x"] if "tuple" in str(one.type) else "x" for one in needed}


def _is_needed(one: "dataclasses.Field[Any]") -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def asked(caller: Caller, name: str, fields: dict[str, Any]) -> str:
    """All that a caller learns."""
    try:
        return repr(call(name, caller, fields))
    except WellkeptError as error:
        return repr((type(error).__name__, str(error), error.hint, dict(error.details)))


def fits(memories: Memories, name: str, fields: dict[str, Any]) -> Need | None:
    """What a call needs; nothing if its input is refused before anybody asks."""
    try:
        return VERBS[name].needed(decoded(VERBS[name], fields))
    except WellkeptError:
        return None


@pytest.mark.req("L11", "J12")
@pytest.mark.parametrize("name", list(VERBS))
@pytest.mark.parametrize("need", NEEDS, ids=[need.value for need in NEEDS])
def test_a_grant_for_others_reaches_nothing(memories: Memories, name: str, need: Need) -> None:
    before = state(memories)
    revoked = memories.keys.create("revoked", owners=None, need=need)
    grant_of_revoked = memories.keys.grant_of(revoked.token)
    memories.keys.revoke(revoked.key.id)
    grants = {
        "exact": Grant(need=need, owners=(BOB, WEB)),
        "any user, but not this project": Grant(need=need, owners=(EVERY_USER, WEB)),
        "any project, but not this user": Grant(need=need, owners=(BOB, EVERY_PROJECT)),
        "a look-alike": Grant(need=need, owners=(Owner(Layer.USER, ("ad*",)), Owner(Layer.PROJECT, ("ap",)))),
        "expired": Grant(need=need, expires_at=NOW),
        "revoked": grant_of_revoked,
    }
    for kind, grant in grants.items():
        caller = Caller(memories=memories, identity=FOREIGN, grant=grant)
        for fields in cases(memories, name):
            if fits(memories, name, fields) is not None:
                with pytest.raises(Unauthorized):
                    call(name, caller, fields)
            assert CANARY not in asked(caller, name, fields), kind
    assert state(memories) == before


@pytest.mark.req("L11")
@pytest.mark.parametrize("name", list(VERBS))
@pytest.mark.parametrize("owners", [(BOB, WEB), (EVERY_USER, EVERY_PROJECT)], ids=["exact", "any id"])
def test_within_a_grant_foreign_ids_are_as_good_as_missing(
    memories: Memories, name: str, owners: tuple[Owner, ...]
) -> None:
    """The caller is bob, with all that he may do, and names what is ada's."""
    before = {owner: _of(memories, owner) for owner in memories._engine.store.journal.owners() if _is_adas(owner)}
    caller = Caller(memories=memories, identity=OWN, grant=Grant(need=Need.ERASE, owners=owners))
    for fields in cases(memories, name):
        assert CANARY not in asked(caller, name, fields)
    assert {owner: _of(memories, owner) for owner in before} == before


def _is_adas(owner: Owner) -> bool:
    return owner in (ADA, API) or owner.ids[0] == "ada"


def _of(memories: Memories, owner: Owner) -> str:
    found = memories._engine.store.journal.versions({owner})
    return repr([one._replace(access_count=0, last_accessed_at=None) for one in found])


@pytest.mark.req("L11", "J12")
@pytest.mark.parametrize("name", list(VERBS))
@pytest.mark.parametrize("need", NEEDS, ids=[need.value for need in NEEDS])
@pytest.mark.parametrize(
    "owners", [(ADA, API), (EVERY_USER, EVERY_PROJECT), None], ids=["exact", "any id", "every owner"]
)
def test_a_call_gets_as_far_as_its_need_is_granted(
    memories: Memories, name: str, need: Need, owners: tuple[Owner, ...] | None
) -> None:
    caller = Caller(memories=memories, identity=FOREIGN, grant=Grant(need=need, owners=owners, max_trust=0.9))
    for fields in cases(memories, name):
        needed = fits(memories, name, fields)
        if needed is None:
            continue
        allowed = need.covers(needed) and (needed is not Need.ADMIN or owners is None)
        before = state(memories)
        if not allowed:
            with pytest.raises(Unauthorized):
                call(name, caller, fields)
        elif needed is not Need.ADMIN:  # those are tried elsewhere; here they would take whole databases away
            assert "Unauthorized" not in asked(caller, name, fields)
        if not allowed or needed is Need.READ:
            assert _without_uses(state(memories)) == _without_uses(before)


def _without_uses(text: str) -> str:
    """A session notes when it was last used."""
    return re.sub(r"last_accessed\W+[^,}]+|version=\d+|updated_at=[^,]+\([^)]*\)", "", text)


@pytest.mark.req("L11")
@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if verb.needs is not Need.ADMIN])
@pytest.mark.parametrize("need", NEEDS[:-1], ids=[need.value for need in NEEDS[:-1]])
def test_the_library_holds_to_the_grant_without_the_dispatcher(memories: Memories, name: str, need: Need) -> None:
    """Whoever forgets to ask is refused by the engine: verbs are run here as if nobody had checked the grant."""
    verb = VERBS[name]
    grant = Grant(need=need, owners=(ADA, API))
    ended = (Grant(expires_at=NOW), Grant(owners=(ADA, API), expires_at=NOW - timedelta(days=1)))
    for fields in cases(memories, name):
        if (needed := fits(memories, name, fields)) is None:
            continue
        given = decoded(verb, fields)
        if not need.covers(needed):
            before = state(memories)
            _run(verb, Caller(memories=memories, identity=FOREIGN, grant=grant), given)
            assert _without_uses(state(memories)) == _without_uses(before)
        for late in ended:
            told = repr(_run(verb, Caller(memories=memories, identity=FOREIGN, grant=late), given))
            assert CANARY not in told


def _run(verb: Any, caller: Caller, given: Any) -> Any:
    try:
        return verb.run(caller, given)
    except WellkeptError as error:
        return str(error)


def test_expiry_is_by_the_clock_of_the_database(memories: Memories) -> None:
    caller = Caller(memories=memories, identity=FOREIGN, grant=Grant(expires_at=NOW + timedelta(microseconds=1)))
    assert call("count", caller, {})["count"] > 0
