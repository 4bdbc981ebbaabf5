"""Candidates of a search: what ranking reads of a few hundred memories, in arrays."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from wellkept.recall.arrays import Array, packed, unpacked
from wellkept.recall.conversations import NOBODY
from wellkept.types import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Memories in rows: the first ``count`` are the candidates, the others their neighbours in a conversation.

    ``names`` are their ids as bytes. ``owner`` is the place of a row's owner in ``owners``, and ``author`` the place of
    its author in ``authors`` of that owner: the words of the names of all who said something that the owner has.
    ``terms`` and ``pieces`` are those of all rows one behind the other, ``length`` of them each. ``codes`` are those of
    the candidates' passages alone, ``passages`` of them each. ``conversation`` is different for different owners,
    ``size`` how many memories it has. ``before`` and ``after`` are rows of this value; they are not known of neighbours
    that are no candidates. Times are seconds since 1970, ``born_at`` is microseconds;
    ``told_from`` and ``told_to`` are those that a text tells of, not numbers where it tells of none.
    """

    count: int
    owners: Sequence[Owner]
    authors: Sequence[Sequence[frozenset[str]]]
    names: Array
    owner: Array
    born: Array
    born_at: Array
    author: Array
    marks: Array
    occurred: Array
    expires: Array
    told_from: Array
    told_to: Array
    importance: Array
    length: Array
    conversation: Array
    size: Array
    before: Array
    after: Array
    passages: Array
    codes: Array
    terms: Array
    pieces: Array

    def __len__(self) -> int:
        return self.count

    def key(self, row: int) -> tuple[Owner, str]:
        """The memory of a row."""
        return self.owners[self.owner[row]], self.names[row].decode()

    @property
    def ids(self) -> list[str]:
        """The ids of all rows, neighbours too."""
        return unpacked(self.names)


OF_ROWS: dict[str, type] = {
    "owner": np.int32,
    "born": np.int64,
    "born_at": np.int64,
    "author": np.int32,
    "marks": np.uint16,
    "occurred": np.float64,
    "expires": np.float64,
    "told_from": np.float64,
    "told_to": np.float64,
    "importance": np.float32,
    "length": np.int32,
    "conversation": np.int64,
    "size": np.int32,
    "before": np.int32,
    "after": np.int32,
}
"""The arrays that have a value for each row."""

_SHIFTED = ("conversation", "owner", "before", "after")


def none() -> Candidates:
    """No candidates.

    >>> len(none())
    0
    """
    return Candidates(
        count=0,
        owners=(),
        authors=(),
        names=packed([]),
        passages=np.zeros(0, np.int32),
        codes=np.zeros((0, 1), np.uint8),
        terms=np.zeros(0, np.uint32),
        pieces=np.zeros(0, np.uint16),
        **{name: np.zeros(0, dtype) for name, dtype in OF_ROWS.items()},
    )


def unlinked(found: Candidates, ids: AbstractSet[str]) -> Candidates:
    """The candidates without the neighbours that have one of these ids."""
    gone = np.array([one in ids for one in found.ids] + [True], np.bool_)
    before, after = (np.where(gone[rows], NOBODY, rows) for rows in (found.before, found.after))
    return replace(found, before=before, after=after)


def joined(parts: Sequence[Candidates]) -> Candidates:
    """The candidates of several owners together: first all candidates, then all neighbours."""
    parts = [part for part in parts if part.count]
    if len(parts) < 2:
        return parts[0] if parts else none()
    count = sum(part.count for part in parts)
    heads = [int(part.length[: part.count].sum()) for part in parts]
    values: dict[str, Array] = {
        name: _stacked([getattr(part, name) for part in parts], [part.count for part in parts])
        for name in OF_ROWS
        if name not in _SHIFTED
    }
    for name in ("terms", "pieces"):
        values[name] = _stacked([getattr(part, name) for part in parts], heads)
    return Candidates(
        count=count,
        owners=[owner for part in parts for owner in part.owners],
        authors=[names for part in parts for names in part.authors],
        names=_stacked([part.names for part in parts], [part.count for part in parts]),
        passages=np.concatenate([part.passages for part in parts]),
        codes=np.concatenate([part.codes for part in parts if len(part.codes)] or [parts[0].codes]),
        **values,
        **_shifted(parts, count),
    )


def _stacked(arrays: Sequence[Array], heads: Sequence[int]) -> Array:
    """The beginnings of arrays one behind the other, then the rest of each."""
    pairs = list(zip(arrays, heads, strict=True))
    return np.concatenate([one[:head] for one, head in pairs] + [one[head:] for one, head in pairs])


def _shifted(parts: Sequence[Candidates], count: int) -> dict[str, Array]:
    """What names rows, owners and conversations, with their new numbers."""
    made: dict[str, list[Array]] = {name: [] for name in _SHIFTED}
    candidates = neighbours = owners = conversations = 0
    for part in parts:
        row = np.arange(len(part.names) + 1, dtype=np.int32)
        row[: part.count] += candidates
        row[part.count :] += count + neighbours - part.count
        row[-1] = NOBODY  # which the place -1 stands for
        made["before"].append(row[part.before])
        made["after"].append(row[part.after])
        made["owner"].append(part.owner + np.int32(owners))
        made["conversation"].append(part.conversation + conversations)
        candidates += part.count
        neighbours += len(part.names) - part.count
        owners += len(part.owners)
        conversations += int(part.conversation.max()) + 1
    heads = [part.count for part in parts]
    return {name: _stacked(arrays, heads) for name, arrays in made.items()}
