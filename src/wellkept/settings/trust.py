"""Files of settings that come with a folder, such as a repository somebody cloned: what they may say unasked.

Such a file may name a database inside its own folder. Everything else is refused until the user trusts the file. What
is trusted is kept in the user's own configuration folder, by path and content: a file that changed is asked for again.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from wellkept.errors import ConfigurationError
from wellkept.settings.declarations import Keys, dotted
from wellkept.settings.stores import StoreClass, StoreClasses
from wellkept.settings.urls import split_url

_URL = ("database", "url")


def check(file: Path, text: str, found: Mapping[Keys, Any], overridden: Iterable[Keys], stores: StoreClasses) -> None:
    """Refuse a file that was found, not named, if it says more than it may and the user has not trusted it.

    What is ``overridden`` by a source of higher precedence has no effect, so it is not refused.
    """
    refused = [
        keys
        for keys, value in found.items()
        if keys not in overridden and not (keys == _URL and is_inside(file.parent, value, stores))
    ]
    if not refused:
        return
    kept = trusted().get(str(_place(file)))
    if kept == digest(text):
        return
    names = [dotted(keys) for keys in refused]
    outside = " (a database outside its folder)" if _URL in refused else ""
    changed = "has changed since you trusted it and " if kept else ""
    raise ConfigurationError(
        f"{file} {changed}sets {', '.join(names)}{outside}, which it may not until you trust it",
        details={"file": str(file), "settings": names},
        hint=f"read the file; if you agree with it, run: wellkept trust {file.parent}",
    )


def is_inside(folder: Path, url: str, stores: StoreClasses) -> bool:
    """Whether a URL names a file or a folder of a store inside a folder, symbolic links resolved, and no more.

    >>> urls = ("memory.db", "jsonl:all", "../memory.db", "/memory.db", "ram:")
    >>> [is_inside(Path("notes"), url, StoreClasses()) for url in urls]
    [True, True, False, False, False]
    """
    scheme, rest = split_url(url)
    place = PurePosixPath(rest)
    if not rest or any(sign in rest for sign in ":\\\0") or (scheme and not _is_plain_path(stores, scheme, rest)):
        return False
    if place.is_absolute() or ".." in place.parts or rest.startswith("~"):
        return False
    try:
        root = folder.resolve()
        inside = (root / place).resolve()
    except (OSError, RuntimeError):  # a loop of links
        return False
    return inside != root and inside.is_relative_to(root)


def _is_plain_path(stores: StoreClasses, scheme: str, rest: str) -> bool:
    """Whether a path stands behind a scheme. The URL of a store with settings may set them behind a question mark."""
    store = stores.get(scheme)
    if not isinstance(store, StoreClass) or store.url_form.names is None:
        return False
    return store.section is None or "?" not in rest


# --- what the user trusts -------------------------------------------------------------------------


def digest(text: str) -> str:
    """What a file of settings is known by beside its path."""
    return sha256(text.encode()).hexdigest()


def trusted() -> dict[str, str]:
    """The files that the user trusts, with the digests of their contents."""
    file = _list_file()
    try:
        kept = json.loads(file.read_bytes())
        if isinstance(kept, dict) and all(isinstance(one, str) for one in kept.values()):
            return kept
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(file) from error
    raise _unusable(file)


def trust(file: Path, text: str) -> None:
    """Remember a file with the content that it has now."""
    _write({**trusted(), str(_place(file)): digest(text)})


def revoke(file: Path) -> bool:
    """Trust a file no more; whether it was trusted."""
    kept = trusted()
    known = kept.pop(str(_place(file)), None)
    if known is not None:
        _write(kept)
    return known is not None


def config_folder(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Where a user's configuration goes on this system.

    >>> config_folder({}, Path("ada"), "linux").as_posix()
    'ada/.config/wellkept'
    """
    if platform == "darwin":
        return home / "Library" / "Application Support" / "wellkept"
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "wellkept"
    given = environment.get("XDG_CONFIG_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".config") / "wellkept"


def _list_file() -> Path:
    return config_folder(os.environ, Path.home()) / "trusted.json"


def _place(file: Path) -> Path:
    """The folder resolved, the name as it is: a link to a trusted file is another file."""
    return file.parent.resolve() / file.name


def _write(kept: Mapping[str, str]) -> None:
    """Replace the list at once; only its owner may read it."""
    file = _list_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=".trusted.", dir=file.parent)  # of mode 600
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(kept, stream, indent=1, sort_keys=True)
        Path(draft).replace(file)
    except OSError as error:
        raise _unusable(file) from error


def _unusable(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"the list of trusted files cannot be used: {file}",
        details={"file": str(file)},
        hint="check its permissions, or delete it and trust again",
    )
