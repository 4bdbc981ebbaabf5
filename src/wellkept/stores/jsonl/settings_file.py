"""What a folder keeps about itself: its origin and settings in a file of their own, its epoch with what is derived."""

import os
from collections.abc import Mapping
from contextlib import suppress

from wellkept import codec, ids, open_files
from wellkept.errors import NotAStore, SchemaTooNew, StoreError
from wellkept.stores.jsonl import lines
from wellkept.stores.jsonl.disk import Disk, Look
from wellkept.stores.jsonl.owner_folder import DERIVED

SETTINGS = "settings.json"
MARK = "wellkept"
"""The member of ``settings.json`` that says whose folder it is, and by which schema."""
EPOCH = f"{DERIVED}/epoch.json"


class SettingsFile:
    """``settings.json`` and ``derived/epoch.json``. Without an epoch, positions that were given away mean nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.seen: tuple[Look, Look] | None = None
        self.damaged = False

    def news(self) -> dict[str, str]:
        """What changed since the last look."""
        seen = (self._disk.look(SETTINGS), self._disk.look(EPOCH))
        if seen == self.seen:
            return {}
        self.seen = seen
        found = self._read(SETTINGS)
        self.damaged = found is None and seen[0].inode != 0
        return (found or {}) | (self._read(EPOCH) or {})

    def _read(self, name: str) -> dict[str, str] | None:
        try:
            data, _ = self._disk.read(name)
            fields = codec.decode_json(data) if data else {}
            schema = fields.pop(MARK, lines.SCHEMA)
            if isinstance(schema, int) and schema > lines.SCHEMA:
                raise SchemaTooNew(
                    f"{name!r} is of schema {schema}, this release reads up to {lines.SCHEMA}",
                    details={"file": name, "schema": schema},
                    hint="install a newer release of Wellkept",
                )
            if not all(isinstance(value, str) for value in fields.values()):
                return None
            dimension = fields.get("dimension", "1")
            return fields if dimension.isdecimal() and len(dimension) < 7 else None
        except SchemaTooNew:
            self.seen = None  # it is told again at the next look
            raise
        except (*lines.UNREADABLE, StoreError) as error:
            if open_files.too_many(error):  # the file may be sound
                self.seen = None
                raise
            return None

    def write(self, values: Mapping[str, str]) -> None:
        """Exchange the settings at once."""
        kept = {name: value for name, value in values.items() if name != "epoch"}
        if self.damaged:
            with suppress(NotAStore):  # a link or a pipe says nothing
                self._disk.replace(f"{SETTINGS}.damaged", self._disk.read(SETTINGS)[0])
        pairs = {MARK: lines.SCHEMA, **dict(sorted(kept.items()))}.items()
        rows = b",\n ".join(codec.encode_json(name) + b": " + codec.encode_json(value) for name, value in pairs)
        self._disk.replace(SETTINGS, b"{" + rows + b"}\n")
        self.seen, self.damaged = None, False

    def begin_epoch(self) -> None:
        """Begin a new epoch if there is none."""
        if not self._read(EPOCH):
            epoch = {"epoch": ids.new_origin(os.urandom)}
            self._disk.replace(EPOCH, codec.encode_json(epoch) + b"\n", sync=False)
            self.seen = None
