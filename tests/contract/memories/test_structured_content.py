"""Content may be a JSON object: kept as it is, and found, shown and put into prompts by its text, on every surface."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import wellkept
from tests.support.jsonl_files import edit, read
from tests.support.stand_ins import Opener
from tests.support.terminal import Terminal
from wellkept import Memories, View, aio, operations
from wellkept.errors import Conflict, ContentTooLong, InvalidInput
from wellkept.keyrings.ram import RamKeyring
from wellkept.testing.cases import Cases
from wellkept.types import Identity

DECISION: dict[str, Any] = {
    "decision": "Use the authorization code flow",
    "rationale": {"security": "most secure", "effort": 2},
    "alternatives": ["implicit flow", "PKCE"],
    "decided": True,
    "by": None,
}
TEXT = """decision: Use the authorization code flow
rationale.security: most secure
rationale.effort: 2
alternatives: implicit flow, PKCE
decided: true"""

pytestmark = pytest.mark.req("J1")


def test_an_object_is_kept_as_it_is_and_has_a_text(opener: Opener) -> None:
    memories = opener()
    memory = memories.view(user="ada").add(DECISION, type="decision", metadata={"a": 1}, description="x")
    assert (memory.data, memory.content) == (DECISION, TEXT)
    found = (memories if opener.kind == "ram" else opener()).view(user="ada").get(memory.id)
    assert found is not None
    assert (found.data, found.content, found.metadata, found.description) == (DECISION, TEXT, {"a": 1}, "x")
    assert list(found.data or ()) == list(DECISION), "in the order in which it was given"


def test_an_object_is_found_by_what_it_says(view: View) -> None:
    memory, _ = view.add_many([DECISION, {"finding": "Tea is cold"}])
    assert [hit.memory.data for hit in view.search("which authorization flow?", limit=1)] == [memory.data]
    assert [one.id for one in view.list(filter={"content_contains": "implicit"})] == [memory.id]
    assert view.count(filter={"content_contains": "rationale.security"}) == 1


def test_a_prompt_shows_its_text(memories: Memories) -> None:
    agent = memories.agent("helper")
    agent.long_term.add(DECISION)
    agent.context.add("user", "Which authorization code flow do we use?")
    prompt = agent.context.compose("which authorization code flow?")
    assert "> alternatives: implicit flow, PKCE" in prompt.text


def test_an_update_replaces_text_by_an_object_and_back(view: View) -> None:
    memory = view.add("Use PKCE")
    assert view.update(memory.id, content=DECISION).data == DECISION
    assert view.update(memory.id, content=DECISION).version == 2, "the same again changes nothing"
    assert view.update(memory.id, content={**DECISION, "decided": 1}).version == 3, "true is not 1"
    assert view.update(memory.id, title="Flow").data == {**DECISION, "decided": 1}
    assert view.update(memory.id, content="Use PKCE").data is None
    told = [version.memory.data for version in view.history(memory.id) if version.memory]
    assert told == [None, DECISION, {**DECISION, "decided": 1}, {**DECISION, "decided": 1}, None]


def test_a_key_stands_for_an_object(view: View) -> None:
    first = view.add(DECISION, key="flow")
    assert view.add(DECISION, key="flow").id == first.id
    with pytest.raises(Conflict):
        view.add({**DECISION, "by": "ada"}, key="flow")
    assert view.put("flow", DECISION).version == 1
    assert view.put("flow", {"decision": "none"}).data == {"decision": "none"}
    assert view.put("flow", "Nothing decided").data is None
    assert view.put("flow", DECISION).version == 4


def test_what_was_said_has_its_role(view: View) -> None:
    said = {"role": "user", "message": "How do I implement OAuth2?", "metadata": {"channel": 3}}
    memory = view.add(said, type="conversation")
    assert (memory.content, memory.role, memory.data) == ("How do I implement OAuth2?", "user", said)
    assert view.add(said, role="tool").role == "tool"
    assert view.add({"role": "user\n" * 9, "message": "Hi"}).role is None


def test_what_was_recalled_is_not_stored_again(view: View) -> None:
    recalled = '[recalled-memory id="018b" date="2026-01-07" layer="user"]\n> Likes tea\n'
    memory = view.add({"said": [f"{recalled}Tea it is."], "count": 1})
    assert memory.data == {"said": ["Tea it is."], "count": 1}


NO_OBJECTS: tuple[tuple[Any, type[InvalidInput], str], ...] = (
    ({}, InvalidInput, "empty"),
    ({"a": object()}, InvalidInput, "an object of Python"),
    ({1: "a"}, InvalidInput, "a number as key"),
    ({"a": float("nan")}, InvalidInput, "not a number"),
    ({"a": "NUL \x00"}, InvalidInput, "NUL"),
    ({"a": "\ud800"}, InvalidInput, "half a character"),
    ({"a": 2**64}, InvalidInput, "a large number"),
    (["a"], InvalidInput, "a list"),
    ({"a": "x" * (10 * 1024 * 1024)}, ContentTooLong, "10 MB"),
)


def test_what_is_no_json_object_is_refused(view: View) -> None:
    with Cases() as cases:
        for wrong, error, name in NO_OBJECTS:
            with cases.case(name):
                with pytest.raises(error) as refused:
                    view.add(wrong)
                assert refused.value.details["field"] == "content"
                assert view.count() == 0


def test_an_object_that_is_nested_too_deeply_is_refused(view: View) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(InvalidInput, match="nested deeper"):
        view.add(deep)


def test_a_caller_cannot_change_what_was_stored(view: View) -> None:
    mine: dict[str, Any] = {"list": [1]}
    memory = view.add(mine)
    mine["list"].append(2)
    found = view.get(memory.id)
    assert found is not None
    assert found.data == {"list": [1]}


# -- surfaces -----------------------------------------------------------------------------------------------------


def test_async_code_takes_objects() -> None:
    async def main() -> Any:
        async with aio.open("ram:", embedder=None) as memories:
            memory = await memories.view(user="ada").add(DECISION)
            return (await memories.view(user="ada").update(memory.id, content={"a": 1})).data

    assert asyncio.run(main()) == {"a": 1}


def test_verbs_take_objects_and_return_them(memories: Memories) -> None:
    caller = operations.Caller(memories=memories, identity=Identity(user="ada"))
    added = operations.call("add", caller, {"content": [DECISION, "A text"]})["memories"]
    assert [one["data"] for one in added] == [DECISION, None]
    changed = operations.call("update", caller, {"id": added[1]["id"], "content": {"a": [1, {"b": 2}]}})
    assert (changed["data"], changed["content"]) == ({"a": [1, {"b": 2}]}, "a.1: 1\na.2.b: 2")
    assert operations.call("put", caller, {"key": "k", "content": {"a": 1}})["data"] == {"a": 1}
    with pytest.raises(InvalidInput):
        operations.call("add", caller, {"content": [7]})


def test_the_command_line_takes_objects(terminal: Terminal) -> None:
    [added] = terminal.json("add", "--structured", json.dumps(DECISION))["memories"]
    assert (added["data"], added["content"]) == (DECISION, TEXT)
    lines = b'{"a": "one"}\n{"b": "two"}\n'
    piped = terminal.json("add", "-", "--structured", stdin=lines)["memories"]
    assert [one["data"] for one in piped] == [{"a": "one"}, {"b": "two"}]
    changed = terminal.json("update", added["id"], "--structured", "--content", '{"a": 1}')
    assert changed["data"] == {"a": 1}
    assert terminal.json("put", "k", "--structured", '{"c": 3}')["data"] == {"c": 3}
    assert terminal.json("add", '{"not": "asked for"}')["memories"][0]["data"] is None
    assert "alternatives" in terminal("history", added["id"]).out


@pytest.mark.parametrize("wrong", ["[1]", "{", '"text"', '{"a": NaN}'])
def test_the_command_line_says_what_is_no_object(wrong: str, terminal: Terminal) -> None:
    done = terminal("add", "--structured", wrong)
    assert done.code == 2
    assert "JSON" in done.err


# -- plain files --------------------------------------------------------------------------------------------------


def test_a_line_shows_the_object_as_content(tmp_path: Path) -> None:
    with wellkept.open(f"jsonl:{tmp_path / 'memory'}", embedder=None) as memories:
        view = memories.view(user="ada", session="monday")
        view.add({"role": "user", "message": "Hi"}, layer="session", metadata={"a": 1}, title="Greeting")
        view.add(DECISION, layer="session", description="beside it")
    said, decided = read(tmp_path / "memory/sessions/monday@ada/memory.jsonl")
    assert (said["content"], said["role"], said["metadata"]) == ({"role": "user", "message": "Hi"}, "user", {"a": 1})
    assert (decided["content"], decided["payload"]) == (DECISION, {"description": "beside it"})


def test_an_object_edited_by_hand_has_a_new_text(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    with wellkept.open(f"jsonl:{root}", embedder=None) as memories:
        memory = memories.view(user="ada").add(DECISION)
    file = root / "users/ada/memory.jsonl"
    edit(file, lambda lines: lines.__setitem__(0, lines[0].replace(b"most secure", b"so we said")))
    edit(file, lambda lines: lines.append(b'{"content": {"finding": "Tea is cold", "degrees": 12}}\n'))
    with wellkept.open(f"jsonl:{root}", embedder=None) as memories:
        assert memories.doctor(accept=True).healthy
        found = memories.view(user="ada").get(memory.id)
        assert found is not None
        assert found.data == {**DECISION, "rationale": {"security": "so we said", "effort": 2}}
        assert "rationale.security: so we said" in found.content
        [added] = memories.view(user="ada").list(filter={"content_contains": "cold"})
        assert added.data == {"finding": "Tea is cold", "degrees": 12}
        assert added.content == "finding: Tea is cold\ndegrees: 12"


def test_objects_go_from_store_to_store(tmp_path: Path) -> None:
    with wellkept.open(tmp_path / "memory.db", embedder=None) as memories:
        memory = memories.view(user="ada").add(DECISION, references=[], tags=["a"])
    wellkept.convert(tmp_path / "memory.db", f"jsonl:{tmp_path / 'memory'}")
    wellkept.convert(f"jsonl:{tmp_path / 'memory'}", tmp_path / "back.db")
    with wellkept.open(tmp_path / "back.db", embedder=None) as memories:
        found = memories.view(user="ada").get(memory.id)
        assert found is not None
        assert (found.data, found.content) == (DECISION, TEXT)


@pytest.mark.req("L10")
@pytest.mark.parametrize("url", ["sqlite:{}/memory.db", "jsonl:{}/memory"])
def test_a_sensitive_object_is_encrypted_with_its_text(tmp_path: Path, url: str) -> None:
    place = url.format(tmp_path)
    keyring = RamKeyring()
    with wellkept.open(place, embedder=None, keyring=keyring) as memories:
        memory = memories.view(user="ada").add(DECISION, sensitive=True)
        found = memories.view(user="ada").get(memory.id)
        assert found is not None
        assert (found.data, found.content) == (DECISION, TEXT)
    assert not any(b"implicit flow" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with wellkept.open(place, embedder=None, keyring=keyring) as memories:
        assert [one.data for one in memories.view(user="ada").list()] == [DECISION]


@pytest.mark.slow
def test_a_server_keeps_objects(postgres_url: str) -> None:
    with wellkept.open(postgres_url) as memories:
        view = memories.view(user="ada")
        memory = view.add(DECISION)
        assert [hit.memory.data for hit in view.search("which authorization flow?")] == [DECISION]
        assert view.update(memory.id, content={"a": "\u2028"}).data == {"a": "\u2028"}
