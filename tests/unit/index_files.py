"""Files with indexes for the tests of the embedded store: filling, searching, and looking at their images."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
from recollect.testing.agreement import agree, values_of

from recollect import codec
from recollect.stores.sqlite import SqliteStore
from recollect.testing.builders import memory, owner, probe, put, query, vector
from recollect.types import Memory, Owner

ADA = owner("ada")
BOB = owner("bob")
ROWS = 8
"""How many memories an index needs for an image, in these tests."""

SEARCH = probe("number dark", vector(1, 2))


def filled(store: SqliteStore, count: int = ROWS, whose: Owner = ADA) -> list[Memory]:
    """So many memories, with words, authors, sessions and vectors."""
    memories = [
        memory(f"number {n} dark", whose, author=f"author{n}", session=f"s{n // 3}", vector=vector(1, n))
        for n in range(count)
    ]
    put(store, *memories)
    return memories


def search(store: SqliteStore, *owners: Owner) -> dict[int, object]:
    """What the store says now; the default, which uses no index, must say the same."""
    wanted = query(*(owners or (ADA,)))
    agree(store, wanted, SEARCH)
    agree(store, wanted, probe(near=vector(1, 2)))
    return dict(values_of(store.candidates(wanted, SEARCH)))


def table(path: Path, columns: str = "owner, part, data") -> list[tuple[object, ...]]:
    """The images in the file."""
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute(f"SELECT {columns} FROM images ORDER BY owner, part").fetchall()


@contextmanager
def watched(path: Path) -> Iterator[Callable[[], bool]]:
    """Tells whether anybody wrote to the file since: an index that is made anew is stored, a loaded one is not."""
    with closing(apsw.Connection(str(path))) as watcher:
        before = watcher.pragma("data_version")
        yield lambda: watcher.pragma("data_version") != before


def header(path: Path, whose: int = 1) -> dict[str, object]:
    """What the image of an owner says of itself."""
    [data] = [row[2] for row in table(path) if row[:2] == (whose, "header")]
    assert isinstance(data, bytes)
    found: dict[str, object] = codec.decode_json(data)
    return found


def change(path: Path, statement: str, *values: object) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement, values)


def raw(path: Path) -> bytes:
    """Everything that is on the disk."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))
