"""A master key as a code that a person can print, keep in a safe and type again. Pure.

Three bytes of a checksum tell a mistyped code from a wrong one.
"""

import base64
import binascii
import hashlib

from wellkept.ciphers import KEY_BYTES
from wellkept.errors import InvalidInput

_CHECKED = 3
_GROUP = 4


def encode(master: bytes) -> str:
    """Groups of four letters and digits.

    >>> encode(bytes(32))
    'AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAC-KUZ2'
    """
    text = base64.b32encode(master + _checksum(master)).decode().rstrip("=")
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


def decode(code: str) -> bytes:
    """The master key of a code, however it is spaced and cased.

    >>> decode(encode(bytes(range(32))).lower().replace("-", " ")) == bytes(range(32))
    True
    """
    text = "".join(code.split()).replace("-", "").upper()
    try:
        both = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        both = b""
    master = both[:KEY_BYTES]
    if len(both) != KEY_BYTES + _CHECKED or both[KEY_BYTES:] != _checksum(master):
        raise InvalidInput(
            "this is no recovery code, or it was mistyped",
            details={"field": "recover"},
            hint="it has 14 groups of four letters and digits (A to Z, 2 to 7)",
        )
    return master


def _checksum(master: bytes) -> bytes:
    return hashlib.sha256(b"wellkept recovery code" + master).digest()[:_CHECKED]
