"""The former built-in embedder: static word-piece vectors of the package `wordllama`. Needs ``wellkept[wordllama]``.

The vector of a text is the normalised mean of the vectors of its pieces. Fast enough to embed every message of an
agent. Only two data files of the package are read; its code is not imported.
"""

import array
import importlib.util
import math
import re
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, pairwise
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from wellkept import codec
from wellkept.errors import ConfigurationError
from wellkept.recall.calibration import Calibration
from wellkept.text import words

if TYPE_CHECKING:  # numpy takes 100 ms, and opening a database needs none
    from wellkept.recall.arrays import Array

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_SPACE = "\u2581"  # the tokenizer's symbol for a space
_LONGEST = 64  # letters: byte-pair merging is quadratic in the length of a word
_WORD = re.compile(f"{_SPACE}*[^{_SPACE}]{{1,{_LONGEST}}}|{_SPACE}{{1,{_LONGEST}}}")
_RUN = 256  # letters: a longer run of the signs of base64 is data, and its beginning stands for it
_DATA = re.compile(f"([A-Za-z0-9+/=_-]{{{_RUN}}})[A-Za-z0-9+/=_-]+")
_KEPT = 65_536  # the size of the caches

_NONE = 1 << 30  # above all piece numbers
_FEW = 1_000  # pieces: summing these in Python is faster than importing numpy
_MANY = 10_000  # pieces: of so many, most are repeated, and multiplying by their counts is faster than adding all
_REPEATED = 4  # times that a piece occurs on average, from which on it is

FLOOR = 0.25
"""The cosine of two unrelated words."""

MEANT = 0.95
"""The maximum weight of a synonym: less than that of the word itself."""


class _Model(TypedDict):
    vocab: dict[str, int]


class _Tokenizer(TypedDict):
    """The part of the tokenizer's file that is decoded; skipping the rest is five times as fast."""

    model: _Model


