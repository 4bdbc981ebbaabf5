"""Pairs of a remark and a question that it answers, in other words: templates filled with the words of WordNet.

In braces: a word of the synset (``x``), another word for it (``s``), a more general one (``h``), a second thing
(``y``), a verb and another word for it (``v``, ``w``), an adjective and another word for it (``a``, ``b``), another
adjective (``c``); the rest is chosen from the lists below. A test holds that no question of a benchmark fits one.
"""

import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tools.word_table.texts import usual
from tools.word_table.wordnet import Synset

SEED = 11
COUNT = 30_000
"""How many pairs are made; fewer may be used."""

ACT, ARTIFACT, ATTRIBUTE, BODY, COGNITION, COMMUNICATION, EVENT, FEELING = 4, 6, 7, 8, 9, 10, 11, 12
FOOD, GROUP, LOCATION, PERSON, PHENOMENON, POSSESSION, STATE, SUBSTANCE, TIME = 13, 14, 15, 18, 19, 21, 26, 27, 28
ANIMAL, PLANT = 5, 20

Kinds = tuple[int, ...]
THINGS: Kinds = (ARTIFACT, SUBSTANCE, FOOD, PLANT, ANIMAL)
DOINGS: Kinds = (ACT, EVENT, COMMUNICATION)
THOUGHTS: Kinds = (COGNITION, COMMUNICATION, ATTRIBUTE, FEELING)

