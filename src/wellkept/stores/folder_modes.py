"""Folders that everybody may write: who can put files into the folder of a store can change what it remembers."""

import os
import stat
from pathlib import Path

FINDING = "every user of this machine may write its folder"


def everybody_writes(folder: Path, *, sticky_protects: bool) -> bool:
    """Whether all users may write a folder.

    In one with the sticky bit, as folders for temporary files have it, nobody can replace the files of others: that is
    enough for a store in one file, not for one that reads every file it finds. Windows has no such modes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     everybody_writes(Path(name), sticky_protects=False)
    False
    """
    if os.name == "nt":
        return False
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not (sticky_protects and mode & stat.S_ISVTX)
