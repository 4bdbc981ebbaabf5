"""The schemas of inputs and answers can be shown to other programs as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import wellkept
from wellkept import operations
from wellkept.operations import VERBS
from wellkept.types import Memory

PACKAGE = Path(wellkept.__file__).parent
INTERNAL = {file.stem for file in PACKAGE.rglob("*.py") if file.stem not in {"__init__", "__main__"}}
# Words of the interface that are names of modules as well.
PUBLIC_WORDS = {"filter", "graph", "history", "stats", "sessions", "settings", "version", "metadata", "messages"}


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


def sides() -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of the input and of the answer of each verb, by what it is called here."""
    for name in VERBS:
        schema = operations.schema(name)
        yield from ((f"{name} {side}", schema[side]) for side in ("input", "output"))


@pytest.mark.req("H3")
def test_every_property_is_described_and_every_value_bounded() -> None:
    wordless, unbounded = {}, {}
    for side, schema in sides():
        for path, one in nodes(schema, side):
            for inner, described in one.get("properties", {}).items():
                if not re.fullmatch(r"[A-Z].*\.", described.get("description", "")):
                    wordless[f"{path}.{inner}"] = described.get("description")
            if not _is_bounded(one):
                unbounded[path] = one
    assert wordless == {}
    assert unbounded == {}


def _is_bounded(schema: dict[str, Any]) -> bool:
    match schema.get("type"):
        case "integer" | "number":
            return bool(schema.get("minimum", 1) <= schema.get("maximum", 0))
        case "string":
            return bool(schema.get("format") == "date-time" or schema.get("maxLength", 0) > 0)
        case "array":
            return "maxItems" in schema
        case "object" if "properties" in schema:
            closed = schema.get("additionalProperties") is False
            return closed and set(schema.get("required", [""])) <= set(schema["properties"])
        case "object":
            return bool(schema.get("maxProperties", 0) > 0)
    return True


def test_no_internal_name_is_shown() -> None:
    shown: dict[str, object] = {}
    for side, schema in sides():
        for path, one in nodes(schema, side):
            if internal := set(one) & {"$ref", "title", "$defs"}:
                shown[path] = internal
            if private := [inner for inner in one.get("properties", {}) if inner.startswith("_")]:
                shown[path] = private
        text = json.dumps(schema)
        if named := re.findall(r"wellkept\.(?!toml)[a-z]|__|\b[a-z]+\.py\b", text):
            shown[side] = named
        if modules := set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text)) & INTERNAL - PUBLIC_WORDS:
            shown[f"{side}, modules"] = modules
    assert shown == {}


def test_the_fields_of_an_answer_are_all_required() -> None:
    optional = {
        path: set(one["properties"]) ^ set(one["required"])
        for name in VERBS
        for path, one in nodes(operations.schema(name)["output"], name)
        if "properties" in one and set(one["required"]) != set(one["properties"])
    }
    assert optional == {}


def test_schemas_are_plain_json() -> None:
    assert [side for side, schema in sides() if json.loads(json.dumps(schema, allow_nan=False)) != schema] == []


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
    shown = operations.schema("show")["output"]
    found = operations.schema("search")["output"]["properties"]["hits"]["items"]["properties"]["memory"]
    assert set(shown["properties"]) == {one.name for one in fields(Memory)}
    assert {name: one for name, one in found.items() if name != "description"} == shown


def test_who_changes_a_schema_changes_only_a_copy() -> None:
    operations.schema("count")["input"]["properties"].clear()
    assert operations.schema("count")["input"]["properties"]


def test_the_schema_of_an_unknown_verb_is_refused() -> None:
    with pytest.raises(wellkept.errors.InvalidInput, match="did you mean 'search'"):
        operations.schema("serach")
