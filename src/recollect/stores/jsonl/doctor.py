"""Comparing the files with themselves, and mending them: lines that are not what was written are set aside."""

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect import codec
from recollect.errors import StoreCorrupt
from recollect.stores.journal import Journal
from recollect.stores.jsonl import commits, lines, loading, records, summaries
from recollect.stores.jsonl.commit import Change, Files
from recollect.stores.jsonl.folders import folder
from recollect.types import Diagnosis, Finding


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the files: what is wrong, in words; and what mends it."""

    name: str
    wrong: Callable[[Files, Journal], str]
    repair: str
    mend: Callable[[Files, Journal], None]


def examine(files: Files, journal: Journal, *, repair: bool) -> Diagnosis:
    """Ask every question; mend and ask again if a repair was asked for. Whoever calls holds the lock."""
    found: list[tuple[Check, str]] = []
    for check in CHECKS:
        message = check.wrong(files, journal)
        if message:
            found.append((check, message))
            if repair:
                check.mend(files, journal)
    return Diagnosis(
        checks=tuple(check.name for check in CHECKS),
        findings=tuple(
            Finding(
                check=check.name,
                message=message,
                repair=check.repair,
                repaired=repair and not check.wrong(files, journal),
            )
            for check, message in found
        ),
        facts={
            "schema": str(lines.SCHEMA),
            "files": str(len(files.at.lengths)),
            "bytes": str(sum(files.at.lengths.values())),
            "versions": str(len(journal.entries)),
            "commits": str(files.at.ordinal),
            "embedder": journal.settings.get("embedder", "none"),
            "outdated_indexes": str(sum(summaries.outdated(files.disk, owner) for owner in journal.owned)),
        },
    )


# -- modes ----------------------------------------------------------------------------------------------------


def _open_paths(files: Files) -> list[Path]:
    root = files.disk.root
    return [path for path in (root, *root.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def _wrong_modes(files: Files, _: Journal) -> str:
    found = _open_paths(files)
    return f"{len(found)} files or folders may be read by others" if found else ""


def _close_modes(files: Files, _: Journal) -> None:
    for path in _open_paths(files):
        path.chmod(0o700 if path.is_dir() else 0o600)


# -- the commit log -------------------------------------------------------------------------------------------


def _wrong_commits(files: Files, _: Journal) -> str:
    tail = commits.read(files.disk, commits.Position())
    return "the commit log is missing or has damaged lines" if tail.damaged else ""


def _renew_commits(files: Files, _: Journal) -> None:
    files.checkpoint()


# -- lines ----------------------------------------------------------------------------------------------------


def _damaged(files: Files) -> Iterator[tuple[str, list[int]]]:
    """Files with lines that are not what was written, and the numbers of those lines."""
    for name, length in files.at.lengths.items():
        if name.endswith(f"/{loading.DAMAGED}"):
            continue
        data = loading.content(files.disk, name, 0, length)
        numbers = [
            number
            for number, line in enumerate(data.split(b"\n"), start=1)
            if line.strip() and not loading.readable(line, name)
        ]
        if numbers:
            yield name, numbers


def _wrong_lines(files: Files, _: Journal) -> str:
    found = [f"{name} (line {', '.join(map(str, numbers[:10]))})" for name, numbers in _damaged(files)]
    return f"damaged lines in {'; '.join(found[:10])}" if found else ""


def _set_aside(files: Files, journal: Journal) -> None:
    """Nothing is thrown away: the lines stay in ``damaged.jsonl``, and memories go back to their last good version."""
    change = Change()
    for name, numbers in _damaged(files):
        every = loading.content(files.disk, name, 0, files.at.lengths[name]).split(b"\n")
        bad = [every[number - 1] for number in numbers]
        good = [line for number, line in enumerate(every, start=1) if line and number not in set(numbers)]
        change.rewrite(name, b"".join(line + b"\n" for line in good))
        place = f"{name.rpartition('/')[0]}/{loading.DAMAGED}".lstrip("/")
        change.append(place, b"".join(line + b"\n" for line in bad))
    files.commit(change, journal.last)
    files.finish(files.at)


def _wrong_lengths(files: Files, _: Journal) -> str:
    short = [name for name, length in files.at.lengths.items() if files.disk.stat(name)[1] < length]
    return f"{len(short)} files are shorter than what was committed: {', '.join(short[:10])}" if short else ""


def _believe_lengths(files: Files, _: Journal) -> None:
    files.at.lengths = files.salvaged()
    files.checkpoint()


def _wrong_ends(files: Files, _: Journal) -> str:
    found = [name for name, length in files.at.lengths.items() if files.foreign(name, length)]
    return f"lines that the store did not write, at the end of {', '.join(found[:10])}" if found else ""


def _nothing(_: Files, __: Journal) -> None:
    """Some things only a person can decide."""


# -- indexes --------------------------------------------------------------------------------------------------


def _wrong_indexes(files: Files, journal: Journal) -> str:
    names = [*(f"{folder(owner)}/{summaries.INDEX}" for owner in journal.owned), summaries.GLOBAL, summaries.TOPICS]
    bad = [name for name in names if (data := files.disk.read(name)) and not _is_json(data)]
    return f"{len(bad)} indexes cannot be read: {', '.join(bad[:10])}" if bad else ""


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(codec.decode_json(data), dict)
    except codec.UNREADABLE:
        return False


def _wrong_records(files: Files, _: Journal) -> str:
    names = [*files.disk.names("sessions/*/metadata.json"), *files.disk.names("records/**/*.json")]
    bad = [name for name in names if not _is_record(files.disk.read(name), name)]
    return f"{len(bad)} records cannot be read: {', '.join(bad[:10])}" if bad else ""


def _is_record(data: bytes, name: str) -> bool:
    try:
        records.decode(data, name)
    except StoreCorrupt:
        return False
    return True


def _drop_indexes(files: Files, journal: Journal) -> None:
    """Drop them all: they are written again right afterwards."""
    for owner in journal.owned:
        files.disk.remove(f"{folder(owner)}/{summaries.INDEX}")
    files.disk.remove(summaries.GLOBAL)
    files.disk.remove(summaries.TOPICS)


CHECKS = (
    Check("modes", _wrong_modes, "set the modes to 700 and 600", _close_modes),
    Check("commits", _wrong_commits, "write the commit log anew from what the files hold", _renew_commits),
    Check("lengths", _wrong_lengths, "believe what the files hold now", _believe_lengths),
    Check("ends", _wrong_ends, "remove the lines, or add what they say as memories", _nothing),
    Check("lines", _wrong_lines, "accept what was edited by hand, or set it aside in damaged.jsonl", _set_aside),
    Check("records", _wrong_records, "correct the files, or remove them", _nothing),
    Check("indexes", _wrong_indexes, "write the indexes anew", _drop_indexes),
)
