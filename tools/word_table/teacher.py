"""The teacher: vectors of texts by bge-small, kept on disk in blocks, so that a run that was stopped goes on."""

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellkept.embedders.bge import BgeEmbedder

BLOCK = 4096
"""Texts that are kept in one file."""

BATCH = 64
"""Texts of similar length that are embedded together."""


class Teacher:
    """Embeds texts, or reads their vectors from ``folder``. ``threads`` is the number of cores."""

    def __init__(self, folder: Path, *, threads: int, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._report = report
        self._embedder = BgeEmbedder(threads=threads, batch=BATCH)
        folder.mkdir(parents=True, exist_ok=True)

    def vectors(self, name: str, texts: Sequence[str]) -> Any:
        """One unit vector of 384 half-precision numbers for each text."""
        blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
        found = []
        for number, block in enumerate(blocks):
            began = time.monotonic()
            found.append(self._block(block))
            took = time.monotonic() - began
            if took > 1:
                self._report(f"{name}: block {number + 1} of {len(blocks)}, {len(block) / took:.0f} texts/s")
        return np.concatenate(found)

    def _block(self, texts: Sequence[str]) -> Any:
        digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]
        file = self._folder / f"{digest}.npy"
        if not file.exists():
            rows = np.asarray(self._embedder.embed(texts), np.float16)
            part = file.with_suffix(".part.npy")
            np.save(part, rows)
            part.rename(file)
        return np.load(file)
