"""The built-in embedder: a table of word vectors that is part of this package, made by ``tools/word_table``.

The vector of a text is the normalised sum of the vectors of its words. Fast enough to embed every message of an agent.
A word that the table does not have is looked up by its base, then made of pieces and of rows that its hash chooses:
these say nothing of its meaning, but are the same wherever the word stands.
"""

import array
import gzip
import math
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wellkept.recall.calibration import Calibration
from wellkept.text import words

if TYPE_CHECKING:  # numpy takes 100 ms, and opening a database needs none
    from wellkept.recall.arrays import Array

FOLDER = Path(__file__).parent / "word_table_1"
"""Where the table is: ``words.txt.gz`` names the rows from ``HASHED`` + 1 on, ``rows.bin`` has them."""

DIMENSION = 160
HASHED = 256
"""Rows without a word, from row 1 on, for words without a row. Row 0 is nothing."""

INSIDE = "##"
"""Before a piece that stands inside words."""

_RUN = 256  # letters: a longer run of the signs of base64 is data, and its beginning stands for it
_DATA = re.compile(f"([A-Za-z0-9+/=_-]{{{_RUN}}})[A-Za-z0-9+/=_-]+")
_LONGEST = 24  # letters: of a longer word these stand for it
_PIECE = 12  # letters of a piece at most
_STEM = 5  # letters in which the forms of a word agree, in other scripts
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"))
_MORE = (("ly", ""), ("er", ""), ("er", "e"), ("ers", ""), ("ness", ""), ("able", ""), ("ment", ""))
_NEGATED = frozenset(
    "aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt neednt shouldnt wasnt werent wont "
    "wouldnt".split()
)
_KEPT = 65_536  # the size of the caches
_FEW = 1_000  # rows: summing these in Python is faster than importing numpy

FLOOR = 0.25
"""The cosine of two unrelated words."""

MEANT = 0.95
"""The maximum weight of a synonym: less than that of the word itself."""


class Vocabulary:
    """From words to rows of the table.

    >>> named = Vocabulary({"tea": 300, "not": 301})
    >>> named.row("teas"), named.row("dont"), named.row("xyzzy"), len(named.rows("xyzzy"))
    (300, 301, 0, 2)
    """

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._known: dict[str, tuple[int, ...]] = {}

    def of_text(self, text: str) -> list[int]:
        """The rows of all words of a text; never none."""
        found: list[int] = []
        if len(text) > _RUN:
            text = _DATA.sub(r"\1", text)
        for word in words.tokens(text):
            known = self._known.get(word)
            if known is None:
                known = self.rows(word)
                if len(self._known) >= _KEPT:
                    self._known = {}
                self._known[word] = known
            found += known
        return found or list(_hashed(text.strip()[:_LONGEST]))

    def row(self, word: str) -> int:
        """The row of a word, or of the one that it is a form of; 0 without either."""
        if not word.isascii():
            return 0  # the table is English, and a megabyte of Chinese has a million of these
        number = self._numbers.get(word)
        if number is None and word in _NEGATED:
            number = self._numbers.get("not")
        if number is None:
            number = next((self._numbers[base] for base in _bases(word) if base in self._numbers), 0)
        return number

    def rows(self, word: str) -> tuple[int, ...]:
        """The rows that a word is the sum of."""
        number = self.row(word)
        if number:
            return (number,)
        if not word.isascii():
            stem = word[:_STEM]
            return (*_hashed(word[:_LONGEST]), *(_hashed(stem) if stem != word and not words.is_dense(word) else ()))
        letters = word[:_LONGEST]
        return (*_hashed(letters), *(self._pieces(letters) if letters.isalpha() else ()))

    def _pieces(self, word: str) -> Iterator[int]:
        """The longest pieces from left to right; letters that none begins with are left out."""
        place = 0
        while place < len(word):
            before = INSIDE if place else ""
            for end in range(min(len(word), place + _PIECE), place + 1, -1):
                number = self._numbers.get(before + word[place:end])
                if number is not None:
                    yield number
                    place = end
                    break
            else:
                place += 1


def _hashed(word: str) -> tuple[int, int]:
    number = zlib.crc32(word.encode("utf-8", "surrogatepass"))
    return 1 + number % HASHED, 1 + number // HASHED % HASHED


def _bases(word: str) -> Iterator[str]:
    """What a word may be a form of."""
    for ending, instead in (*_ENDINGS, *_MORE):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            base = word[: -len(ending)]
            yield base + instead
            if len(base) > 3 and base[-1] == base[-2] and not instead:
                yield base[:-1]


