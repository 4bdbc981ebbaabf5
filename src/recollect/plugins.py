"""From a URL to a store: our own by name, others by the entry point group ``recollect.stores``."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from recollect.errors import ConfigurationError
from recollect.ports import Store

GROUP = "recollect.stores"
# Named here as well as in the entry points, because reading those takes 60 ms.
OWN: Mapping[str, str] = MappingProxyType(
    {
        "sqlite": "recollect.stores.sqlite:SqliteStore",
        "ram": "recollect.stores.ram:RamStore",
    }
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)  # two letters at least: "C:" is a drive


def open_store(url: str | Path, *, durability: str | None = None) -> Store:
    """Open the store that a URL or a plain path names.

    >>> open_store("ram:").name
    'ram'
    """
    _check(url)
    text = str(url)
    match = None if isinstance(url, Path) else _SCHEME.match(text)
    scheme = match[1].lower() if match else "sqlite"
    if match:
        text = f"{scheme}:{text[match.end() :]}"
    return _store_class(scheme).from_url(text, durability=durability)


def _check(url: object) -> None:
    if not isinstance(url, str | Path):
        raise ConfigurationError(
            f"a database is named by a text or a Path, not by {type(url).__name__}",
            details={"field": "url"},
            hint="pass a path such as 'memory.db' or a URL such as 'ram:'",
        )
    if url in ("", "sqlite:"):
        raise ConfigurationError("the path is empty", details={"field": "url"}, hint="name a file")
    if url in (":memory:", "sqlite::memory:"):
        raise ConfigurationError(
            "':memory:' would be a database per connection", details={"field": "url"}, hint="use 'ram:'"
        )


def _store_class(scheme: str) -> type[Store]:
    if scheme in OWN:
        module, name = OWN[scheme].split(":")
        loaded = getattr(importlib.import_module(module), name)
    else:
        loaded = _registered(scheme)
    if not (isinstance(loaded, type) and issubclass(loaded, Store)):
        raise ConfigurationError(
            f"the plug-in for {scheme!r} is not a Store",
            details={"scheme": scheme},
            hint="its entry point must name a subclass of recollect.ports.Store",
        )
    return loaded


def _registered(scheme: str) -> object:
    from importlib import metadata  # lazy: takes 60 ms, and only foreign stores need it

    found = {point.name: point for point in metadata.entry_points(group=GROUP)}
    if scheme not in found:
        known = ", ".join(sorted({*OWN, *found}))
        raise ConfigurationError(
            f"no store is registered for {scheme!r}",
            details={"scheme": scheme},
            hint=f"known are {known}; others come with a package that registers {GROUP}",
        )
    return found[scheme].load()
