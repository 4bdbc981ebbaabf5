"""Calls of verbs are decoded strictly, checked against a grant, and answered with plain data or a typed error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wellkept
from tests.support.stand_ins import HandClock
from wellkept import operations
from wellkept.errors import ContentTooLong, InvalidInput, InvalidLayer, QueryTooLong, Unauthorized, WellkeptError
from wellkept.operations import VERBS, Caller, Takes, parameter_of
from wellkept.types import Grant, Identity, Layer, Memory, Need, Owner

ADA = Owner(Layer.USER, ("ada",))


@pytest.fixture
def caller() -> Iterator[Caller]:
    with wellkept.open("ram:", embedder=None, clock=HandClock()) as memories:
        yield Caller(memories=memories, identity=Identity(user="ada"))


def count(caller: Caller) -> int:
    found: int = operations.call("count", caller, {})["count"]
    return found


def granted(caller: Caller, **grant: Any) -> Caller:
    return caller._replace(grant=Grant(**grant))


# -- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("H3")
def test_a_call_takes_and_returns_what_json_has(caller: Caller) -> None:
    payload = json.loads(
        '{"content": ["Likes tea"], "type": "preference", "importance": 1, "expires_at": "2100-01-07T09:30:00+01:00",'
        ' "source": {"type": "manual"}, "metadata": {"cups": [1, 2.5, null, true]}}'
    )
    [memory] = operations.call("add", caller, payload)["memories"]
    assert memory["expires_at"] == "2100-01-07T08:30:00Z"
    assert memory["source"] == {"type": "manual", "reference": None}
    assert memory["metadata"] == {"cups": [1, 2.5, None, True]}
    assert isinstance(memory["tags"], list)
    found = operations.call("list", caller, {"filter": {"types": ["preference"], "within": "1h"}})
    assert [one["id"] for one in found["memories"]] == [memory["id"]]
    assert json.loads(json.dumps(found)) == found


# A verb, what is wrong with its payload, the field that the error names, and what the message or the hint says.
WRONG: list[tuple[str, Any, str, str]] = [
    ("search", {"query": "tea", "limt": 3}, "limt", "did you mean 'limit'?"),
    ("search", {"query": "tea", "zzzzzz": 3}, "zzzzzz", "use query, "),
    ("search", {}, "query", "is missing"),
    ("search", {"query": 7}, "query", "text of at most 32768 characters"),
    ("search", {"query": "tea", "limit": "3"}, "limit", "a whole number from 1 to 1000"),
    ("search", {"query": "tea", "limit": 0}, "limit", "a whole number from 1 to 1000"),
    ("search", {"query": "tea", "limit": 1001}, "limit", "a whole number from 1 to 1000"),
    ("search", {"query": "tea", "limit": True}, "limit", "a whole number"),
    ("search", {"query": "tea", "limit": 2.5}, "limit", "a whole number"),
    ("search", {"query": "tea", "limit": None}, "limit", "a whole number"),
    ("search", {"query": "tea", "min_score": 1.5}, "min_score", "a number from 0 to 1"),
    ("search", {"query": "tea", "explain": "no"}, "explain", "true or false"),
    ("search", {"query": "tea", "ranking": "bets"}, "ranking", "one of best"),
    ("search", {"query": "tea", "filter": {"tagz": ["x"]}}, "filter.tagz", "did you mean 'tags'?"),
    ("search", {"query": "tea", "filter": {"tags": "x"}}, "filter.tags", "a list of at most 100 values"),
    ("search", {"query": "tea", "filter": {"tags": ["x" * 257]}}, "filter.tags", "256"),
    ("search", {"query": "tea", "filter": {"tags": [str(n) for n in range(101)]}}, "filter.tags", "at most 100"),
    ("search", {"query": "tea", "filter": {"types": ["dream"]}}, "filter.types", "preference"),
    ("search", {"query": "tea", "filter": {"created_after": "yesterday"}}, "filter.created_after", "a time with"),
    ("search", {"query": "tea", "filter": {"created_after": "2030-01-07T09:30:00"}}, "filter.created_after", "zone"),
    ("search", {"query": "tea", "filter": {"max_depth": 11}}, "filter.max_depth", "from 1 to 10"),
    ("search", {"query": "tea", "filter": []}, "filter", "an object"),
    ("search", {"query": "tea", "as_of": -1}, "as_of", "must be text"),
    ("add", {"content": "Likes tea"}, "content", "a list"),
    ("add", {"content": ["x"], "importance": 7}, "importance", "a number from 0 to 1"),
    ("add", {"content": ["x"], "source": {"type": "manual", "refrence": "r"}}, "source.refrence", "'reference'"),
    ("add", {"content": ["x"], "source": {"reference": "r"}}, "source.type", "is missing"),
    ("add", {"content": ["x"], "pointer": {"source_type": "novel"}}, "pointer.source_type", "adr"),
    ("add", {"content": ["x"], "metadata": ["x"]}, "metadata", "an object"),
    ("add", {"content": ["x"], "session": "monday"}, "session", ""),
    ("update", {"id": "x", "clear": ["content"]}, "clear", "title"),
    ("update", {"id": "x" * 257, "title": "t"}, "id", "256"),
    ("config", {"durability": "vague"}, "durability", "full, relaxed"),
    ("health", {"verbose": True}, "verbose", "no fields"),
    ("sessions.create", {"by_type_hours": {"dream": 1}}, "by_type_hours", "an object whose values are a number"),
    ("sessions.create", {"by_type_hours": {"event": -1}}, "by_type_hours", "a number from 0"),
    ("sessions.create", {"limit_bytes": 0}, "limit_bytes", "from 1"),
    ("graph", {"depth": 11}, "depth", "from 1 to 10"),
]


@pytest.mark.req("H10")
def test_a_wrong_payload_is_refused_by_its_field_and_changes_nothing(caller: Caller) -> None:
    complaints: dict[str, object] = {}
    for name, payload, field, says in WRONG:
        case = f"{name} {payload}"[:200]
        try:
            complaints[case] = f"answered {operations.call(name, caller, payload)}"
        except InvalidInput as error:
            if (error.details["field"], error.operation) != (field, name) or says not in str(error) or not error.hint:
                complaints[case] = f"refused by {error!r}, {error.details}, {error.operation}, {error.hint!r}"
        if number := count(caller):
            complaints[f"{case}, memories"] = number
    assert complaints == {}


@pytest.mark.parametrize("payload", [None, [], "query", 7, [("query", "tea")]])
def test_a_payload_must_be_a_mapping(caller: Caller, payload: Any) -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        operations.call("search", caller, payload)


def test_any_mapping_is_a_payload(caller: Caller) -> None:
    payload = MappingProxyType({"filter": MappingProxyType({"tags": ("x",)})})
    assert operations.call("count", caller, payload) == {"count": 0}


def test_what_json_cannot_hold_is_refused(caller: Caller) -> None:
    payloads: list[tuple[str, dict[str, Any]]] = [
        ("count", {"fil\ud800ter": 1}),
        ("count", {"filter": {"\ud800": 1}}),
        ("add", {"content": ["x"], "type": "\ud800"}),
        ("add", {"content": ["\ud800"]}),
        ("add", {"content": ["x"], "metadata": {"\ud800": 1}}),
        ("add", {"content": ["x"], "metadata": {"nan": float("nan")}}),
        ("add", {"content": ["x"], "metadata": {"object": object}}),
        ("search", {"query": "x", "limit": 10**400}),
        ("search", {"query": "x", "min_score": float("nan")}),
    ]
    taken = []
    for name, payload in payloads:
        try:
            operations.call(name, caller, payload)
        except InvalidInput:
            continue
        taken.append((name, payload))
    assert taken == []
    assert count(caller) == 0


def test_a_payload_of_great_depth_is_refused(caller: Caller) -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    with pytest.raises(InvalidInput, match="nested deeper"):
        operations.call("add", caller, {"content": ["x"], "metadata": deep})
    assert count(caller) == 0


def test_the_names_of_fields_must_be_text(caller: Caller) -> None:
    with pytest.raises(InvalidInput, match="no field 'of type int'"):
        operations.call("search", caller, {7: "tea"})


@pytest.mark.parametrize(
    ("name", "hint"), [("serach", "did you mean 'search'?"), ("sessions.shwo", "did you mean 'sessions.show'?")]
)
def test_an_unknown_verb_is_refused_with_the_nearest(caller: Caller, name: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        operations.call(name, caller, {})
    assert refused.value.hint == hint
    assert refused.value.details == {"field": "verb"}


@pytest.mark.parametrize("name", ["", "x" * 10_000, None, 7, "__class__"])
def test_nonsense_is_no_verb(caller: Caller, name: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        operations.call(name, caller, {})
    assert len(refused.value.message) < 100


def test_refusals_keep_their_types_and_never_hold_what_was_given(caller: Caller) -> None:
    secret = "the secret of Ada "
    for name, payload, kind in (
        ("add", {"content": [secret * 700_000]}, ContentTooLong),
        ("search", {"query": secret * 2_000}, QueryTooLong),
        ("add", {"content": ["x"], "layer": secret}, InvalidLayer),
        ("list", {"layers": [secret]}, InvalidLayer),
        ("add", {"content": ["x"], "title": [secret]}, InvalidInput),
    ):
        with pytest.raises(kind) as refused:
            operations.call(name, caller, payload)
        assert secret.strip() not in json.dumps([str(refused.value), dict(refused.value.details)])


# The largest values that the schemas allow are those that the engine takes.
@pytest.mark.parametrize(
    ("name", "field", "payload"),
    [
        ("search", "limit", {"query": "tea"}),
        ("list", "limit", {}),
        ("list", "offset", {}),
        ("watch", "limit", {}),
        ("sessions.memories", "limit", {}),
        ("sessions.search", "limit", {"query": "tea"}),
    ],
)
def test_bounds_are_those_of_the_engine(caller: Caller, name: str, field: str, payload: dict[str, Any]) -> None:
    [declared] = [parameter_of(one).bounds for one in VERBS[name].fields if one.name == field]
    for value in (declared.minimum, declared.maximum):
        operations.call(name, caller, {**payload, field: value})
    assert declared.maximum is not None
    method: Any = {"search": caller.view.search, "list": caller.view.list, "watch": caller.view.changes}.get(name)
    if method is not None:
        positional = payload.values()
        with pytest.raises(InvalidInput):
            method(*positional, **{field: declared.maximum + 1})


@given(
    st.dictionaries(
        st.sampled_from(["query", "limit", "filter", "layers", "as_of", "ranking", "explain", "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
    )
)
def test_whatever_a_payload_holds_it_is_taken_or_refused_with_a_typed_error(payload: dict[str, Any]) -> None:
    with wellkept.open("ram:", embedder=None) as memories:
        caller = Caller(memories=memories, identity=Identity(user="ada"))
        with suppress(InvalidInput):
            assert operations.call("search", caller, payload)["hits"] == []


# -- grants -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("H10")
def test_a_call_needs_what_its_verb_and_its_fields_need(caller: Caller) -> None:
    [memory] = operations.call("add", caller, {"content": ["Likes tea"]})["memories"]
    reader, writer = granted(caller, need=Need.READ), granted(caller, need=Need.WRITE)
    assert operations.call("show", reader, {"id": memory["id"]})["content"] == "Likes tea"
    for name, payload, needed in (
        ("add", {"content": ["x"]}, "write"),
        ("forget", {"ids": [memory["id"]]}, "write"),
        ("forget", {"ids": [memory["id"]], "permanent": True}, "erase"),
        ("sessions.preferences", {"id": "monday", "set": {"a": 1}}, "write"),
        ("config", {"durability": "full"}, "admin"),
        ("rebuild", {}, "admin"),
        ("scrub", {}, "admin"),
    ):
        with pytest.raises(Unauthorized) as refused:
            operations.call(name, reader, payload)
        assert refused.value.details == {"needed": needed, "granted": "read"}
        assert f"needs {needed!r}" in refused.value.message
        assert refused.value.operation == name
    with pytest.raises(Unauthorized):
        operations.call("forget", writer, {"ids": [memory["id"]], "permanent": True})
    assert count(caller) == 1
    assert operations.call("forget", writer, {"ids": [memory["id"]]})["ids"] == [memory["id"]]


def test_a_grant_ends_by_the_clock_of_the_database() -> None:
    clock = HandClock()
    with wellkept.open("ram:", embedder=None, clock=clock) as memories:
        ends = clock() + timedelta(hours=1)
        caller = Caller(memories=memories, identity=Identity(user="ada"), grant=Grant(expires_at=ends))
        assert count(caller) == 0
        clock.forward(hours=1)
        with pytest.raises(Unauthorized, match="expired") as refused:
            operations.call("add", caller, {"content": ["x"]})
        assert refused.value.details["expired_at"] == ends.isoformat()
        assert memories.view(user="ada").count() == 0


@pytest.mark.req("L11")
def test_an_identity_outside_the_grant_may_call_nothing(caller: Caller) -> None:
    other = granted(caller, owners=(ADA,))._replace(identity=Identity(user="bob"))
    answers: dict[str, object] = {}
    for name in [name for name, verb in VERBS.items() if verb.needs is not Need.ADMIN]:
        lists = {"ids", "messages", "paths", *(["content"] if name == "add" else [])}
        payload = {
            one.name: ["x"] if one.name in lists else "x"
            for one in VERBS[name].fields
            if parameter_of(one).takes not in (Takes.OPTION, Takes.GROUP)
        }
        try:
            answers[name] = operations.call(name, other, {key: one for key, one in payload.items() if key != "names"})
        except WellkeptError as error:
            if not isinstance(error, Unauthorized) or "does not cover the user" not in str(error):
                answers[name] = error
    assert answers == {}


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("H10")
def test_an_error_of_the_engine_carries_the_name_of_the_verb(caller: Caller) -> None:
    with pytest.raises(wellkept.errors.NotFound) as refused:
        operations.call("update", caller, {"id": "nobody", "title": "t"})
    told = operations.report(refused.value)
    assert (told.code, told.operation, told.exit_code, told.http_status) == ("MEMORY_NOT_FOUND", "update", 3, 404)
    assert told.hint
    assert told.retryable is False


def test_an_error_that_is_not_ours_tells_nothing_of_what_it_says() -> None:
    told = operations.report(RuntimeError("Ada likes tea"), "add")
    assert "tea" not in json.dumps([told.message, told.hint, dict(told.details)])
    assert (told.code, told.exit_code, told.http_status) == ("INTERNAL", 70, 500)


def test_the_question_before_a_call_that_takes_something_away(caller: Caller) -> None:
    [memory] = operations.call("add", caller, {"content": ["Likes tea"]})["memories"]
    request = operations.request("forget", caller, {"ids": [memory["id"]], "permanent": True})
    assert request.question() == "erase this memory for good, with all versions"
    assert operations.request("forget", caller, {"ids": [memory["id"]]}).question() == ""
    assert count(caller) == 1
    with pytest.raises(InvalidInput) as refused:
        operations.request("forget", caller, {}).question()
    assert refused.value.operation == "forget"


def test_a_request_answers_with_values_of_python(caller: Caller) -> None:
    [memory] = operations.request("add", caller, {"content": ["Likes tea"]}).run().memories
    assert isinstance(memory, Memory)
