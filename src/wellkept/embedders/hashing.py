"""Feature hashing: a deterministic embedder without a model, for tests and minimal installations."""

import hashlib
import math
import re
from array import array
from collections.abc import Sequence

from wellkept.recall.calibration import PLAIN

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Hashes words into a vector: texts that share words are similar; synonyms are not.

    >>> embedder = HashingEmbedder(dimension=64)
    >>> first, second = embedder.embed(["dark mode", "dark mode"])
    >>> embedder.name, len(first), first == second
    ('hashing-64', 64, True)
    """

    calibration = PLAIN
    lexicon = None

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.name = f"hashing-{dimension}"

    def embed(self, texts: Sequence[str]) -> list["array[float]"]:
        """One unit vector per text; a text without words is hashed as a whole."""
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> "array[float]":
        row = array("f", bytes(4 * self.dimension))
        for word in _WORD.findall(text.casefold()) or [text]:
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            value = int.from_bytes(digest, "big")
            row[value % self.dimension] += 1.0 if value >> 63 else -1.0
        length = math.sqrt(sum(number * number for number in row))
        if length == 0:  # opposite signs cancelled out
            row[0] = length = 1.0
        return array("f", (number / length for number in row))
