"""Embedded files from the inside: their schema, rows whose checksum is right, and shorter waits."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from wellkept.stores.sqlite import connections, rows, schema


def schema_of(database: Path) -> int:
    """The schema that a file has."""
    with closing(apsw.Connection(str(database))) as connection:
        return schema.version_of(connection)


def bring_to_schema(database: Path, number: int) -> None:
    """Take a file to another schema, without the copy and the questions that a user gets."""
    with closing(connections.connect(database, "full")) as connection:
        schema.migrate(connection, number)
        assert schema.version_of(connection) == number


def change_version(database: Path, memory_id: str, values: dict[str, object]) -> None:
    """Change a version, and give it the checksum that belongs to it, as whoever makes a hostile file would."""
    columns = rows.CHECKED.split(", ")
    with closing(apsw.Connection(str(database))) as connection:
        row: tuple[object, ...] = (
            connection.execute(f"SELECT {rows.CHECKED} FROM journal WHERE id = ?", (memory_id,)).fetchone() or ()
        )
        changed = dict(zip(columns, row, strict=True)) | values
        checked = [changed[column] for column in columns[:-1]]
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM journal WHERE id = ?", (memory_id,))
        rows.INTO_JOURNAL.rows(connection, [(*checked, rows.checksum(checked))])
        connection.execute("UPDATE heads SET place = ? WHERE place = ?", (changed["place"], row[0]))


def wait_only(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    """Give up on a locked file sooner than users do."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", milliseconds)


def pool_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call make a connection of its own."""
    monkeypatch.setattr(connections, "IDLE_READERS", 0)
