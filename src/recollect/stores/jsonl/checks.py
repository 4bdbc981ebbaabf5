"""Comparing the files with themselves, and mending them. Nothing is thrown away: what does not count is set aside."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import codec, ids
from recollect.errors import StoreError
from recollect.stores import folder_modes
from recollect.stores.jsonl import derived, lines, records, writing
from recollect.stores.jsonl.lines import Flaw, Line
from recollect.stores.jsonl.owner_folder import DAMAGED, LINES, OwnerFolder
from recollect.stores.jsonl.settings_file import SETTINGS
from recollect.types import Diagnosis, Finding

if TYPE_CHECKING:
    from recollect.stores.jsonl.journal import JsonlJournal

CHECKS = ("modes", "folder", "settings", "lines", "handwritten", "gaps", "records", "indexes")
_SHOWN = 10
_REASONS = {"damaged": "cannot be read", "misplaced": "belongs to another folder", "newer": "is of a later release"}


@dataclass(slots=True)
class Report:
    """What reading every line found, in words and by file."""

    damaged: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    unfinished: int = 0
    siblings: int = 0
    versions: int = 0


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
            "changed_on_both_sides": str(report.siblings),
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
        ("records", _told("records that cannot be read:", bad_records), "correct the files, or remove them"),
        ("indexes", _told("indexes that cannot be read:", bad_indexes), "write the indexes anew"),
    )
    return [Finding(check=name, message=message, repair=repair) for name, message, repair in told if message]


def _told(what: str, found: list[str]) -> str:
    return f"{what} {'; '.join(found[:_SHOWN])}" if found else ""


# -- lines ----------------------------------------------------------------------------------------------------


def entries(journal: "JsonlJournal", folder: OwnerFolder, file: str) -> list[tuple[int, Line | Flaw]]:
    """The lines of a file with their numbers; a line of another owner is a flaw."""
    data, _ = journal.disk.read(f"{folder.name}/{file}")
    found: list[tuple[int, Line | Flaw]] = []
    every = data.split(b"\n")
    for number, line in enumerate(every, start=1):
        if line.strip():
            one = lines.decode(line.strip(b" \t\r"))
            if isinstance(one, Flaw) and one.fields is None and number == len(every):
                one = Flaw("torn", line)  # nobody was told that it was written; the next writer sets it aside
            if isinstance(one, Line) and one.stored.owner != folder.owner:
                one = Flaw("misplaced", line)
            found.append((number, one))
    return found


def _read(journal: "JsonlJournal") -> Report:
    report = Report()
    for folder in journal.folders():
        try:
            found = {file: entries(journal, folder, file) for file in LINES}
        except StoreError as error:
            report.damaged.append(f"{folder.name} ({error.message})")
            continue
        known = known_stamps([one for each in found.values() for _, one in each])
        for file, each in found.items():
            name = f"{folder.name}/{file}"
            flaws = [(number, one.kind) for number, one in each if isinstance(one, Flaw)]
            report.damaged += [f"{name} (line {number} {_REASONS[kind]})" for number, kind in flaws if kind in _REASONS]
            report.edited += [f"{name} (line {number})" for number, kind in flaws if kind in ("edited", "unsealed")]
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
        replaced = [one.stored.replaced for _, one in found[LINES[0]] if isinstance(one, Line) and one.stored.replaced]
        report.siblings += len(replaced) - len(set(replaced))
    return report


def known_stamps(found: list[Line | Flaw]) -> set[str]:
    """The stamps that some lines tell of, edited and erased ones too."""
    known: set[str] = set()
    for one in found:
        if isinstance(one, Line):
            known |= {one.stored.stamp, *one.removed}
        elif one.fields is not None:
            known.add(str(one.fields.get("stamp")))
    return known


def _has_gap(line: Line, known: set[str]) -> bool:
    return line.after is not None and line.after not in known


# -- mending --------------------------------------------------------------------------------------------------


def _mend(journal: "JsonlJournal") -> None:
    if _open_folder(journal):
        journal.disk.root.chmod(0o700)
    for path in _open_files(journal):
        path.chmod(0o700 if path.is_dir() else 0o600)
    if journal.file.damaged:
        journal.settle_settings({})
    for folder in journal.folders():
        for file in LINES:
            _mend_lines(journal, folder, file)
        folder.vanished.clear()
    for name in _bad_indexes(journal):
        journal.disk.remove(name)
    derived.write_indexes(journal, journal.known_owners())


def _mend_lines(journal: "JsonlJournal", folder: OwnerFolder, file: str) -> None:
    """Set aside what does not count, and link the lines behind a gap to nothing."""
    found = entries(journal, folder, file)
    known = known_stamps([one for other in LINES for _, one in entries(journal, folder, other)])
    bad = [one for _, one in found if isinstance(one, Flaw) and one.kind != "newer"]
    gone = {str(one.fields.get("stamp")) for one in bad if one.fields is not None}
    cut = [one for _, one in found if isinstance(one, Line) and (_has_gap(one, known) or one.after in gone)]
    if not bad and not cut:
        return
    writing.set_aside(journal.disk, folder, [(one.kind, file, one.data) for one in bad])
    good = bytearray()
    for _, one in found:
        if isinstance(one, Line):
            good += lines.encode(one._replace(after=None) if one in cut else one)
        elif one.kind == "newer":
            good += one.data + b"\n"
        elif one.fields is not None and (former := folder.vanished.get(one.fields.get("stamp"))) is not None:  # type: ignore[arg-type]  # a stamp, or nothing that is known
            good += lines.encode(Line(stored=former))
    journal.disk.replace(f"{folder.name}/{file}", bytes(good))


# -- other files ----------------------------------------------------------------------------------------------


def _open_files(journal: "JsonlJournal") -> list[Path]:
    """Files of ours that others may read. In a git checkout, the modes are git's."""
    root = journal.disk.root
    if (root / ".git").exists():
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
    for name in records.files(journal.disk):
        try:
            records.decode(journal.disk.read(name)[0], name)
        except StoreError:
            bad.append(name)
    return bad


def _bad_indexes(journal: "JsonlJournal") -> list[str]:
    names = [*(folder.derived(derived.INDEX) for folder in journal.folders()), derived.GLOBAL, derived.TOPICS]
    return [name for name in names if (data := journal.disk.read(name)[0]) and not _is_object(data)]


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(codec.decode_json(data), dict)
    except lines.UNREADABLE:
        return False
