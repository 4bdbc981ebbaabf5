"""API keys: tokens of 256 bits that are kept as hashes, and stop working in every process at once."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import HandClock, store_of
from tests.support.terminal import Terminal
from wellkept import Memories
from wellkept.errors import InvalidInput, NotFound, Unauthorized
from wellkept.types import Grant, Layer, Need, Owner

API = Owner(Layer.PROJECT, ("api",))
TOKEN = re.compile(r"wk_[0-9a-f]{16}_[\w-]{43}")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["ram", "sqlite", "jsonl"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {"ram": "ram:", "sqlite": str(tmp_path / "a.db"), "jsonl": f"jsonl:{tmp_path / 'folder'}"}[request.param]


@pytest.fixture
def memories(url: str, clock: HandClock) -> Iterator[Memories]:
    with wellkept.open(url, embedder=None, clock=clock) as opened:
        yield opened


@pytest.mark.req("J12")
def test_a_token_stands_for_its_grant(memories: Memories, clock: HandClock) -> None:
    ends = clock() + timedelta(days=1)
    made = memories.keys.create("bot", owners=[API], need="write", expires_at=ends, max_trust=0.4, holder="bob")
    assert TOKEN.fullmatch(made.token)
    grant = memories.keys.grant_of(made.token)
    assert grant == made.key.grant
    assert grant == Grant(need=Need.WRITE, owners=(API,), expires_at=ends, max_trust=0.4, holder="bob", key=made.key.id)
    memories.view(project="api", grant=grant).add("x")
    with pytest.raises(Unauthorized):
        memories.view(project="web", grant=grant)
    clock.forward(seconds=1)
    everything = memories.keys.create("root", owners=None, need=Need.ADMIN)
    assert memories.keys.grant_of(everything.token).owners is None
    assert [one.name for one in memories.keys.list()] == ["bot", "root"]


def test_tokens_are_never_the_same(memories: Memories) -> None:
    made = [memories.keys.create("ci", owners=None).token for _ in range(50)]
    assert len({token.split("_", 2)[1] for token in made}) == len({token.split("_", 2)[2] for token in made}) == 50


@pytest.mark.req("J12")
def test_no_file_and_no_text_holds_the_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with wellkept.open(str(tmp_path / "a.db"), embedder=None) as memories:
        made = memories.keys.create("ci", owners=None)
        secret = made.token.split("_", 2)[2]
        memories.keys.grant_of(made.token)
        shown = [repr(made), str(made), repr(memories.keys.list()), repr(memories.keys.grant_of(made.token))]
        with pytest.raises(Unauthorized) as refused:
            memories.keys.grant_of(made.token[:-1] + "!")
        shown += [repr(refused.value), str(refused.value), repr(refused.value.details), refused.value.hint or ""]
        memories.keys.revoke(made.key.id)
    assert secret not in "".join(shown) + caplog.text
    for file in tmp_path.rglob("*"):
        assert secret.encode() not in file.read_bytes()


@pytest.mark.req("J12")
def test_revocation_is_seen_at_once_by_every_process(tmp_path: Path) -> None:
    """Two databases that are open on one file share nothing else, as two processes do."""
    url = str(tmp_path / "a.db")
    with wellkept.open(url, embedder=None) as one, wellkept.open(url, embedder=None) as other:
        made = one.keys.create("ci", owners=None, need="write")
        view = other.view(user="ada", grant=other.keys.grant_of(made.token))
        view.add("x")
        assert one.keys.revoke(made.key.id).revoked_at is not None
        for call in (view.count, lambda: view.add("y"), lambda: other.keys.grant_of(made.token)):
            with pytest.raises(Unauthorized, match="revoked"):
                call()
        assert one.view(user="ada").count() == 1
        first = one.keys.list()[0].revoked_at
        assert other.keys.revoke(made.key.id).revoked_at == first


def test_an_expired_key_allows_nothing(memories: Memories, clock: HandClock) -> None:
    made = memories.keys.create("ci", owners=None, expires_at=clock() + timedelta(hours=1))
    memories.keys.grant_of(made.token)
    clock.forward(hours=1)
    with pytest.raises(Unauthorized, match="expired"):
        memories.keys.grant_of(made.token)
    with pytest.raises(InvalidInput):
        memories.keys.create("ci", owners=None, expires_at=clock())


def test_the_last_use_is_known_to_the_hour_and_written_rarely(memories: Memories, clock: HandClock) -> None:
    made = memories.keys.create("ci", owners=None)
    assert memories.keys.list()[0].last_used_at is None
    first = clock()
    for _ in range(50):
        memories.keys.grant_of(made.token)
        clock.forward(minutes=1)
    assert memories.keys.list()[0].last_used_at == first
    clock.forward(minutes=10)
    memories.keys.grant_of(made.token)
    assert memories.keys.list()[0].last_used_at == clock()
    [record] = [one for one in store_of(memories).records.list(None) if one.kind == "api_key"]
    assert record.version == 3


TOKENS = st.text(max_size=200) | st.sampled_from(
    [
        "",
        "wk_",
        "wk__",
        "wk_x_",
        "wk_" + "0" * 16 + "_",
        "wk_" + "0" * 16 + "_" + "A" * 43,
        "WK_a_b",
        "wk_é_x",
        "wk_\x00_\x00",
    ]
)


@pytest.mark.req("J12")
@given(TOKENS | st.binary() | st.none() | st.integers())
def test_anything_else_is_refused_in_the_same_words(token: object) -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        made = memories.keys.create("ci", owners=None)
        told = []
        for wrong in (token, f"wk_{made.key.id}_{'A' * 43}", made.token[:-1], made.token + "A", made.token.upper()):
            with pytest.raises(Unauthorized) as refused:
                memories.keys.grant_of(wrong)  # type: ignore[arg-type]
            told.append((str(refused.value), refused.value.hint, dict(refused.value.details)))
        assert len({repr(one) for one in told}) == 1


def test_bad_input_makes_no_key(memories: Memories) -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"name": ""},
        {"name": "x" * 257},
        {"name": "a\nb"},
        {"need": "everything"},
        {"owners": []},
        {"owners": ["ada"]},
        {"owners": "ada"},
        {"max_trust": 7},
        {"holder": ""},
    )
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            memories.keys.create(**{"name": "ci", "owners": None, **arguments})
    with pytest.raises(NotFound):
        memories.keys.revoke("unknown")
    assert memories.keys.list() == ()


def test_on_the_command_line(terminal: Terminal) -> None:
    made = terminal.json(
        "keys", "create", "bot", "--for", "project:api", "--for", "session:ada:a:b", "--expires", "90d"
    )
    assert TOKEN.fullmatch(made["token"])
    assert made["key"]["owners"] == ["project:api", "session:ada:a:b"]
    listed = terminal("keys")
    assert made["key"]["id"] in listed.out
    assert made["token"] not in listed.out
    assert terminal("keys", "list").out == listed.out
    terminal.json("keys", "revoke", made["key"]["id"])
    assert json.loads(terminal("keys", "list", "--json").out)["result"]["keys"][0]["revoked_at"]
    assert terminal("keys", "create", "all").code == 2
    assert terminal("keys", "create", "all", "--for", "nothing:x").code == 2
    assert terminal("keys", "create", "all", "--everything").out.count("wk_") == 1
