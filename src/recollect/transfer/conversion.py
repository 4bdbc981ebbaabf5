"""Copying a store into another, history included: whatever is asked of the one, the other answers the same.

The journal comes first, in its own order and in batches, each of them one transaction of the target; then what stands
beside it: vectors that came later, accesses, settings. In the end both journals are compared. The target remembers how
far it is, so that whoever is interrupted goes on there, and whoever is done follows what was written since.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Self

from recollect import codec, plugins
from recollect.errors import ConfigurationError, Conflict, NotACopy, RecollectError
from recollect.memories import comparing
from recollect.ports import Embedded, Store, Stored, Write
from recollect.types import ConversionReport, Memory, Operation, Vector, Version

CONVERSION = "conversion"
"""The setting in which a target remembers how far it is."""

_PATIENCE = 3  # rounds in which the source changed under our hands
# How a store writes is its own; which embedder it has is said with its vectors.
_NOT_COPIED = frozenset({CONVERSION, "durability", "embedder", "dimension"})

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


def convert(
    source: str | Path | Store, target: str | Path | Store, *, progress: Progress | None = None
) -> ConversionReport:
    """Copy a database into another store, history included, and compare them in the end.

    Both are a path, a URL, or a store that is open. The source is only read, and can be in use meanwhile. The target is
    new, or a copy of this source: one that was interrupted goes on where it was, a finished one gets what came since.
    ``progress`` is told how much is done of how much: copying and comparing a version count the same.

    >>> import recollect
    >>> with recollect.open("memory.db") as memories:
    ...     tea = memories.view(user="ada").add("Likes tea")
    >>> recollect.convert("memory.db", "elsewhere.db").copied
    1
    >>> with recollect.open("elsewhere.db") as memories:
    ...     memories.view(user="ada").get(tea.id).content
    'Likes tea'
    """
    try:
        _check_apart(source, target)
        with ExitStack() as opened:
            known = _source(source, opened)
            return _Conversion(known, _target(target, opened), progress).run()
    except RecollectError as error:
        error.operation = error.operation or "convert"
        raise


# -- the two stores -----------------------------------------------------------------------------------------------


def _check_apart(source: str | Path | Store, target: str | Path | Store) -> None:
    same = source is target
    if not (isinstance(source, Store) or isinstance(target, Store)):
        same = plugins.same_place(source, target)
    if same:
        raise ConfigurationError(
            "source and target are the same", details={"field": "target"}, hint="convert into a new place"
        )


def _source(given: str | Path | Store, opened: ExitStack) -> Store:
    if isinstance(given, Store):
        return given
    if not plugins.is_there(given):
        raise ConfigurationError(
            f"there is no database at {str(given)[:100]!r}",
            details={"field": "source"},
            hint="check the path; what is kept in RAM is given as a store",
        )
    store = plugins.open_store(given)
    opened.callback(store.close)
    return store


def _target(given: str | Path | Store, opened: ExitStack) -> Store:
    if isinstance(given, Store):
        return given
    store = plugins.open_store(given)
    opened.callback(store.close)
    if not store.capabilities.durable:
        raise ConfigurationError(
            f"nothing would be left of {str(given)[:100]!r} when it is closed",
            details={"field": "target"},
            hint="pass a store that you opened yourself, or a path",
        )
    return store


# -- how far it is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Position:
    """The last version that was taken from the source, and the sequence that the target had then.

    The memory says which source it is: names change, files are moved, but no two stores give out the same id.
    """

    after: int = 0
    reached: int = 0
    owner: str = ""
    memory_id: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """What ``text`` wrote; ``ValueError`` for anything else."""
        _, after, reached, owner, memory_id = text.split("\n", 4)
        if owner:
            codec.decode_owner(owner)
        return cls(after=int(after), reached=int(reached), owner=owner, memory_id=memory_id)

    def text(self, *, finished: bool = False) -> str:
        """As a setting keeps it."""
        state = "finished" if finished else "copying"
        return f"{state}\n{self.after}\n{self.reached}\n{self.owner}\n{self.memory_id}"


class _Conversion:
    def __init__(self, source: Store, target: Store, progress: Progress | None) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._start = 0
        self._copied = 0
        self._memories = 0

    def run(self) -> ConversionReport:
        """Copy, compare, and do it again if the source changed too much meanwhile to compare the two."""
        position = self._resumed()
        self._start = position.after
        same: comparing.Sameness | None = None
        rounds = 0
        while same is None:
            rounds += 1
            position = self._copy_journal(position)
            self._copy_beside()
            same = self._compare(position, last_try=rounds == _PATIENCE)
        self._target.set_settings({CONVERSION: position.text(finished=True)})
        self._tell(position.after, position.after, end=position.after)
        return ConversionReport(
            copied=self._copied,
            memories=self._memories,
            versions=same.versions,
            owners=same.owners,
            checksum=same.checksum,
        )

    def _compare(self, position: _Position, *, last_try: bool) -> comparing.Sameness | None:
        try:
            return comparing.compare(self._source, self._target, position.after, self._compared)
        except NotACopy:
            # An erasure drops versions that were copied before; its mark comes next.
            if last_try or not self._source.journal(after=position.after, limit=1):
                raise
            return None

    # -- beginning ------------------------------------------------------------------------------------------------

    def _resumed(self) -> _Position:
        """Where to go on: at the beginning in an empty target, else behind what a copy of this source has."""
        text = self._target.settings().get(CONVERSION)
        if text is None:
            self._begin()
            return _Position()
        try:
            position = _Position.parse(text)
        except ValueError:
            raise _no_copy("the setting that says how far it is cannot be read") from None
        if position.after and not self._tells_of(position):
            raise _no_copy("it is a copy of another source")
        # Whoever was stopped between a batch and the note of it left one batch more than the note says.
        more = self._target.journal(after=position.reached, limit=comparing.BATCH + 1)
        if len(more) > comparing.BATCH or not all(self._has(version) for version in more):
            raise _no_copy("it was written to by others")
        return replace(position, reached=more[-1].sequence if more else position.reached)

    def _begin(self) -> None:
        if self._target.sequence() or self._target.all_records():
            raise _no_copy("it is not empty")
        self._adopt(self._source.settings())
        self._target.set_settings({CONVERSION: _Position().text()})

    def _tells_of(self, position: _Position) -> bool:
        """Whether the source has the version that was taken last, or the mark of its memory's erasure."""
        owner = codec.decode_owner(position.owner)
        lived = self._source.versions({owner}, memory_id=position.memory_id)
        return any(one.sequence == position.after or one.operation is Operation.ERASED for one in lived)

    def _has(self, copy: Version) -> bool:
        lived = self._source.versions({copy.owner}, memory_id=copy.memory_id)
        told = codec.encode_version(copy)
        return any(one.operation is Operation.ERASED or codec.encode_version(one) == told for one in lived)

    # -- the journal ----------------------------------------------------------------------------------------------

    def _copy_journal(self, position: _Position) -> _Position:
        """All that is there now; who writes faster than we copy is not chased for ever."""
        upto = self._source.sequence()
        embedder = self._target.settings().get("embedder")
        for batch in comparing.batches(self._source, position.after):
            writes = self._writes(batch, embedder)
            try:
                sequences = self._target.apply(writes)
            except Conflict as error:
                raise _no_copy("it was written to by others", **error.details) from error
            last = batch[-1]
            position = _Position(
                after=last.sequence,
                reached=sequences[-1] if sequences else position.reached,
                owner=codec.encode_owner(last.owner),
                memory_id=last.memory_id,
            )
            self._target.set_settings({CONVERSION: position.text()})
            self._copied += len(writes)
            self._tell(last.sequence)
            if last.sequence >= upto:
                break
        return position

    def _writes(self, batch: Sequence[Version], embedder: str | None) -> list[Write]:
        """The versions of a batch that the target lacks, each as it was written, the newest with its vector."""
        owners = {version.owner for version in batch}
        ids = {version.memory_id for version in batch}
        heads = self._source.get(owners, ids, vectors=True)
        stored = {one.id: one.version for one in self._target.get(owners, ids).values()}
        writes = []
        for version in batch:
            before = stored.get(version.memory_id, 0)
            if version.version <= before or (not before and self._is_marked(version)):
                continue
            stored[version.memory_id] = version.version
            vector = _vector_of(version, heads.get(version.memory_id))
            writes.append(
                Write(
                    operation=version.operation,
                    memory=version.memory or _nothing_left(version),
                    recorded_at=version.recorded_at,
                    reason=version.reason,
                    vector=vector if vector and vector.embedder == embedder else None,
                    follows=before,
                )
            )
        return writes

    def _is_marked(self, version: Version) -> bool:
        """Whether it is the mark of an erased memory, and the target has it already."""
        if version.operation is not Operation.ERASED:
            return False
        return bool(self._target.versions({version.owner}, memory_id=version.memory_id))

    # -- what stands beside the journal ---------------------------------------------------------------------------

    def _copy_beside(self) -> None:
        """Accesses, vectors and settings, until the vectors are the same: others may be embedding the source."""
        rounds = 0
        while True:
            rounds += 1
            settings = self._source.settings()
            differing = self._copy_heads()
            if self._adopt(settings) and not differing:
                break
            if rounds == _PATIENCE:
                raise NotACopy(
                    "the target could not get the vectors of the source",
                    details={"embedder": settings.get("embedder")},
                    hint="run memories.reembed() on the source, so that no memory lacks its vector, and convert again",
                )
        copy_records(self._source, self._target)
        kept = self._target.settings()
        told = {name: value for name, value in settings.items() if name not in _NOT_COPIED and kept.get(name) != value}
        if told:
            self._target.set_settings(told)

    def _copy_heads(self) -> int:
        """Go through all memories once; how many had another vector in the target."""
        self._memories = differing = 0
        for owner in self._source.owners():
            for batch in _batches(self._source.scan({owner}, vectors=True)):
                copies = self._target.get({owner}, [one.id for one in batch], vectors=True)
                # One that is at another version was changed since: its next version brings everything.
                pairs = [(one, copies[one.id]) for one in batch if one.id in copies]
                pairs = [(one, copy) for one, copy in pairs if one.version == copy.version]
                self._copy_accesses(pairs)
                vectors = [(copy, one.vector) for one, copy in pairs if one.vector and one.vector != copy.vector]
                if vectors:
                    self._target.embed([self._embedded(copy, vector) for copy, vector in vectors])
                self._memories += len(batch)
                differing += len(vectors)
        return differing

    def _copy_accesses(self, pairs: Iterable[tuple[Memory, Memory]]) -> None:
        for one, copy in pairs:
            missing = one.access_count - copy.access_count
            if missing > 0 and one.last_accessed_at is not None:
                self._target.touch(repeat(one.id, missing), one.last_accessed_at)

    def _embedded(self, copy: Memory, vector: Vector) -> Embedded:
        [first] = self._target.versions({copy.owner}, memory_id=copy.id, limit=1)
        return Embedded(number=first.sequence, version=copy.version, vector=vector)

    def _adopt(self, settings: dict[str, str]) -> bool:
        if "embedder" not in settings or "dimension" not in settings:
            return True  # nobody ever embedded anything
        return self._target.adopt(settings["embedder"], int(settings["dimension"]))

    # -- progress -------------------------------------------------------------------------------------------------

    def _compared(self, version: Version) -> None:
        if version.sequence % comparing.BATCH == 0:
            self._tell(self._source.sequence(), version.sequence)

    def _tell(self, copied: int, compared: int = 0, *, end: int | None = None) -> None:
        if self._progress is not None:
            last = self._source.sequence() if end is None else end
            self._progress(copied - self._start + compared, last - self._start + last)


