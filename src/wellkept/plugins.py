"""Resolves URLs to stores and names to embedders: built-in ones by name, others by entry points."""

import importlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from wellkept.embedders.hashing import HashingEmbedder
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.errors import ConfigurationError
from wellkept.ports import Embedder, Keyring, Lexicon, Store, is_set
from wellkept.sensitivity import Detector, chosen
from wellkept.settings import StoreClasses, with_options
from wellkept.settings.folders import user_folder
from wellkept.settings.schema import DatabaseSettings, EmbedderSettings, EncryptionSettings
from wellkept.settings.stores import GROUP
from wellkept.settings.urls import split_url
from wellkept.types import MigrationReport

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from wellkept.keyrings.master_key import MasterKeys

EMBEDDERS = "wellkept.embedders"
KEYRINGS = "wellkept.keyrings"
DETECTORS = "wellkept.detectors"
# Duplicated from the entry points, because reading those takes 60 ms.
OWN: Mapping[str, str] = MappingProxyType(
    {
        "sqlite": "wellkept.stores.sqlite:SqliteStore",
        "ram": "wellkept.stores.ram:RamStore",
        "jsonl": "wellkept.stores.jsonl:JsonlStore",
        "postgresql": "wellkept.stores.postgres:PostgresStore",
        "postgres": "wellkept.stores.postgres:PostgresStore",
    }
)
PLAIN, IN_PROCESS = "sqlite", "ram:"
"""The store of a path without a scheme; the database of commands that need none."""

STORES = StoreClasses(lambda: OWN)

AS_STORED = "default"
"""The embedder that the stored vectors were made with; for a new store, the built-in one."""

NO_EMBEDDER = "none"
DEFAULT_EMBEDDER = "static"

OWN_EMBEDDERS: Mapping[str, str] = MappingProxyType(
    {
        DEFAULT_EMBEDDER: "wellkept.embedders.word_table:WordTableEmbedder",
        "bge": "wellkept.embedders.bge:BgeEmbedder",
    }
)
_BY_THEIR_OWN_NAME: Mapping[str, str] = MappingProxyType(
    {
        WordTableEmbedder.name: DEFAULT_EMBEDDER,
        "bge-small-en-v1.5-int8": "bge",
    }
)
FROM_FOLDER = "model2vec:"
"""Before the path of a folder with a static model."""

LEXICON = "lexicon"
"""The setting that names the lexicon of stored words, where it is not the embedder itself. Nothing reads it yet: once
there is a second lexicon, it tells whose numbers a file holds.
"""

_HASHING = re.compile(r"hashing-(\d{1,4})")


def open_store(url: str | Path, *, durability: str | None = None) -> Store:
    """Open the store of a URL or a plain path.

    >>> open_store("ram:").name
    'ram'
    """
    store, url = _resolved(url)
    return store.from_url(url, durability=durability)


def configured_store(section: DatabaseSettings, url: str | Path | None, durability: str | None) -> Store:
    """Open the store of a URL, by default that of the settings.

    A configured durability applies to new databases that have one; an existing one keeps its own.

    >>> configured_store(DatabaseSettings(url="ram:", durability="full"), None, None).name
    'ram'
    """
    place = section.url if url is None else url
    if place is None:
        raise ConfigurationError(
            "no database was named", details={"field": "url"}, hint="pass a path or set WELLKEPT_DB"
        )
    store, place = _resolved(place, section)
    if durability is None and section.durability and store.url_form.durability and not store.exists(place):
        durability = section.durability
    return store.from_url(place, durability=durability)


def is_there(url: str | Path, section: DatabaseSettings | None = None) -> bool:
    """Whether a store exists at a URL, as far as its class can tell without opening it.

    >>> is_there("ram:")
    False
    """
    store, url = _resolved(url, section)
    return store.exists(url)


def is_lasting(url: str | Path) -> bool:
    """Whether the store of a URL keeps anything once it is closed.

    >>> is_lasting("ram:")
    False
    """
    return _resolved(url)[0].capabilities.durable


def creation(url: str | Path) -> Callable[[], None]:
    """What removes the store of a URL again if opening it makes it; to be asked before it is opened."""
    store, url = _resolved(url)
    return store.creation(url)


def git_files(url: str | Path) -> Callable[[], list[str]] | None:
    """What writes the files for git beside the store of a URL; ``None`` if git cannot merge it."""
    store, url = _resolved(url)
    return store.git_files(url)


