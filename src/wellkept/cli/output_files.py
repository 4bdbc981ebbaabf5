"""Files that answers are written to."""

import os
import tempfile
from pathlib import Path

import click


def write_private(path: Path, text: str, *, force: bool = False) -> None:
    """Write a file that only its owner can read, atomically; an existing file is kept unless ``force`` is set."""
    try:
        _write(path, text, force=force)
    except FileExistsError:
        raise click.UsageError(f"{path} exists; --force overwrites it") from None
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written: {error.strerror}") from None


def _write(path: Path, text: str, *, force: bool) -> None:
    in_memory = path.is_relative_to("/dev/shm")  # noqa: S108  # there are files, unlike elsewhere in /dev
    device = path.is_relative_to("/dev") and not in_memory
    if device or (path.exists() and not path.is_file()):  # a device or a pipe: nothing to replace
        path.write_text(text, encoding="utf-8")
        return
    if force:  # the old file stays until the new one is complete, and its permissions are not taken over
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
    except BaseException:  # reason: an interrupted write must not leave a partial file
        Path(name).unlink(missing_ok=True)
        raise
