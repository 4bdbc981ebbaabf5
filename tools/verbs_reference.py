"""The verbs in the reference, from their table: a page for people, JSON schemas for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wellkept.cli import builtins
from wellkept.operations import EVERYWHERE, EXIT_CODES, LISTED, VERBS, Verb, failure_of
from wellkept.operations import schema as schemas_of
from wellkept.operations.conditions import Selection
from wellkept.operations.payloads import expected
from wellkept.operations.schemas import schema_of
from wellkept.types import Memory

_SHARED = {"Memory": schema_of(Memory, answers=True), "Filter": schema_of(Selection, answers=False)}
_ERROR = {
    "type": "object",
    "required": ["ok", "operation", "error"],
    "properties": {
        "ok": {"const": False},
        "operation": {"type": "string"},
        "error": {
            "type": "object",
            "required": ["code", "message", "hint", "retryable", "details", "exit_code"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string"},
                "retryable": {"type": "boolean"},
                "details": {"type": "object"},
                "exit_code": {"type": "integer"},
            },
        },
    },
}


def page() -> str:
    """The verbs with their inputs, answers and errors, and what the exit codes mean."""
    lines = [f"Any verb can end with {_listing(EVERYWHERE)}."]
    for verb in VERBS.values():
        lines += ["", f"## {verb.name}", "", LISTED[verb.name].summary]
        lines += ["", verb.description] if verb.description else []
        lines += ["", f"Needs: {_needs(verb)}."]
        lines += ["", f"Can also end with {_listing(verb.errors)}."] if verb.errors else []
        found = schemas_of(verb.name)
        if found["input"]["properties"]:
            lines += ["", "| field | value | default | description |", "| --- | --- | --- | --- |"]
            lines += _input_rows(found["input"])
        if found["output"].get("properties"):
            lines += ["", "| field of the answer | value | description |", "| --- | --- | --- |"]
            lines += [
                f"| `{name}` | {_value(one)} | {one['description']} |"
                for name, one in found["output"]["properties"].items()
            ]
        lines += ["", "```sh", *(f"{example.line}  # {example.says}" for example in verb.examples), "```"]
    lines += ["", "## Exit codes", "", "| code | meaning |", "| --- | --- |"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(lines) + "\n"


def _listing(errors: tuple[type, ...]) -> str:
    shown = []
    for error in errors:
        failure = failure_of(error)
        shown.append(f"`{error.__name__}` (exit {failure.exit_code}, HTTP {failure.http_status})")
    return ", ".join(shown)


def _needs(verb: Verb[Any, Any]) -> str:
    changed = {one.name: verb.needed_with({one.name: True}) for one in verb.fields}
    more = [f"{need.value} with `{name}`" for name, need in changed.items() if need is not verb.needs]
    return ", ".join([verb.needs.value, *more])


def _input_rows(schema: dict[str, Any], group: str = "") -> Iterator[str]:
    """A row for each field; the fields of an object follow it, with a dot in their names."""
    for name, one in schema["properties"].items():
        default = "required" if name in schema["required"] else _default(one.get("default"))
        yield f"| `{group}{name}` | {_value(one)} | {default} | {one['description']} |"
        for inner in (one, *one.get("anyOf", ())):
            if "properties" in inner:
                yield from _input_rows(inner, f"{group}{name}.")


def _value(schema: dict[str, Any]) -> str:
    return expected(schema).replace("|", "\\|")


def _default(value: Any) -> str:
    return "" if value in (None, [], {}) else str(value).lower()


def schema() -> str:
    """The form of every answer, and of the input of every verb."""
    outputs = {name: schemas_of(name)["output"] for name in VERBS}
    outputs |= {name: schema_of(kind, answers=True) for name, kind in builtins.ANSWERS.items()}
    answers = [
        {
            "type": "object",
            "required": ["ok", "operation", "result"],
            "properties": {"ok": {"const": True}, "operation": {"const": name}, "result": output},
        }
        for name, output in outputs.items()
    ]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of Wellkept",
        "description": "Fields may be added; none is taken away or changes its meaning.",
        "oneOf": [*_shared(answers), _ERROR],
        "inputs": {name: _shared(schemas_of(name)["input"]) for name in VERBS},
        "$defs": _SHARED,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _shared(node: Any) -> Any:
    """The same schema, with references to what occurs in many places."""
    if isinstance(node, list):
        return [_shared(one) for one in node]
    if not isinstance(node, dict):
        return node
    bare = {name: one for name, one in node.items() if name not in ("description", "default")}
    for name, part in _SHARED.items():
        if bare == part:
            return {"$ref": f"#/$defs/{name}", **{key: node[key] for key in node if key not in bare}}
    return {name: _shared(one) for name, one in node.items()}
