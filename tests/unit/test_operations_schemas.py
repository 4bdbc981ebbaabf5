"""The schemas of inputs and answers can be shown to other programs as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import operations
from wellkept.operations import VERBS
from wellkept.operations.schemas import schema_of
from wellkept.types import Memory

PACKAGE = Path(wellkept.__file__).parent
INTERNAL = {file.stem for file in PACKAGE.rglob("*.py") if file.stem not in {"__init__", "__main__"}}
# Words of the interface that are names of modules as well.
PUBLIC_WORDS = {"filter", "graph", "history", "stats", "sessions", "settings", "version", "metadata", "messages"}
sides = pytest.mark.parametrize("side", ["input", "output"])
every_verb = pytest.mark.parametrize("name", VERBS)


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from nodes(one, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        yield from nodes(schema.get(key), f"{path}[]")
    for key in ("anyOf", "prefixItems"):
        for one in schema.get(key, ()):
            yield from nodes(one, path)


@pytest.mark.req("H3")
@every_verb
@sides
def test_every_property_is_described_and_every_value_bounded(name: str, side: str) -> None:
    schema = operations.schema(name)[side]
    for path, one in nodes(schema):
        for inner, described in one.get("properties", {}).items():
            said = described.get("description", "")
            assert re.fullmatch(r"[A-Z].*\.", said), f"{path}.{inner} has no sentence: {said!r}"
        match one.get("type"):
            case "integer" | "number":
                assert one["minimum"] <= one["maximum"], path
            case "string":
                assert one.get("format") == "date-time" or one["maxLength"] > 0, path
            case "array":
                assert "maxItems" in one, path
            case "object" if "properties" in one:
                assert one["additionalProperties"] is False, path
                assert set(one["required"]) <= set(one["properties"])
            case "object":
                assert one["maxProperties"] > 0, path


@every_verb
@sides
def test_no_internal_name_is_shown(name: str, side: str) -> None:
    schema = operations.schema(name)[side]
    for path, one in nodes(schema):
        assert set(one) & {"$ref", "title", "$defs"} == set(), path
        for inner in one.get("properties", {}):
            assert not inner.startswith("_"), path
    text = json.dumps(schema)
    assert not re.search(r"wellkept\.(?!toml)[a-z]|__|\b[a-z]+\.py\b", text)
    assert not set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text)) & INTERNAL - PUBLIC_WORDS


@every_verb
def test_the_fields_of_an_answer_are_all_required(name: str) -> None:
    for path, one in nodes(operations.schema(name)["output"]):
        if "properties" in one:
            assert set(one["required"]) == set(one["properties"]), path


@every_verb
@sides
def test_schemas_are_plain_json(name: str, side: str) -> None:
    schema = operations.schema(name)[side]
    assert json.loads(json.dumps(schema, allow_nan=False)) == schema


def test_words_are_enumerations_and_times_have_a_format() -> None:
    search = operations.schema("search")["input"]["properties"]
    assert search["ranking"]["enum"] == ["best", "precedence", "relevance", "similarity"]
    assert search["layers"]["items"]["enum"][0] == "agent"
    after = search["filter"]["properties"]["created_after"]
    assert {"type": "string", "format": "date-time"} in after["anyOf"]
    clear = operations.schema("update")["input"]["properties"]["clear"]
    assert "title" in clear["items"]["enum"]
    assert "content" not in clear["items"]["enum"]


def test_required_fields_are_named() -> None:
    assert operations.schema("search")["input"]["required"] == ["query"]
    assert operations.schema("add")["input"]["required"] == ["content"]
    assert operations.schema("health")["input"]["properties"] == {}


def test_a_memory_is_the_same_in_every_answer() -> None:
    memory = schema_of(Memory, answers=True)
    shown = operations.schema("show")["output"]
    found = operations.schema("search")["output"]["properties"]["hits"]["items"]["properties"]["memory"]
    assert shown == memory
    assert {name: one for name, one in found.items() if name != "description"} == memory


def test_who_changes_a_schema_changes_only_a_copy() -> None:
    operations.schema("count")["input"]["properties"].clear()
    assert operations.schema("count")["input"]["properties"]


def test_the_schema_of_an_unknown_verb_is_refused() -> None:
    with pytest.raises(wellkept.errors.InvalidInput, match="did you mean 'search'"):
        operations.schema("serach")
