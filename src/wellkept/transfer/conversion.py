"""Copying a store into another, history included: whatever is asked of the one, the other answers the same.

The journals come first, in batches, each of them one transaction of the target, every version under its own stamp;
then what stands beside them: records, vectors that came later, accesses, settings. In the end both journals are
compared. The target remembers how far it is, so that a conversion that was interrupted goes on there, and a finished
copy follows what was written since.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from wellkept import codec, plugins
from wellkept.engine import ledger
from wellkept.engine.ledger import Ledger
from wellkept.errors import ConfigurationError, Conflict, InvalidInput, NotACopy, PositionLost, WellkeptError
from wellkept.ports import Journal, Record, Store
from wellkept.settings import shown
from wellkept.transfer import comparison
from wellkept.types import Access, ConversionReport, Embedded, Operation, Position, Stored, Vector, Write
from wellkept.types.owners import DATABASE

CONVERSION = "conversion"
"""The setting in which a target remembers how far it is."""

_UNREADABLE = "the setting that says how far it is cannot be read"
_OTHERS = "it was written to by others"
_PATIENCE = 3  # rounds in which the source changed while it was copied
# How a store writes is its own; which embedder it has is said with its vectors.
_NOT_COPIED = frozenset({CONVERSION, "durability", "embedder", "dimension", "origin", "epoch", ledger.ERASING})

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


def convert(
    source: str | Path | Store, target: str | Path | Store, *, progress: Progress | None = None
) -> ConversionReport:
    """Copy a database into another store, history included, and compare them in the end.

    Both are a path, a URL, or a store that is open. The source is only read, and can be in use meanwhile. The target is
    new, or a copy of this source: one that was interrupted goes on where it was, a finished one gets what came since.
    ``progress`` is told how much is done of how much: copying and comparing a version count the same.

    >>> import wellkept
    >>> with wellkept.open("memory.db") as memories:
    ...     tea = memories.view(user="ada").add("Likes tea")
    >>> wellkept.convert("memory.db", "elsewhere.db").copied
    1
    >>> with wellkept.open("elsewhere.db") as memories:
    ...     memories.view(user="ada").get(tea.id).content
    'Likes tea'
    """
    try:
        _check_apart(source, target)
        with ExitStack() as opened:
            known = _source(source, opened)
            return _Conversion(known, opened.enter_context(_target(target)), progress).run()
    except WellkeptError as error:
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
        passing = not plugins.is_lasting(given)
        raise ConfigurationError(
            f"there is no database at {shown(given)[:100]!r}",
            details={"field": "source"},
            hint="pass the open store itself: what is in RAM has no place" if passing else "check the path",
        )
    store = plugins.open_store(given)
    opened.callback(store.close)
    return store


@contextmanager
def _target(given: str | Path | Store) -> Iterator[Store]:
    """The store to write to. One that was made for this, and into which nothing could be copied, is removed again."""
    if isinstance(given, Store):
        yield given
        return
    undo = plugins.creation(given)
    store = plugins.open_store(given)
    unused = False
    try:
        if not store.capabilities.durable:
            raise ConfigurationError(
                f"nothing would be left of {shown(given)[:100]!r} when it is closed",
                details={"field": "target"},
                hint="pass a store that you opened yourself, or a path",
            )
        yield store
    except BaseException:  # reason: an interrupted conversion must leave no empty store either
        with suppress(WellkeptError):
            unused = not (store.journal.feed(limit=1) or store.records.list(None, limit=1))
        raise
    finally:
        store.close()
        if unused:
            with suppress(OSError):  # the conversion's own error is the one to tell
                undo()


# -- how far it is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """How far a target is: the origin of its source, the place in the source's feed behind what was taken, the place
    in its own feed behind what was written, and once it is finished, a checksum of the names of its records.
    """

    source: str
    after: Position | None = None
    reached: Position | None = None
    finished: bool = False
    records: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """What ``text`` wrote; ``ValueError`` for anything else."""
        return codec.decode_as(text, cls)

    def text(self) -> str:
        """As a setting keeps it."""
        return codec.encode_json(self).decode()


class _Conversion:
    def __init__(self, source: Store, target: Store, progress: Progress | None) -> None:
        self._stores = source, target
        self._source, self._target = source.journal, target.journal
        self._ledger = ledger.read(target.records)
        self._progress = progress
        self._done = 0
        self._copied = 0
        self._memories = 0

    def run(self) -> ConversionReport:
        """Copy, compare, and do it again if the source changed too much meanwhile to compare the two."""
        place = self._resumed()
        same: comparison.Sameness | None = None
        rounds = 0
        while same is None:
            rounds += 1
            place = self._copy_journal(place)
            self._copy_beside()
            same = self._compare(place, last_try=rounds == _PATIENCE)
        self._note(replace(place, finished=True, records=_names(self._stores[1])))
        self._tell(finished=True)
        return ConversionReport(
            copied=self._copied,
            memories=self._memories,
            versions=same.versions,
            owners=same.owners,
            checksum=same.checksum,
            damaged=self._stores[0].damaged(),
        )

    def _compare(self, place: _Place, *, last_try: bool) -> comparison.Sameness | None:
        try:
            return comparison.compare(self._source, self._target, place.after, self._seen, self._is_erased)
        except NotACopy:
            # An erasure drops versions that were copied before; its tombstone comes next.
            if last_try or not self._source.feed(after=place.after, limit=1):
                raise
            return None

    def _is_erased(self, one: Stored) -> bool:
        """Whether the ledger of the target says that a memory is erased: a source that still has it must not bring it
        back.
        """
        return bool(self._ledger) and self._ledger.covers(one.owner, one.id, one.born_at)

    # -- beginning ------------------------------------------------------------------------------------------------

    def _resumed(self) -> _Place:
        """Where to go on: at the beginning in an empty target, else behind what a copy of this source has."""
        # What is damaged there is an error before anything is copied: a copy without a hold or a limit is none.
        origin = dict(self._source.settings())["origin"]
        _ = [record.body for record in self._stores[0].records.list(None)]
        text = self._target.settings().get(CONVERSION)
        if text is None:
            return self._begun(origin)
        try:
            place = _Place.parse(text)
        except ValueError:
            raise _no_copy(_UNREADABLE) from None
        if place.source != origin:
            raise _no_copy("it is a copy of another source")
        try:
            self._source.feed(after=place.after, limit=1)
            more = self._target.feed(after=place.reached, limit=None if self._ledger else comparison.BATCH + 1)
        except PositionLost:
            raise _no_copy("one of the two was restored from an older copy") from None
        except InvalidInput:
            raise _no_copy(_UNREADABLE) from None
        # A conversion stopped between a batch and the note of it left one batch more than the note says.
        others = [one for one in more if not (one.operation is Operation.ERASED and self._is_erased(one))]
        if len(others) > comparison.BATCH or not all(self._has(one) for one in others):
            raise _no_copy(_OTHERS)
        if place.finished:
            # An erasure in the target takes records away; which, its ledger does not tell.
            if place.records != _names(self._stores[1]) and not self._ledger:
                raise _no_copy(_OTHERS)
            self._note(replace(place, finished=False))
        return replace(place, reached=more.next, finished=False)

    def _begun(self, origin: str) -> _Place:
        if self._target.feed(limit=1) or any(_is_copied(one) for one in self._stores[1].records.list(None)):
            raise _no_copy("it is not empty")
        self._adopt(self._source.settings())
        return self._note(_Place(source=origin))

    def _note(self, place: _Place) -> _Place:
        self._target.set_settings({CONVERSION: place.text()})
        return place

    def _has(self, copy: Stored) -> bool:
        lived = self._source.history(copy.owner, copy.id)
        return any(one.operation is Operation.ERASED or one.stamp == copy.stamp for one in lived)

    # -- the journal ----------------------------------------------------------------------------------------------

    def _copy_journal(self, place: _Place) -> _Place:
        """All that is there now; a writer that is faster than we copy is not followed for ever."""
        embedder = self._target.settings().get("embedder")
        behind = {owner: mark.seq for owner, mark in self._source.marks(set(self._source.owners())).items()}
        for page in comparison.pages(self._source, place.after):
            writes = self._writes(page, embedder)
            self._append(writes)
            reached = self._target.feed(after=place.reached).next
            place = self._note(replace(place, after=page.next, reached=reached))
            self._copied += len(writes)
            self._done += len(page)
            self._tell()
            if all(one.seq > behind.get(one.owner, 0) for one in page):
                break
        return place

    def _append(self, writes: Sequence[Write]) -> None:
        """All versions of a page at once; owner by owner where the target cannot write to several."""
        together = [writes]
        if not self._stores[1].capabilities.batches:
            owners = dict.fromkeys(write.owner for write in writes)
            together = [[write for write in writes if write.owner == owner] for owner in owners]
        try:
            for batch in together:
                if batch:
                    self._target.append(batch)
        except Conflict as error:
            raise _no_copy(_OTHERS, **error.details) from error

    def _writes(self, page: Iterable[Stored], embedder: str | None) -> list[Write]:
        """The versions of a page that the target lacks, each as it was written, the newest with its vector."""
        page = list(page)
        owners = {one.owner for one in page}
        ids = {one.id for one in page}
        heads = {(one.owner, one.id): one for one in self._source.get(owners, ids, vectors=True)}
        stored = {(one.owner, one.id): one.version for one in self._target.get(owners, ids, payload=False)}
        writes = []
        for one in page:
            if self._is_erased(one) and one.operation is not Operation.ERASED:
                continue
            before = stored.get((one.owner, one.id), 0)
            if not before and one.operation is Operation.ERASED:
                before = self._buried(one)
            if one.version <= before:
                continue
            stored[one.owner, one.id] = one.version
            vector = _vector_of(one, heads.get((one.owner, one.id)))
            copy = _copy_of(one, before, vector if vector and vector.embedder == embedder else None)
            writes.append(copy._replace(reason=None) if self._is_erased(one) else copy)
        return writes

    def _buried(self, one: Stored) -> int:
        """The version of the tombstone that the target has in the place of this one; 0 if it has none."""
        return max((kept.version for kept in self._target.history(one.owner, one.id)), default=0)

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
        copy_records(*self._stores, self._ledger)
        kept = self._target.settings()
        told = {name: value for name, value in settings.items() if name not in _NOT_COPIED and kept.get(name) != value}
        if told:
            self._target.set_settings(told)

    def _copy_heads(self) -> int:
        """Go through all memories once; how many had another vector in the target."""
        self._memories = differing = 0
        for owner in self._source.owners():
            for batch in _batches(self._source.scan({owner}, vectors=True)):
                found = self._target.get({owner}, [one.id for one in batch], payload=False, vectors=True)
                copies = {one.id: one for one in found}
                # One that is at another version was changed since: its next version brings everything.
                pairs = [(one, copies[one.id]) for one in batch if one.id in copies and not self._is_erased(one)]
                pairs = [(one, copy) for one, copy in pairs if one.version == copy.version]
                self._target.count_accesses(list(_accesses(pairs)))
                vectors = [
                    Embedded(owner, one.id, one.version, one.vector)
                    for one, copy in pairs
                    if one.vector and one.vector != copy.vector
                ]
                if vectors:
                    self._target.embed(vectors)
                self._memories += len(batch)
                differing += len(vectors)
        return differing

    def _adopt(self, settings: Mapping[str, str]) -> bool:
        if "embedder" not in settings or "dimension" not in settings:
            return True  # nobody ever embedded anything
        return self._target.adopt(settings["embedder"], int(settings["dimension"]))

    # -- progress -------------------------------------------------------------------------------------------------

    def _seen(self) -> None:
        self._done += 1
        if self._done % comparison.BATCH == 0:
            self._tell()

    def _tell(self, *, finished: bool = False) -> None:
        if self._progress is not None:
            total = 2 * _length(self._source)
            self._progress(total if finished else min(self._done, total), total)


def _length(journal: Journal) -> int:
    """About how many versions there are: those of erased memories are counted too."""
    return sum(mark.seq for mark in journal.marks(set(journal.owners())).values())


def _names(store: Store) -> str:
    """A checksum of which records there are. What they say is not part of it: loading a session changes that."""
    records = filter(_is_copied, store.records.list(None))
    names = sorted((codec.encode_owner(one.owner), one.kind, one.name) for one in records)
    return codec.checksum(codec.encode_json(names).decode()).hex()


def copy_records(source: Store, target: Store, known: Ledger) -> None:
    """Make the records of the target those of the source, but for those of erased owners. The target keeps
    its ledger of erasures, and gets the entries that it lacks.
    """
    wanted = {
        (one.owner, one.kind, one.name): one
        for one in filter(_is_copied, source.records.list(None))
        if codec.to_micros(one.updated_at) > known.until(one.owner)
    }
    stored = {(one.owner, one.kind, one.name): one for one in filter(_is_copied, target.records.list(None))}
    for place, record in wanted.items():
        before = stored.get(place)
        if before is not None and before.version >= record.version and before != record:
            # Dropped in the source and begun anew, or changed in the target.
            target.records.drop(*place)
        if before != record:
            target.records.restore(record)
    for place in stored.keys() - wanted.keys():
        target.records.drop(*place)
    for entry in ledger.read(source.records).entries:
        ledger.append(target.records, entry, entry.at)
    for record in source.records.list({DATABASE}, ledger.RECEIPTS):
        with suppress(Conflict):  # it has it
            target.records.put(record)


def _is_copied(record: Record) -> bool:
    """Whether a record is made the same as the source's: what tells of erasures only grows."""
    return record.owner != DATABASE or record.kind not in ledger.KINDS


