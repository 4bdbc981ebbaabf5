"""Search in working memory: exact, over the text of every visible entry."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wellkept import validation
from wellkept.instrument import named
from wellkept.text import words
from wellkept.types import Vector
from wellkept.working.entry import Entry, Slot, decode
from wellkept.working.scope_chain import Level

TEXT_CHARACTERS = 2_000
"""What is looked at of an entry: its key, and its value up to this length together."""

Scores = Sequence[tuple[int, float]]
"""Positions among the visible entries, with their scores from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """An entry found by ``search``; ``semantic`` says whether the score, from 0 to 1, goes by meaning or by words.

    >>> from datetime import UTC, datetime
    >>> entry = Entry(key="step", id="1", content="3", type_name="int", timestamp=datetime(2026, 1, 7, tzinfo=UTC))
    >>> Match(entry=entry, score=1.0, semantic=False).entry.key
    'step'
    """

    entry: Entry
    score: float
    semantic: bool


class Meaning(NamedTuple):
    """How texts get vectors, and what a cosine means. Both functions return ``None`` while the embedder is down."""

    question: Callable[[str], Vector | None]
    passages: Callable[[Sequence[str]], Sequence[Vector] | None]
    scale: Callable[[], Callable[[float], float]]


class Searchable(Level):
    """A level whose visible entries can be searched."""

    _matrix: tuple[tuple[object, ...], Any] | None = None
    _postings: tuple[tuple[Slot, ...], dict[int, list[int]]] | None = None

    @named
    def search(self, query: str, *, limit: int = 10) -> list[Match]:
        """The visible entries nearest to a query, best first: by meaning where there is an embedder that answers, by
        words otherwise. Keys count as well as values. Entries that have nothing in common with the query are left out.

        Meant for up to some thousand entries: all of them are compared. Does not count as an access.

        >>> from datetime import UTC, datetime
        >>> from wellkept.working import WorkingMemory
        >>> working = WorkingMemory("debugger", clock=lambda: datetime.now(UTC))
        >>> working.set("build", "The nightly build fails on the second runner")
        >>> working.set("theme", "dark")
        >>> [match.entry.key for match in working.search("Which build fails?")]
        ['build']
        """
        validation.content(query, "query")
        validation.integer("limit", limit, 1, 1_000)
        visible = self._visible()
        if not visible:
            return []
        found = self._by_meaning(query, visible, limit)
        semantic = found is not None
        if found is None:
            found = self._by_words(query, visible)
        keys = tuple(visible)
        best = sorted((-score, at) for at, score in found if score > 0)[:limit]
        return [Match(entry=visible[keys[at]].entry(keys[at]), score=-score, semantic=semantic) for score, at in best]

    def _by_meaning(self, query: str, visible: dict[str, Slot], limit: int) -> Scores | None:
        """The most similar entries; ``None`` without an embedder, or while it is down."""
        meaning = self._agent.meaning
        asked = None if meaning is None else meaning.question(query[:TEXT_CHARACTERS])
        if meaning is None or asked is None:
            return None
        rows = self._rows(meaning, asked.embedder, visible)
        if rows is None:
            return None
        import numpy as np  # lazy: heavy, and most agents never search working memory

        direction = np.frombuffer(asked.data, dtype="<f4")
        cosines = rows @ (direction / np.linalg.norm(direction))
        best = np.argpartition(-cosines, limit - 1)[:limit] if limit < len(cosines) else np.arange(len(cosines))
        return list(zip(best.tolist(), map(meaning.scale(), cosines[best].tolist()), strict=True))

    def _by_words(self, query: str, visible: dict[str, Slot]) -> Scores:
        """The share of the query's words that entries have. The index of words is kept until an entry changes."""
        slots = tuple(visible.values())
        kept = self._postings
        if kept is None or kept[0] != slots:
            entries_of: dict[int, list[int]] = {}
            for at, (key, slot) in enumerate(visible.items()):
                for term in set(words.terms(_text(key, slot))):
                    entries_of.setdefault(term, []).append(at)
            kept = self._postings = (slots, entries_of)
        asked = {words.term(word) for word in words.tokens(query[:TEXT_CHARACTERS]) if not words.is_stop(word)}
        counts = Counter(at for term in asked for at in kept[1].get(term, ()))
        return [(at, count / len(asked)) for at, count in counts.items()]

    def _rows(self, meaning: Meaning, embedder: str, visible: dict[str, Slot]) -> Any:
        """A matrix of unit vectors, one for each entry. It is kept until an entry changes."""
        import numpy as np  # lazy: as above

        slots = (embedder, *visible.values())
        kept = self._matrix
        if kept is not None and kept[0] == slots:
            return kept[1]
        known = {} if kept is None or kept[0][0] != embedder else dict(zip(kept[0][1:], kept[1], strict=True))
        new = [(key, slot) for key, slot in visible.items() if slot not in known]
        made = meaning.passages([_text(key, slot) for key, slot in new]) if new else ()
        if made is None:
            return None
        for (_, slot), vector in zip(new, made, strict=True):
            values = np.frombuffer(vector.data, dtype="<f4")
            known[slot] = values / np.linalg.norm(values)
        rows = np.stack([known[slot] for slot in visible.values()])
        self._matrix = (slots, rows)
        return rows


def _text(key: str, slot: Slot) -> str:
    """What is compared of an entry: its key and its value, a text as it is and anything else as JSON."""
    value = decode(key, slot.content) if slot.type_name == "str" else slot.content.decode()
    return f"{key}: {value}"[:TEXT_CHARACTERS]
