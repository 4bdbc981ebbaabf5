"""The image of an owner's index: plain arrays as bytes, checked when they are read.

An image is only ever a copy. One that is damaged, cut off or of another format is as good as none.
"""

from collections.abc import Mapping

import numpy as np

from wellkept import codec
from wellkept.recall import quantized
from wellkept.recall.arrays import Array, Column, Postings, Recent, spread
from wellkept.recall.conversations import NOBODY, Conversations
from wellkept.recall.entries import SPOKEN
from wellkept.recall.owner_index import OwnerIndex
from wellkept.types import Owner

FORMAT = 1
"""Of images; raised whenever what is in one changes. One of another format is not read."""

_HEADER = "header"
_KEPT = (
    "born",
    "born_at",
    "session",
    "author",
    "marks",
    "occurred",
    "expires",
    "told_from",
    "told_to",
    "importance",
    "length",
    "passages",
)
"""The columns that an image keeps; the others follow from them."""


def to_parts(index: OwnerIndex) -> dict[str, bytes | memoryview]:
    """An index as bytes: everything alive, in the order of recording, and nothing of what was removed. They are arrays
    of their own, which nobody changes; copying them would stop all other threads for tens of milliseconds.
    """
    arrays, authors = _arrays(index)
    header = {
        "format": FORMAT,
        "dimension": index.dimension,
        "authors": authors,
        "types": {name: array.dtype.str for name, array in arrays.items()},
        "sums": {name: _sum(array) for name, array in arrays.items()},
    }
    return {_HEADER: codec.encode_json(header), **{name: _bytes(array).data for name, array in arrays.items()}}


def from_parts(owner: Owner, parts: Mapping[str, bytes | memoryview]) -> OwnerIndex | None:
    """The index that an image was made of; ``None`` if it is none, or does not fit together any more."""
    try:
        header = codec.decode_json(bytes(parts[_HEADER]))
        if header["format"] != FORMAT:
            return None
        arrays = {name: np.frombuffer(parts[name], np.dtype(kind)) for name, kind in header["types"].items()}
        if {name: _sum(array) for name, array in arrays.items()} != header["sums"]:
            return None
        return _restored(owner, arrays, header["dimension"], header["authors"])
    except (LookupError, TypeError, ValueError):  # an image is only a copy: a bad one is as good as none
        return None


def _arrays(index: OwnerIndex) -> tuple[dict[str, Array], list[str | None]]:
    kept = index.kept()
    used, author = np.unique(np.append(0, index["author"][kept]), return_inverse=True)
    linked = Conversations()
    spoken = (index["marks"][kept] & SPOKEN) > 0
    order = np.arange(len(kept), dtype=np.int32)
    linked.relink(len(kept), order, index["session"][kept], spoken, index["occurred"][kept])
    places = spread(index["start"][kept], index["length"][kept])
    terms = index.terms.rows[places]
    passages = spread(index["first"][kept], index["passages"][kept])
    vectors = index.codes.rows[passages] if index.exact is None else index.exact.rows[passages]
    postings = Postings.of(terms, np.repeat(order, index["length"][kept]))
    arrays = {
        **{name: index[name][kept] for name in _KEPT},
        "ids": index.ids.names.rows[kept],
        "author": author[1:].astype(np.int32),
        "terms": terms,
        "pieces": index.pieces.rows[places],
        "vectors": vectors.reshape(-1),
        "vocabulary": postings.vocabulary,
        "starts": postings.starts,
        "rows": postings.rows,
        "times": postings.times,
        **linked.parts(),
    }
    return arrays, [index.authors[place] for place in used.tolist()]


def _restored(owner: Owner, parts: Mapping[str, Array], dimension: int, authors: list[str | None]) -> OwnerIndex:
    _check(parts, dimension, len(authors))
    index = OwnerIndex(owner, dimension)
    for author in authors:
        index.author(author)
    for name in _KEPT:
        index.columns[name].replace(parts[name])
    count, lengths, passages = len(parts["born"]), parts["length"], parts["passages"]
    for name, values in (
        ("alive", np.ones(count, np.bool_)),
        ("start", np.cumsum(lengths, dtype=np.int64) - lengths),
        ("first", (np.cumsum(passages) - passages).astype(np.int32)),
    ):
        index.columns[name].replace(values)
    index.ids.replace(parts["ids"])
    index.terms.replace(parts["terms"])
    index.pieces.replace(parts["pieces"])
    _take_vectors(index, parts["vectors"].reshape(-1, max(1, dimension)))
    index.ones = int(np.count_nonzero(passages == 1))
    index.postings = Postings(parts["vocabulary"], parts["starts"], parts["rows"], parts["times"])
    index.recent = Recent(count)
    index.alive = count
    index.highest = int(parts["born"].max()) if count else 0
    index.words = int(lengths.sum())
    index.expiring = bool(np.isfinite(parts["expires"]).any())
    index.spoken_by.replace(np.bincount(parts["author"], minlength=len(authors)).astype(np.int32))
    index.conversations = Conversations.restored(parts)
    return index


def _take_vectors(index: OwnerIndex, vectors: Array) -> None:
    """Codes as they are, or vectors with their codes."""
    if vectors.dtype == np.uint8:
        index.exact = None
        index.codes.replace(vectors)
    else:
        index.exact = Column(np.float32, vectors.shape[1])
        index.exact.replace(vectors)
        index.codes.replace(quantized.encode(vectors))
    index.weights.replace(quantized.weights(index.codes.rows))


def _check(parts: Mapping[str, Array], dimension: int, authors: int) -> None:
    """Refuse arrays that do not fit together: using them would read what is not there."""
    count, terms = len(parts["born"]), len(parts["terms"])
    postings = len(parts["rows"])
    fits = (
        all(len(parts[name]) == count for name in (*_KEPT, "ids", "of", "before", "after"))
        and parts["ids"].dtype.kind == "S"
        and parts["ids"].dtype.itemsize % 8 == 0
        and len(parts["pieces"]) == terms == int(parts["length"].sum())
        and len(parts["vectors"]) == int(parts["passages"].sum()) * max(1, dimension)
        and len(parts["starts"]) == len(parts["vocabulary"]) + 1
        and len(parts["times"]) == postings == int(parts["starts"][-1])
        and _within(parts["rows"], 0, count)
        and _within(parts["author"], 0, authors)
        and _within(parts["of"], 0, len(parts["sizes"]))
        and all(_within(parts[name], NOBODY, count) for name in ("before", "after"))
        and bool((np.diff(parts["born"]) > 0).all())
    )
    if not fits:
        raise ValueError("the parts of the image do not fit together")


def _within(values: Array, low: int, high: int) -> bool:
    return not len(values) or (low <= int(values.min()) and int(values.max()) < high)


def _sum(array: Array) -> int:
    """A checksum that is as fast as reading: the sum of all words of 64 bits, and of the bytes behind the last."""
    data = _bytes(array)
    whole = len(data) // 8 * 8
    total = int(np.sum(data[:whole].view(np.uint64), dtype=np.uint64)) + int(np.sum(data[whole:], dtype=np.uint64))
    return total % 2**62


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