class WordTableEmbedder:
    """English texts to 160 dimensions, at tens of thousands per second on any CPU, without another package.

    >>> embedder = WordTableEmbedder()
    >>> first, second, third = embedder.embed(["I like tea", "She enjoys coffee", "The build is broken"])
    >>> len(first), bool(first @ second > first @ third)
    (160, True)
    """

    name = "wellkept-words-1"
    dimension = DIMENSION
    batch = 256  # texts: bounds the memory for the vectors of their words

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder

    @property
    def calibration(self) -> Calibration:
        """The cosines of unrelated and of equivalent texts."""
        return Calibration(low=0.15, high=0.75)

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector per text."""
        return self._embedded([self._vocabulary.of_text(text) for text in texts])

    def embed_soon(self, texts: Sequence[str]) -> Any:
        """``embed`` without importing numpy for a few short texts, if the process has not imported it yet.

        Rows are whole numbers, so both ways give the same vectors up to the rounding of the norm.

        >>> [len(row) for row in WordTableEmbedder().embed_soon(["I like tea"])]
        [160]
        """
        rows = [self._vocabulary.of_text(text) for text in texts]
        if "numpy" in sys.modules or sum(map(len, rows)) > _FEW:
            return self._embedded(rows)
        return self._summed(rows)

    def _embedded(self, rows: Sequence[Sequence[int]]) -> Any:
        import numpy as np  # lazy: takes 100 ms, and opening a database needs none

        found = np.zeros((len(rows), DIMENSION), np.float32)
        for start in range(0, len(rows), self.batch):
            some = rows[start : start + self.batch]
            lengths = np.array([len(one) for one in some])
            flat = np.fromiter(chain.from_iterable(some), np.int64, int(lengths.sum()))
            # The products are whole numbers below 2 to the 23rd: exact in single precision, their sums in double.
            scaled = self._table["row"][flat] * self._table["scale"][flat].astype(np.float32)[:, None]
            sums = np.add.reduceat(scaled, np.cumsum(lengths) - lengths, dtype=np.float64)
            norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", sums, sums)), 1)
            found[start : start + self.batch] = sums / norms[:, None]
        return found

    def _summed(self, rows: Sequence[Sequence[int]]) -> "list[array.array[float]]":
        found = []
        with (self._folder / "rows.bin").open("rb") as file:
            for some in rows:
                total = (0,) * DIMENSION
                for row in some:
                    file.seek(_ROW.size * row)
                    scale, *values = _ROW.unpack(file.read(_ROW.size))
                    total = tuple(map(add, total, (scale * value for value in values)))
                norm = max(math.sqrt(sum(value * value for value in total)), 1)
                found.append(array.array("f", [value / norm for value in total]))
        return found

    def pieces(self, said: Sequence[str]) -> bytes:
        """The row of each word, in two bytes; 0 for stop words and for words without one.

        >>> len(WordTableEmbedder().pieces(["the", "indentation"]))
        4
        """
        return b"".join([self._numbered[word] for word in said])

    def kin(self, asked: Sequence[str]) -> "Callable[[Array], Array]":
        """The similarity of query words to words by their rows: a function to a matrix with a line for each word."""
        import numpy as np  # lazy: as above

        from wellkept.recall import quantized  # lazy: as above

        rows = np.frombuffer(self.pieces(asked), "<u2").astype(np.int64)
        codes = self._coded(rows)

        def near(pieces: "Array") -> "Array":
            cosines = quantized.between(codes, self._coded(pieces))
            cosines[:, pieces == 0] = 0
            cosines[rows == 0] = 0
            cosines -= FLOOR
            cosines *= 1 / (1 - FLOOR)
            np.maximum(cosines, 0, out=cosines)
            return np.minimum(cosines, MEANT, out=cosines)

        return near

    def _coded(self, rows: "Array") -> "Array":
        """Quantised directions of rows, each made once."""
        import numpy as np  # lazy: as above

        from wellkept.recall import quantized  # lazy: as above

        new = rows[~self._encoded[rows]]
        if len(new):
            self._codes[new] = quantized.encode(self._table["row"][new].astype(np.float32))
            self._encoded[new] = True
        found: Array = self._codes[rows]
        return found

    @cached_property
    def _numbered(self) -> "_Numbered":
        return _Numbered(self._vocabulary)

    @cached_property
    def _codes(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros((len(self._table), DIMENSION), np.uint8)

    @cached_property
    def _encoded(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros(len(self._table), np.bool_)

    @cached_property
    def _table(self) -> Any:
        """The rows, memory-mapped: only the pages used are read."""
        import numpy as np  # lazy: as above

        kind = np.dtype([("scale", "<u2"), ("row", "i1", (DIMENSION,))])
        return np.asarray(np.memmap(self._folder / "rows.bin", dtype=kind, mode="r"))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        # Compressed, so that whoever searches the sources for a word does not find a dictionary: 2 ms, once.
        named = gzip.decompress((self._folder / "words.txt.gz").read_bytes()).decode("ascii").split("\n")
        return Vocabulary(dict(zip(named, range(HASHED + 1, HASHED + 1 + len(named)), strict=True)))


_ROW = struct.Struct(f"<H{DIMENSION}b")
"""A row as it is kept: a scale, and numbers to be multiplied by it."""


class _Numbered(dict[str, bytes]):
    """A cache from word to the number of its row."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __missing__(self, word: str) -> bytes:
        row = 0 if words.is_stop(word) else self._vocabulary.row(word)
        found = self[word] = row.to_bytes(2, "little")
        if len(self) > _KEPT:
            self.clear()
        return found
