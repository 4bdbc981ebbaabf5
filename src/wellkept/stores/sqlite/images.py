"""Images of indexes in the file: copies that spare a new process the loading."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from wellkept.ports import Images
from wellkept.stores.sqlite import connections, rows
from wellkept.stores.sqlite.file import SqliteFile
from wellkept.types import Mark, Owner

_PARTS = "SELECT image, part, seq, revision FROM images WHERE owner = ?"
_MARK = "SELECT seq, revision FROM owners WHERE owner = ?"


class SqliteImages(Images):
    """One row per part of an image, each with the mark of the whole."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def read(self, owner: Owner) -> tuple[Mark, Mapping[str, bytes | memoryview]] | None:
        """All parts, from one state of the file."""
        with self._file.snapshot() as connection:
            for number in self._file.numbers(connection, {owner}):
                found = rows.fetch(connection, _PARTS, (number,))
                if found:
                    return Mark(*found[0][2:]), {part: _contents(connection, image) for image, part, _, _ in found}
        return None

    def write(self, owner: Owner, mark: Mark, parts: Mapping[str, bytes | memoryview]) -> bool:
        """Keep an image if the write lock is free: it is written on behalf of a search, which must neither
        wait for other writers nor fail because the disk is full.
        """
        connection = self._file.readers.take()
        try:
            with connections.writing(connection, wait_ms=0):
                number = rows.owner_number(connection, owner)
                found = rows.fetch(connection, _MARK, (number,))
                if not found or Mark(*found[0]) != mark:
                    return False
                connection.execute("DELETE FROM images WHERE owner = ?", (number,))
                connection.executemany(
                    "INSERT INTO images (owner, part, seq, revision, data) VALUES (?, ?, ?, ?, ?)",
                    [(number, part, mark.seq, mark.revision, data) for part, data in parts.items()],
                )
        except apsw.Error:
            return False
        else:
            return True
        finally:
            self._file.readers.give(connection)


def _contents(connection: apsw.Connection, image: int) -> memoryview:
    """The bytes of a part, read into an array at once: as the column of a row they would be copied twice, which takes
    three times as long.
    """
    import numpy as np  # lazy: takes 100 ms, and only a search reads images

    with connection.blob_open("main", "images", "data", image, False) as blob:
        data = np.empty(blob.length(), np.uint8)
        if len(data):
            blob.read_into(data.data)
    return data.data
