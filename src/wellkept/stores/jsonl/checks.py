"""Comparing the files with themselves, and mending them. Nothing is thrown away: what does not count is set aside."""

import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from wellkept import ids
from wellkept.errors import NotAStore, SchemaTooNew, StoreError
from wellkept.ports import DamagedRecord
from wellkept.stores import folder_modes
from wellkept.stores.jsonl import config, derived, edits, lines, records, writing
from wellkept.stores.jsonl.disk import MISSING, Disk
from wellkept.stores.jsonl.lines import Flaw, Line
from wellkept.stores.jsonl.names import FOLDERS
from wellkept.stores.jsonl.owner_folder import (
    DAMAGED,
    DELETED,
    DERIVED,
    LINES,
    MEMORY,
    METADATA,
    Entry,
    OwnerFolder,
    has_gap,
    known_stamps,
)
from wellkept.stores.jsonl.settings_file import SETTINGS
from wellkept.types import Diagnosis, Finding

if TYPE_CHECKING:
    from wellkept.stores.jsonl.journal import JsonlJournal

CHECKS = ("modes", "folder", "settings", "lines", "handwritten", "gaps", "records", "indexes")
_SHOWN = 10
_REASONS = {"damaged": "cannot be read", "newer": "is of a later release"}


@dataclass(slots=True)
class Report:
    """What reading every line found, in words and by file."""

    damaged: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    unfinished: int = 0
    siblings: list[str] = field(default_factory=list)
    versions: int = 0
    older: list[str] = field(default_factory=list)


def examine(journal: "JsonlJournal", *, repair: bool) -> Diagnosis:
    """Look at everything; mend what can be mended if asked to, and look again. The caller holds the lock."""
    report = _read(journal)
    found = _findings(journal, report)
    if repair and found:
        _mend(journal)
        journal.reload()
        report = _read(journal)
        left = {finding.check for finding in _findings(journal, report)}
        found = [replace(one, repaired=one.check not in left) for one in found]
    return Diagnosis(
        checks=CHECKS,
        findings=tuple(found),
        facts={
            "schema": str(lines.SCHEMA),
            "folders": str(len(journal.folders())),
            "versions": str(report.versions),
            "unfinished_lines": str(report.unfinished),
            "folders_of_the_older_format": ", ".join(report.older[:_SHOWN]) or "none",
            "changed_on_both_sides": ", ".join(report.siblings) or "none",
            "embedder": journal.settings_there().get("embedder", "none"),
            "edited_by_hand": ", ".join(_edited(journal)[:_SHOWN]) or "none",
        },
    )


def _findings(journal: "JsonlJournal", report: Report) -> list[Finding]:
    modes = [f"{len(files)} files may be read by others"] if (files := _open_files(journal)) else []
    opened = [folder_modes.FINDING] if _open_folder(journal) else []
    settings = [repr(row.name[:64]) for row in journal.file.damaged]
    aside = f"set it aside in {DAMAGED}"
    told = (
        ("modes", "", modes, "set the modes to 700 and 600"),
        ("folder", "", opened, "set the mode of the folder to 700"),
        ("settings", f"{len(settings)} settings are damaged: ", settings, "write them anew from what the lines tell"),
        ("lines", "damaged lines in ", report.damaged, f"set them aside in {DAMAGED}"),
        (
            "handwritten",
            "lines that the store did not write in ",
            report.edited,
            f"accept what was written by hand, or {aside}",
        ),
        ("gaps", "lines are missing in ", report.gaps, "restore them from a copy, or let the lines be linked anew"),
        (
            "records",
            "records that cannot be read: ",
            _bad_records(journal),
            f"correct them, or set them aside as *{records.ASIDE}",
        ),
        ("indexes", "indexes that cannot be read: ", _bad_indexes(journal), "write the indexes anew"),
    )
    return [
        Finding(check=name, message=what + "; ".join(found[:_SHOWN]), repair=repair)
        for name, what, found, repair in told
        if found
    ]


# -- lines ----------------------------------------------------------------------------------------------------


