"""Sessions in the format that ours descends from: ``sessions/{session_id}``, with entries that have neither owner nor
stamp. They are read as they are, and written as lines of today when the session is first written to.

Stamps follow from the time of an entry and its place in the file, so that every process makes the same ones, before and
after the migration. The checksums of that format leave out whatever is nested, and are not checked.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress

from wellkept import codec
from wellkept.errors import InvalidInput, StoreError
from wellkept.stores.jsonl import edits, lines, records
from wellkept.stores.jsonl.disk import Disk
from wellkept.stores.jsonl.lines import Fields, Flaw, Line
from wellkept.stores.jsonl.names import folder
from wellkept.stores.jsonl.owner_folder import MEMORY, METADATA, TOMBSTONES
from wellkept.types import Layer, Operation, Owner, Stamp, State, Stored
from wellkept.types.owners import DEFAULT_USER

_KEPT = ("timestamp", "type", "content", "importance", "tags")
_NAME = re.compile(r"sessions/[A-Za-z0-9_-]{1,64}")


def described(disk: Disk, name: str) -> Fields:
    """What the metadata of such a session say."""
    with suppress(StoreError):
        return lines.as_object(disk.read(f"{name}/{METADATA}")[0]) or {}
    return {}


def owner_of(disk: Disk, name: str) -> Owner | None:
    """Whose session it is; nothing if the folder is one of today, or was migrated already."""
    if not _NAME.fullmatch(name) or not disk.look(f"{name}/{MEMORY}").inode:
        return None
    user = described(disk, name).get("user_id")
    is_user = isinstance(user, str) and 0 < len(user) <= lines.TEXT_LENGTH
    owner = Owner(Layer.SESSION, (str(user) if is_user else DEFAULT_USER, name.partition("/")[2]))
    return None if disk.look(f"{folder(owner)}/{MEMORY}").inode else owner


def decoded(owner: Owner, memory: bytes, tombstones: bytes) -> Iterator[Line | Flaw]:
    """The entries of a session as versions; what was deleted is forgotten, with its reason."""
    origin = hashlib.sha256(codec.encode_owner(owner).encode()).hexdigest()[:12]
    heads: dict[str, Stored] = {}
    after: Stamp | None = None
    deleted = [_parsed(data) for data in lines.split(tombstones)]
    every = [*(_parsed(data) for data in lines.split(memory)), *deleted]
    for place, fields in enumerate(every):
        if isinstance(fields, Flaw):
            yield fields
            continue
        try:
            one = _forgotten(heads, fields) if place >= len(every) - len(deleted) else _added(owner, heads, fields)
        except (*lines.UNREADABLE, InvalidInput):
            yield Flaw("damaged", codec.encode_json(fields), fields)
            continue
        stamp = Stamp(f"{one.recorded_at:014x}{place:06x}-{origin}.000000")
        heads[one.id] = one = one._replace(stamp=stamp, write_id=stamp)
        yield Line(stored=one, after=after)
        after = stamp


def _parsed(data: bytes) -> Fields | Flaw:
    found = lines.unsealed(data)
    if isinstance(found, Flaw) and found.fields is None:
        return found
    return found.fields or {} if isinstance(found, Flaw) else found


def _added(owner: Owner, heads: dict[str, Stored], fields: Fields) -> Stored:
    kept = lines.by_hand({name: one for name, one in fields.items() if name in _KEPT})
    facets, before = edits.facets(kept, owner), heads.get(str(fields["id"]))
    at = facets["created_at"]
    return Stored(
        owner=owner,
        id=lines.text(fields["id"]),
        version=1 if before is None else before.version + 1,
        seq=0,
        born=0,
        born_at=0,
        recorded_at=at,
        operation=Operation.ADDED if before is None else Operation.UPDATED,
        stamp=Stamp(""),
        replaced=None if before is None else before.stamp,
        reason=None,
        facets=facets,
        payload=lines.to_payload(kept | ({"references": fields["references"]} if fields.get("references") else {})),
    )


def _forgotten(heads: dict[str, Stored], fields: Fields) -> Stored:
    before = heads[str(fields["id"])]
    reason = fields.get("reason")
    return before._replace(
        version=before.version + 1,
        recorded_at=max(lines.micros(fields["timestamp"]), before.recorded_at),
        operation=Operation.FORGOTTEN,
        replaced=before.stamp,
        reason=reason if isinstance(reason, str) else None,
        facets={**before.facets, "state": State.FORGOTTEN.value},
    )


def migrate(disk: Disk, name: str, owner: Owner) -> None:
    """Write a session as lines of today. The old files go last: whoever is interrupted has one of the two."""
    memory, tombstones = (disk.read(f"{name}/{file}")[0] for file in (MEMORY, TOMBSTONES))
    found = list(decoded(owner, memory, tombstones))
    target, metadata = folder(owner), disk.read(f"{name}/{METADATA}")[0]
    if metadata and not disk.look(f"{target}/{METADATA}").inode:
        record = records.decode(metadata, f"{name}/{METADATA}")
        disk.replace(f"{target}/{METADATA}", metadata if record is None else records.encode(record, {}))
    written = (lines.encode(one) if isinstance(one, Line) else one.data + b"\n" for one in found)
    disk.replace(f"{target}/{MEMORY}", b"".join(written))
    for file in (MEMORY, METADATA, TOMBSTONES, "index.json", "lock"):
        disk.remove(f"{name}/{file}")
    disk.remove_folder(name)
