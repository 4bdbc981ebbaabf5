"""The fitted weights: one set for each embedder that was fitted, one for words alone, and one for all others.

`benchmarks/fit.py --write` replaces what stands below the mark; then format the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from wellkept.recall.gate import Gate, Logistic
from wellkept.recall.ranking import Chance, Model

WORDS = "words"
"""The name of the set for words alone."""

USUAL = "usual"
"""The name of the set for embedders that have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What is fitted together: the weights of signals, the gate, and the chance of a hit."""

    model: Model
    gate: Gate
    chance: Chance


def of(embedder: str | None) -> Fitted:
    """The weights for an embedder; those for words alone without one.

    >>> of(None).model.weights.keys() < of("an embedder of yours").model.weights.keys()
    True
    """
    return _SETS[WORDS] if embedder is None else _SETS.get(embedder, _SETS[USUAL])


def known() -> Mapping[str, Fitted]:
    """Every set by its name.

    >>> {WORDS, USUAL} <= known().keys()
    True
    """
    return _SETS


# -- written by benchmarks/fit.py --

_SETS: Mapping[str, Fitted] = MappingProxyType(
    {
        "bge-small-en-v1.5-int8": Fitted(
            model=Model(
                weights=MappingProxyType(
                    {
                        "base": (0.0, -1.42),
                        "similarity": (7.96, 3.3),
                        "keyword": (-3.28, -0.52),
                        "words": (4.93, 7.31),
                        "exact": (1.55, -1.31),
                        "conversation_similarity": (0.0, 4.61),
                        "conversation_keyword": (0.0, 2.08),
                        "author": (2.19, 2.19),
                        "role": (0.71, 0.71),
                        "opening": (-0.52, -0.52),
                        "question": (-1.88, -1.06),
                        "when": (1.14, 1.82),
                        "number": (0.7, 2.77),
                        "person": (1.74, -0.14),
                        "date": (4.46, 4.01),
                        "told": (-0.6, 1.73),
                        "period": (4.44, 1.53),
                        "echo": (-2.0, -2.0),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "settled": (5.5, 5.5),
                        "importance": (0.5, 0.5),
                    }
                ),
                first=MappingProxyType(
                    {
                        "base": (0.0, -1.28),
                        "similarity": (8.18, 4.02),
                        "keyword": (1.93, 3.43),
                        "conversation_similarity": (0.0, 4.65),
                        "conversation_keyword": (0.0, 2.76),
                        "author": (2.25, 2.25),
                        "role": (0.65, 0.65),
                        "opening": (-0.48, -0.48),
                        "question": (-2.0, -1.34),
                        "when": (1.2, 2.28),
                        "number": (0.67, 2.66),
                        "person": (1.68, -0.0),
                        "date": (5.49, 4.47),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "importance": (0.5, 0.5),
                    }
                ),
            ),
            gate=Gate(
                alone=Logistic(base=-3.89, best=0.78, similarity=2.54, size=-0.15, unseen_name=-1.23, heard=0.0),
                linked=Logistic(base=-1.35, best=0.53, similarity=4.37, size=-0.46, unseen_name=-2.67, heard=0.0),
                least=0.1,
                fewest=60,
            ),
            chance=Chance(base=-1.144, own=0.75, others=0.698, known=0.125, linked=0.007, nothing=2.0),
        ),
        "wellkept-words-1": Fitted(
            model=Model(
                weights=MappingProxyType(
                    {
                        "base": (0.0, -2.73),
                        "similarity": (5.02, 2.99),
                        "keyword": (-1.27, 0.95),
                        "words": (7.9, 7.44),
                        "exact": (-0.92, -0.98),
                        "conversation_similarity": (0.0, 2.81),
                        "conversation_keyword": (0.0, 1.85),
                        "author": (2.4, 2.4),
                        "role": (2.51, 2.51),
                        "opening": (1.72, 1.72),
                        "question": (-1.48, -0.59),
                        "when": (0.84, 1.26),
                        "number": (1.31, 2.0),
                        "person": (1.97, 0.49),
                        "date": (4.02, 3.99),
                        "told": (-0.2, 1.65),
                        "period": (4.56, 3.0),
                        "echo": (-2.0, -2.0),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "settled": (5.5, 5.5),
                        "importance": (0.5, 0.5),
                    }
                ),
                first=MappingProxyType(
                    {
                        "base": (0.0, -2.43),
                        "similarity": (6.64, 4.57),
                        "keyword": (2.93, 3.43),
                        "conversation_similarity": (0.0, 2.72),
                        "conversation_keyword": (0.0, 2.23),
                        "author": (2.4, 2.4),
                        "role": (2.46, 2.46),
                        "opening": (1.75, 1.75),
                        "question": (-1.84, -0.69),
                        "when": (0.91, 1.72),
                        "number": (1.23, 2.15),
                        "person": (1.86, 0.57),
                        "date": (5.14, 4.32),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "importance": (0.5, 0.5),
                    }
                ),
            ),
            gate=Gate(
                alone=Logistic(base=-2.66, best=0.34, similarity=0.95, size=-0.41, unseen_name=-1.85, heard=3.66),
                linked=Logistic(base=-1.5, best=0.61, similarity=-1.76, size=-0.56, unseen_name=-1.54, heard=2.55),
                least=0.1,
                fewest=8,
            ),
            chance=Chance(base=-1.157, own=0.752, others=0.687, known=0.146, linked=0.123, nothing=2.0),
        ),
        "usual": Fitted(
            model=Model(
                weights=MappingProxyType(
                    {
                        "base": (0.0, -2.16),
                        "similarity": (6.91, 1.6),
                        "keyword": (-0.08, 0.5),
                        "words": (4.32, 7.44),
                        "exact": (-0.42, -0.51),
                        "conversation_similarity": (0.0, 3.26),
                        "conversation_keyword": (0.0, 1.11),
                        "author": (2.12, 2.12),
                        "role": (2.51, 2.51),
                        "opening": (1.63, 1.63),
                        "question": (-2.93, -0.68),
                        "when": (0.51, 1.38),
                        "number": (0.93, 2.11),
                        "person": (2.16, 0.57),
                        "date": (4.9, 4.02),
                        "told": (0.2, 1.8),
                        "echo": (-2.0, -2.0),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "settled": (5.5, 5.5),
                        "importance": (0.5, 0.5),
                    }
                ),
                first=MappingProxyType(
                    {
                        "base": (0.0, -1.74),
                        "similarity": (7.34, 2.12),
                        "keyword": (2.64, 4.04),
                        "conversation_similarity": (0.0, 2.61),
                        "conversation_keyword": (0.0, 2.04),
                        "author": (2.17, 2.17),
                        "role": (2.52, 2.52),
                        "opening": (1.72, 1.72),
                        "question": (-3.07, -0.86),
                        "when": (0.51, 1.99),
                        "number": (0.93, 2.21),
                        "person": (2.15, 0.83),
                        "date": (4.76, 4.39),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "importance": (0.5, 0.5),
                    }
                ),
            ),
            gate=Gate(
                alone=Logistic(base=-1.3, best=0.55, similarity=3.46, size=-0.46, unseen_name=-1.95, heard=0.0),
                linked=Logistic(base=-0.3, best=0.46, similarity=1.61, size=-0.48, unseen_name=-2.08, heard=0.0),
                least=0.12,
                fewest=60,
            ),
            chance=Chance(base=-1.341, own=0.731, others=0.659, known=0.139, linked=0.228, nothing=0.0),
        ),
        "words": Fitted(
            model=Model(
                weights=MappingProxyType(
                    {
                        "base": (0.0, -3.26),
                        "keyword": (4.05, 1.57),
                        "words": (1.22, 6.08),
                        "exact": (1.22, 0.58),
                        "conversation_keyword": (0.0, 1.24),
                        "author": (2.36, 2.36),
                        "role": (4.08, 4.08),
                        "opening": (0.67, 0.67),
                        "question": (-2.66, -1.06),
                        "when": (0.62, 2.17),
                        "number": (1.49, 3.3),
                        "person": (3.33, 1.01),
                        "date": (4.75, 4.45),
                        "told": (0.55, 1.72),
                        "echo": (-2.0, -2.0),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "settled": (5.5, 5.5),
                        "importance": (0.5, 0.5),
                    }
                ),
                first=MappingProxyType(
                    {
                        "base": (0.0, -2.97),
                        "keyword": (5.78, 5.62),
                        "conversation_keyword": (0.0, 1.31),
                        "author": (2.53, 2.53),
                        "role": (4.45, 4.45),
                        "opening": (0.85, 0.85),
                        "question": (-2.66, -1.23),
                        "when": (0.61, 2.63),
                        "number": (1.5, 3.66),
                        "person": (3.35, 0.97),
                        "date": (4.76, 4.83),
                        "empty": (-3.0, -3.0),
                        "phrase": (4.0, 4.0),
                        "importance": (0.5, 0.5),
                    }
                ),
            ),
            gate=Gate(
                alone=Logistic(base=-1.97, best=0.9, similarity=0.0, size=-0.13, unseen_name=-3.15, heard=0.0),
                linked=Logistic(base=-2.71, best=0.85, similarity=0.0, size=-0.0, unseen_name=-1.95, heard=0.0),
                least=0.05,
                fewest=60,
            ),
            chance=Chance(base=-1.404, own=0.702, others=0.519, known=0.03, linked=-0.021, nothing=0.0),
        ),
    }
)
