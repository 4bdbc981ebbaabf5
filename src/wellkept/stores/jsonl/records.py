"""Records as files of their own: the description of a session in its folder, all others below ``records/``."""

import builtins
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from wellkept import codec
from wellkept.errors import SchemaTooNew, StoreCorrupt
from wellkept.ports import DamagedRecord, Lease, Record, Records, check_record, guarded_version
from wellkept.stores.jsonl import derived, lines
from wellkept.stores.jsonl.disk import MISSING, Disk
from wellkept.stores.jsonl.names import FOLDERS, HASHED, NAME_BYTES, file_name, folder, id_of, owner_of
from wellkept.stores.jsonl.owner_folder import METADATA
from wellkept.types import Guard, Layer, Owner, Owners
from wellkept.types.owners import DEFAULT_USER

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal

VERSION = 1
SESSION = "session"
LEASES = "records/leases.json"
DERIVED = ("total_entries", "total_size_bytes", "statistics")
"""What ``metadata.json`` says of the memories of a session, as of when it was written."""

ASIDE = ".damaged"
"""Behind the name of a file that a repair set aside."""
EDITABLE = "preferences"
"""The member of ``metadata.json`` that people may edit."""

_CHECKSUM, _OF_EDITABLE = "checksum", "preferences_checksum"
_NEVER = "1970-01-01T00:00:00Z"
_OWN = frozenset({"version", "record", "body", *DERIVED})


def described(owner: Owner, kind: str, name: str) -> Owner | None:
    """The session that a record describes: those of a user's sessions stand with the user, under the session's id."""
    is_session = kind == SESSION and owner.layer is Layer.USER and len(owner.ids) == 1
    return Owner(Layer.SESSION, (*owner.ids, name), owner.branch) if is_session else None


def place(owner: Owner, kind: str, name: str) -> str:
    """The file of a record."""
    session = described(owner, kind, name)
    if session is not None:
        return f"{folder(session)}/{METADATA}"
    return f"records/{file_name(kind)}/{folder(owner)}/{file_name(name)[:NAME_BYTES]}.json"


def _placed(file: str) -> tuple[Owner, str, str] | None:
    """Whose record a file is, its kind and its name; nothing if they were too long to be kept in its name."""
    first, *_, last = parts = file.split("/")
    if first == "sessions":
        session = owner_of(f"{first}/{parts[1]}")
        if session is None or len(session.ids) != 2:
            return None
        return Owner(Layer.USER, session.ids[:1], session.branch), SESSION, session.ids[1]
    kind, owner, name = id_of(parts[1]), owner_of("/".join(parts[2:4])), id_of(last.removesuffix(".json"))
    return None if kind is None or owner is None or name is None else (owner, kind, name)


def encode(record: Record, more: Mapping[str, Any]) -> bytes:
    """A record as a file that people can read. Its members stand beside ours; what would not come back to the byte
    is kept as a text.
    """
    body = lines.as_object(record.body)
    about = {
        "owner": codec.owner_parts(record.owner),
        "kind": record.kind,
        "name": record.name,
        "version": record.version,
        "updated_at": record.updated_at,
    }
    if body is None or _OWN & set(body) or codec.encode_json(body) != record.body:
        body = {"body": record.body.decode("utf-8", "surrogateescape")}
    value = {"version": VERSION, **body, **more, "record": codec.decode_json(codec.encode_json(about))}
    value["record"] |= _checksums(value)
    return json.dumps(value, ensure_ascii="body" in body, indent=2).encode() + b"\n"


def _checksums(fields: Mapping[str, Any]) -> dict[str, str]:
    """One of what people may edit, and one of all else that is not derived."""
    about = {name: value for name, value in fields["record"].items() if name not in (_CHECKSUM, _OF_EDITABLE)}
    rest = {name: value for name, value in fields.items() if name not in (*DERIVED, EDITABLE, "record")}
    found = {_CHECKSUM: _digest({"record": about, **rest})}
    return found | {_OF_EDITABLE: _digest(fields[EDITABLE])} if EDITABLE in fields else found


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))  # escapes what UTF-8 has no bytes for
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_edited(data: bytes) -> bool:
    """Whether somebody edited what people may edit in the file of a sound record."""
    fields = json.loads(data)
    return "record" in fields and _checksums(fields).get(_OF_EDITABLE) != fields["record"].get(_OF_EDITABLE)


