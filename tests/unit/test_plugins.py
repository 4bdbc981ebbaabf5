"""Entry points and the tables that save reading them agree; and whose lexicon is used."""

import importlib.metadata
from typing import Any

from wellkept import plugins
from wellkept.embedders.word_table import WordTableEmbedder
from wellkept.ports import Embedder, Lexicon
from wellkept.settings.stores import GROUP


def test_our_own_stores_are_named_in_both_places() -> None:
    points = importlib.metadata.entry_points(group=GROUP)
    assert {point.name: point.value for point in points} == dict(plugins.OWN)


def test_our_own_embedders_are_named_in_both_places() -> None:
    points = importlib.metadata.entry_points(group=plugins.EMBEDDERS)
    assert {point.name: point.value for point in points} == dict(plugins.OWN_EMBEDDERS)


def test_an_embedder_may_bring_a_lexicon_or_do_without() -> None:
    """Words of like meaning are found with the built-in one, unless the embedder says otherwise."""

    class Plain:
        name = "plain"
        dimension = 1

        def embed(self, texts: Any) -> Any:
            return [[1.0]] * len(texts)

    class Own(Plain):
        lexicon = WordTableEmbedder()

    class Without(Plain):
        lexicon = None

    static = WordTableEmbedder()
    assert plugins.lexicon_of(None) is None
    assert plugins.lexicon_of(static) is static
    assert isinstance(Plain(), Embedder)
    assert isinstance(plugins.lexicon_of(Plain()), Lexicon)
    assert plugins.lexicon_of(Own()) is Own.lexicon
    assert plugins.lexicon_of(Without()) is None
