"""Which memories may have a text in them: every three bytes in a row leave a mark, and most texts lack one of them."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from recollect.text import words

_MARKS = 4_096
_CHUNK_TEXTS = 1_024
_CHUNK_BYTES = 1_000_000
_BASE = 31
_GRAM_BYTES = 3

Array = npt.NDArray[np.uint32]


class Grams:
    """The marks of texts, a bit for each text. One that changed is added again: what it was is not taken out.

    >>> grams = Grams()
    >>> grams.add([7, 9], ["prefers tea", "security review"])
    >>> grams.candidates(["secur", "rev"])
    {9}
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._count = 0
        self._bits = np.zeros((_MARKS, 0), np.uint8)

    def __len__(self) -> int:
        return self._count

    def add(self, numbers: Sequence[int], texts: Iterable[str]) -> None:
        """Mark the contents of some memories; best of many at once."""
        made = [self._bits]
        for part in _chunks(map(_signed, texts)):
            whose = np.repeat(np.arange(len(part)), [len(one) for one in part])
            marks = _marks(b"".join(part))
            spare = -len(part) % 8  # a byte is of eight texts
            marked = np.zeros((_MARKS, len(part) + spare), np.bool_)
            marked[marks, whose[: len(marks)]] = True
            made.append(np.packbits(marked, axis=1, bitorder="little"))
            self._numbers += [*numbers[: len(part)], *[-1] * spare]
            numbers = numbers[len(part) :]
            self._count += len(part)
        self._bits = np.concatenate(made, axis=1)

    def candidates(self, pieces: Iterable[str]) -> set[int]:
        """The numbers of memories that may have every piece in their text; no others have."""
        marks = np.concatenate([_marks(_encoded(piece)) for piece in pieces])
        found = np.unpackbits(np.bitwise_and.reduce(self._bits[marks], axis=0), bitorder="little")
        return {self._numbers[place] for place in np.flatnonzero(found).tolist()}


def tells(piece: str) -> bool:
    """Whether a piece is long enough to leave a mark."""
    return len(_encoded(piece)) >= _GRAM_BYTES


def _signed(content: str) -> bytes:
    """What leaves marks: the case-folded content, and its words where those may be spelt in another way."""
    folded = content.casefold()
    return _encoded(folded if folded.isascii() else f"{folded}\n{words.spaced(content)}")


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _chunks(signed: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Texts that are marked together: many short ones, few long ones."""
    part: list[bytes] = []
    size = 0
    for one in signed:
        part.append(one)
        size += len(one)
        if len(part) == _CHUNK_TEXTS or size >= _CHUNK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _marks(text: bytes) -> Array:
    """The marks of all grams of a text. Where texts are joined, some are of no text, which does no harm."""
    letters = np.frombuffer(text, np.uint8).astype(np.uint32)
    found: Array = ((letters[:-2] * _BASE + letters[1:-1]) * _BASE + letters[2:]) % _MARKS
    return found
