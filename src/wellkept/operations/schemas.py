"""JSON schemas of the inputs and answers of verbs, fit to be the body of a request or the description of a tool."""

from functools import cache
from typing import Any

from wellkept.codec import strict
from wellkept.operations.properties import describe
from wellkept.operations.verb import Verb

_REFERENCE = "#/$defs/"


@cache
def input_schema(verb: Verb[Any, Any]) -> dict[str, Any]:
    """The schema of the input of a verb, with its fields in the order of the verb."""
    found = schema_of(verb.input, answers=False)
    return {**found, "properties": {one.name: found["properties"][one.name] for one in verb.fields}}


@cache
def output_schema(verb: Verb[Any, Any]) -> dict[str, Any]:
    """The schema of the answer of a verb."""
    return {"type": "null"} if verb.output is type(None) else schema_of(verb.output, answers=True)


def schema_of(kind: type, *, answers: bool) -> dict[str, Any]:
    """The schema of a dataclass; the fields of an answer are all required."""
    schema, parts = strict.described_schema(kind, describe, answers=answers)
    found: dict[str, Any] = _inlined(schema, parts)
    return found


def _inlined(node: Any, parts: dict[str, Any]) -> Any:
    """A schema without references, whose names would be those of Python classes."""
    if isinstance(node, list | tuple):
        return [_inlined(one, parts) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        rest = {name: one for name, one in node.items() if name != "$ref"}
        part = {name: one for name, one in parts[node["$ref"].removeprefix(_REFERENCE)].items() if name != "title"}
        return _inlined({**part, **rest}, parts)
    return {name: _inlined(one, parts) for name, one in node.items()}
