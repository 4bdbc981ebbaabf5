"""Token counters, without a network.

A counter is any callable from a text to an integer. Which one is right depends on the model: the default is an
estimate, exact ones need ``wellkept[tokens]``.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from wellkept import extras
from wellkept.errors import ConfigurationError, InvalidInput


class TokenCounter(Protocol):
    """Any callable from a text to its number of tokens.

    >>> counter: TokenCounter = len
    >>> counter("tea")
    3
    """

    def __call__(self, text: str, /) -> int:
        """The number of tokens of a text."""
        ...


def by_characters(text: str, /) -> int:
    """Estimate one token per four characters, rounded up. Needs no vocabulary.

    About a fifth too high for English; may be too low for other scripts. Use the model's own counter where the limit
    is the model's.

    >>> by_characters(""), by_characters("tea"), by_characters("green tea")
    (0, 1, 3)
    """
    return -(-len(text) // 4)


def bpe_counter(encoding: str = "o200k_base") -> TokenCounter:
    """The byte-pair counter of a vocabulary, such as ``o200k_base``, ``cl100k_base``, ``llama3`` or ``qwen3``.

    The vocabularies are part of the package: nothing is downloaded. Special tokens such as ``<|endoftext|>`` are
    counted as ordinary text. Loads the vocabulary, about 50 ms. Raises ``ConfigurationError`` if the package or the
    vocabulary is missing.

    >>> bpe_counter("no such vocabulary")
    Traceback (most recent call last):
    wellkept.errors.ConfigurationError: ...
    """
    if not isinstance(encoding, str):
        raise ConfigurationError(
            f"encoding must be text, not {type(encoding).__name__}",
            details={"field": "encoding"},
            hint='pass a name such as "o200k_base"',
        )
    tokenizer = _tokenizer(encoding)

    def count(text: str, /) -> int:
        return len(tokenizer.encode_ordinary(text))

    return count


def _tokenizer(encoding: str) -> Any:
    extras.require("tokens")
    splintr = importlib.import_module("splintr")  # by name: optional, and mypy must pass without it
    try:
        return splintr.Tokenizer.from_pretrained(encoding)
    except ValueError:
        raise ConfigurationError(
            f"no vocabulary is named {encoding[:40]!r}",
            details={"field": "encoding"},
            hint='use one that the package knows, such as "o200k_base"',
        ) from None


class Meter:
    """A counter with a cache and a check of its results. Raises ``ConfigurationError`` if a result is not a count.

    The cache is unbounded: create one per operation. ``known`` are counts that the same counter made before.

    >>> meter = Meter(len, known={"a long text": 3})
    >>> meter("tea"), meter(""), meter("a long text")
    (3, 0, 3)
    """

    __slots__ = ("_counter", "_counts")

    def __init__(self, counter: TokenCounter, *, known: Mapping[str, int] | None = None) -> None:
        if not callable(counter):
            raise InvalidInput(
                f"counter must be a callable, not {type(counter).__name__}",
                details={"field": "counter"},
                hint="pass a function from a text to its number of tokens",
            )
        self._counter = counter
        self._counts = {**(known or {}), "": 0}  # an empty text is not sent, so it costs nothing

    def __call__(self, text: str, /) -> int:
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = _checked(self._counter(text))
        return known


def _checked(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        kind = "a negative number" if isinstance(count, int) and not isinstance(count, bool) else type(count).__name__
        raise ConfigurationError(
            f"the token counter returned {kind}, not a number of tokens",
            details={"field": "counter"},
            hint="return an integer, 0 or more",
        )
    return count
