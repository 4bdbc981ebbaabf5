"""Whom a grant covers, whom an access policy lets in, and what the engine does with both."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import Opener
from wellkept import NewMemory, authorization
from wellkept.authorization import authorize, covers
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.engine import arrivals
from wellkept.engine.arrivals import Arrival, Place
from wellkept.errors import MissingIdentifier, Unauthorized
from wellkept.types import AccessPolicy, Grant, Identity, Layer, Need, Owner

ADA, CORE = Owner(Layer.USER, ("ada",)), Owner(Layer.TEAM, ("core",))
API = Owner(Layer.PROJECT, ("api",))
NOW = datetime(2030, 1, 7, tzinfo=UTC)
WHO: dict[str, Any] = {"user": "ada", "agent": "debugger"}

IDS = st.sampled_from(["ada", "ada ", "ad", "adam", "Ada", "*", "a*", "**", "?"])


@pytest.mark.req("L11")
@given(st.sampled_from(Layer), st.lists(IDS, min_size=2, max_size=2), st.lists(IDS, min_size=2, max_size=2))
def test_ids_are_compared_exactly_or_not_at_all(layer: Layer, granted: list[str], asked: list[str]) -> None:
    count = len(wellkept.layers.REQUIRED_IDS[layer])
    one, other = Owner(layer, tuple(granted[:count])), Owner(layer, tuple(asked[:count]))
    expected = all(want in ("*", have) for want, have in zip(one.ids, other.ids, strict=True))
    assert covers([one], other) == expected


def test_no_grant_covers_the_records_of_the_whole_database() -> None:
    anything = [Owner(layer, ("*",) * len(ids)) for layer, ids in wellkept.layers.REQUIRED_IDS.items()]
    assert not covers(anything, wellkept.types.owners.DATABASE)


def test_an_identity_is_authorized_as_its_view_is() -> None:
    agent = Grant(owners=(Owner(Layer.AGENT, ("*", "debugger")),))
    authorize(agent, Identity(**WHO), Need.READ, NOW)
    with pytest.raises(Unauthorized):
        authorize(agent, Identity(user="ada"), Need.READ, NOW)


@pytest.mark.parametrize(
    ("identity", "allowed"),
    [
        (Identity(user="ada"), True),
        (Identity(user="ada", session="monday", agent="debugger"), True),
        (Identity(user="ada", project="api"), True),
        (Identity(project="api"), True),
        (Identity(user="ada", project="web"), False),
        (Identity(user="Ada"), False),
        (Identity(user="bob", session="monday"), False),
        (Identity(agent="debugger"), False),  # an agent without a user belongs to the user default
        (Identity(user="ada", team="core"), False),
    ],
)
def test_every_id_of_the_identity_lies_within_the_owners(identity: Identity, allowed: bool) -> None:
    grant = Grant(owners=(ADA, API))
    if allowed:
        authorize(grant, identity, Need.ERASE, NOW)
    else:
        with pytest.raises(Unauthorized):
            authorize(grant, identity, Need.READ, NOW)


def test_what_concerns_the_whole_database_needs_a_grant_for_every_owner() -> None:
    with pytest.raises(Unauthorized, match="whole database"):
        authorize(Grant(owners=(ADA,)), Identity(user="ada"), Need.ADMIN, NOW)
    authorize(Grant(), Identity(), Need.ADMIN, NOW)


def test_a_grant_for_some_owners_needs_an_identity() -> None:
    with pytest.raises(MissingIdentifier):
        authorize(Grant(owners=(ADA,)), Identity(), Need.READ, NOW)


@given(
    layer=st.sampled_from(Layer),
    ids=st.lists(st.sampled_from(["ada", "bob", "ada "]), min_size=2, max_size=2),
    owners=st.lists(st.sampled_from([ADA, API, Owner(Layer.USER, ("bob",))]), max_size=3),
)
def test_a_user_covers_sessions_and_agents_and_nothing_else(layer: Layer, ids: list[str], owners: list[Owner]) -> None:
    owner = Owner(layer, tuple(ids))
    users = {one.ids[0] for one in owners if one.layer is Layer.USER}
    below = layer in (Layer.SESSION, Layer.AGENT) and ids[0] in users
    assert covers(tuple(owners), owner) is (owner in owners or below)


@pytest.mark.req("H2")
def test_an_id_that_two_owners_have_is_withheld_by_one_of_them_alone(opener: Opener) -> None:
    memories = opener(embedder=HashingEmbedder(16))
    engine, api = memories._engine, Owner(Layer.PROJECT, ("api",))
    for owner, content, policy in (
        (CORE, "plan of the team", AccessPolicy.PRIVATE),
        (api, "plan of the project", None),
    ):
        new = NewMemory(content=content, author="ada", access_policy=policy, occurred_at=engine.clock())
        one = Arrival(place=Place("line", 1), id="same", new=new, created_at=engine.clock())
        arrivals.add(engine, owner, arrivals.drafted(engine, owner, [one]))
    other = memories.view(project="api").add("plan of others", layer="project")
    view = memories.view(user="bob", team="core", project="api")
    here = view.position()
    wanted = {"plan of the project", "plan of others"}
    assert {one.content for one in view.list()} == wanted
    assert {one.content for one in view.list(as_of=here)} == wanted
    assert {one.content for one in view.list(sort_by="oldest", filter={"text": "plan"})} == wanted
    pages = view.list(limit=1)
    assert {pages.memories[0].content, *(one.content for one in view.list(cursor=pages.next_cursor))} == wanted
    assert view.count() == 2
    assert {hit.memory.content for hit in view.search("plan", min_score=0)} == wanted
    assert {hit.memory.content for hit in view.search("plan", min_score=0, as_of=here)} == wanted
    assert view.forget_many([other.id, "same"]).ids == (other.id, "same")
    author = memories.view(user="ada", team="core")
    assert [one.content for one in author.list()] == ["plan of the team"]


NAMES = st.sampled_from(["ada", "bob", "core"])


@given(
    st.sampled_from(Layer),
    st.none() | NAMES,
    st.sampled_from(Need),
    st.none() | NAMES,
    st.none() | NAMES,
)
def test_each_policy_lets_in_whom_the_one_before_lets_in(
    layer: Layer, author: str | None, need: Need, user: str | None, holder: str | None
) -> None:
    owner = Owner(layer, ("ada", "x")[: len(wellkept.layers.REQUIRED_IDS[layer])])
    reader = authorization.reader_of(Grant(need=need, holder=holder), Identity(user=user, team="core"))
    allowed = [authorization.may_read(reader, owner, one, author) for one in AccessPolicy]
    assert allowed == sorted(allowed)
    assert authorization.may_read(reader, owner, None, author)
    assert authorization.sees_all(reader, owner) <= all(allowed)
    assert not authorization.may_read(
        reader._replace(names=frozenset(), user=None, policies=frozenset()), owner, "odd", author
    )
