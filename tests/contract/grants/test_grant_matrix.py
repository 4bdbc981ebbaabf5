"""Every verb, for every kind of grant, about somebody else's memories: nothing is told, and nothing changes.

The cases are made of the table of verbs and the steps of the scenario, which has one for each verb. A database serves
as many of them as leave it as it is.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest

import wellkept
from tests.contract.parity.test_scenario import STEPS
from tests.support.stand_ins import store_of
from wellkept import Memories
from wellkept.errors import Unauthorized, WellkeptError
from wellkept.operations import VERBS, Caller, call, request
from wellkept.types import Grant, Identity, Layer, Need, Owner

CANARY = "zq7canary"
NOW = datetime(2030, 1, 7, tzinfo=UTC)
ADA, BOB = Owner(Layer.USER, ("ada",)), Owner(Layer.USER, ("bob",))
API, WEB = Owner(Layer.PROJECT, ("api",)), Owner(Layer.PROJECT, ("web",))
EVERY_USER, EVERY_PROJECT = Owner(Layer.USER, ("*",)), Owner(Layer.PROJECT, ("*",))
FOREIGN = Identity(user="ada", agent="debugger", session="monday", project="api")
OWN = Identity(user="bob", agent="debugger", session="monday", project="web")


@contextmanager
def populated() -> Iterator[Memories]:
    """A database in RAM with memories of ada, which hold the canary, and a few of bob."""
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
    store = store_of(memories)
    versions = [one._replace(access_count=0, last_accessed_at=None) for one in store.journal.feed()]
    records = [record for record in store.records.list(None) if record.kind != "api_key"]
    return repr((versions, records, store.journal.settings()))


def _without_uses(text: str) -> str:
    """A session notes when it was last used."""
    return re.sub(r"last_accessed\W+[^,}]+|version=\d+|updated_at=[^,]+\([^)]*\)", "", text)


def payloads(memories: Memories, name: str) -> list[dict[str, Any]]:
    """What the scenario asks a verb, with the foreign memories in the place of its ids."""
    ids = [one.id for one in store_of(memories).journal.feed()]
    payloads = []
    for verb, fields in STEPS:
        if verb == name:
            text = re.sub(r"\$(\d+)", lambda number: ids[int(number[1]) % len(ids)], json.dumps(fields))
            payloads.append(json.loads(text))
    return payloads or [_least(name)]


def _least(name: str) -> dict[str, Any]:
    """The least that a verb can be asked, for one that the scenario leaves out."""
    needed = [one for one in dataclasses.fields(VERBS[name].input) if _is_needed(one)]
    return {one.name: ["x"] if "tuple" in str(one.type) else "x" for one in needed}


def _is_needed(one: "dataclasses.Field[Any]") -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


class Accepted(NamedTuple):
    """A call whose input is not refused: its payload, the same decoded, and what it needs."""

    payload: dict[str, Any]
    given: Any
    needed: Need


def accepted(memories: Memories, name: str) -> list[Accepted]:
    """Those calls of a verb whose input is not refused before anybody asks for the grant."""
    calls = []
    for payload in payloads(memories, name):
        try:
            given = request(name, Caller(memories=memories, identity=FOREIGN), payload).input
        except WellkeptError:
            continue
        calls.append(Accepted(payload, given, VERBS[name].needed(given)))
    return calls


class Answer(NamedTuple):
    """All that a caller learns."""

    error: type[WellkeptError] | None
    text: str

    @property
    def is_refusal(self) -> bool:
        return self.error is not None and issubclass(self.error, Unauthorized)


def ask(caller: Caller, name: str, payload: dict[str, Any]) -> Answer:
    try:
        return Answer(None, repr(call(name, caller, payload)))
    except WellkeptError as error:
        return Answer(type(error), repr((type(error).__name__, str(error), error.hint, dict(error.details))))


@pytest.mark.req("L11", "J12")
@pytest.mark.parametrize("need", list(Need), ids=[need.value for need in Need])
def test_a_grant_for_others_reaches_nothing(need: Need) -> None:
    wrong: dict[str, str] = {}
    with populated() as memories:
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
        before = state(memories)
        for name, (kind, grant) in product(VERBS, grants.items()):
            caller = Caller(memories=memories, identity=FOREIGN, grant=grant)
            sound = [one.payload for one in accepted(memories, name)]
            for payload in payloads(memories, name):
                answer = ask(caller, name, payload)
                if CANARY in answer.text or (payload in sound and not answer.is_refusal):
                    wrong[f"{name} {payload}, grant {kind}"] = answer.text
            if (after := state(memories)) != before:
                wrong[f"{name}, grant {kind}"] = "changed the database"
                before = after
    assert wrong == {}


@pytest.mark.req("L11")
@pytest.mark.parametrize("owners", [(BOB, WEB), (EVERY_USER, EVERY_PROJECT)], ids=["exact", "any id"])
def test_within_a_grant_foreign_ids_are_as_good_as_missing(owners: tuple[Owner, ...]) -> None:
    """The caller is bob, with all that he may do, and names what is ada's."""
    wrong: dict[str, str] = {}
    for name in VERBS:
        with populated() as memories:
            before = _of_ada(memories)
            caller = Caller(memories=memories, identity=OWN, grant=Grant(need=Need.ERASE, owners=owners))
            for payload in payloads(memories, name):
                answer = ask(caller, name, payload)
                if CANARY in answer.text:
                    wrong[f"{name} {payload}"] = answer.text
            if _of_ada(memories) != before:
                wrong[name] = "changed what is ada's"
    assert wrong == {}