def decode(data: bytes, file: str) -> Record | None:
    """The record in a file, a damaged one if it is not what was written; none if the file is there for other reasons.
    Preferences may be others: people edit them.
    """
    try:
        return _decoded(json.loads(data), file)
    except lines.UNREADABLE as error:
        where = _placed(file)
        if where is None:
            raise StoreCorrupt(
                f"{file!r} cannot be read", details={"file": file}, hint="run doctor; correct the file or remove it"
            ) from error
        owner, kind, name = where
        return DamagedRecord(owner=owner, kind=kind, name=name)


def _decoded(fields: dict[str, Any], file: str) -> Record | None:
    is_older = file.startswith("sessions/") and "@" not in file
    if not (is_older and "record" not in fields) and _checksums(fields)[_CHECKSUM] != fields["record"].get(_CHECKSUM):
        raise ValueError("the checksum does not fit")
    if fields.get("version", VERSION) > VERSION:
        raise SchemaTooNew(
            f"{file!r} has version {fields['version']}, this release reads up to {VERSION}",
            details={"file": file},
            hint="install a newer release of Wellkept",
        )
    about = fields.get("record") or _of_session(fields)
    if about is None:
        return None
    owner = codec.decode_owner(codec.encode_json(about["owner"]))
    body = {name: value for name, value in fields.items() if name not in _OWN}
    if "record" not in fields:  # what may be missing there must be there here
        times = {"created_at": about["updated_at"], "last_accessed": about["updated_at"]}
        body = {"user_id": owner.ids[0], **times, **body, "migration": {"from": fields.get("version", VERSION)}}
    return Record(
        owner=owner,
        kind=str(about["kind"]),
        name=str(about["name"]),
        body=fields["body"].encode("utf-8", "surrogateescape") if "body" in fields else codec.encode_json(body),
        version=int(about["version"]),
        updated_at=codec.decode_as(codec.encode_json(about["updated_at"]), datetime),
    )