def migrate_store(url: str | Path, to: int | None, *, dry_run: bool) -> MigrationReport:
    """Bring the store of a URL to a schema, without opening it as a database."""
    store, url = _resolved(url)
    return store.migrate(url, to, dry_run=dry_run)


def same_place(one: str | Path, other: str | Path) -> bool:
    """Whether two URLs refer to the same store, symbolic links resolved.

    >>> same_place("notes/memory.db", "sqlite:./notes/../notes/memory.db")
    True
    """
    (store, url), (another, alias) = _resolved(one), _resolved(other)
    return store is another and store.canonical(url) == another.canonical(alias)


def folder_there(url: str | Path) -> str | None:
    """The URL of the folder of a store that somebody named as if it were a file."""
    store, named = _resolved(url)
    path = Path(named.partition(":")[2]).expanduser()
    if store.url_form.names == "file" and path.is_dir():
        for scheme, other in STORES.declaring():
            if other.url_form.names == "folder" and is_there(found := f"{scheme}:{path}"):
                return found
    return None


def sample(names: str | None = None) -> str:
    """A URL of a store that names a file or a folder, or something else."""
    return next((one.url_form.sample for _, one in STORES.declaring() if one.url_form.names == names), "")


def _resolved(url: str | Path, section: DatabaseSettings | None = None) -> tuple[type[Store], str]:
    """The class of the store that a URL names, and the URL as that reads it: with a scheme, and with the settings."""
    if not isinstance(url, str | Path):
        raise ConfigurationError(
            f"a database is named by a text or a Path, not by {type(url).__name__}",
            details={"field": "url"},
            hint=f"pass a path such as {sample('file')!r} or a URL such as {sample('folder')!r}",
        )
    scheme, rest = ("", str(url)) if isinstance(url, Path) else split_url(url)
    scheme = scheme or PLAIN
    store = _store_class(scheme)
    if store.url_form.names and not rest:
        raise ConfigurationError("the path is empty", details={"field": "url"}, hint=f"name a {store.url_form.names}")
    given = {} if section is None else section.of_store(store.section)
    return store, with_options(f"{scheme}:{rest}", given)


def _store_class(scheme: str) -> type[Store]:
    loaded = STORES.get(scheme)
    if loaded is None:
        raise ConfigurationError(
            f"no store is registered for {scheme!r}",
            details={"scheme": scheme},
            hint=f"known are {', '.join(STORES)}; others come with a package that registers {GROUP}",
        )
    if not (isinstance(loaded, type) and issubclass(loaded, Store)):
        raise ConfigurationError(
            f"the plug-in for {scheme!r} is not a Store",
            details={"scheme": scheme},
            hint="its entry point must name a subclass of wellkept.ports.Store",
        )
    return loaded


def open_embedder(name: str) -> Embedder:
    """Create an embedder by its registered name or by the name stored with its vectors.

    >>> open_embedder("hashing-64").dimension
    64
    """
    if match := _HASHING.fullmatch(name):
        return HashingEmbedder(int(match[1]))
    if name.startswith(FROM_FOLDER):
        from wellkept.embedders.model2vec import Model2VecEmbedder  # lazy: few have such a folder

        return Model2VecEmbedder(name.removeprefix(FROM_FOLDER))
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
            hint="its entry point must name a class or function that gives what wellkept.ports.Embedder describes",
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
    from wellkept.embedders.http import HttpEmbedder  # lazy: only for embedding servers

    return HttpEmbedder(
        section.url,
        section.model,
        dimension=section.dimension,
        key_variable=section.key_variable,
        timeout_s=section.timeout_s,
    )


def lexicon_of(embedder: Embedder | None) -> Lexicon | None:
    """The lexicon of an embedder: itself, its attribute ``lexicon`` (may be ``None``), or else the built-in one."""
    if embedder is None or isinstance(embedder, Lexicon):
        return embedder
    if hasattr(embedder, "lexicon"):
        return embedder.lexicon if isinstance(embedder.lexicon, Lexicon) else None
    return WordTableEmbedder()


