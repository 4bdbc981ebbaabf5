"""Appending to the journal and keeping its projections in step, inside one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from recollect import codec, tally
from recollect.errors import Conflict, EmbedderMismatch, InvalidInput
from recollect.ports import Write
from recollect.stores.sqlite import rows
from recollect.types import Memory, Operation, Owner, State, Vector

INSERT_TAG = "INSERT INTO tags (owner, tag, number) VALUES (?, ?, ?)"
INSERT_KEY = "INSERT INTO keys (owner, key, number) VALUES (?, ?, ?)"
INSERT_WORDS = "INSERT INTO words (rowid, text) VALUES (?, ?)"


@dataclass(slots=True)
class Head:
    """What the file knows of an id: where its newest version is."""

    number: int
    version: int
    sequence: int
    owner: int
    operation: str
    state: str


class Transaction:
    """One open transaction: everything that writes goes through here.

    ``owners`` are the owners known to be committed; those that this transaction makes are kept apart until
    it is committed, since a number that was rolled back may be given to another owner.
    """

    def __init__(self, connection: apsw.Connection, owners: Mapping[Owner, int]) -> None:
        self.connection = connection
        self.new_owners: dict[Owner, int] = {}
        self.accesses: Mapping[str, rows.Accesses] = {}
        self._owners = owners
        self._next = int(connection.execute("SELECT max(sequence) FROM journal").get or 0) + 1

    def append(self, writes: Sequence[Write]) -> list[int]:
        """Append versions, all or none: every check comes before the first change."""
        heads = self._checked(writes)
        batch = _Batch(self.connection)
        sequences: list[int] = []
        for write, head in zip(writes, heads, strict=True):
            sequence, self._next = self._next, self._next + 1
            sequences.append(sequence)
            owner = self._owner(write.memory.owner)
            if write.operation is Operation.ERASED:
                batch.flush()
                self._erase(write, head, sequence, owner)
                continue
            if head.sequence == 0:
                head.number = sequence
            elif head.state == State.ACTIVE:
                batch.flush()
                self._forget_words(head.sequence)
            batch.add(write, head.number, sequence, owner, replaces=head.sequence != 0)
            head.sequence, head.state = sequence, write.memory.state
        batch.flush()
        return sequences

    # -- checks -----------------------------------------------------------------------------------------------

    def _checked(self, writes: Sequence[Write]) -> list[Head]:
        """The head before each write, or the error of the first write that does not fit.

        Versions of one memory in one batch share a head, which ``append`` then moves along.
        """
        known: dict[str, Head] = {}
        taken: set[tuple[Owner, str]] = set()
        heads: list[Head] = []
        for write in writes:
            memory = write.memory
            head = known.get(memory.id)
            if head is None:
                head = known[memory.id] = self._head(memory.id)
            self._check_version(write, head)
            if memory.key is not None and memory.version == 1:
                self._check_key(memory, taken)
            head.version = memory.version
            heads.append(head)
        self._check_vectors([write.vector for write in writes if write.vector is not None])
        return heads

    def _head(self, memory_id: str) -> Head:
        row = self.connection.execute(
            "SELECT j.number, j.version, j.sequence, j.owner, j.operation, h.state"
            " FROM journal j LEFT JOIN heads h ON h.owner = j.owner AND h.number = j.number"
            " WHERE j.id = ? ORDER BY j.version DESC LIMIT 1",
            (memory_id,),
        ).fetchone()
        return Head(*row) if row else Head(0, 0, 0, 0, "", "")

    def _check_version(self, write: Write, head: Head) -> None:
        memory = write.memory
        foreign = head.owner and head.owner != self._find_owner(memory.owner)
        if head.version != memory.version - 1 or head.operation == Operation.ERASED or foreign:
            raise Conflict(
                f"memory {memory.id!r} is not at version {memory.version - 1}",
                details={"memory_id": memory.id, "expected": memory.version - 1},
                hint="read it again and repeat the change",
            )

    def _check_key(self, memory: Memory, taken: set[tuple[Owner, str]]) -> None:
        key = memory.key or ""
        owner = self._find_owner(memory.owner)
        found = owner and self.connection.execute("SELECT 1 FROM keys WHERE owner = ? AND key = ?", (owner, key)).get
        if found or (memory.owner, key) in taken:
            raise Conflict(
                "the key of a new memory is already taken",
                details={"field": "key"},
                hint="read the memory that has it",
            )
        taken.add((memory.owner, key))

    def _check_vectors(self, vectors: Sequence[Vector]) -> None:
        if not vectors:
            return
        settings = rows.settings(self.connection)
        name = settings.get("embedder", vectors[0].embedder)
        dimension = int(settings.get("dimension", vectors[0].dimension))
        for vector in vectors:
            check_vector(vector, name, dimension)
        if "dimension" not in settings:
            rows.set_settings(self.connection, {"embedder": name, "dimension": str(dimension)})

    # -- owners -----------------------------------------------------------------------------------------------

    def _find_owner(self, owner: Owner) -> int:
        known = self._owners.get(owner) or self.new_owners.get(owner)
        if known is None:
            known = rows.owner_number(self.connection, owner)
        return known

    def _owner(self, owner: Owner) -> int:
        number = self._find_owner(owner)
        if not number:
            self.connection.execute("INSERT INTO owners (name) VALUES (?)", (codec.encode_owner(owner),))
            number = self.new_owners[owner] = self.connection.last_insert_rowid()
        return number

    # -- changes ----------------------------------------------------------------------------------------------

    def _forget_words(self, sequence: int) -> None:
        """Take a version out of the full-text index, which needs the very text that was put in."""
        number, content, body = rows.fetch(
            self.connection, "SELECT number, content, body FROM journal WHERE sequence = ?", (sequence,)
        )[0]
        self.connection.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
            (number, rows.searchable(content, body)),
        )

    def _erase(self, write: Write, head: Head, sequence: int, owner: int) -> None:
        number = head.number or sequence
        if head.state == State.ACTIVE:
            self._forget_words(head.sequence)
        remove_projections(self.connection, owner, number)
        self.connection.execute("DELETE FROM vectors WHERE number = ?", (number,))
        self.connection.execute("DELETE FROM accesses WHERE number = ?", (number,))
        self.connection.execute("DELETE FROM damaged WHERE id = ?", (write.memory.id,))
        self.connection.execute("DELETE FROM journal WHERE id = ?", (write.memory.id,))
        self.connection.execute(rows.INSERT_JOURNAL, rows.tombstone(write, number, sequence, owner))
        head.sequence, head.operation, head.state = sequence, Operation.ERASED, ""

    def count_accesses(self, accesses: Mapping[str, rows.Accesses]) -> None:
        """Add up accesses that were kept in RAM until now."""
        self.accesses = accesses
        self.connection.executemany(
            "INSERT INTO accesses (number, count, last_at)"
            " SELECT number, ?, ? FROM journal WHERE id = ? AND operation <> 'erased' ORDER BY version LIMIT 1"
            " ON CONFLICT (number) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at",
            [(count, codec.to_micros(at), memory_id) for memory_id, (count, at) in accesses.items()],
        )


def check_vector(vector: Vector, name: str, dimension: int) -> None:
    """A store holds the vectors of one embedder only: others cannot be compared with them."""
    if vector.embedder != name:
        raise EmbedderMismatch(
            f"the store holds vectors of {name!r}, not of {vector.embedder!r}",
            details={"stored": name, "given": vector.embedder},
            hint=f"open the store with the embedder {name!r}",
        )
    if vector.dimension != dimension:
        raise InvalidInput(
            f"vector has {vector.dimension} dimensions, the store's have {dimension}",
            details={"field": "vector", "given": vector.dimension, "expected": dimension},
            hint="use the embedder that the store was filled with",
        )


def remove_projections(connection: apsw.Connection, owner: int, number: int) -> None:
    """Take a memory out of heads, tags and keys."""
    connection.execute("DELETE FROM heads WHERE owner = ? AND number = ?", (owner, number))
    for table in ("tags", "keys"):
        connection.execute(f"DELETE FROM {table} WHERE owner = ? AND number = ?", (owner, number))


class _Batch:
    """Rows collected per table, so that many versions cost few statements."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._clear()

    def _clear(self) -> None:
        self._journal: list[tuple[object, ...]] = []
        self._heads: dict[int, tuple[object, ...]] = {}
        self._tags: list[tuple[int, str, int]] = []
        self._keys: list[tuple[int, str, int]] = []
        self._vectors: dict[int, tuple[int, str, bytes]] = {}
        self._words: list[tuple[int, str]] = []

    def add(self, write: Write, number: int, sequence: int, owner: int, *, replaces: bool) -> None:
        """Collect the rows of one version and of its projections."""
        memory = write.memory
        body = codec.encode_body(memory)
        self._journal.append(rows.journal_row(write, body, number, sequence, owner))
        if replaces:
            self.flush()
            self._replace(write, owner, number)
        vector_bytes = self._vector_bytes(write, number)
        size = tally.footprint_of(memory.content, body, vector_bytes)
        self._heads[number] = rows.head_row(memory, number, sequence, owner, size)
        self._tags.extend((owner, tag, number) for tag in memory.tags)
        if memory.key is not None:
            self._keys.append((owner, memory.key, number))
        if write.vector is not None:
            self._vectors[number] = (number, write.vector.embedder, write.vector.data)
        if memory.state is State.ACTIVE:
            self._words.append((number, rows.searchable_text(memory)))

    def _vector_bytes(self, write: Write, number: int) -> int:
        if write.vector is not None or not write.keeps_vector:
            return len(write.vector.data) if write.vector else 0
        found = self._connection.execute("SELECT length(data) FROM vectors WHERE number = ?", (number,)).get
        return int(found or 0)

    def _replace(self, write: Write, owner: int, number: int) -> None:
        remove_projections(self._connection, owner, number)
        if not write.keeps_vector:
            self._connection.execute("DELETE FROM vectors WHERE number = ?", (number,))

    def flush(self) -> None:
        """Write what was collected."""
        if not self._journal:
            return
        for statement, values in self._statements():
            if len(values) == 1:
                self._connection.execute(statement, values[0])
            elif values:
                self._connection.executemany(statement, values)
        self._clear()

    def _statements(self) -> Iterable[tuple[str, list[tuple[object, ...]]]]:
        yield rows.INSERT_JOURNAL, self._journal
        yield rows.INSERT_HEAD, list(self._heads.values())
        yield INSERT_TAG, list(self._tags)
        yield INSERT_KEY, list(self._keys)
        yield rows.INSERT_VECTOR, list(self._vectors.values())
        yield INSERT_WORDS, list(self._words)
