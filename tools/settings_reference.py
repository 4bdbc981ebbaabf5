"""The settings in the reference: every one, as the schema declares it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from wellkept import plugins
from wellkept.settings import Section, Setting, Settings, StoreClasses, declared, schema_with
from wellkept.settings.declarations import members


def page() -> str:
    """A section for each group of settings."""
    return "\n".join(_sections(schema(), ()))


def schema() -> type[Settings]:
    """The schema with the sections of our own stores."""
    stores = StoreClasses(lambda: plugins.OWN)
    return schema_with({name: one for name in plugins.OWN if (one := stores.section(name)) is not None})


def _sections(schema: type[Any], at: tuple[str, ...]) -> Iterator[str]:
    """A heading and a table for each section, those inside it behind it."""
    inner = {name: one for name, one in members(schema).items() if not isinstance(one, Setting)}
    for name, section in inner.items():
        keys = (*at, name)
        yield from _section(".".join(keys), section)
        yield from _sections(section, keys)


def _section(name: str, section: type[Section]) -> Iterator[str]:
    every = declared(schema())
    yield from (f"## {name}", "", section.__doc__ or "", "")
    yield from ("| setting | value | default | environment | |", "| --- | --- | --- | --- | --- |")
    for key, one in members(section).items():
        if isinstance(one, Setting):
            whole = f"{name}.{key}"
            yield f"| `{whole}` | {one.kind.allowed} | {_default(one)} | `{every[whole].variable}` | {one.help} |"
    yield ""


def _default(one: Setting) -> str:
    """The default as a file would have it; nothing if the setting has no value by default."""
    word = getattr(one.kind, "none", "")
    if one.default is None and not word:
        return ""
    return f"`{json.dumps(one.default if one.default is not None else word)}`"