def _of_ada(memories: Memories) -> dict[Owner, str]:
    """Every version of everything that is ada's, by owner."""
    journal = store_of(memories).journal
    hers = {owner for owner in journal.owners() if owner in (ADA, API) or owner.ids[0] == "ada"}
    assert hers
    return {
        owner: repr([one._replace(access_count=0, last_accessed_at=None) for one in journal.versions({owner})])
        for owner in hers
    }


@pytest.mark.req("L11", "J12")
@pytest.mark.parametrize(
    "owners", [(ADA, API), (EVERY_USER, EVERY_PROJECT), None], ids=["exact", "any id", "every owner"]
)
def test_a_call_gets_as_far_as_its_need_is_granted(owners: tuple[Owner, ...] | None) -> None:
    wrong: dict[str, str] = {}
    for name in VERBS:
        with populated() as unchanged:
            needs = {one.needed for one in accepted(unchanged, name)}
            for need in Need:
                grant = Grant(need=need, owners=owners, max_trust=0.9)
                if any(_is_allowed(grant, needed) for needed in needs - {Need.READ, Need.ADMIN}):
                    with populated() as memories:
                        wrong |= _reaching_too_far_or_not_far_enough(memories, name, grant)
                else:
                    wrong |= _reaching_too_far_or_not_far_enough(unchanged, name, grant)
    assert wrong == {}


def _is_allowed(grant: Grant, needed: Need) -> bool:
    return grant.need.covers(needed) and (needed is not Need.ADMIN or grant.owners is None)


def _reaching_too_far_or_not_far_enough(memories: Memories, name: str, grant: Grant) -> dict[str, str]:
    """What the calls of a verb were answered, or what they changed, where that is not what the grant says."""
    wrong = {}
    caller = Caller(memories=memories, identity=FOREIGN, grant=grant)
    for payload, _, needed in accepted(memories, name):
        allowed = _is_allowed(grant, needed)
        before = state(memories)
        # Those that need most are tried elsewhere; here they would take whole databases away.
        if not allowed or needed is not Need.ADMIN:
            answer = ask(caller, name, payload)
            if answer.is_refusal is allowed or ("Unauthorized" in answer.text) is allowed:
                wrong[f"{name} {payload}, which needs {needed}, with {grant.need}"] = answer.text
        if not allowed or needed is Need.READ:
            after = state(memories)
            if _without_uses(after) != _without_uses(before):
                wrong[f"{name} {payload} with {grant.need}"] = "changed the database"
    return wrong


@pytest.mark.req("L11")
def test_the_library_holds_to_the_grant_without_the_dispatcher() -> None:
    """Whoever forgets to ask is refused by the engine: verbs are run here as if nobody had checked the grant."""
    ended = (Grant(expires_at=NOW), Grant(owners=(ADA, API), expires_at=NOW - timedelta(days=1)))
    wrong: dict[str, str] = {}
    with populated() as memories:
        before = _without_uses(state(memories))
        for name, verb in VERBS.items():
            if verb.needs is Need.ADMIN:
                continue
            for payload, given, needed in accepted(memories, name):
                for need in (Need.READ, Need.WRITE, Need.ERASE):
                    if not need.covers(needed):
                        grant = Grant(need=need, owners=(ADA, API))
                        _run(name, Caller(memories=memories, identity=FOREIGN, grant=grant), given)
                        if (after := _without_uses(state(memories))) != before:
                            wrong[f"{name} {payload} with {need}"] = "changed the database"
                            before = after
                for grant in ended:
                    answer = _run(name, Caller(memories=memories, identity=FOREIGN, grant=grant), given)
                    if CANARY in repr(answer):
                        wrong[f"{name} {payload} with {grant}"] = repr(answer)
                    if (after := _without_uses(state(memories))) != before:
                        wrong[f"{name} {payload} with {grant}"] = "changed the database"
                        before = after
    assert wrong == {}


def _run(name: str, caller: Caller, given: Any) -> Any:
    try:
        return VERBS[name].run(caller, given)
    except WellkeptError as error:
        return str(error)


def test_expiry_is_by_the_clock_of_the_database() -> None:
    with populated() as memories:
        caller = Caller(memories=memories, identity=FOREIGN, grant=Grant(expires_at=NOW + timedelta(microseconds=1)))
        assert call("count", caller, {})["count"] > 0