def _batches(found: Iterator[Stored]) -> Iterator[list[Stored]]:
    """Memories in batches that fit into memory."""
    batch: list[Stored] = []
    size = 0
    for one in found:
        batch.append(one)
        size += int(one.facets["bytes"])
        if len(batch) == comparison.BATCH or size > comparison.BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _accesses(pairs: Iterable[tuple[Stored, Stored]]) -> Iterator[Access]:
    for one, copy in pairs:
        missing = one.access_count - copy.access_count
        if missing > 0 and one.last_accessed_at is not None:
            yield Access(one.owner, one.id, missing, one.last_accessed_at)


def _vector_of(one: Stored, head: Stored | None) -> Vector | None:
    """Vectors are kept of newest versions only."""
    return head.vector if head is not None and head.version == one.version else None


def _copy_of(one: Stored, before: int, vector: Vector | None) -> Write:
    """A version as it was written; versions in between may be gone."""
    return Write(
        owner=one.owner,
        id=one.id,
        version=one.version,
        expected=before,
        operation=one.operation,
        stamp=one.stamp,
        recorded_at=one.recorded_at,
        replaced=one.replaced,
        reason=one.reason,
        facets=one.facets,
        payload=one.payload,
        vector=vector,
        write_id=one.write_id,
    )


def _no_copy(why: str, **details: object) -> NotACopy:
    return NotACopy(
        f"the target cannot take this source: {why}", details=details, hint="convert into a place where nothing is yet"
    )
