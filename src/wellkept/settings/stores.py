"""What stores declare about their settings: a class of a store brings a section of its own.

Settings are read before a store is opened, and whatever store it is. So a class is only looked at when a URL or a
section names it.
"""

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from wellkept.settings.declarations import Section
from wellkept.settings.schema import DatabaseSettings, Settings
from wellkept.settings.urls import UrlForm

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "wellkept.stores"
_VARIABLE = "WELLKEPT_DATABASE_"

Sections = Mapping[str, type[Section]]
"""Sections of stores by their names: that of ``[database.shelf]`` is ``shelf``."""


@runtime_checkable
class StoreClass(Protocol):
    """What is asked of the class of a store here; see ``wellkept.ports.Store``."""

    @property
    def section(self) -> type[Section] | None:
        """Its settings."""

    @property
    def url_form(self) -> UrlForm:
        """How its URLs are read."""


class StoreClasses(Mapping[str, object]):
    """The classes of stores by the schemes of their URLs. Each is imported when it is asked for: those that are
    ``listed`` as ``module:name``, the others by their entry points, which takes longer to look up.
    """

    def __init__(self, listed: Callable[[], Mapping[str, str]] = dict) -> None:
        self._listed = listed

    def __getitem__(self, scheme: str) -> object:
        if (place := self._listed().get(scheme)) is not None:
            module, _, name = place.partition(":")
            return getattr(importlib.import_module(module), name)
        return self._registered()[scheme].load()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._listed(), *self._registered().names}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    @staticmethod
    def _registered() -> "EntryPoints":
        from importlib import metadata  # lazy: takes 60 ms, and most settings name no store

        return metadata.entry_points(group=GROUP)

    def declaring(self) -> Iterator[tuple[str, StoreClass]]:
        """Those that can be imported."""
        for scheme in self:
            with suppress(ImportError):
                if isinstance(found := self[scheme], StoreClass):
                    yield scheme, found

    def form(self, scheme: str) -> UrlForm:
        """How the URLs of a scheme are read; nothing is known of one without a store."""
        found = self.get(scheme)
        return found.url_form if isinstance(found, StoreClass) else UrlForm()

    def section(self, name: str) -> type[Section] | None:
        """The section ``[database.name]``, if a store declares it."""
        found = self.get(name)
        return _section(name, found) if isinstance(found, StoreClass) else None

    def sections(self, names: Collection[str]) -> Sections:
        """The sections of some names. If one is not known, all that there are: for the hint that names them."""
        found = {name: one for name in names if (one := self.section(name)) is not None}
        if len(found) < len(names):
            found |= {name: one for name, store in self.declaring() if (one := _section(name, store)) is not None}
        return found

    def sections_of(self, variables: Iterable[str]) -> Sections:
        """The sections that variables of the environment are meant for, such as ``WELLKEPT_DATABASE_SHELF_BOARDS``."""
        ours = [name.removeprefix(_VARIABLE).lower() for name in variables if name.startswith(_VARIABLE)]
        names = {name.partition("_")[0] for name in ours}
        return {name: one for name in sorted(names) if (one := self.section(name)) is not None}


def _section(name: str, store: StoreClass) -> type[Section] | None:
    """A store may have several schemes; its section has one name."""
    return store.section if store.section is not None and store.section.at == f"database.{name}" else None


def schema_with(sections: Sections) -> type[Settings]:
    """The schema of settings with sections of stores in ``database``."""
    if not sections:
        return Settings
    inner: Any = [(name, one, field(default_factory=one)) for name, one in sorted(sections.items())]
    said = {"__doc__": DatabaseSettings.__doc__}
    database: Any = make_dataclass(
        "Database", inner, bases=(DatabaseSettings,), namespace=said, frozen=True, kw_only=True
    )
    whole: Any = [("database", database, field(default_factory=database))]
    schema: type[Settings] = make_dataclass("WholeSettings", whole, bases=(Settings,), frozen=True, kw_only=True)
    return schema
