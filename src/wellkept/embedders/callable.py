"""An embedder from a function: a model in this process, or the client of a provider."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wellkept.errors import ConfigurationError, EmbeddingFailed


class CallableEmbedder:
    """Wraps a function from a list of texts to one vector per text.

    ``name`` is stored with every vector: change it when the function's vectors change. ``batch`` limits the texts per
    call. Without a ``dimension``, it is taken from the first result. Exceptions of the function propagate; a wrong
    number of vectors raises ``EmbeddingFailed``.

    >>> embedder = CallableEmbedder(lambda texts: [[len(text), 1.0] for text in texts], name="lengths")
    >>> embedder.embed(["a", "abc"]), embedder.dimension
    ([[1, 1.0], [3, 1.0]], 2)
    """

    def __init__(
        self,
        function: Callable[[list[str]], Iterable[Any]],
        *,
        name: str,
        dimension: int | None = None,
        batch: int | None = None,
    ) -> None:
        _check(function, name)
        _check_count("dimension", dimension)
        _check_count("batch", batch)
        self.name = name
        self._function = function
        self._dimension = dimension
        self._batch = batch

    def __repr__(self) -> str:
        return f"CallableEmbedder(name={self.name!r}, dimension={self._dimension!r})"

    @property
    def dimension(self) -> int:
        """As given, or as the function returns: then the first access may call it."""
        if self._dimension is None:
            self._dimension = len(self._call(["dimension"])[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """The function's vector for each text, in order."""
        step = self._batch or len(texts) or 1
        rows = [row for start in range(0, len(texts), step) for row in self._call(list(texts[start : start + step]))]
        if self._dimension is None and rows:
            self._dimension = len(rows[0])
        return rows

    def _call(self, texts: list[str]) -> list[Any]:
        answer: object = self._function(texts)
        # Checked per batch: one vector too many and one too few would cancel out, and texts get wrong vectors.
        rows = list(answer) if isinstance(answer, Iterable) else []
        if len(rows) != len(texts):
            raise EmbeddingFailed(
                f"the function of the embedder {self.name!r} returned {len(rows)} rows for {len(texts)} texts",
                details={"embedder": self.name},
                hint="it must return one row of numbers per text, in order",
            )
        return rows


def _check(function: object, name: object) -> None:
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise _wrong("function", "must be a plain function from a list of texts to rows of numbers")
    if not (isinstance(name, str) and name and name.isprintable()):
        raise _wrong("name", "must be one printable line that identifies these vectors")


def _check_count(field: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise _wrong(field, "must be a whole number above 0, or left out")


def _wrong(field: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{field} {what}", details={"field": field}, hint="as in CallableEmbedder(model.encode, name='my-model-2')"
    )
