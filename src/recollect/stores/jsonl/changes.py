"""From what changes in the journal to what changes in the files."""

from collections.abc import Iterable, Mapping, Sequence

from recollect.stores.journal import Accesses, Batch, Entry, Journal
from recollect.stores.jsonl import lines, loading
from recollect.stores.jsonl.commit import Change, Files
from recollect.stores.jsonl.folders import folder
from recollect.types import Operation, Owner, Vector


def of_batch(journal: Journal, files: Files, batch: Batch) -> Change:
    """A line for each version, tombstones, vectors; and files without what is erased."""
    change = of_settings(batch.settings)
    newest: dict[str, Entry] = {}
    for entry in batch.entries:
        newest[entry.memory_id] = entry
        if entry.memory is not None:
            if entry.memory_id in batch.erased:
                continue  # it came and goes in one batch
            change.append(f"{folder(entry.owner)}/{loading.MEMORY}", lines.of_entry(entry, entry.memory))
        if entry.operation in (Operation.FORGOTTEN, Operation.ERASED):
            change.append(f"{folder(entry.owner)}/{loading.TOMBSTONES}", lines.of_tombstone(entry))
    for memory_id, vector in batch.vectors.items():
        if vector is not None or memory_id in journal.vectors or memory_id in journal.renewed:
            head = newest[memory_id]
            line = lines.of_vector(memory_id, vector, head.sequence)
            change.append(f"{folder(head.owner)}/{loading.VECTORS}", line)
    _rewrite_without(files, batch.erased, {newest[memory_id].owner for memory_id in batch.erased}, change)
    return change


def _rewrite_without(files: Files, erased: set[str], owners: Iterable[Owner], change: Change) -> None:
    for owner in owners:
        for kept in (loading.MEMORY, loading.VECTORS, loading.DAMAGED):
            name = f"{folder(owner)}/{kept}"
            data = files.content(name)
            if data:
                change.rewrite(name, loading.without(data, name, erased))


def of_vectors(vectors: Sequence[tuple[Entry, Vector]], settings: Mapping[str, str]) -> Change:
    """Vectors that came later."""
    change = of_settings(settings)
    for head, vector in vectors:
        change.append(f"{folder(head.owner)}/{loading.VECTORS}", lines.of_vector(head.memory_id, vector, None))
    return change


def of_adoption(journal: Journal, files: Files, embedder: str, dimension: int) -> Change:
    """All files of vectors anew, with those that waited."""
    change = of_settings({"embedder": embedder, "dimension": str(dimension), "calibration": None})
    contents = {name: bytearray() for name in files.at.lengths if name.endswith(f"/{loading.VECTORS}")}
    for memory_id, vector in journal.renewed.items():
        name = f"{folder(journal.heads[memory_id].owner)}/{loading.VECTORS}"
        contents[name] += lines.of_vector(memory_id, vector, None)
    for name, data in contents.items():
        change.rewrite(name, bytes(data))
    return change


def of_settings(values: Mapping[str, str | None]) -> Change:
    """A line for each."""
    change = Change()
    for name, value in values.items():
        change.append(loading.SETTINGS, lines.of_setting(name, value))
    return change


def of_accesses(journal: Journal, counted: Mapping[str, Accesses]) -> Change:
    """Accesses that were counted in RAM."""
    change = Change()
    for memory_id, accesses in counted.items():
        name = f"{folder(journal.heads[memory_id].owner)}/{loading.ACCESSES}"
        change.append(name, lines.of_accesses(memory_id, accesses))
    return change