TEMPLATES: Sequence[tuple[Kinds, str, str]] = (
    (THINGS, "{name} forgot the {x} on the tram", "what {h} did {name} lose on public transport?"),
    (THINGS, "{name} borrowed our {x} in {month}", "is the {s} still lent out to {name}"),
    (THINGS, "behind the {y} stands a {x}", "where should I look for the {s}?"),
    (THINGS, "{name} repaired the {x} with a {y}", "who is able to mend a {s}?"),
    (THINGS, "we ordered a {a} {x} from abroad", "{h} on its way to us from another country"),
    (THINGS, "I would rather have {x} than {y}", "which do I like better, {s} or {y}?"),
    (THINGS, "{name} collects every sort of {x}", "what {h} does {name} gather as a pastime?"),
    (THINGS, "no {x} in the {y}, said {name}", "why does {name} forbid {h} in there?"),
    (THINGS, "a {x} costs {number} euros at the harbour", "how much money is a {s} near the ships?"),
    (THINGS, "{name} sold the {x} and bought a {y}", "what became of the {h} that {name} got rid of?"),
    ((FOOD,), "{name} cooked {x} for the whole crew", "what {h} did {name} make for everybody?"),
    ((FOOD, SUBSTANCE), "{x} gives {name} a rash", "which {h} had {name} better avoid?"),
    ((FOOD, PLANT), "{name} cannot bear the taste of {x}", "{h} disliked by {name}"),
    ((FOOD,), "{name} takes {x} in the morning and {y} at night", "does {name} have any {h} early in the day?"),
    ((ANIMAL,), "a {x} keeps {name} company at home", "does {name} own an animal, maybe a {h}?"),
    ((ARTIFACT, GROUP), "the {x} opens at {number} on {day}", "from when on can people enter the {s}?"),
    ((ARTIFACT, LOCATION), "{name} moved into a {x} beside the {y}", "what sort of {h} is {name} staying in now?"),
    ((LOCATION,), "{name} grew up in a {x} by the sea", "kind of {h} in {name}'s childhood"),
    ((LOCATION, GROUP), "the {x} lies north of the {y}", "which {h} is situated to the north?"),
    ((PERSON,), "{name} used to earn a living as a {x}", "former occupation of {name}: {h}"),
    ((PERSON,), "{name} dreams of becoming a {x}", "would {name} like to work as a {s} some day?"),
    ((PERSON,), "the {x} rang about the {y} on {day}", "why did a {s} phone us?"),
    ((PERSON,), "{other} has had {name} as a {x} for ages", "how is the {s} of {other} called?"),
    ((PERSON,), "ask the {x} when the {y} is late", "whom do we turn to if there is a delay, some {h}?"),
    ((PERSON, GROUP), "{name} trusts no {x} any more", "{h} that {name} lost faith in"),
    ((GROUP,), "{name} joined the {x} in {year}", "for how many years has {name} belonged to the {s}?"),
    ((GROUP,), "the {x} has {number} people and meets on {day}", "how many belong to the {s} that meets on {day}?"),
    (DOINGS, "the {x} was put off until {month}", "in which month will the delayed {s} be held?"),
    (DOINGS, "the {x} takes {number} minutes", "how long before the {s} is over?"),
    (DOINGS, "{name} skipped the {x} because of the {y}", "reason for {name}'s absence from the {s}"),
    (DOINGS, "after the {x} {name} went home early", "when did {name} leave the {h}?"),
    (DOINGS, "{name} is in charge of the {x}", "who bears responsibility for the {s}?"),
    (DOINGS, "every {day} there is a {x}", "weekday reserved for the {s}"),
    (DOINGS, "{name} enjoys {x} more than {y}", "what {h} gives {name} pleasure?"),
    (DOINGS, "the {x} of {month} {year} was {a}", "that year's {s} and its quality"),
    (THOUGHTS, "{name} wrote a long {x} about {y}", "what did {name} put on paper, a {h}?"),
    (THOUGHTS, "{name} has no {x} for the {y}", "what {s} is {name} missing?"),
    (THOUGHTS, "{x} matters most to {name}", "{name} puts {s} above everything"),
    (THOUGHTS, "they talked about {x} until late", "what was their long talk about, {h}?"),
    ((FEELING, STATE), "{name} was full of {x} after the {y}", "how did {name} feel, with {s} or without?"),
    ((STATE, BODY), "{name} suffers from a {x}", "which {h} troubles {name}?"),
    ((STATE,), "the {y} is in a state of {x}", "condition of the {y}: {s}"),
    ((BODY,), "{name} hurt a {x} while skiing", "what {h} did {name} injure in the snow?"),
    ((POSSESSION,), "the {x} of {number} is due in {month}", "how big is the {s} we owe in {month}?"),
    ((POSSESSION,), "{name} spends the {x} on {y}", "what does {name} use the {s} for?"),
    ((ATTRIBUTE,), "the {x} of the {y} surprised {name}", "{s} of the {y} as {name} saw it"),
    ((TIME, EVENT), "{name} was born during the {x} of {year}", "in which {s} did {name} come into the world?"),
    ((PHENOMENON, EVENT), "a {x} ruined the {y} last {month}", "did any {h} do damage to the {y}?"),
    ((), "{name} intends to {v} the {y}", "what has {name} planned to {w}?"),
    ((), "please {v} the {y} before {day}", "until which day may I {w} the {y}?"),
    ((), "never {v} a {y} alone", "may one {w} without company?"),
    ((), "we agreed to {v} each {y}", "our agreement to {w} such things"),
    ((), "{name} refused to {v} with {other}", "who would not {w} together with {other}?"),
    ((), "{name} promised to {v} it on {day}", "on which weekday is {name} going to {w}?"),
    ((), "it took {name} {number} days to {v} the {y}", "how many days did {name} need to {w}?"),
    ((), "{name} taught {other} to {v}", "from whom did {other} learn to {w}?"),
    ((), "I had to {v} because of the {y}", "what forced me to {w}?"),
    ((), "do not {v} when {name} is around", "presence of {name} means one must not {w}"),
    ((), "{name} finds the {y} rather {a}", "what does {name} consider to be {b}?"),
    ((), "the {a} {y} belongs to {name}", "who owns the {b} {y}?"),
    ((), "{name} was {a} when the {y} came", "was {name} {b} on arrival of the {y}?"),
    ((), "make it {a} rather than {c}", "would we like it {b} or {c}?"),
    ((), "the {y} must stay {a}", "requirement that the {y} be {b}"),
    ((), "{name} likes people who are {a}", "does {name} value those who are {b}?"),
    ((), "since {year} the {y} has been {a}", "since which year is it {b}?"),
)