def _read(journal: "JsonlJournal") -> Report:
    report = Report()
    for layer in FOLDERS.values():
        if (journal.disk.root / layer).is_symlink() or (journal.disk.root / layer).is_file():
            report.damaged.append(f"{layer} (a link or no folder)")
    for folder in journal.folders():
        if folder.decode_foreign is not None:
            report.older.append(folder.name)
            report.damaged += [f"{folder.name} ({count} entries)"] if (count := folder.flaws.total()) else []
            continue
        try:
            found = {file: folder.entries(journal.disk, file) for file in LINES}
        except StoreError as error:
            report.damaged.append(f"{folder.name} ({error.message})")
        else:
            _read_folder(journal, folder, found, report)
    report.gaps += [f"{name.removeprefix(DERIVED)[1:]} (all of it)" for name in _gone_folders(journal)]
    return report


def _read_folder(
    journal: "JsonlJournal", folder: OwnerFolder, found: Mapping[str, list[Entry]], report: Report
) -> None:
    every = [entry.one for each in found.values() for entry in each]
    known = known_stamps(every)
    become = edits.candidates(journal, folder, [entry.one for entry in found[MEMORY] if isinstance(entry.one, Flaw)])
    for file, each in found.items():
        name, waiting = folder.file(file), []
        for number, _, one in each:
            if isinstance(one, Line):
                report.versions += 1
                waiting += [] if journal.batches.counts(one) else [one.stored]
                report.gaps += [f"{name} (before line {number})"] if has_gap(one, known) else []
            elif one.kind in _REASONS:
                report.damaged.append(f"{name} (line {number} {_REASONS[one.kind]})")
            elif one.kind in edits.BY_HAND:
                report.edited.append(f"{name} (line {number}{edits.told(become.get(one.data))})")
            else:
                report.unfinished += 1  # torn
        report.unfinished += len(waiting)
        foreign = {one.id for one in waiting if ids.stamp_origin(one.stamp) != journal.origin()}
        if foreign:
            report.edited.append(f"{name} ({len(foreign)} memories of a batch that is not all here)")
    if folder.vanished and not any(isinstance(one, Flaw) for one in every):
        report.gaps.append(f"{folder.name} ({len(folder.vanished)} versions that were read before)")
    report.gaps += [f"{folder.name} (lines at the end)"] if folder.lost is not None else []
    stored = {one.stored.stamp: one.stored for one in every if isinstance(one, Line)}
    replaced = Counter((one.id, one.replaced) for one in stored.values() if one.replaced is not None)
    report.siblings += [memory_id for (memory_id, _), count in replaced.items() if count > 1]


# -- mending --------------------------------------------------------------------------------------------------


def _mend(journal: "JsonlJournal") -> None:
    if _open_folder(journal):
        journal.disk.root.chmod(0o700)
    for path in _open_files(journal):
        path.chmod(0o700 if path.is_dir() else 0o600)
    if journal.file.damaged:
        with suppress(NotAStore):
            journal.mend_settings()
    for folder in journal.folders():
        if folder.decode_foreign is not None:
            continue
        with suppress(NotAStore):  # a link or a pipe is for a person to remove
            _mend_lines(journal.disk, folder)
        folder.vanished.clear()
        folder.lost = None
        journal.disk.remove(folder.derived(derived.NUMBERS))  # it is written again below
    for name in _bad_records(journal):
        with suppress(StoreError):
            journal.disk.replace(name + records.ASIDE, journal.disk.read(name)[0])
            journal.disk.remove(name)
    for name in _bad_indexes(journal):
        journal.disk.remove(name)
    for name in _gone_folders(journal):
        journal.disk.remove(f"{name}/{derived.NUMBERS}")
    derived.write_indexes(journal, journal.known_owners())


