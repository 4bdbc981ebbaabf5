"""Files that answers are written to."""

import os
import tempfile
from pathlib import Path

import click


def write_private(path: Path, text: str, *, force: bool = False) -> None:
    """Write a file that only its owner can read, whole or not at all; what is there is kept unless ``force`` is set."""
    try:
        _write(path, text, force=force)
    except FileExistsError:
        raise click.UsageError(f"{path} is there already; --force overwrites it") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    if force:  # what was there stays until the new one is complete, and lends it none of its permissions
        file, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    else:
        file, name = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), str(path)
    try:
        with os.fdopen(file, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(file)
        if force:
            Path(name).replace(path)
    except BaseException:  # reason: also of a stopped one nothing is left
        Path(name).unlink(missing_ok=True)
        raise
