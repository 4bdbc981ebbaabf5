"""Comparing the files with themselves, and mending them. Nothing is thrown away: what does not count is set aside."""

import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import codec, ids
from recollect.errors import NotAStore, SchemaTooNew, StoreError
from recollect.stores import folder_modes
from recollect.stores.jsonl import derived, edits, lines, records, writing
from recollect.stores.jsonl.folders import FOLDERS
from recollect.stores.jsonl.lines import Flaw, Line
from recollect.stores.jsonl.owner_folder import (
    DAMAGED,
    DELETED,
    DERIVED,
    LINES,
    MEMORY,
    OwnerFolder,
    entries,
    known_stamps,
)
from recollect.stores.jsonl.settings_file import SETTINGS
from recollect.types import Diagnosis, Finding, Stamp, Stored

if TYPE_CHECKING:
    from recollect.stores.jsonl.journal import JsonlJournal

CHECKS = ("modes", "folder", "settings", "lines", "handwritten", "gaps", "records", "indexes")
ASIDE = ".damaged"
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
    found = _findings(journal)
    if repair and found:
        _mend(journal)
        journal.reload()
        left = {finding.check for finding in _findings(journal)}
        found = [
            Finding(check=one.check, message=one.message, repair=one.repair, repaired=one.check not in left)
            for one in found
        ]
    report = _read(journal)
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
        },
    )


def _findings(journal: "JsonlJournal") -> list[Finding]:
    report = _read(journal)
    modes = _open_files(journal)
    bad_records, bad_indexes = _bad_records(journal), _bad_indexes(journal)
    told = (
        ("modes", f"{len(modes)} files may be read by others" if modes else "", "set the modes to 700 and 600"),
        ("folder", folder_modes.FINDING if _open_folder(journal) else "", "set the mode of the folder to 700"),
        (
            "settings",
            f"{SETTINGS} cannot be read" if journal.file.damaged else "",
            "set it aside and write it anew from what the lines tell",
        ),
        ("lines", _told("damaged lines in", report.damaged), f"set them aside in {DAMAGED}"),
        (
            "handwritten",
            _told("lines that the store did not write in", report.edited),
            f"accept what was written by hand, or set it aside in {DAMAGED}",
        ),
        (
            "gaps",
            _told("lines are missing in", report.gaps),
            "restore them from a copy, or let the lines be linked anew",
        ),
        (
            "records",
            _told("records that cannot be read:", bad_records),
            f"correct them, or set them aside as *{ASIDE}",
        ),
        ("indexes", _told("indexes that cannot be read:", bad_indexes), "write the indexes anew"),
    )
    return [Finding(check=name, message=message, repair=repair) for name, message, repair in told if message]


def _told(what: str, found: list[str]) -> str:
    return f"{what} {'; '.join(found[:_SHOWN])}" if found else ""


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
            found = {file: entries(journal.disk, folder, file) for file in LINES}
        except StoreError as error:
            report.damaged.append(f"{folder.name} ({error.message})")
            continue
        known = known_stamps([one for each in found.values() for _, one in each])
        become = edits.candidates(journal, folder, [one for _, one in found[MEMORY] if isinstance(one, Flaw)])
        for file, each in found.items():
            name = folder.file(file)
            flaws = [(number, one.kind) for number, one in each if isinstance(one, Flaw)]
            report.damaged += [f"{name} (line {number} {_REASONS[kind]})" for number, kind in flaws if kind in _REASONS]
            report.edited += [
                f"{name} (line {number}{edits.told(become.get(one.data))})"
                for number, one in each
                if isinstance(one, Flaw) and one.kind in edits.BY_HAND
            ]
            good = [(number, one) for number, one in each if isinstance(one, Line)]
            report.gaps += [f"{name} (before line {number})" for number, one in good if _has_gap(one, known)]
            report.versions += len(good)
            waiting = [one for _, one in good if not journal.counts(one)]
            report.unfinished += len(waiting) + sum(kind == "torn" for _, kind in flaws)
            foreign = {one.stored.id for one in waiting if ids.stamp_origin(one.stored.stamp) != journal.origin()}
            if foreign:
                report.edited.append(f"{name} ({len(foreign)} memories of a batch that is not all here)")
        report.gaps += (
            [f"{folder.name} ({len(folder.vanished)} versions that were read before)"]
            if folder.vanished and not any(isinstance(one, Flaw) for each in found.values() for _, one in each)
            else []
        )
        report.gaps += [f"{folder.name} (lines at the end)"] if folder.lost is not None else []
        stored = {one.stored.stamp: one.stored for each in found.values() for _, one in each if isinstance(one, Line)}
        replaced = Counter((one.id, one.replaced) for one in stored.values() if one.replaced is not None)
        report.siblings += [memory_id for (memory_id, _), count in replaced.items() if count > 1]
    report.gaps += [f"{name.removeprefix(DERIVED)[1:]} (all of it)" for name in _gone_folders(journal)]
    return report


