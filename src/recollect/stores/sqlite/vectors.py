"""Comparing a vector with many, in numpy. Imported when the first search needs it."""

from collections.abc import Sequence

import numpy as np

from recollect.types import Vector


def best(stored: Sequence[tuple[int, bytes]], wanted: Vector, limit: int) -> list[tuple[int, float]]:
    """The numbers of the vectors with the highest cosines, best first, and the cosines."""
    if not stored or limit < 1:
        return []
    matrix = np.frombuffer(b"".join(data for _, data in stored), dtype="<f4").reshape(len(stored), -1)
    query = np.frombuffer(wanted.data, dtype="<f4")
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    cosines = (matrix @ query) / np.where(lengths == 0, 1, lengths)
    first = np.argsort(-cosines, kind="stable")[:limit]
    return [(stored[index][0], float(cosines[index])) for index in first]