class WordllamaEmbedder:
    """Vectors of 256 dimensions, at some ten thousand texts per second on any CPU, for files that were filled with it.

    >>> embedder = WordllamaEmbedder()
    >>> first, second, third = embedder.embed(["I like tea", "She enjoys coffee", "The build is broken"])
    >>> len(first), bool(first @ second > first @ third)
    (256, True)
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256
    batch = 256  # texts: bounds the memory for their piece vectors

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _package_folder()
        self._known: dict[str, tuple[int, ...]] = {}
        self._asked: dict[str, Any] = {}  # quantised vectors of query words

    @property
    def calibration(self) -> Calibration:
        """The cosines of unrelated and of equivalent texts."""
        return Calibration(low=0.0, high=0.6)

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector per text."""
        return self._embedded([self._pieces(text) for text in texts])

    def embed_soon(self, texts: Sequence[str]) -> Any:
        """``embed`` without importing numpy for a few short texts, if the process has not imported it yet.

        Sums of half-precision numbers are exact in doubles, so both ways give the same vectors up to the rounding of
        the norm.

        >>> [len(row) for row in WordllamaEmbedder().embed_soon(["I like tea"])]
        [256]
        """
        pieces = [self._pieces(text) for text in texts]
        if "numpy" in sys.modules or sum(map(len, pieces)) > _FEW:
            return self._embedded(pieces)
        return self._summed(pieces)

    def _embedded(self, pieces: Sequence[Sequence[int]]) -> Any:
        import numpy as np  # lazy: takes 100 ms, and opening a database needs none

        found = np.zeros((len(pieces), self.dimension), np.float32)
        for start in range(0, len(pieces), self.batch):
            rows = self._totals(pieces[start : start + self.batch])
            norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)
            found[start : start + self.batch] = rows / norms[:, None]
        return found

    def _totals(self, pieces: Sequence[Sequence[int]]) -> Any:
        """The sums of the piece vectors of some texts, exact in doubles in whichever order they are made."""
        import numpy as np  # lazy: as above

        lengths = np.array([len(some) for some in pieces])
        flat = np.fromiter(chain.from_iterable(pieces), np.int64, int(lengths.sum()))
        if len(flat) > _MANY:
            distinct, places = np.unique(flat, return_inverse=True)
            if len(flat) > _REPEATED * len(distinct):
                cells = np.repeat(np.arange(len(pieces)) * len(distinct), lengths) + places
                counts = np.bincount(cells, minlength=len(pieces) * len(distinct)).reshape(len(pieces), -1)
                return counts.astype(np.float64) @ self._table[distinct].astype(np.float64)
        return np.add.reduceat(self._table[flat], np.cumsum(lengths) - lengths, dtype=np.float64)

    def _summed(self, pieces: Sequence[Sequence[int]]) -> "list[array.array[float]]":
        start, width = self._layout
        row = struct.Struct(f"<{width}e")
        found = []
        with (self._folder / _WEIGHTS).open("rb") as file:
            for some in pieces:
                total = (0.0,) * width
                for piece in some:
                    file.seek(start + row.size * piece)
                    total = tuple(map(add, total, row.unpack(file.read(row.size))))
                norm = max(math.sqrt(math.fsum(value * value for value in total)), 1e-9)
                found.append(array.array("f", [value / norm for value in total]))
        return found

    def pieces(self, said: Sequence[str]) -> bytes:
        """The number of the longest piece of each word, in two bytes; 0 for stop words.

        >>> len(WordllamaEmbedder().pieces(["the", "indentation"]))
        4
        """
        return b"".join([self._longest[word] for word in said])

    def kin(self, asked: Sequence[str]) -> "Callable[[Array], Array]":
        """The similarity of query words to pieces: a function from pieces to a matrix with a row for each word."""
        import numpy as np  # lazy: as above

        from wellkept.recall import quantized  # lazy: as above

        if len(self._asked) >= _KEPT:
            self._asked = {}
        known = self._asked  # another thread may replace it
        new = [word for word in asked if word not in known]
        if new:
            known.update(zip(new, quantized.encode(self.embed(new)), strict=True))
        codes = np.array([known[word] for word in asked], np.uint8).reshape(-1, self.dimension)

        def near(pieces: "Array") -> "Array":
            new = pieces[~self._encoded[pieces]]
            if len(new):
                self._codes[new] = quantized.encode(self._table[new].astype(np.float32))
                self._encoded[new] = True
            cosines = quantized.between(codes, self._codes[pieces])
            cosines[:, pieces == 0] = 0
            cosines -= FLOOR
            cosines *= 1 / (1 - FLOOR)
            np.maximum(cosines, 0, out=cosines)
            return np.minimum(cosines, MEANT, out=cosines)

        return near

    @cached_property
    def _longest(self) -> "_Longest":
        return _Longest(self)

    @cached_property
    def _codes(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros((len(self._table), self.dimension), np.uint8)

    @cached_property
    def _encoded(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros(len(self._table), np.bool_)

    @cached_property
    def _table(self) -> Any:
        """The piece vectors, memory-mapped: only the pages used are read."""
        import numpy as np  # lazy: as above

        start, width = self._layout
        path = self._folder / _WEIGHTS
        count = (path.stat().st_size - start) // (2 * width)
        return np.asarray(np.memmap(path, dtype="<f2", mode="r", offset=start, shape=(count, width)))

    @cached_property
    def _layout(self) -> tuple[int, int]:
        """Offset and dimension of the vectors in their safetensors file: a header and one half-precision matrix."""
        with (self._folder / _WEIGHTS).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = codec.decode_json(file.read(size))["embedding.weight"]
        return 8 + size + header["data_offsets"][0], header["shape"][1]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each piece. Lower numbers were merged earlier in training."""
        return codec.decode_as((self._folder / _TOKENIZER).read_bytes(), _Tokenizer)["model"]["vocab"]

    def _pieces(self, text: str) -> list[int]:
        """The numbers of a text's pieces; never empty."""
        found: list[int] = []
        if len(text) > _RUN:
            text = _DATA.sub(r"\1", text)
        for word in _WORD.findall(_SPACE + _SPACE.join(text.split())):
            known = self._known.get(word)
            if known is None:
                known = self._split(word)
                if len(self._known) >= _KEPT:
                    self._known = {}
                self._known[word] = known
            found += known
        return found

    def longest(self, word: str) -> bytes:
        """The number of a word's longest piece, in two bytes; of a very long word, among its first letters."""
        names = self._named(_SPACE + word[:_LONGEST])
        return self._numbers[max(names, key=len)].to_bytes(2, "little")

    def _split(self, word: str) -> tuple[int, ...]:
        return tuple(self._numbers[name] for name in self._named(word))

    def _named(self, word: str) -> list[str]:
        """Byte-pair encoding: merge the adjacent pair with the lowest piece number until no pair is a piece."""
        numbers = self._numbers
        parts = list(word)
        joined = [numbers.get(left + right, _NONE) for left, right in pairwise(parts)]
        while joined and (first := min(joined)) != _NONE:
            place = joined.index(first)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
            del joined[place]  # only its neighbours are other pairs now
            if place:
                joined[place - 1] = numbers.get(parts[place - 1] + parts[place], _NONE)
            if place < len(joined):
                joined[place] = numbers.get(parts[place] + parts[place + 1], _NONE)
        named: list[str] = []
        for part in parts:
            if part in numbers:
                named.append(part)
            else:  # byte fallback for characters outside the vocabulary
                named += [f"<0x{byte:02X}>" for byte in part.encode()]
        return named


class _Longest(dict[str, bytes]):
    """A cache from word to its longest piece."""

    def __init__(self, embedder: WordllamaEmbedder) -> None:
        self._embedder = embedder

    def __missing__(self, word: str) -> bytes:
        found = self[word] = b"\0\0" if words.is_stop(word) else self._embedder.longest(word)
        if len(self) > _KEPT:
            self.clear()
        return found


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")  # without importing it
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            "the package 'wordllama', which carries the vectors of this embedder, is not installed",
            details={"field": "embedder"},
            hint="pip install 'wellkept[wordllama]', or open the store without it and run reembed",
        )
    return Path(spec.submodule_search_locations[0])