def _of_session(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metadata of a session in the older format as a record."""
    if not isinstance(fields.get("session_id"), str):
        return None
    user, at = fields.get("user_id") or DEFAULT_USER, fields.get("last_accessed") or fields.get("created_at") or _NEVER
    return {"owner": ["user", user], "kind": SESSION, "name": fields["session_id"], "version": 1, "updated_at": at}


def decode_leases(data: bytes) -> dict[str, tuple[str, int, int]]:
    """By name, the holder, the token, and until when it holds."""
    fields = lines.unsealed(data) if data else {"leases": {}}
    if isinstance(fields, lines.Flaw):
        raise StoreCorrupt(
            f"{LEASES!r} is damaged", details={"file": LEASES}, hint="run doctor with repair when nobody works"
        )
    return {name: (str(holder), int(token), int(until)) for name, (holder, token, until) in fields["leases"].items()}


class JsonlRecords(Records):
    """Each record is a file that is exchanged at once; leases stand together in one."""

    def __init__(self, journal: "JsonlJournal", clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._journal, self._disk, self._clock = journal, journal.disk, clock

    def get(self, owner: Owner, kind: str, name: str) -> Record | None:
        """Read its file."""
        self._journal.check_open()
        return self._read(owner, kind, name)

    def _read(self, owner: Owner, kind: str, name: str) -> Record | None:
        file = place(owner, kind, name)
        data, look = self._disk.read(file)
        if look == MISSING and described(owner, kind, name) is not None:
            file = f"sessions/{file_name(name)}/{METADATA}"  # of the older format
            data, look = self._disk.read(file)
        found = None if look == MISSING else decode(data, file)
        if isinstance(found, DamagedRecord):
            return DamagedRecord(owner=owner, kind=kind, name=name)
        return found if found is not None and (found.owner, found.kind, found.name) == (owner, kind, name) else None

    def put(self, record: Record) -> None:
        """Exchange its file at once."""
        self._keep(record, lambda _: record.version - 1)

    def restore(self, record: Record) -> None:
        """The same, whatever the version before was."""
        self._keep(record, lambda stored: min(stored, record.version - 1))

    def _keep(self, record: Record, expected: Callable[[int], int]) -> None:
        with self._journal.writing("put record"):
            before = self._read(record.owner, record.kind, record.name)
            stored = before.version if before else 0
            check_record(record.kind, record.name, stored, expected(stored))
            session = described(record.owner, record.kind, record.name)
            if session is not None:
                self._journal.migrate({session})
            more = {} if session is None else derived.totals(self._journal, session)
            self._disk.replace(place(record.owner, record.kind, record.name), encode(record, more))

    def drop(self, owner: Owner, kind: str, name: str) -> bool:
        """Delete its file."""
        with self._journal.writing("drop record"):
            file = place(owner, kind, name)
            aside = self._disk.look(file + ASIDE).inode
            if self._read(owner, kind, name) is None and not aside:
                return False
            self._disk.remove(file)
            self._disk.remove(file + ASIDE)
            self._disk.sweep(file.rpartition("/")[0])
            if (session := described(owner, kind, name)) is not None:
                self._journal.drop(session)
            return True

    def list(
        self, owners: Owners | None, kind: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Sequence[Record]:
        """Read every file that may hold one."""
        self._journal.check_open()
        found: builtins.list[Record] = []
        for file in files(self._disk, kind, owners):
            data, look = self._disk.read(file)
            record = None
            with suppress(StoreCorrupt):  # whose it is cannot be told; doctor names the file
                record = None if look == MISSING else decode(data, file)
            if record is not None and (owners is None or record.owner in owners) and kind in (None, record.kind):
                found.append(record)
        newest = {(one.owner, one.kind, one.name): one for one in sorted(found, key=lambda one: one.version)}
        found = [one for one in newest.values() if one.name > after]
        found.sort(key=lambda one: (one.name, codec.encode_owner(one.owner), one.kind))
        return found if limit is None else found[:limit]

    # -- guards and leases ------------------------------------------------------------------------------------

    def versions(self, guards: Sequence[Guard]) -> dict[tuple[Owner, str, str], int]:
        """The versions of the records that guards name."""
        found = {}
        for guard in guards:
            if guard.owner is not None and (record := self._read(guard.owner, guard.kind, guard.name)) is not None:
                found[guard.owner, guard.kind, guard.name] = guarded_version(record)
        return found

    def tokens(self) -> dict[str, int]:
        """The tokens of the leases that hold now."""
        now = codec.to_micros(self._clock())
        return {name: token for name, (_, token, until) in self._leases().items() if until > now}

    def _leases(self) -> dict[str, tuple[str, int, int]]:
        return decode_leases(self._disk.read(LEASES)[0])

    def lease(self, name: str, holder: str, ttl_ms: int) -> Lease | None:
        """Taken if nobody holds it, or its time is over, or it is the holder's own."""
        with self._journal.writing("lease"):
            now, leases = codec.to_micros(self._clock()), self._leases()
            known, token, until = leases.get(name, ("", 0, 0))
            if until > now and known != holder:
                return None
            token += 0 if until > now else 1
            leases[name] = (holder, token, now + ttl_ms * 1000)
            self._disk.replace(LEASES, lines.seal({"leases": leases}))
            return Lease(name=name, holder=holder, token=token)

    def release(self, lease: Lease) -> None:
        """Its time is over; the token stays, so that the next one is higher."""
        with self._journal.writing("release"):
            leases = self._leases()
            holder, token, until = leases.get(lease.name, ("", 0, 0))
            if (holder, token) == (lease.holder, lease.token) and until:
                leases[lease.name] = (holder, token, 0)
                self._disk.replace(LEASES, lines.seal({"leases": leases}))


def files(disk: Disk, kind: str | None = None, owners: Owners | None = None) -> Iterator[str]:
    """The files that may hold records of a kind and of some owners."""
    if kind in (None, SESSION):
        for name, is_folder in disk.entries("sessions"):
            if is_folder and disk.look(f"sessions/{name}/{METADATA}").inode and _is_of(name, owners):
                yield f"sessions/{name}/{METADATA}"
    kinds = [name for name, is_folder in disk.entries("records") if is_folder] if kind is None else [file_name(kind)]
    for one in kinds:
        places = (
            [f"{layer}/{name}" for layer in FOLDERS.values() for name, _ in disk.entries(f"records/{one}/{layer}")]
            if owners is None
            else [folder(owner) for owner in owners]
        )
        for where in places:
            for name, is_folder in disk.entries(f"records/{one}/{where}"):
                if name.endswith(".json") and not is_folder:
                    yield f"records/{one}/{where}/{name}"


def _is_of(name: str, owners: Owners | None) -> bool:
    """Whether a session's folder may be of one of some users."""
    if owners is None or HASHED in name or "@" not in name:
        return True
    return any(folder(owner).partition("/")[2] == name.rpartition("@")[2] for owner in owners)
