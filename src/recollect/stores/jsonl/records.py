"""Records as files of their own: the description of a session in its folder, all others below ``records/``."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from recollect import codec
from recollect.errors import SchemaTooNew, StoreCorrupt
from recollect.ports import Owners, Record
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.folders import HASHED, folder
from recollect.stores.jsonl.names import NAME_BYTES, file_name
from recollect.types import Layer, Owner

VERSION = 1
SESSION = "session"
METADATA = "metadata.json"
DERIVED = ("total_entries", "total_size_bytes", "statistics")
"""What ``metadata.json`` says of the memories of a session."""

_OWN = frozenset({"version", "record", "body", *DERIVED})


def described(owner: Owner, kind: str, name: str) -> Owner | None:
    """The session that a record describes: those of a user's sessions stand with the user, under the session's id."""
    is_session = kind == SESSION and owner.layer is Layer.USER and len(owner.ids) == 1
    return Owner(Layer.SESSION, (*owner.ids, name)) if is_session else None


def place(owner: Owner, kind: str, name: str) -> str:
    """The file of a record."""
    session = described(owner, kind, name)
    if session is not None:
        return f"{folder(session)}/{METADATA}"
    return f"records/{file_name(kind)}/{folder(owner)}/{file_name(name)[:NAME_BYTES]}.json"


def places(disk: Disk, owner: Owner, kind: str) -> Iterator[str]:
    """The files that may hold records of an owner."""
    if kind == SESSION and owner.layer is Layer.USER and len(owner.ids) == 1:
        yield from disk.names(f"sessions/*@{file_name(owner.ids[0])}/{METADATA}")
        yield from disk.names(f"sessions/*{HASHED}*/{METADATA}")
    else:
        yield from disk.names(f"records/{file_name(kind)}/{folder(owner)}/*.json")


def encode(record: Record, derived: Mapping[str, Any]) -> bytes:
    """A record as a file that people can read. Its members stand beside ours; what would not come back to the byte
    is kept as a text.
    """
    body = codec.decode_json(record.body)
    about = {
        "owner": [record.owner.layer, *record.owner.ids],
        "kind": record.kind,
        "name": record.name,
        "version": record.version,
        "updated_at": record.updated_at,
    }
    if not isinstance(body, dict) or _OWN & set(body) or codec.encode_json(body) != record.body:
        body = {"body": record.body.decode()}
    return pretty({"version": VERSION, **body, **derived, "record": codec.decode_json(codec.encode_json(about))})


def decode(data: bytes, file: str) -> Record | None:
    """The record in a file; none if the file is there for other reasons."""
    try:
        fields = codec.decode_json(data)
        if fields["version"] > VERSION:
            raise SchemaTooNew(
                f"{file!r} has version {fields['version']}, this release reads up to {VERSION}",
                details={"file": file},
                hint="install a newer release of recollect",
            )
        about = fields.get("record")
        if about is None:
            return None
        layer, *ids = about["owner"]
        body = {name: value for name, value in fields.items() if name not in _OWN}
        return Record(
            owner=Owner(Layer(layer), tuple(ids)),
            kind=about["kind"],
            name=about["name"],
            body=fields["body"].encode() if "body" in fields else codec.encode_json(body),
            version=about["version"],
            updated_at=codec.decode_as(codec.encode_json(about["updated_at"]), datetime),
        )
    except codec.UNREADABLE as error:
        raise StoreCorrupt(
            f"{file!r} cannot be read", details={"file": file}, hint="run doctor; correct the file or remove it"
        ) from error


def read(disk: Disk, owner: Owner, kind: str, name: str) -> Record | None:
    """One record."""
    file = place(owner, kind, name)
    data = disk.read(file)
    found = decode(data, file) if data else None
    return found if found is not None and (found.owner, found.kind, found.name) == (owner, kind, name) else None


def read_all(disk: Disk, owners: Owners, kind: str) -> list[Record]:
    """The records of a kind, ordered by name."""
    found: list[Record] = []
    for file in {file for owner in owners for file in places(disk, owner, kind)}:
        with suppress(StoreCorrupt):  # one that cannot be read must not hide the others; doctor names it
            record = decode(disk.read(file), file)
            if record is not None and record.owner in owners and record.kind == kind:
                found.append(record)
    return sorted(found, key=lambda record: record.name)


def read_everything(disk: Disk) -> list[Record]:
    """All records there are."""
    files = (*disk.names(f"sessions/*/{METADATA}"), *disk.names("records/*/*/*/*.json"))
    found = (decode(disk.read(file), file) for file in files)
    return [record for record in found if record is not None]


def pretty(value: object) -> bytes:
    """JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
