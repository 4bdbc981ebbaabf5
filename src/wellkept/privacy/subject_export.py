"""The export of a person: a zip of JSON Lines that people can read, written as it is read."""

import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from wellkept import codec
from wellkept.engine import sealing
from wellkept.engine.core import Engine
from wellkept.errors import InvalidInput, KeyUnavailable, StoreCorrupt, Tampered
from wellkept.privacy import selection
from wellkept.types import Operation, Owner, Position, Stored, SubjectExport

FORMAT = 1
_PAGE = 500
_UNREADABLE = (KeyUnavailable, StoreCorrupt, Tampered)
_README = """\
Everything that this database keeps about one person, {made:%Y-%m-%d %H:%M} UTC.

memories.jsonl   one memory per line, as it is now: content, tags, metadata, source, times, state
history.jsonl    every version of every memory, the oldest first, with what was done and the reason
records.jsonl    what is kept beside memories, such as sessions with their preferences
manifest.json    the format, the owners, and how many lines each file has

A line is a JSON object. "owner" says whose a memory is: the layer, then the ids. Memories that were erased are not
here; of each, history.jsonl has the time at which it was erased.
"""


def write(engine: Engine, path: Path, subject: Owner, owners: Sequence[Owner]) -> SubjectExport:
    """Write the archive of a person into a new file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(
            f"{path.name!r} is there already", details={"field": "path"}, hint="choose another name, or remove it"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"{path.name!r} cannot be written: {error.strerror}", details={"field": "path"}, hint="choose another place"
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            counts = _archive(engine, file, subject, owners)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # reason: half an archive must not pass for one
        with suppress(OSError):
            path.unlink()
        raise
    return SubjectExport(path=str(path), owners=len(owners), **counts)


def _archive(engine: Engine, file: BinaryIO, subject: Owner, owners: Sequence[Owner]) -> dict[str, int]:
    now = engine.clock()
    counts: dict[str, int] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_member("README.txt"), _README.format(made=now))
        parts = (
            ("memories", "memories.jsonl", _memories(engine, owners)),
            ("versions", "history.jsonl", _history(engine, owners)),
            ("records", "records.jsonl", _records(engine, owners)),
        )
        for what, name, lines in parts:
            counts[what] = 0
            with archive.open(_member(name), "w", force_zip64=True) as raw:
                out = io.BufferedWriter(cast(io.RawIOBase, raw), 1 << 16)
                for line in lines:
                    out.write(codec.encode_json(line) + b"\n")
                    counts[what] += 1
                out.flush()
        manifest = {
            "format": FORMAT,
            "subject": codec.owner_parts(subject),
            "made_at": now,
            "owners": [codec.owner_parts(owner) for owner in owners],
            "lines": counts,
        }
        archive.writestr(_member("manifest.json"), codec.encode_json(manifest))
    return counts


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o600 << 16
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _memories(engine: Engine, owners: Sequence[Owner]) -> Iterator[dict[str, Any]]:
    """Each memory; of one that cannot be read, that it cannot: an archive with a gap is better than none."""
    for owner in owners:
        ids = [id for _, id in selection.everything(engine, {owner})]
        for start in range(0, len(ids), _PAGE):
            some = ids[start : start + _PAGE]
            try:
                yield from map(_told, engine.journal.get({owner}, some))
            except _UNREADABLE:
                yield from (_one(engine, owner, id) for id in some)


def _one(engine: Engine, owner: Owner, id: str) -> dict[str, Any]:
    try:
        [stored] = engine.journal.get({owner}, [id])
    except _UNREADABLE as error:
        return {"owner": codec.owner_parts(owner), "id": id, "unreadable": error.code}
    return _told(stored)


def _history(engine: Engine, owners: Sequence[Owner]) -> Iterator[dict[str, Any]]:
    for owner in owners:
        page = engine.journal.versions({owner}, limit=_PAGE, opened=False)
        after: Position | None = None
        while page:
            try:
                yield from map(_version, engine.journal.versions({owner}, after=after, limit=_PAGE))
            except _UNREADABLE as error:
                yield from ({**_operation(one), "unreadable": error.code} for one in page)
            after = page.next
            page = engine.journal.versions({owner}, after=after, limit=_PAGE, opened=False)


def _version(one: Stored) -> dict[str, Any]:
    told = {**_operation(one), "reason": one.reason}
    return told if one.operation is Operation.ERASED else {**told, "memory": _told(one)}


def _operation(one: Stored) -> dict[str, Any]:
    return {
        "owner": codec.owner_parts(one.owner),
        "id": one.id,
        "version": one.version,
        "operation": one.operation.value,
        "recorded_at": codec.from_micros(one.recorded_at),
        "write_id": one.write_id,
    }


def _told(one: Stored) -> dict[str, Any]:
    """A memory with all its fields that are set."""
    try:
        memory = sealing.unseal(one)
    except StoreCorrupt as error:
        return {"owner": codec.owner_parts(one.owner), "id": one.id, "unreadable": error.code}
    fields: dict[str, Any] = codec.decode_json(codec.encode_json(memory))
    fields["owner"] = codec.owner_parts(one.owner)
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def _records(engine: Engine, owners: Sequence[Owner]) -> Iterator[dict[str, Any]]:
    for record in engine.records.list(frozenset(owners), opened=False):
        body: object
        try:
            opened = engine.records.get(record.owner, record.kind, record.name) or record
            body = codec.decode_json(opened.body)
        except (KeyUnavailable, StoreCorrupt, Tampered) as error:
            body = {"unreadable": error.code}
        except codec.UNREADABLE:
            body = record.body.decode("utf-8", "backslashreplace")
        yield {
            "owner": codec.owner_parts(record.owner),
            "kind": record.kind,
            "name": record.name,
            "updated_at": record.updated_at,
            "body": body,
        }
