"""What a folder keeps about itself: its origin and settings in a file of their own, its epoch with what is derived."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from wellkept import codec, ids, open_files
from wellkept.errors import NotAStore, SchemaTooNew, StoreError
from wellkept.ports import SettingRow
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import Disk, Look
from wellkept.stores.jsonl.owner_folder import DERIVED

SETTINGS = "settings.json"
MARK = "wellkept"
"""The member of ``settings.json`` that says whose folder it is, and by which schema."""
EPOCH = f"{DERIVED}/epoch.json"

_TEXT = rb'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(rb"(%s)\s*:\s*\[\s*(%s)\s*,\s*\"([^\"]*)\"\s*\]" % (_TEXT, _TEXT))
_WORD = re.compile(rb"[\w-]+")
_FRAME = b" \t\r{},"
"""What stands around the members of ``settings.json``."""


class SettingsFile:
    """``settings.json`` and ``derived/epoch.json``. Without an epoch, positions that were given away mean nothing.

    Each setting is a member with its value and a checksum, on a line of its own: one wrong byte damages one setting.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.seen: tuple[Look, Look] | None = None
        self.damaged: list[SettingRow] = []

    def news(self) -> dict[str, str]:
        """What changed since the last look."""
        seen = (self._disk.look(SETTINGS), self._disk.look(EPOCH))
        if seen == self.seen:
            return {}
        self.seen = seen
        self.damaged = []
        values = self._read_settings() if seen[0].inode else {}
        return values | self._read_epoch()

    def _read_settings(self) -> dict[str, str]:
        try:
            rows = list(_rows(self._disk.read(SETTINGS)[0]))
        except StoreError as error:
            if open_files.too_many(error):  # the file may be sound
                self.seen = None
                raise
            rows = [SettingRow(SETTINGS, "", b"")]  # a link, or no file
        values = {row.name: row.value for row in rows if row.is_sound()}
        schema = values.pop(MARK, "")
        if schema.isdecimal() and int(schema) > lines.SCHEMA:
            self.seen = None  # it is told again at the next look
            raise SchemaTooNew(
                f"{SETTINGS!r} is of schema {schema}, this release reads up to {lines.SCHEMA}",
                details={"file": SETTINGS, "schema": int(schema)},
                hint="install a newer release of Wellkept",
            )
        self.damaged = [row for row in rows if not row.is_sound() and row.name not in values]
        if not rows:
            self.damaged.append(SettingRow(SETTINGS, "", b""))  # it is empty
        return values

    def _read_epoch(self) -> dict[str, str]:
        with suppress(StoreError):
            fields = lines.unsealed(self._disk.read(EPOCH)[0])
            if not isinstance(fields, lines.Flaw) and isinstance(epoch := fields.get("epoch"), str):
                return {"epoch": epoch}
        return {}

    def write(self, values: Mapping[str, str], *, mended: Collection[str] = ()) -> None:
        """Exchange the settings at once. Damaged ones that are neither among them nor mended stay as they are."""
        if self.damaged:
            with suppress(NotAStore):  # a link or a pipe says nothing
                self._disk.replace(f"{SETTINGS}.damaged", self._disk.read(SETTINGS)[0])
        kept = {name: value for name, value in values.items() if name not in ("epoch", MARK)}
        rows = [SettingRow.sealed(*one) for one in ((MARK, str(lines.SCHEMA)), *sorted(kept.items()))]
        self.damaged = [row for row in self.damaged if row.name not in (*kept, *mended, MARK, SETTINGS)]
        self._disk.replace(SETTINGS, b"{" + b",\n ".join(map(_member, [*rows, *self.damaged])) + b"}\n")
        self.seen = None

    def begin_epoch(self) -> None:
        """Begin a new epoch if there is none."""
        if not self._read_epoch():
            self._disk.replace(EPOCH, lines.seal({"epoch": ids.new_origin(os.urandom)}), sync=False)
            self.seen = None


def _member(row: SettingRow) -> bytes:
    name, value, checksum = row
    return codec.encode_json(name) + b": " + codec.encode_json([value, checksum.hex()]).replace(b'","', b'", "')


def _rows(data: bytes) -> Iterator[SettingRow]:
    """The settings of a file, whatever stands around them; what is no whole setting is a damaged one."""
    yield from map(_row, _MEMBER.finditer(data))
    for rest in _MEMBER.sub(b"", data).split(b"\n"):
        if rest := rest.strip(_FRAME):
            yield _broken(rest)


def _row(member: re.Match[bytes]) -> SettingRow:
    name, value, checksum = member.groups()
    digits = re.sub("[^0-9a-f]", "0", checksum.decode(errors="replace"))
    row = SettingRow(_decoded(name), _decoded(value), bytes.fromhex(digits) if len(digits) % 2 == 0 else b"")
    return row if digits.encode() == checksum else _unsound(row)


def _broken(text: bytes) -> SettingRow:
    """A setting one of whose signs is wrong; otherwise whatever stands there."""
    for at in range(len(text)):
        for sign in (b'"', b":", b"[", b",", b"]", b" "):
            member = _MEMBER.fullmatch(text[:at] + sign + text[at + 1 :])
            if member is not None and _row(member).is_sound():
                return _unsound(_row(member))
    word = _WORD.search(text) if b'"' in text else None
    return SettingRow(word[0].decode() if word else SETTINGS, text.decode(errors="replace"), b"")


def _unsound(row: SettingRow) -> SettingRow:
    """The same, to be told as damaged: with one wrong byte in its checksum, which can be mended."""
    return row._replace(checksum=bytes([row.checksum[0] ^ 1]) + row.checksum[1:]) if row.is_sound() else row


def _decoded(text: bytes) -> str:
    try:
        return str(codec.decode_json(text))
    except lines.UNREADABLE:
        return text[1:-1].decode(errors="replace")