def lexicon_to_keep(lexicon: Lexicon | None, embedder: object, kept: Mapping[str, str]) -> dict[str, str]:
    """What the settings of a store must say before words of the built-in lexicon go into it beside vectors of another
    embedder; nothing if they do.

    >>> lexicon_to_keep(WordTableEmbedder(), HashingEmbedder(64), {})
    {'lexicon': 'wellkept-words-1'}
    """
    if isinstance(embedder, Lexicon) or not isinstance(lexicon, WordTableEmbedder) or is_set(kept, LEXICON):
        return {}
    return {LEXICON: lexicon.name}


def open_keyring(place: str | Path, section: EncryptionSettings | None = None) -> Keyring:
    """Open a keyring: a file by its path, ``ram:`` for one that lasts as long as the process, or a plug-in by its URL.

    >>> open_keyring("ram:").check()
    0
    """
    scheme, name = ("", str(place)) if isinstance(place, Path) else split_url(place)
    if scheme in ("", "file"):
        from wellkept.keyrings.file import FileKeyring  # lazy: only where there are keys

        return FileKeyring(Path(name).expanduser(), master_keys(section or EncryptionSettings()))
    if scheme == "ram":
        from wellkept.keyrings.ram import RamKeyring  # lazy: as above

        return RamKeyring()
    return _plugged_keyring(scheme, str(place))


def _plugged_keyring(scheme: str, url: str) -> Keyring:
    found = _entry_points(KEYRINGS)
    if scheme not in found:
        raise ConfigurationError(
            f"no keyring is registered for {scheme!r}",
            details={"scheme": scheme},
            hint=f"pass the path of a file, or install a package that registers {KEYRINGS}",
        )
    made = found[scheme].load()(url)
    if not isinstance(made, Keyring):
        raise ConfigurationError(
            f"the plug-in for {scheme!r} gives no Keyring",
            details={"scheme": scheme},
            hint="its entry point must name a function or class that takes the URL and gives a wellkept.ports.Keyring",
        )
    return made


def keyring_path(database: Path | str) -> Path:
    """Where the keyring of a database in a file or a folder is.

    >>> keyring_path("notes/memory.db").name
    'memory.db.keys'
    """
    path = Path(database)
    return path.with_name(f"{path.name}.keys")


def master_keys(section: EncryptionSettings) -> "MasterKeys":
    """Where the master key comes from: the environment, the file that is configured, or the one of the user."""
    from wellkept.keyrings import master_key  # lazy: only where there are keys

    if os.environ.get(master_key.VARIABLE):
        return master_key.EnvironmentMasterKeys()
    return master_key.FileMasterKeys(master_key_file(section))


def master_key_file(section: EncryptionSettings) -> Path:
    """The file of the master key, whether it is there or not."""
    if section.master_key_file is not None:
        return Path(section.master_key_file).expanduser()
    return user_folder(os.environ, Path.home()) / "master.key"


def detectors(section: EncryptionSettings) -> tuple[Detector, ...]:
    """What recognises sensitive content: the built-in detectors that are configured, and those of plug-ins."""
    names = [name.strip() for name in (section.detectors or "").split(",") if name.strip()]
    found = _entry_points(DETECTORS) if names else {}
    if unknown := [name for name in names if name not in found]:
        raise ConfigurationError(
            f"no detector is named {unknown[0][:64]!r}",
            details={"key": "encryption.detectors"},
            hint=f"known are {', '.join(sorted(found)) or 'none'}; a package registers one in {DETECTORS}",
        )
    return (*chosen(section.recognize), *(found[name].load() for name in names))


def _known_embedder(name: str) -> str | None:
    return OWN_EMBEDDERS.get(_BY_THEIR_OWN_NAME.get(name, name))


def _registered_embedder(name: str) -> Callable[[], object]:
    found = _entry_points(EMBEDDERS)
    if name not in found:
        known = ", ".join(
            sorted({*OWN_EMBEDDERS, *found, "hashing-64 (or another number of dimensions)", f"{FROM_FOLDER}FOLDER"})
        )
        raise ConfigurationError(
            f"no embedder is named {name[:64]!r}",
            details={"field": "embedder"},
            hint=f"known are {known}; pass an embedder of your own, or None to go by words alone",
        )
    loaded: Callable[[], object] = found[name].load()
    return loaded


def _entry_points(group: str) -> "dict[str, EntryPoint]":
    from importlib import metadata  # lazy: takes 60 ms, and only plug-ins need it

    return {point.name: point for point in metadata.entry_points(group=group)}
