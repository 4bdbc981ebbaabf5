"""Static models in the format of model2vec, from a folder on this machine: ``embedder="model2vec:/a/folder"``.

Such a model is a table with a vector for each token: as fast as the built-in embedder, and there are some for a hundred
languages. Nothing is downloaded: the folder has to be there, with ``model.safetensors`` and ``tokenizer.json``. Needs
``wellkept[model2vec]`` for the tokenizer; the table is read with numpy alone.
"""

import hashlib
import importlib
import json
import math
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from wellkept import extras
from wellkept.errors import ConfigurationError

_TABLE, _TOKENIZER = "model.safetensors", "tokenizer.json"
_HINT = f"name the folder of a model2vec model, with {_TABLE} and {_TOKENIZER}"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I8": "|i1", "I64": "<i8", "I32": "<i4"}
_SHAPES = {"embeddings": 2, "weights": 1, "mapping": 1}  # the tensors that are read, and their dimensions
_LONGEST_HEADER = 1_000_000  # bytes
_SAMPLES, _SAMPLE = 16, 65_536  # parts of a table of hundreds of megabytes that stand for it


class Model2VecEmbedder:
    """Texts to the mean of the vectors of their tokens, made a unit vector.

    The name has a digest of the model in it, so that vectors of two models are never compared. Raises
    ``ConfigurationError`` if the folder has no such model. The table stays on disk; only the pages used are read.

    >>> Model2VecEmbedder("no/such/folder")
    Traceback (most recent call last):
    wellkept.errors.ConfigurationError: no model.safetensors is in the folder of the embedder (name the folder of \
a model2vec model, with model.safetensors and tokenizer.json)
    """

    batch = 256  # texts: bounds the memory for the vectors of their tokens

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        for file in (_TABLE, _TOKENIZER):
            if not (self._folder / file).is_file():
                raise ConfigurationError(
                    f"no {file} is in the folder of the embedder", details={"field": "embedder"}, hint=_HINT
                )
        self._tensors = _tensors_of(self._folder / _TABLE)
        self.dimension = self._tensors["embeddings"].shape[1]
        self.name = f"model2vec-{_digest(self._folder)}"
        self._lock = threading.Lock()
        self._tokenizer: Any = None

    def embed(self, texts: Sequence[str]) -> Any:
        """One unit vector per text."""
        import numpy as np  # lazy: takes 100 ms, and opening a database needs none

        found = np.zeros((len(texts), self.dimension), np.float32)
        rows, weights, mapping = self._table
        for place, text in enumerate(texts):
            tokens = np.array(self._tokens(text), np.int64)
            values = rows[tokens if mapping is None else mapping[tokens]].astype(np.float32)
            summed = values.sum(axis=0) if weights is None else weights[tokens].astype(np.float32) @ values
            length = float(np.linalg.norm(summed))
            if length:
                found[place] = summed / length
            else:
                found[place, 0] = 1.0  # no token that the model knows: a direction of its own
        return found

    def _tokens(self, text: str) -> list[int]:
        """The numbers of a text's tokens, without those that stand for unknown ones."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = _tokenizer(self._folder / _TOKENIZER)
        model = self._tokenizer.model
        named = getattr(model, "unk_token", None)
        unknown = self._tokenizer.token_to_id(named) if named else getattr(model, "unk_id", None)
        known = self._tensors.get("mapping", self._tensors["embeddings"]).shape[0]
        # One by one: the tokenizer's batch mode starts threads, and warns when the process forks afterwards.
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [token for token in tokens if token != unknown and token < known]

    @cached_property
    def _table(self) -> tuple[Any, ...]:
        """The tensors, memory-mapped; none where the file has none of that name."""
        import numpy as np  # lazy: as above

        found = (self._tensors.get(name) for name in _SHAPES)
        return tuple(
            None if one is None else np.memmap(self._folder / _TABLE, one.kind, "r", one.start, one.shape)
            for one in found
        )


class _Tensor(NamedTuple):
    """Where a tensor stands in its file."""

    kind: str
    shape: tuple[int, ...]
    start: int


def _tensors_of(file: Path) -> dict[str, _Tensor]:
    """The tensors of a file of safetensors: the length of its header, the header in JSON, then the data."""
    with file.open("rb") as content:
        size = int.from_bytes(content.read(8), "little")
        text = content.read(size) if size <= _LONGEST_HEADER else b""
    try:
        header = json.loads(text)
        found = {}
        for name in header.keys() & _SHAPES.keys():
            kind, shape = _TYPES[header[name]["dtype"]], tuple(map(int, header[name]["shape"]))
            start, end = (8 + size + int(place) for place in header[name]["data_offsets"])
            whole = math.prod(shape) * int(kind[-1]) == end - start > 0 and end <= file.stat().st_size
            if len(shape) != _SHAPES[name] or not whole:
                raise _wrong()
            found[name] = _Tensor(kind, shape, start)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _wrong() from None
    if "embeddings" not in found:
        raise _wrong()
    return found


def _wrong() -> ConfigurationError:
    return ConfigurationError(
        f"{_TABLE} in the folder of the embedder is no table of model2vec", details={"field": "embedder"}, hint=_HINT
    )


def _digest(folder: Path) -> str:
    """What tells one model from another."""
    mixed = hashlib.blake2b((folder / _TOKENIZER).read_bytes(), digest_size=8)
    size = (folder / _TABLE).stat().st_size
    mixed.update(str(size).encode())
    with (folder / _TABLE).open("rb") as content:
        for part in range(_SAMPLES):
            content.seek(size * part // _SAMPLES)
            mixed.update(content.read(_SAMPLE))
    return mixed.hexdigest()


def _tokenizer(file: Path) -> Any:
    extras.require("model2vec")
    tokenizers = importlib.import_module("tokenizers")  # by name: optional, and mypy must pass without it
    try:
        made = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # reason: the package raises nothing more precise
        raise ConfigurationError(
            f"{_TOKENIZER} in the folder of the embedder cannot be read", details={"field": "embedder"}, hint=_HINT
        ) from error
    made.no_padding()
    made.no_truncation()
    return made
