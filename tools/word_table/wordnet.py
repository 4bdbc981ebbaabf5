"""A reader of WordNet's database files: synsets with their words, glosses, examples and relations."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
"""The letter of each part of speech, and the end of its files' names."""

_EXAMPLE = re.compile(r'"([^"]+)"')
_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand
_HYPERNYM = "@"


@dataclass(frozen=True, slots=True)
class Synset:
    """Words of one meaning. ``count`` says how often it was met in texts that WordNet's authors tagged."""

    key: str
    words: tuple[str, ...]
    gloss: str
    examples: tuple[str, ...]
    hypernyms: tuple[str, ...]
    topic: int
    count: int

    @property
    def part(self) -> str:
        """The letter of its part of speech."""
        return self.key[0]


def read(folder: Path) -> Mapping[str, Synset]:
    """All synsets by key, the most frequent first."""
    counts = _counts(folder / "cntlist.rev")
    found: dict[str, Synset] = {}
    for letter, name in PARTS.items():
        for line in (folder / f"data.{name}").read_text("utf-8").splitlines():
            if not line.startswith(" "):
                synset = _parsed(letter, line, counts)
                found[synset.key] = synset
    return {one.key: one for one in sorted(found.values(), key=lambda one: (-one.count, one.key))}


def _parsed(letter: str, line: str, counts: Mapping[tuple[str, str, int, int], int]) -> Synset:
    head, _, text = line.partition(" | ")
    parts = head.split()
    width = int(parts[3], 16)
    topic = int(parts[1])
    named = [(parts[4 + 2 * place], int(parts[5 + 2 * place], 16)) for place in range(width)]
    pointers = parts[5 + 2 * width :]
    above = [
        _key(pointers[place + 2], pointers[place + 1])
        for place in range(0, 4 * int(parts[4 + 2 * width]), 4)
        if pointers[place] == _HYPERNYM
    ]
    words = tuple(_MARKER.sub("", word).replace("_", " ") for word, _ in named)
    count = sum(counts.get((word.lower(), letter, topic, number), 0) for word, number in named)
    examples = tuple(one.strip() for one in _EXAMPLE.findall(text))
    gloss = _EXAMPLE.split(text, maxsplit=1)[0].strip(" ;:,\n")
    return Synset(_key(letter, parts[0]), words, gloss, examples, tuple(above), topic, count)


def _key(letter: str, offset: str) -> str:
    return ("a" if letter == "s" else letter) + offset


def _counts(file: Path) -> Mapping[tuple[str, str, int, int], int]:
    """How often each sense was met: by word, part of speech, topic and number within the topic."""
    letters = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
    found: dict[tuple[str, str, int, int], int] = defaultdict(int)
    for line in file.read_text("utf-8").splitlines():
        sense, _, count = line.split()
        word, _, rest = sense.partition("%")
        kind, topic, number = rest.split(":")[:3]
        found[word, letters[kind], int(topic), int(number)] += int(count)
    return found


def exceptions(folder: Path) -> Mapping[str, Sequence[str]]:
    """Irregular forms of words by their base: ``went`` by ``go``."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in PARTS.values():
        for line in (folder / f"{name}.exc").read_text("utf-8").splitlines():
            form, *bases = line.split()
            for base in bases:
                found[base].append(form)
    return found
