"""Local files that memories point to: whether they changed since they were read.

Only pointers whose id is a ``file:`` URL are looked at, and only regular files are read. A file that was not touched
since it was read is not read again.
"""

import hashlib
import os
import stat
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wellkept.errors import InvalidInput
from wellkept.types import KnowledgePointer, PointerType

LARGEST = 64 * 1024 * 1024
"""The bytes of the largest file that is read. A larger one counts as changed when it was touched."""

_SHA256 = "sha256:"
_GRACE_S = 2.0  # how exact the times of files are, at worst
_CHUNK = 1024 * 1024


def path_of(pointer: KnowledgePointer | None) -> Path | None:
    """The local file that a pointer names; ``None`` if it names something else.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2030, 1, 7, tzinfo=UTC)
    >>> path_of(KnowledgePointer(source_type=PointerType.ADR, source_id="adr-042", content_hash="x", synced_at=at))
    """
    if pointer is None or not pointer.source_id.startswith("file:"):
        return None
    try:
        parts = urlsplit(pointer.source_id)
    except ValueError:
        return None
    if parts.netloc not in ("", "localhost") or not parts.path or "\0" in unquote(parts.path):
        return None
    path = Path(unquote(parts.path))
    return path if path.is_absolute() else None


def pointer_to(path: str | Path, kind: PointerType, now: datetime) -> KnowledgePointer:
    """A pointer to a file as it is now; ``InvalidInput`` if it cannot be read."""
    try:
        place = Path(path).resolve()
        if not str(path) or not _is_readable(place.stat()):
            raise OSError("no file")
        found = digest(place.read_bytes())
    except (OSError, ValueError, TypeError, RuntimeError):
        raise InvalidInput(
            "path names no file that can be read",
            details={"field": "path"},
            hint=f"name a regular file of at most {LARGEST // 1024 // 1024} MB",
        ) from None
    return KnowledgePointer(source_type=kind, source_id=place.as_uri(), content_hash=found, synced_at=now)


def digest(content: bytes) -> str:
    """What a file is known by.

    >>> digest(b"")[:13]
    'sha256:e3b0c4'
    """
    return _SHA256 + hashlib.sha256(content).hexdigest()


def is_stale(pointer: KnowledgePointer | None) -> bool | None:
    """Whether the file of a pointer changed or is gone; ``None`` if the pointer names no local file."""
    path = path_of(pointer)
    if path is None or pointer is None or not pointer.content_hash.startswith(_SHA256):
        return None
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return True
        touched = max(found.st_mtime, found.st_ctime)
        if touched + _GRACE_S < pointer.synced_at.timestamp():
            return False
        if found.st_size > LARGEST:
            return True
        return _digest(os.fspath(path), found.st_mtime_ns, found.st_ctime_ns, found.st_size) != pointer.content_hash
    except (OSError, ValueError):  # gone, or not ours to read: what the memory says cannot be checked
        return True


@lru_cache(maxsize=1_000)
def _digest(path: str, modified: int, changed: int, size: int) -> str:  # noqa: ARG001  # a touched file is read again
    hashing = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            hashing.update(chunk)
    return _SHA256 + hashing.hexdigest()


def _is_readable(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST


def is_inside(path: Path, places: tuple[Path, ...]) -> bool:
    """Whether a file is one of some places, or below one of them, symbolic links resolved."""
    try:
        real = path.resolve()
        return any(real == place or real.is_relative_to(place) for place in places)
    except (OSError, RuntimeError):  # a loop of links
        return False


def read(path: Path) -> bytes | None:
    """The content of a file; ``None`` if it cannot be read or is too large."""
    try:
        return path.read_bytes() if _is_readable(path.stat()) else None
    except (OSError, ValueError):
        return None


def renewed(pointer: KnowledgePointer, content: bytes, now: datetime) -> KnowledgePointer:
    """A pointer to the same file, as it is now."""
    return KnowledgePointer(
        source_type=pointer.source_type,
        source_id=pointer.source_id,
        content_hash=digest(content),
        synced_at=now.astimezone(UTC),
    )
