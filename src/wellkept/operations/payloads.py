"""From a plain payload to the input of a verb, strictly, with errors that name the field and what it takes."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from wellkept.codec import strict
from wellkept.codec.strict import Mismatch, PayloadMismatch
from wellkept.errors import ContentTooLong, InvalidInput, InvalidLayer, QueryTooLong
from wellkept.operations.properties import describe
from wellkept.operations.schemas import input_schema
from wellkept.operations.verb import Verb

_SHOWN = 40
_TOO_LONG: Mapping[str, type[InvalidInput]] = MappingProxyType({"content": ContentTooLong, "query": QueryTooLong})
_NOT_A_WORD: Mapping[str, type[InvalidInput]] = MappingProxyType({"layer": InvalidLayer, "layers": InvalidLayer})


def decoded(verb: Verb[Any, Any], payload: object) -> Any:
    """The input of a verb from a plain mapping, as JSON has it."""
    if not isinstance(payload, Mapping):
        raise InvalidInput(
            f"the payload of {verb.name} must be an object, not {type(payload).__name__}",
            operation=verb.name,
            details={"field": ""},
            hint="pass a mapping from the names of fields to their values",
        )
    if odd := [name for name in payload if not isinstance(name, str)]:
        raise _unknown(verb, "", f"of type {type(odd[0]).__name__}")
    try:
        return strict.decode_strictly(payload, verb.input, describe)
    except PayloadMismatch as error:
        raise _refusal(verb, error.mismatch) from None
    except UnicodeEncodeError:  # names of fields and words are compared as UTF-8
        raise InvalidInput(
            f"the payload of {verb.name} contains unpaired surrogates",
            operation=verb.name,
            details={"field": ""},
            hint="decode the text with errors='replace' first",
        ) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known word nearest to an unknown one, or all of them.

    >>> nearest("quary", ["query", "limit"])
    "did you mean 'query'?"
    """
    words = list(known)
    close = get_close_matches(name, words, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"use {', '.join(words) or 'no fields'}"


def _refusal(verb: Verb[Any, Any], mismatch: Mismatch) -> InvalidInput:
    if mismatch.unknown is not None:
        return _unknown(verb, mismatch.path, mismatch.unknown)
    if mismatch.missing is not None:
        field = ".".join(filter(None, (mismatch.path, mismatch.missing)))
        return InvalidInput(
            f"{field} is missing",
            operation=verb.name,
            details={"field": field},
            hint=f"it must be {expected(_at(verb, field))}",
        )
    last = mismatch.path.rpartition(".")[2]
    kind = _TOO_LONG.get(last) if mismatch.too_long else _NOT_A_WORD.get(last) if mismatch.not_a_word else None
    return (kind or InvalidInput)(
        f"{mismatch.path} must be {expected(_at(verb, mismatch.path))}",
        operation=verb.name,
        details={"field": mismatch.path},
        hint="nothing was changed; correct the value",
    )


def _unknown(verb: Verb[Any, Any], path: str, name: str) -> InvalidInput:
    field = ".".join(filter(None, (path, name[:_SHOWN])))
    return InvalidInput(
        f"{verb.name} has no field {field!r}",
        operation=verb.name,
        details={"field": field},
        hint=nearest(name, _properties(_at(verb, path))),
    )


def _at(verb: Verb[Any, Any], path: str) -> Mapping[str, Any]:
    """The schema of the field at a path."""
    schema: Mapping[str, Any] = input_schema(verb)
    for name in filter(None, path.split(".")):
        inner = _properties(schema).get(name)
        if inner is None:  # inside an object of free form
            return schema
        schema = inner
    return schema


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for one in (schema, *schema.get("anyOf", ())):
        if "properties" in one:
            found: Mapping[str, Any] = one["properties"]
            return found
    return {}


def expected(schema: Mapping[str, Any]) -> str:
    """What a schema takes, in words.

    >>> expected({"type": "integer", "minimum": 1, "maximum": 100})
    'a whole number from 1 to 100'
    >>> expected({"anyOf": [{"enum": ["full", "relaxed"]}, {"type": "null"}]})
    'one of full, relaxed'
    """
    if "anyOf" in schema:
        return " or ".join(expected(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if schema.get("format") == "date-time":
        return "a time with a time zone, such as 2030-01-07T09:30:00Z"
    return _expected_type(schema)


def _expected_type(schema: Mapping[str, Any]) -> str:
    match schema.get("type"):
        case "integer" | "number" as kind:
            number = "a whole number" if kind == "integer" else "a number"
            return f"{number} from {schema['minimum']} to {schema['maximum']}" if "maximum" in schema else number
        case "string":
            return f"text of at most {schema['maxLength']} characters" if "maxLength" in schema else "text"
        case "array":
            most = f"at most {schema['maxItems']} values" if "maxItems" in schema else "values"
            return f"a list of {most}, each {expected(schema.get('items') or {})}"
        case "boolean":
            return "true or false"
        case "object":
            inner = schema.get("additionalProperties")
            return f"an object whose values are {expected(inner)}" if isinstance(inner, dict) and inner else "an object"
    return "any JSON value"
