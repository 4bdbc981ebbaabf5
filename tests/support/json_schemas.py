"""Whether a value is what a JSON schema says, as far as the schemas of the verbs go."""

from collections.abc import Iterator
from typing import Any

KINDS: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def misfits(value: Any, schema: dict[str, Any], path: str = "answer") -> Iterator[str]:
    """Each place where a value is not what a schema says."""
    if "anyOf" in schema:
        if all([*misfits(value, one, path)] for one in schema["anyOf"]):
            yield f"{path}: {value!r} is none of {[one.get('type') for one in schema['anyOf']]}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    kind = schema.get("type")
    if kind is None:
        return
    if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        yield f"{path}: {value!r} is no {kind}"
        return
    match value:
        case dict():
            yield from _of_object(value, schema, path)
        case list():
            first = schema.get("prefixItems", [])
            for place, item in enumerate(value):
                yield from misfits(item, first[place] if place < len(first) else schema.get("items", {}), f"{path}[]")
    size = len(value) if isinstance(value, str | list | dict) else value or 0
    bounds = {"string": "Length", "array": "Items", "object": "Properties"}.get(kind)
    low, high = (f"min{bounds}", f"max{bounds}") if bounds else ("minimum", "maximum")
    if size < schema.get(low, size) or size > schema.get(high, size):
        yield f"{path}: {value!r} is out of bounds"


def _of_object(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
    yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, one in value.items():
        if name in properties or more is not False:
            yield from misfits(one, properties.get(name, more if isinstance(more, dict) else {}), f"{path}.{name}")
        else:
            yield f"{path}: {name} is unknown"
