"""Which database, as whom and with which settings a command works: from flags, the environment and a file.

``settle`` decides without touching a disk; ``find`` reads the nearest ``wellkept.toml``.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from wellkept import validation
from wellkept.cli.constants import DATABASE, IDS, variable_of
from wellkept.errors import InvalidInput
from wellkept.settings import DEFAULT_ORIGIN, Settings, StoreClasses, load
from wellkept.settings.folders import user_folder
from wellkept.types import Identity
from wellkept.types.owners import DEFAULT_USER

_URL = "database.url"


class Found(NamedTuple):
    """The database, the identity and the settings. ``origins`` says where each comes from."""

    database: str
    identity: Identity
    origins: Mapping[str, str]
    settings: Settings = Settings()

    @property
    def opening(self) -> dict[str, str]:
        """The settings that were given, apart from the database and the identity, as text."""
        own = (_URL, *(f"identity.{name}" for name in IDS))
        return {name: str(self.settings.get(name)) for name in self.settings.origins if name not in own}

    @property
    def options(self) -> dict[str, Any]:
        """The settings as ``wellkept.open`` takes them."""
        return {"settings": self.settings}

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Log on the standard error while a command runs, if the settings want it."""
        if self.settings.logging.level == "off":
            yield
            return
        from logging import Formatter, StreamHandler  # lazy: most commands log nothing

        from wellkept.logs import LOG, JsonFormatter  # lazy: as above

        handler, before = StreamHandler(sys.stderr), LOG.level
        as_text = Formatter("%(asctime)s %(levelname)s %(message)s")
        handler.setFormatter(JsonFormatter() if self.settings.logging.format == "json" else as_text)
        LOG.addHandler(handler)
        LOG.setLevel(self.settings.logging.level.upper())
        try:
            yield
        finally:
            LOG.removeHandler(handler)
            LOG.setLevel(before)


STANDALONE = Found(database="", identity=Identity(user=DEFAULT_USER), origins={})
"""For commands that ask nothing of a database: no file is read, and none can be wrong."""


def settle(flags: Mapping[str, str | None], settings: Settings, folder: Path) -> Found:
    """Each flag overrides its setting; ``folder`` is where the database is if nothing names one.

    The ids are settled one by one. Without a user, the user is ``default``: other ids never remove it.

    >>> found = settle({"project": "api"}, load(environment={"WELLKEPT_DB": "my.db"}), Path("share"))
    >>> found.database, found.identity.user, found.identity.project, found.origins["database"]
    ('my.db', 'default', 'api', 'WELLKEPT_DB')
    """
    ids: dict[str, str] = {}
    origins: dict[str, str] = {}
    for name in IDS:
        flag, kept = flags.get(name), settings.get(f"identity.{name}")
        if flag is not None:  # an empty one is a mistake, such as a shell variable that is not set
            ids[name], origins[name] = _named(name, flag), f"--{name}"
        elif kept is not None:
            ids[name], origins[name] = kept, settings.origin(f"identity.{name}")
    if "user" not in ids:
        ids["user"], origins["user"] = DEFAULT_USER, DEFAULT_ORIGIN
    if flags.get(DATABASE) is not None:
        database, origins[DATABASE] = validation.line("--db", flags[DATABASE]), "--db"
    else:
        database = settings.database.url or str(folder / "memory.db")
        origins[DATABASE] = settings.origin(_URL)
    found = Found(database=database, identity=Identity(**ids), origins=origins, settings=settings)
    return found._replace(origins={**origins, **{name: settings.origin(name) for name in found.opening}})


def _own_stores() -> Mapping[str, str]:
    from wellkept.plugins import OWN  # lazy: takes 100 ms, and few settings name a store

    return OWN


def _named(name: str, flag: str) -> str:
    if name == "user":
        return validation.user(f"--{name}", flag)
    return validation.name(f"--{name}", flag)


def find(flags: Mapping[str, str | None]) -> Found:
    """What a command works with in this process."""
    for name in IDS:  # other variables count as not set if they are empty; an empty id would select another owner
        if flags.get(name) is None and os.environ.get(variable_of(name)) == "":
            raise InvalidInput(
                f"{variable_of(name)} is empty", details={"field": name}, hint="unset it or give it a value"
            )
    settings = load(folder=Path.cwd(), stores=StoreClasses(_own_stores))
    return settle(flags, settings, user_folder(os.environ, Path.home()))
