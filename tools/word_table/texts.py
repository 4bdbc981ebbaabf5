"""The texts that the table is made from: definitions and examples of WordNet, and sentences of Python's documentation.

Every function gives the same texts in the same order each time, the most useful ones first.
"""

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from pydoc_data import topics

from tools.word_table.wordnet import Synset

LONGEST = 100
"""Characters of a definition that are kept."""

_ANIMAL, _PLANT = 5, 20  # topics of nouns: thousands of species that nobody talks of
_TAKEN = re.compile(r"\([^)]*\)|``?|\*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,;:'()._-]+[.]")


def spelled(file: Path) -> frozenset[str]:
    """The lower-case words of a word list, without possessives."""
    return frozenset(word for word in file.read_text("utf-8").split() if word.islower() and "'" not in word)


def usual(synset: Synset, spelling: Collection[str]) -> list[str]:
    """The words of a synset that are ordinary words, or made of ordinary words."""
    found = [word for word in synset.words if all(part in spelling for part in re.split("[ -]", word))]
    rare = synset.part == "n" and synset.topic in (_ANIMAL, _PLANT) and not synset.count
    return [word for word in found if word.isalpha()] if rare else found


def definitions(synsets: Mapping[str, Synset], spelling: Collection[str]) -> list[str]:
    """``word: definition`` for every synset that has an ordinary word."""
    found = []
    for synset in synsets.values():
        words = usual(synset, spelling)
        if words:
            gloss = _TAKEN.sub("", synset.gloss.split(";")[0])
            found.append(textwrap.shorten(f"{words[0]}: {gloss}", LONGEST, placeholder=""))
    return list(dict.fromkeys(found))


def examples(synsets: Mapping[str, Synset]) -> list[str]:
    """The sentences and phrases in which WordNet shows its words."""
    found = (one for synset in synsets.values() for one in synset.examples)
    return list(dict.fromkeys(one[:LONGEST] for one in found if len(one.split()) > 2))


def documentation() -> list[str]:
    """Sentences of Python's language reference, as the standard library carries it."""
    return list(dict.fromkeys(_sentences(topics.topics.values())))


def _sentences(pages: Sequence[str] | Collection[str]) -> Iterator[str]:
    for page in pages:
        for paragraph in re.split(r"\n\s*\n", page):
            if not paragraph.startswith(("   ", ">>>")):
                for sentence in _SENTENCE.split(" ".join(_TAKEN.sub("", paragraph).split())):
                    if len(sentence) <= 2 * LONGEST and len(sentence.split()) > 4 and _PLAIN.fullmatch(sentence):
                        yield sentence
