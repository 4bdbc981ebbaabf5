"""Which memories were said together: the conversations of an index, as links from each row to its neighbours.

A memory belongs to the session it names. Where somebody spoke and named none, the conversation is the one that was
going on: what was recorded next, and said at most half an hour apart. Everything else stands alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from wellkept.recall.arrays import Array, Column

NOBODY = -1
"""The row before the first of a conversation, and behind its last."""

PAUSE_S = 30 * 60
"""Things said at most this far apart belong to one conversation, where nobody named it."""


class Conversations:
    """The conversation of each row and its neighbours there. Rows are linked in the order of recording."""

    def __init__(self) -> None:
        self.of = Column(np.int32)
        self.before = Column(np.int32)
        self.after = Column(np.int32)
        self.sizes = Column(np.int32)
        self.linked = False  # whether any row has a neighbour; facts have none, and need not be asked for theirs
        self._lasts = Column(np.int32)  # the last row of each conversation
        self._of_session: dict[int, int] = {}
        self._last_spoken: tuple[int, float] | None = None  # in a conversation without a name: row and time

    def append(self, sessions: Sequence[int], spoken: Sequence[bool], occurred: Sequence[float]) -> None:
        """Link rows that were recorded after all others."""
        first = self.of.size
        count = len(sessions)
        for column in (self.of, self.before, self.after):
            column.extend(np.full(count, NOBODY))
        for row, session, said, at in zip(range(first, first + count), sessions, spoken, occurred, strict=True):
            conversation = self._conversation(session, row, at) if session or said else self._new()
            before = int(self._lasts.rows[conversation])
            self.of.rows[row], self.before.rows[row] = conversation, before
            if before != NOBODY:
                self.after.rows[before] = row
                self.linked = True
            self._lasts.writable[conversation] = row
            self.sizes.writable[conversation] += 1

    def _conversation(self, session: int, row: int, at: float) -> int:
        if session:
            known = self._of_session.get(session)
            if known is None:
                known = self._of_session[session] = self._new()
            return known
        last, self._last_spoken = self._last_spoken, (row, at)
        if last is not None and abs(last[1] - at) <= PAUSE_S:
            return int(self.of.rows[last[0]])
        return self._new()

    def _new(self) -> int:
        self.sizes.extend([0])
        self._lasts.extend([NOBODY])
        return self.sizes.size - 1

    def relink(self, total: int, rows: Array, sessions: Array, spoken: Array, occurred: Array) -> None:
        """Link all rows anew: those given, in the order of recording, with what is known of each; others are gone."""
        alone = sessions == 0
        said = np.flatnonzero(alone & spoken)
        # A number of its own for each, below those of the sessions; then one for all that was said in one go.
        named = np.arange(len(rows), dtype=np.int64)
        pauses = np.append(True, np.abs(np.diff(occurred[said])) > PAUSE_S)[: len(said)]
        named[said] = said[pauses][np.cumsum(pauses) - 1]
        keys, inverse = np.unique(sessions[~alone], return_inverse=True)
        named[~alone] = len(rows) + inverse
        numbers, dense, sizes = np.unique(named, return_inverse=True, return_counts=True)
        order = np.argsort(dense, kind="stable")
        sorted_rows, same = rows[order], dense[order][1:] == dense[order][:-1]
        of, before, after = (np.full(total, fill, np.int32) for fill in (0, NOBODY, NOBODY))
        of[rows] = dense
        before[sorted_rows[1:]] = np.where(same, sorted_rows[:-1], NOBODY)
        after[sorted_rows[:-1]] = np.where(same, sorted_rows[1:], NOBODY)
        self.of.replace(of)
        self.before.replace(before)
        self.after.replace(after)
        self.sizes.replace(sizes.astype(np.int32))
        self.linked = bool(same.any())
        self._lasts.replace(sorted_rows[np.cumsum(sizes) - 1].astype(np.int32))
        places = np.searchsorted(numbers, len(rows) + np.arange(len(keys)))
        self._of_session = dict(zip(keys.tolist(), places.tolist(), strict=True))
        self._last_spoken = (int(rows[said[-1]]), float(occurred[said[-1]])) if len(said) else None

    # -- an image of it ---------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Array]:
        """Plain arrays to be stored."""
        last = [] if self._last_spoken is None else list(self._last_spoken)
        return {
            "of": self.of.rows,
            "before": self.before.rows,
            "after": self.after.rows,
            "sizes": self.sizes.rows,
            "lasts": self._lasts.rows,
            "sessions": np.array(list(self._of_session), np.int64),
            "of_session": np.array(list(self._of_session.values()), np.int64),
            "last_spoken": np.array(last, np.float64),
        }

    @classmethod
    def restored(cls, parts: Mapping[str, Array]) -> "Conversations":
        """The conversations that an image was made of."""
        made = cls()
        for name, column in (
            ("of", made.of),
            ("before", made.before),
            ("after", made.after),
            ("sizes", made.sizes),
            ("lasts", made._lasts),
        ):
            column.replace(parts[name])
        made.linked = bool((parts["sizes"] > 1).any())
        made._of_session = dict(zip(parts["sessions"].tolist(), parts["of_session"].tolist(), strict=True))
        if len(parts["last_spoken"]):
            row, at = parts["last_spoken"].tolist()
            made._last_spoken = int(row), at
        return made
