"""Pointers to files that changed: found, and brought up to date."""

from collections.abc import Iterable
from pathlib import Path

from wellkept import pointed_files, validation
from wellkept.engine import writing
from wellkept.engine.core import Engine
from wellkept.engine.sealing import readable
from wellkept.errors import InvalidInput
from wellkept.filters import Where
from wellkept.ports import Query
from wellkept.text import plurals
from wellkept.types import ChangedFields, Memory, Owners, Refreshed

_PLACES = 1_000
_NAMED = 5


def refresh(engine: Engine, owners: Owners, paths: Iterable[str | Path], *, dry_run: bool) -> Refreshed:
    """Look at the files below some paths that memories point to, and renew the pointers to those that changed.

    A memory that was the whole text of its file gets the new text. No file outside the paths is touched.
    """
    validation.flag("dry_run", dry_run)
    places = _places(paths)
    refreshed, rewritten, missing = list[str](), list[str](), list[str]()
    current = 0
    query = Query(owners=owners, where=Where(now=engine.clock(), has_pointer=True))
    for _, memory in readable(engine.journal.select(query)):
        path = pointed_files.path_of(memory.pointer)
        if path is None or not pointed_files.is_inside(path, places):
            continue
        if not pointed_files.is_stale(memory.pointer):
            current += 1
            continue
        content = pointed_files.read(path)
        if content is None:
            missing.append(memory.id)
            continue
        changes = _changes(engine, memory, content)
        (rewritten if "content" in changes else refreshed).append(memory.id)
        if not dry_run:
            writing.update(engine, owners, memory.id, changes, if_version=memory.version, vector=None)
    return Refreshed(
        refreshed=tuple(refreshed),
        rewritten=tuple(rewritten),
        missing=tuple(missing),
        current=current,
        dry_run=dry_run,
    )


def _places(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    given = (paths,) if isinstance(paths, str | Path) else tuple(validation.several("paths", paths))
    if not given or len(given) > _PLACES or not all(isinstance(one, str | Path) and str(one) for one in given):
        raise InvalidInput(
            "paths names no files or folders", details={"field": "paths"}, hint="name the files or folders to look at"
        )
    try:
        return tuple(Path(one).resolve() for one in given)
    except (OSError, ValueError, RuntimeError):
        raise InvalidInput(
            "paths has one that cannot be followed", details={"field": "paths"}, hint="name existing files or folders"
        ) from None


def _changes(engine: Engine, memory: Memory, content: bytes) -> ChangedFields:
    """The pointer as it is now, and the text if the memory was all of the file."""
    assert memory.pointer is not None  # noqa: S101  # asked for; for the type checker
    changes: ChangedFields = {"pointer": pointed_files.renewed(memory.pointer, content, engine.clock())}
    if pointed_files.digest(memory.content.encode()) == memory.pointer.content_hash:
        try:
            text = validation.content(content.decode())
        except (UnicodeDecodeError, InvalidInput):  # too long by now, or no text any more
            return changes
        changes["content"] = text
    return changes


def stale(engine: Engine) -> str | None:
    """For doctor: how many memories point to files that changed, and some of them; ``None`` if none do."""
    found = [
        memory.id
        for owner in engine.journal.owners()
        for _, memory in readable(
            engine.journal.select(Query(owners={owner}, where=Where(now=engine.clock(), has_pointer=True)))
        )
        if pointed_files.is_stale(memory.pointer)
    ]
    if not found:
        return None
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    pointing = plurals.counted(len(found), "memory points", "memories point")
    return f"{pointing} to files that changed: {', '.join(found[:_NAMED])}{more}"
