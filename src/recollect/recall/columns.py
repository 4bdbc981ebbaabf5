"""Arrays that grow at their end, as lists do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Column:
    """An array with room behind its last row; growing copies it, at most now and then.

    >>> column = Column(np.int32)
    >>> column.extend([1, 2]); column.extend([3])
    >>> column.rows.tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None) -> None:
        self._kept: Array = np.empty(0 if width is None else (0, width), dtype)
        self.size = 0

    @property
    def rows(self) -> Array:
        """What is in it. Writing to it changes the column."""
        return self._kept[: self.size]

    def replace(self, values: Array) -> None:
        """Take an array as it is; it is copied when the first row is added."""
        self._kept, self.size = values, len(values)

    def extend(self, values: npt.ArrayLike) -> None:
        """Add rows."""
        new = np.asarray(values, dtype=self._kept.dtype).reshape(-1, *self._kept.shape[1:])
        end = self.size + len(new)
        if end > len(self._kept) or not self._kept.flags.writeable:
            grown = np.empty((end + end // 8 + 16, *self._kept.shape[1:]), self._kept.dtype)
            grown[: self.size] = self._kept[: self.size]
            self._kept = grown
        self._kept[self.size : end] = new
        self.size = end


def joined(arrays: Sequence[Array]) -> Array:
    """Arrays one behind the other; a single one as it is.

    >>> joined([np.array([1, 2]), np.array([3])]).tolist()
    [1, 2, 3]
    """
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