def copy_records(source: Store, target: Store) -> None:
    """Make the records of the target those of the source. A store takes them version by version."""
    wanted = {(one.owner, one.kind, one.name): one for one in source.all_records()}
    stored = {(one.owner, one.kind, one.name): one for one in target.all_records()}
    for place, record in wanted.items():
        before = stored.get(place)
        if before is not None and before.version > record.version:  # dropped in the source, and begun anew
            target.drop_record(*place)
            before = None
        for version in range(before.version + 1 if before else 1, record.version + 1):
            target.put_record(replace(record, version=version))
    for place in stored.keys() - wanted.keys():
        target.drop_record(*place)


def _batches(found: Iterator[Stored]) -> Iterator[list[Memory]]:
    """Memories in pieces that fit into memory."""
    batch: list[Memory] = []
    size = 0
    for stored in found:
        batch.append(stored.memory)
        size += len(stored.memory.content)
        if len(batch) == comparing.BATCH or size > comparing.BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _vector_of(version: Version, head: Memory | None) -> Vector | None:
    """Vectors are kept of newest versions only."""
    return head.vector if head is not None and head.version == version.version else None


def _nothing_left(version: Version) -> Memory:
    """An erased memory: all that a store looks at is whose it was, and its version."""
    at = version.recorded_at
    return Memory(
        id=version.memory_id,
        content="",
        owner=version.owner,
        version=version.version,
        created_at=at,
        updated_at=at,
        occurred_at=at,
    )


def _no_copy(why: str, **details: object) -> NotACopy:
    return NotACopy(
        f"the target cannot take this source: {why}", details=details, hint="convert into a place where nothing is yet"
    )
