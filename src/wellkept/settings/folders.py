"""Where a user's files go on this system."""

import sys
from collections.abc import Mapping
from pathlib import Path


def user_folder(environment: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Where a user's databases and keys go.

    >>> user_folder({}, Path("ada"), "linux").as_posix()
    'ada/.local/share/wellkept'
    """
    if platform == "darwin":
        return home / "Library" / "Application Support" / "wellkept"
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "wellkept"
    given = environment.get("XDG_DATA_HOME", "")
    return (Path(given) if given.startswith("/") else home / ".local" / "share") / "wellkept"
