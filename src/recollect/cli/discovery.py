"""Which database, and as whom: from flags, the environment, ``recollect.toml``, or where a user's files go.

``settle`` decides and touches nothing; ``config_file`` and ``read_config`` look at the disk.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from recollect.cli.constants import DATABASE, DATABASE_VARIABLE, IDS, OPENING, variable_of
from recollect.errors import ConfigurationError
from recollect.types import Identity

FILE = "recollect.toml"
DEFAULT_USER = "default"
NO_EMBEDDER = "none"
_IDENTITY = "identity"


class Config(NamedTuple):
    """What a ``recollect.toml`` says."""

    path: Path
    database: str | None = None
    identity: Mapping[str, str] = MappingProxyType({})
    opening: Mapping[str, str] = MappingProxyType({})


class Found(NamedTuple):
    """The database, the identity and what to open it with, and where each came from: ``origins`` has their names."""

    database: str
    identity: Identity
    origins: Mapping[str, str]
    opening: Mapping[str, str] = MappingProxyType({})

    @property
    def options(self) -> dict[str, Any]:
        """How to open it: what was said of it, as ``recollect.open`` takes it."""
        return {name: None if value == NO_EMBEDDER else value for name, value in self.opening.items()}

    @property
    def path(self) -> Path | None:
        """The file of an embedded database; none if it is something else."""
        scheme, colon, rest = self.database.partition(":")
        if colon and scheme.lower() == "sqlite":
            return Path(rest.removeprefix("//"))
        # One letter is a drive, not a scheme.
        is_url = bool(colon) and len(scheme) > 1 and scheme.replace("+", "").isalnum()
        return None if is_url else Path(self.database)


def settle(
    flags: Mapping[str, str | None], environment: Mapping[str, str], config: Config | None, folder: Path
) -> Found:
    """Flags come first, then the environment, then the file; ``folder`` is where databases go if nobody says.

    >>> found = settle({"user": "ada"}, {"RECOLLECT_DB": "my.db"}, None, Path("share"))
    >>> found.database, found.identity.user, found.origins["database"]
    ('my.db', 'ada', 'RECOLLECT_DB')
    """
    origins: dict[str, str] = {}
    said: dict[str, str] = {}
    for name in (*IDS, *OPENING):
        kept = {**config.identity, **config.opening} if config else {}
        for value, origin in (
            (flags.get(name), f"--{name}"),
            (environment.get(variable_of(name)), variable_of(name)),
            (kept.get(name), str(config.path) if config else ""),
        ):
            if value:
                said[name], origins[name] = value, origin
                break
    ids = {name: said[name] for name in IDS if name in said}
    if not ids or ("session" in ids and "user" not in ids):  # a session is a user's
        ids["user"], origins["user"] = DEFAULT_USER, "the default"
    if flags.get(DATABASE):
        database, origins[DATABASE] = str(flags[DATABASE]), "--db"
    elif environment.get(DATABASE_VARIABLE):
        database, origins[DATABASE] = environment[DATABASE_VARIABLE], DATABASE_VARIABLE
    elif config is not None and config.database:
        database, origins[DATABASE] = config.database, str(config.path)
    else:
        database, origins[DATABASE] = str(folder / "memory.db"), "the default"
    opening = {name: said[name] for name in OPENING if name in said}
    return Found(database=database, identity=Identity(**ids), origins=origins, opening=opening)


def user_folder(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Where a user's databases go on this system.

    >>> user_folder({}, Path("ada"), "linux").as_posix()
    'ada/.local/share/recollect'
    """
    if platform == "darwin":
        return home / "Library" / "Application Support" / "recollect"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "recollect"
    given = environment.get("XDG_DATA_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".local" / "share") / "recollect"


def config_file(start: Path) -> Path | None:
    """The nearest ``recollect.toml`` from a folder upwards. One that somebody else put there is passed over."""
    for folder in (start, *start.parents):
        file = folder / FILE
        if file.is_file() and _is_ours(file):
            return file
    return None


def _is_ours(file: Path) -> bool:
    """Whether the user or the system's administrator wrote it: in a shared folder, others must not redirect us."""
    return not hasattr(os, "getuid") or file.stat().st_uid in (os.getuid(), 0)


def read_config(file: Path) -> Config:
    """What a ``recollect.toml`` says; anything in it that cannot be right is an error that names it."""
    import tomllib  # lazy: most folders have no such file

    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(file, "is not TOML", str(error)[:200]) from None
    except OSError as error:
        raise _wrong(file, "cannot be read", error.strerror or "check its permissions") from None
    known = (DATABASE, *OPENING, _IDENTITY)
    for name in content:
        if name not in known:  # a misspelt one that did nothing would be found out late
            raise _wrong(file, f"has an unknown setting {name[:40]!r}", f"use {', '.join(known)}")
    database = content.get(DATABASE)
    if database is not None and (not isinstance(database, str) or not database):
        raise _wrong(file, "names no database: 'database' is not a text", 'write database = "memory.db"')
    opening = {name: content[name] for name in OPENING if name in content}
    for name, value in opening.items():
        if not isinstance(value, str) or not value:
            raise _wrong(file, f"has {name!r} that is not a text", f'write {name} = "..."')
    ids = _ids(file, content.get(_IDENTITY, {}))
    return Config(path=file, database=_beside(file, database), identity=ids, opening=opening)


def _ids(file: Path, given: Any) -> Mapping[str, str]:
    if not isinstance(given, dict):
        raise _wrong(file, "has an identity that is not a table", 'write [identity] and below it user = "ada"')
    for name, value in given.items():
        if name not in IDS:
            raise _wrong(file, f"has an unknown id {name[:40]!r}", f"use {', '.join(IDS)}")
        if not isinstance(value, str) or not value:
            raise _wrong(file, f"has an id {name!r} that is not a text", f'write {name} = "..."')
    return given


def _beside(file: Path, database: str | None) -> str | None:
    """A path in the file is meant from where the file is."""
    if database is None:
        return None
    path = Found(database=database, identity=Identity(), origins={}).path
    return database if path is None else str(file.parent / path.expanduser())


def _wrong(file: Path, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"{file} {what}", details={"file": str(file)}, hint=hint)


def find(flags: Mapping[str, str | None]) -> Found:
    """The database and the identity of this process."""
    file = config_file(Path.cwd())
    config = None if file is None else read_config(file)
    return settle(flags, os.environ, config, user_folder(os.environ, Path.home()))
