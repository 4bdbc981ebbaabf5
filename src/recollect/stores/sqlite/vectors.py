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
    # In 64 bits: the squares of large or tiny 32-bit numbers are beyond 32 bits.
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    direction = query / np.linalg.norm(query.astype(np.float64))
    cosines = (matrix @ direction.astype("<f4")) / np.where(lengths == 0, 1, lengths)
    first = np.argsort(-cosines, kind="stable")[:limit]
    return [(stored[index][0], float(cosines[index])) for index in first]
