"""Resolves URLs to stores and names to embedders: built-in ones by name, others by entry points."""

import importlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from recollect.embedders.hashing import HashingEmbedder
from recollect.embedders.static import StaticEmbedder
from recollect.errors import ConfigurationError
from recollect.ports import Embedder, Lexicon, Store
from recollect.settings.schema import DatabaseSettings, EmbedderSettings
from recollect.types import MigrationReport

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "recollect.stores"
EMBEDDERS = "recollect.embedders"
# Duplicated from the entry points, because reading those takes 60 ms.
OWN: Mapping[str, str] = MappingProxyType(
    {
        "sqlite": "recollect.stores.sqlite:SqliteStore",
        "ram": "recollect.stores.ram:RamStore",
        "jsonl": "recollect.stores.jsonl:JsonlStore",
    }
)
AS_STORED = "default"
"""The embedder that the stored vectors were made with; for a new store, the built-in one."""

NO_EMBEDDER = "none"
DEFAULT_EMBEDDER = "static"
OWN_EMBEDDERS: Mapping[str, str] = MappingProxyType(
    {
        DEFAULT_EMBEDDER: "recollect.embedders.static:StaticEmbedder",
        "bge": "recollect.embedders.bge:BgeEmbedder",
    }
)
_BY_THEIR_OWN_NAME: Mapping[str, str] = MappingProxyType(
    {"wordllama-l2-supercat-256": DEFAULT_EMBEDDER, "bge-small-en-v1.5-int8": "bge"}
)
_HASHING = re.compile(r"hashing-(\d{1,4})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # at least two letters: "C:" is a drive


def open_store(url: str | Path, *, durability: str | None = None) -> Store:
    """Open the store of a URL or a plain path.

    >>> open_store("ram:").name
    'ram'
    """
    scheme, place = _split(url)
    return _store_class(scheme).from_url(f"{scheme}:{place}", durability=durability)


def configured_store(section: DatabaseSettings, url: str | Path | None, durability: str | None) -> Store:
    """Open the store of a URL, by default that of the settings.

    A configured durability applies to new databases on a disk; an existing one keeps its own.

    >>> configured_store(DatabaseSettings(url="ram:", durability="full"), None, None).name
    'ram'
    """
    place = section.url if url is None else url
    if place is None:
        raise ConfigurationError(
            "no database was named", details={"field": "url"}, hint="pass a path or set RECOLLECT_DB"
        )
    if durability is None and section.durability and _split(place)[0] != "ram" and not is_there(place):
        durability = section.durability
    return open_store(place, durability=durability)


def is_there(url: str | Path) -> bool:
    """Whether a store exists at a URL, as far as its class can tell without opening it.

    >>> is_there("ram:")
    False
    """
    scheme, place = _split(url)
    return _store_class(scheme).exists(f"{scheme}:{place}")


def creation(url: str | Path) -> Callable[[], None]:
    """What removes the store of a URL again if opening it makes it; to be asked before it is opened."""
    scheme, place = _split(url)
    return _store_class(scheme).creation(f"{scheme}:{place}")


def migrate_store(url: str | Path, to: int | None, *, dry_run: bool) -> MigrationReport:
    """Bring the store of a URL to a schema, without opening it as a database."""
    scheme, place = _split(url)
    return _store_class(scheme).migrate(f"{scheme}:{place}", to, dry_run=dry_run)


def same_place(one: str | Path, other: str | Path) -> bool:
    """Whether two URLs refer to the same files, symbolic links resolved.

    >>> same_place("notes/memory.db", "sqlite:./notes/../notes/memory.db")
    True
    """
    (scheme, name), (another, alias) = _split(one), _split(other)
    place, elsewhere = Path(name).expanduser(), Path(alias).expanduser()
    linked = place.exists() and elsewhere.exists() and place.samefile(elsewhere)
    return scheme == another and (linked or place.resolve() == elsewhere.resolve())


def _split(url: str | Path) -> tuple[str, str]:
    """The scheme and the rest of a URL; a plain path is ``sqlite``."""
    _check(url)
    text = str(url)
    match = None if isinstance(url, Path) else _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else ("sqlite", text)


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


def open_embedder(name: str) -> Embedder:
    """Create an embedder by its registered name or by the name stored with its vectors.

    >>> open_embedder("hashing-64").dimension
    64
    """
    if match := _HASHING.fullmatch(name):
        return HashingEmbedder(int(match[1]))
    known = _known_embedder(name)
    if known is not None:
        module, attribute = known.split(":")
        made = getattr(importlib.import_module(module), attribute)()
    else:
        made = _registered_embedder(name)()
    if not isinstance(made, Embedder):
        raise ConfigurationError(
            f"the plug-in for {name[:64]!r} is not an Embedder",
            details={"field": "embedder"},
            hint="its entry point must name a class or function that gives what recollect.ports.Embedder describes",
        )
    return made


def configured_embedder(section: EmbedderSettings, given: Embedder | str | None) -> Embedder | str | None:
    """The given embedder, or that of the settings if it is ``"default"``.

    >>> configured_embedder(EmbedderSettings(name="none"), "default") is None
    True
    """
    if given != AS_STORED:
        return given
    if section.url is None:
        return None if section.name == NO_EMBEDDER else section.name
    if section.model is None:
        raise ConfigurationError(
            "embedder.url is set without embedder.model", details={"key": "embedder.model"}, hint="name the model"
        )
    from recollect.embedders.http import HttpEmbedder  # lazy: only for embedding servers

    return HttpEmbedder(
        section.url,
        section.model,
        dimension=section.dimension,
        key_variable=section.key_variable,
        timeout_s=section.timeout_s,
    )


def lexicon_of(embedder: Embedder | None) -> Lexicon | None:
    """The lexicon of an embedder: its attribute ``lexicon`` (may be ``None``), otherwise the built-in one."""
    if embedder is None or isinstance(embedder, Lexicon):
        return embedder
    missing = object()
    own = getattr(embedder, "lexicon", missing)
    if own is missing:
        own = StaticEmbedder()
    return own if isinstance(own, Lexicon) else None


def _known_embedder(name: str) -> str | None:
    return OWN_EMBEDDERS.get(_BY_THEIR_OWN_NAME.get(name, name))


def _registered_embedder(name: str) -> Callable[[], object]:
    found = _entry_points(EMBEDDERS)
    if name not in found:
        known = ", ".join(sorted({*OWN_EMBEDDERS, *found, "hashing-64 (or another number of dimensions)"}))
        raise ConfigurationError(
            f"no embedder is named {name[:64]!r}",
            details={"field": "embedder"},
            hint=f"known are {known}; pass an embedder of your own, or None to go by words alone",
        )
    loaded: Callable[[], object] = found[name].load()
    return loaded


def _registered(scheme: str) -> object:
    found = _entry_points(GROUP)
    if scheme not in found:
        known = ", ".join(sorted({*OWN, *found}))
        raise ConfigurationError(
            f"no store is registered for {scheme!r}",
            details={"scheme": scheme},
            hint=f"known are {known}; others come with a package that registers {GROUP}",
        )
    return found[scheme].load()


def _entry_points(group: str) -> "dict[str, EntryPoint]":
    from importlib import metadata  # lazy: takes 60 ms, and only plug-ins need it

    return {point.name: point for point in metadata.entry_points(group=group)}
