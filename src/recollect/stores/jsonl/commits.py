"""The commit log: which bytes of which files count.

A batch may touch several files. Its lines are appended to all of them first; then one line in this log names their new
lengths, and with that line, once it is on the disk, the batch exists. Readers pass over whatever lies behind the
lengths that the log names. A file that is rewritten waits under another name until the log has told of it; if a crash
comes in between, whoever comes next finishes the exchange.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recollect.stores.jsonl import lines
from recollect.stores.jsonl.disk import Disk

LOG = "journal/commits.jsonl"
CHECKPOINT_BYTES = 1_000_000
"""From this length on, the log is replaced by one line with all lengths."""


@dataclass(slots=True)
class Position:
    """How far the log was read, and what it said until there."""

    file: int = 0
    offset: int = 0
    ordinal: int = 0
    sequence: int = 0
    lengths: dict[str, int] = field(default_factory=dict)
    rewritten: Sequence[str] = ()  # by the last commit: perhaps still to be exchanged


@dataclass(frozen=True, slots=True)
class Tail:
    """What came behind a position: the files that grew, from where to where; or that all must be read again."""

    end: Position
    grown: Mapping[str, tuple[int, int]]
    again: bool = False
    damaged: bool = False


def waiting(name: str, ordinal: int) -> str:
    """Where the new content of a file waits for the commit of a number."""
    return f"{name}.{ordinal}.new"


def read(disk: Disk, since: Position) -> Tail:
    """What was committed behind a position."""
    file, size = disk.stat(LOG)
    if file == 0:
        return Tail(Position(ordinal=since.ordinal, sequence=since.sequence), {}, again=True, damaged=True)
    if (file, size) == (since.file, since.offset):
        return Tail(since, {})
    if file != since.file or size < since.offset:
        return _read(disk, Position(file=file), again=True)
    return _read(disk, since, again=False)


def _read(disk: Disk, since: Position, *, again: bool) -> Tail:
    data = disk.read(LOG, max(0, since.offset - 1))
    if since.offset and data[:1] != b"\n":  # another log that came to have the number of the one that was read
        return _read(disk, Position(file=since.file), again=True)
    whole = _whole_lines(data[1:] if since.offset else data)
    end = Position(
        since.file, since.offset + len(whole), since.ordinal, since.sequence, dict(since.lengths), since.rewritten
    )
    damaged = False
    for line in lines.split(whole):
        fields = lines.unseal(line, LOG)
        if fields is None:
            damaged = True
            continue
        if fields.get("checkpoint"):
            end.lengths.clear()
        elif fields["commit"] != end.ordinal + 1:
            again = True  # a commit that was read here was taken back, or its line is damaged
        end.lengths.update(fields["files"])
        end.ordinal, end.sequence, end.rewritten = fields["commit"], fields["sequence"], fields.get("rewritten", ())
        again = again or bool(end.rewritten)
    grown = {
        name: (since.lengths.get(name, 0), length)
        for name, length in end.lengths.items()
        if length != since.lengths.get(name)
    }
    return Tail(end, grown, again or damaged, damaged)


def _whole_lines(data: bytes) -> bytes:
    """The log without a last line that a crash cut off, or that a power loss left full of zeros."""
    whole = data[: data.rfind(b"\n") + 1]
    last = whole.rfind(b"\n", 0, -1) + 1
    return whole[:last] if b"\0" in whole[last:] else whole


def line(
    position: Position, sequence: int, lengths: Mapping[str, int], rewritten: Sequence[str] = (), **more: bool
) -> bytes:
    """The line that commits."""
    fields: lines.Fields = {"commit": position.ordinal + 1, "sequence": sequence, "files": dict(lengths)}
    if rewritten:
        fields["rewritten"] = list(rewritten)
    return lines.seal({**fields, **more, "schema_version": lines.SCHEMA})