def _mend_lines(disk: Disk, folder: OwnerFolder) -> None:
    """Set aside what does not count, and link the lines behind a gap to nothing."""
    found = {file: folder.entries(disk, file) for file in LINES}
    bad = {file: [entry.one for entry in each if _is_bad(entry.one)] for file, each in found.items()}
    every = (entry.one for each in found.values() for entry in each)
    known = known_stamps(one for one in every if not _is_bad(one) or folder.former(one) is not None)
    for file, each in found.items():
        good = b"".join(_mended(folder, entry, known) for entry in each)
        if good != b"".join(entry.data + b"\n" for entry in each):
            writing.set_aside(disk, folder, [(one.kind, file, one.data) for one in bad[file]])
            disk.replace(folder.file(file), good)


def _is_bad(one: Line | Flaw) -> TypeGuard[Flaw]:
    return isinstance(one, Flaw) and one.kind != "newer"


def _mended(folder: OwnerFolder, entry: Entry, known: set[str]) -> bytes:
    one = entry.one
    if _is_bad(one):
        former = folder.former(one)
        return b"" if former is None else lines.encode(Line(stored=former))
    if isinstance(one, Line) and has_gap(one, known):
        return lines.encode(one._replace(after=None))
    return entry.data + b"\n"


# -- other files ----------------------------------------------------------------------------------------------


def _open_files(journal: "JsonlJournal") -> list[Path]:
    """Files of ours that others may read. In a git checkout, the modes are git's."""
    if journal.disk.in_git():
        return []
    return [path for path in _own_paths(journal) if path.exists() and stat.S_IMODE(path.lstat().st_mode) & 0o077]


def _open_folder(journal: "JsonlJournal") -> bool:
    return folder_modes.everybody_writes(journal.disk.root, sticky_protects=False)


def _own_paths(journal: "JsonlJournal") -> Iterator[Path]:
    root = journal.disk.root
    yield from (root, root / SETTINGS, root / "config.json", root / "derived")
    for folder in journal.folders():
        yield root / folder.name
        yield from (root / folder.name / file for file in (*LINES, DAMAGED, METADATA))
        yield from (root / folder.derived(file) for file in derived.FILES)
    yield from (root / file for file in records.files(journal.disk))


def _bad_records(journal: "JsonlJournal") -> list[str]:
    bad = []
    for name in (*records.files(journal.disk), records.LEASES):
        try:
            data, _ = journal.disk.read(name)
            if name == records.LEASES:
                records.decode_leases(data)
            else:
                bad += [name] if isinstance(records.decode(data, name), DamagedRecord) else []
        except SchemaTooNew:
            continue
        except StoreError:
            bad.append(name)
    return bad


def _edited(journal: "JsonlJournal") -> list[str]:
    """Files in which people changed what is theirs to change."""
    found = [] if journal.config == config.JsonlConfig() else ["config.json"]
    for name in records.files(journal.disk):
        with suppress(StoreError):
            data, look = journal.disk.read(name)
            sound = look != MISSING and not isinstance(records.decode(data, name), DamagedRecord | None)
            found += [f"{name} ({records.EDITABLE})"] if sound and records.is_edited(data) else []
    return found


def _gone_folders(journal: "JsonlJournal") -> list[str]:
    """The derived folders of owners whose own folder is gone. In git it may be on another branch."""
    if journal.disk.in_git():
        return []
    return [
        f"{DERIVED}/{layer}/{name}"
        for layer in FOLDERS.values()
        for name, _ in journal.disk.entries(f"{DERIVED}/{layer}")
        if not journal.disk.look(f"{layer}/{name}").inode
        and not journal.disk.look(f"{DELETED}/{layer}/{name}.jsonl").inode
        and journal.disk.look(f"{DERIVED}/{layer}/{name}/{derived.NUMBERS}").inode
    ]


def _bad_indexes(journal: "JsonlJournal") -> list[str]:
    of_owners = [folder.derived(file) for folder in journal.folders() for file in (derived.INDEX, derived.NUMBERS)]
    names = (*of_owners, derived.GLOBAL, derived.TOPICS)
    found = ((name, journal.disk.read(name)[0]) for name in names)
    return [name for name, data in found if data and isinstance(lines.unsealed(data), lines.Flaw)]