LISTS: Mapping[str, Sequence[str]] = {
    "name": (
        "Agnes Alma Anton Arthur Aurora Basil Beatrix Boris Bruno Carmen Cedric Celeste Clement Cora Cyril "
        "Dagmar Damian Delia Doris Edgar Edith Edwin Elmer Elsa Emil Enid Erwin Esther Eunice Felix Fiona "
        "Flora Gilbert Greta Gustav Harriet Hector Helga Herman Hilda Horace Hugo Inga Iris Isidore Ivan "
        "Jasper Joan Judith Julius Karin Kurt Laszlo Leonora Lionel Lorna Ludwig Mabel Magnus Martha Maurice "
        "Mildred Mona Muriel Nadia Neville Norman Odette Olga Oscar Otto Pamela Percy Petra Philippa Quentin "
        "Ralph Regina Roland Rufus Ruth Selma Sidney Sigrid Silas Stella Sven Tabitha Thelma Ulric Ursula "
        "Vera Vernon Viola Waldo Wanda Wilfred Winifred Xavier Yolanda Yusuf Zelda Zoltan"
    ).split(),
    "month": (
        "January February March April May June July August September October November December spring "
        "summer autumn winter"
    ).split(),
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "number": [str(number) for number in (*range(2, 60), 75, 80, 90, 100, 120, 150, 200, 250, 300, 500)],
    "year": [str(year) for year in range(1985, 2031)],
}

_SLOT = re.compile(r"\{(\w+)\}")
_SOUND = re.compile(r"\ba (?=[aeiou])")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Synsets to choose from, the frequent ones more often."""

    synsets: Sequence[Synset]
    sums: Sequence[float]

    def one(self, chance: random.Random) -> Synset:
        return chance.choices(self.synsets, cum_weights=self.sums)[0]


def pairs(synsets: Mapping[str, Synset], spelling: Collection[str], count: int) -> list[tuple[str, str]]:
    """So many pairs of a remark and a question, no pair twice."""
    chance = random.Random(SEED)
    filler = _Filler(synsets, spelling, chance)
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        for kinds, remark, question in TEMPLATES:
            words = filler.words(kinds)
            found[_filled(remark, words), _filled(question, words)] = None
    return list(found)[:count]


def _filled(template: str, words: Mapping[str, str]) -> str:
    return _SOUND.sub("an ", _SLOT.sub(lambda slot: words[slot[1]], template))


class _Filler:
    """Words for the slots of templates."""

    def __init__(self, synsets: Mapping[str, Synset], spelling: Collection[str], chance: random.Random) -> None:
        self._all = synsets
        self._chance = chance
        self._words = {key: words for key, one in synsets.items() if (words := usual(one, spelling))}
        by: dict[str | int, list[Synset]] = defaultdict(list)
        for key in self._words:
            one = synsets[key]
            by[one.topic if one.part == "n" else one.part].append(one)
        self._by = {
            kind: _Chosen(some, list(accumulate((one.count + 0.3) ** 0.5 for one in some))) for kind, some in by.items()
        }

    def words(self, kinds: Kinds) -> Mapping[str, str]:
        """A word for every slot that a template of these kinds may have."""
        found = dict(self._lists())
        noun = self._one(self._chance.choice(kinds or THINGS))
        found["x"], found["s"] = self._two(noun)
        found["h"] = self._above(noun)
        found["y"] = self._two(self._one(self._chance.choice(THINGS + DOINGS)))[0]
        found["v"], found["w"] = self._two(self._one("v"))
        found["a"], found["b"] = self._two(self._one("a"))
        found["c"] = self._two(self._one("a"))[0]
        return found

    def _lists(self) -> Iterator[tuple[str, str]]:
        for name, some in LISTS.items():
            yield name, self._chance.choice(some)
        yield "other", self._chance.choice(LISTS["name"])

    def _one(self, kind: str | int) -> Synset:
        return self._by[kind].one(self._chance)

    def _two(self, synset: Synset) -> tuple[str, str]:
        """A word of a synset and another one for it; the more general one if there is none, or the same."""
        words = self._words[synset.key]
        first = self._chance.choice(words[:3])
        others = [word for word in words if word != first] or self._general(synset) or [first]
        return first, self._chance.choice(others[:3])

    def _above(self, synset: Synset) -> str:
        return self._chance.choice((self._general(synset) or self._words[synset.key])[:2])

    def _general(self, synset: Synset) -> list[str]:
        return [word for key in synset.hypernyms for word in self._words.get(key, ())]