def _has_gap(line: Line, known: set[str]) -> bool:
    return line.after is not None and line.after not in known


# -- mending --------------------------------------------------------------------------------------------------


def _mend(journal: "JsonlJournal") -> None:
    if _open_folder(journal):
        journal.disk.root.chmod(0o700)
    for path in _open_files(journal):
        path.chmod(0o700 if path.is_dir() else 0o600)
    if journal.file.damaged:
        with suppress(NotAStore):
            journal.settle_settings({})
    for folder in journal.folders():
        if folder.decode_foreign is not None:
            continue
        for file in LINES:
            with suppress(NotAStore):  # a link or a pipe is for a person to remove
                _mend_lines(journal, folder, file)
        folder.vanished.clear()
        folder.lost = None
        journal.disk.remove(folder.derived(derived.NUMBERS))  # it is written again below
    for name in _bad_records(journal):
        with suppress(StoreError):
            journal.disk.replace(name + ASIDE, journal.disk.read(name)[0])
            journal.disk.remove(name)
    for name in _bad_indexes(journal):
        journal.disk.remove(name)
    for name in _gone_folders(journal):
        journal.disk.remove(f"{name}/{derived.NUMBERS}")
    derived.write_indexes(journal, journal.known_owners())


def _mend_lines(journal: "JsonlJournal", folder: OwnerFolder, file: str) -> None:
    """Set aside what does not count, and link the lines behind a gap to nothing."""
    found = entries(journal.disk, folder, file)
    every = [one for other in LINES for _, one in entries(journal.disk, folder, other)]
    stay = [one for one in every if isinstance(one, Line) or one.kind == "newer" or _former(folder, one) is not None]
    known = known_stamps(stay)
    bad = [one for _, one in found if isinstance(one, Flaw) and one.kind != "newer"]
    cut = [one for _, one in found if isinstance(one, Line) and _has_gap(one, known)]
    if not bad and not cut:
        return
    writing.set_aside(journal.disk, folder, [(one.kind, file, one.data) for one in bad])
    good = bytearray()
    for _, one in found:
        if isinstance(one, Line):
            good += lines.encode(one._replace(after=None) if one in cut else one)
        elif one.kind == "newer":
            good += one.data + b"\n"
        elif (former := _former(folder, one)) is not None:
            good += lines.encode(Line(stored=former))
    journal.disk.replace(folder.file(file), bytes(good))


def _former(folder: OwnerFolder, one: Flaw) -> Stored | None:
    """What this process read before the line was edited."""
    return None if one.fields is None else folder.vanished.get(Stamp(str(one.fields.get("stamp"))))


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
        yield from (root / folder.name / file for file in (*LINES, DAMAGED, records.METADATA))
        yield from (root / folder.derived(file) for file in ("vectors.jsonl", "accesses.jsonl", derived.INDEX))
    yield from (root / file for file in records.files(journal.disk))


def _bad_records(journal: "JsonlJournal") -> list[str]:
    bad = []
    for name in (*records.files(journal.disk), records.LEASES):
        try:
            data, _ = journal.disk.read(name)
            if name == records.LEASES:
                records.decode_leases(data)
            else:
                records.decode(data, name)
        except SchemaTooNew:
            continue
        except StoreError:
            bad.append(name)
    return bad


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
    names = [*(folder.derived(derived.INDEX) for folder in journal.folders()), derived.GLOBAL, derived.TOPICS]
    return [name for name in names if (data := journal.disk.read(name)[0]) and not _is_object(data)]


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(codec.decode_json(data), dict)
    except lines.UNREADABLE:
        return False
