"""Decodes a class for the first time, and meanwhile once more: `python -m tests.unit.first_decoding`."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from wellkept import codec

TEXT = b'{"inner": {}, "number": 1}'


@dataclass
class _Outer:
    """Learned by the decoder together with its part, whose annotation decodes the whole in another thread."""

    inner: _Inner | None = None
    number: int = 0


@dataclass
class _Inner:
    number: _decoded_meanwhile() = 0  # type: ignore[valid-type]  # a call, on purpose


def _decoded_meanwhile() -> type[int]:
    other = threading.Thread(target=codec.decode_as, args=(TEXT, _Outer))
    other.start()
    other.join(timeout=0.2)  # one that waits until the class is learned goes on afterwards
    return int


if __name__ == "__main__":
    assert codec.decode_as(TEXT, _Outer).number == 1
