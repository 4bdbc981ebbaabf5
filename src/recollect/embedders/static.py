"""The built-in embedder: a table of word-piece vectors that comes inside a package, so nothing is downloaded.

A text is the mean of the vectors of its pieces. That is fast enough to call for every word an agent says, and together
with the other signals of recall it finds what larger models find. Only the two data files of the package `wordllama`
are read, none of its code.
"""

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from recollect import codec, words
from recollect.calibration import Calibration
from recollect.errors import ConfigurationError

if TYPE_CHECKING:  # numpy takes 100 ms, and opening a database needs none
    from recollect.recall.columns import Array

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_SPACE = "\u2581"  # what the tokenizer writes for a space
_LONGEST = 64  # letters: joining the pieces of a word takes time that grows with the square of its length
_WORD = re.compile(f"{_SPACE}*[^{_SPACE}]{{1,{_LONGEST}}}|{_SPACE}{{1,{_LONGEST}}}")
_KEPT = 65_536  # words whose pieces are remembered

_NONE = 1 << 30  # no piece has this number

FLOOR = 0.25
"""The cosine of two words that have nothing to do with each other."""

MEANT = 0.95
"""What a word of the same meaning counts at most: less than the word itself."""


class _Model(TypedDict):
    vocab: dict[str, int]


class _Tokenizer(TypedDict):
    """The part of the tokenizer's file that is needed; the rest is passed over, which takes a fifth of the time."""

    model: _Model


class StaticEmbedder:
    """Vectors of 256 numbers at some ten thousand texts a second, on any processor.

    >>> embedder = StaticEmbedder()
    >>> first, second, third = embedder.embed(["I like tea", "She enjoys coffee", "The build is broken"])
    >>> len(first), bool(first @ second > first @ third)
    (256, True)
    """

    name = "wordllama-l2-supercat-256"
    dimension = 256
    calibration = Calibration(low=0.0, high=0.6)
    batch = 256  # texts: their pieces are held as numbers of 32 bits until they are summed up

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _package_folder()
        self._known: dict[str, tuple[int, ...]] = {}
        self._asked: dict[str, Any] = {}  # the codes of words that questions had

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector per text."""
        import numpy as np  # lazy: takes 100 ms, and opening a database needs none

        pieces = [self._pieces(text) for text in texts]
        lengths = np.array([len(some) for some in pieces])
        if not len(lengths):
            return np.zeros((0, self.dimension), np.float32)
        flat = np.fromiter((piece for some in pieces for piece in some), np.int64, int(lengths.sum()))
        rows = np.add.reduceat(self._table[flat].astype(np.float32), np.cumsum(lengths) - lengths)
        return rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)[:, None]

    def pieces(self, said: Sequence[str]) -> bytes:
        """For each word the piece that says most of it, in two bytes; 0 for words that say nothing by themselves.

        >>> len(StaticEmbedder().pieces(["the", "indentation"]))
        4
        """
        return b"".join([self._longest[word] for word in said])

    def kin(self, asked: Sequence[str]) -> "Callable[[Array], Array]":
        """How near in meaning words are to pieces: a function from pieces to a matrix, a row for each word."""
        import numpy as np  # lazy: as above

        from recollect.recall import kernel  # lazy: as above

        if len(self._asked) >= _KEPT:
            self._asked = {}
        known = self._asked  # another thread may put an empty one in its place
        new = [word for word in asked if word not in known]
        if new:
            known.update(zip(new, kernel.encode(self.embed(new)), strict=True))
        codes = np.array([known[word] for word in asked], np.int8).reshape(-1, self.dimension)

        def near(pieces: "Array") -> "Array":
            new = pieces[~self._encoded[pieces]]
            if len(new):
                self._codes[new] = kernel.encode(self._table[new].astype(np.float32))
                self._encoded[new] = True
            cosines = kernel.between(codes, self._codes[pieces])
            cosines[:, pieces == 0] = 0
            found: Array = np.clip((cosines - FLOOR) / (1 - FLOOR), 0, MEANT)
            return found

        return near

    @cached_property
    def _longest(self) -> "_Longest":
        return _Longest(self)

    @cached_property
    def _codes(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros((len(self._table), self.dimension), np.int8)

    @cached_property
    def _encoded(self) -> "Array":
        import numpy as np  # lazy: as above

        return np.zeros(len(self._table), np.bool_)

    @cached_property
    def _table(self) -> Any:
        """The vectors, mapped into memory: only what is used is read. The file is a header and one array of halves."""
        import numpy as np  # lazy: as above

        path = self._folder / _WEIGHTS
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = codec.decode_json(file.read(size))["embedding.weight"]
        start = 8 + size + header["data_offsets"][0]
        return np.memmap(path, dtype="<f2", mode="r", offset=start, shape=tuple(header["shape"]))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The number of each piece. Pieces that were joined first in training have the lower numbers."""
        return codec.decode_as((self._folder / _TOKENIZER).read_bytes(), _Tokenizer)["model"]["vocab"]

    def _pieces(self, text: str) -> list[int]:
        """The numbers of the pieces that a text is made of; never none."""
        found: list[int] = []
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
        """The number of the longest piece of a word, in two bytes."""
        names = self._names
        pieces = [piece for part in _WORD.findall(_SPACE + word) for piece in self._split(part)]
        return max(pieces, key=lambda piece: len(names[piece])).to_bytes(2, "little")

    @cached_property
    def _names(self) -> list[str]:
        return sorted(self._numbers, key=self._numbers.__getitem__)

    def _split(self, word: str) -> tuple[int, ...]:
        """Byte-pair encoding: join the neighbours that make the piece of the lowest number, until none make any."""
        numbers = self._numbers
        parts = list(word)
        while len(parts) > 1:
            joined = [numbers.get(left + right, _NONE) for left, right in pairwise(parts)]
            first = min(joined)
            if first == _NONE:
                break
            place = joined.index(first)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        split: list[int] = []
        for part in parts:
            if part in numbers:
                split.append(numbers[part])
            else:  # a letter that the vocabulary does not have is its bytes
                split += [numbers[f"<0x{byte:02X}>"] for byte in part.encode()]
        return tuple(split)


class _Longest(dict[str, bytes]):
    """The longest pieces of words met before."""

    def __init__(self, embedder: StaticEmbedder) -> None:
        self._embedder = embedder

    def __missing__(self, word: str) -> bytes:
        found = self[word] = b"\0\0" if words.is_stop(word) else self._embedder.longest(word)
        if len(self) > _KEPT:
            self.clear()
        return found


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")  # finds the package without running it
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            "the package 'wordllama', which carries the vectors of the built-in embedder, is not installed",
            details={"field": "embedder"},
            hint="pip install wordllama, pass another embedder, or None to go by words alone",
        )
    return Path(spec.submodule_search_locations[0])
