"""Which words and pieces of words get a row of the table."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

WORD = re.compile(r"[a-z]+")
NUMBERS = (*range(101), *range(1950, 2036))
"""Numbers with a row of their own: amounts, days, hours and years that people mention."""

_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "r", "ly", "ness", "est")
_INHERITED = 0.1  # of the count of a word, for a form of it
_PIECE = 2  # letters at least


def folded(text: str) -> str:
    """Lower case without accents, as the teacher reads it."""
    return "".join(one for one in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(one))


def of_teacher(file: Path) -> tuple[list[str], list[str]]:
    """The whole words of the teacher's vocabulary, and its pieces that stand inside words, frequent ones first."""
    words, pieces = [], []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("##"):
            if WORD.fullmatch(line[2:]) and len(line) >= 2 + _PIECE:
                pieces.append(line[2:])
        elif WORD.fullmatch(line):
            words.append(line)
    return words, pieces


def counted(texts: Iterable[str]) -> Counter[str]:
    """How often each word stands in the texts."""
    found: Counter[str] = Counter()
    for text in texts:
        found.update(WORD.findall(folded(text)))
    return found


def ranked(spelling: Path, counts: Mapping[str, int], known: Collection[str]) -> list[str]:
    """The words of a word list that are not known, the most frequent first; forms of a word come after it."""
    worth: dict[str, float] = {}
    for line in spelling.read_text("utf-8").split():
        word = folded(line)
        if WORD.fullmatch(word) and len(word) > 1 and word not in known:
            worth[word] = max(worth.get(word, 0), _worth(word, counts))
    return sorted(worth, key=lambda word: (-worth[word], word))


def _worth(word: str, counts: Mapping[str, int]) -> float:
    bases = [word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)]
    forms = [form for base in bases for form in (base, base + "e", base[:-1] + "y", base[:-1])]
    return max(counts.get(word, 0), _INHERITED * max((counts.get(form, 0) for form in forms), default=0))
