"""From owners to folders: names that are safe on every disk, different for different owners, and read naturally.

Small letters, digits, ``_``, ``-`` and dots inside stand for themselves; every other byte of the UTF-8 form is ``%``
and two hex digits. Capitals are among those: on some disks ``Monday`` and ``monday`` are one file. What is too long
for a file name ends in ``~`` and a hash.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from recollect.types import Layer, Owner

FOLDERS: Mapping[Layer, str] = MappingProxyType(
    {
        Layer.AGENT: "agents",
        Layer.USER: "users",
        Layer.SESSION: "sessions",
        Layer.PROJECT: "projects",
        Layer.TEAM: "teams",
        Layer.ORG: "orgs",
        Layer.COMPANY: "companies",
    }
)
_LONGEST = 96
_HASHED = 32
_UNSAFE = re.compile(rb"[^a-z0-9_.-]|^\.|\.$")
# What Windows takes for a device, with or without an ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


def safe(text: str) -> str:
    """One id as a part of a path.

    >>> safe("sess_20260110"), safe("../x"), safe("Monday"), safe("")
    ('sess_20260110', '%2e.%2fx', '%4donday', '%')
    """
    data = text.encode("utf-8", "surrogatepass")
    name = _UNSAFE.sub(lambda found: b"%%%02x" % found[0][0], data).decode()
    if _DEVICE.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) <= _LONGEST:
        return name or "%"
    kept = re.sub(r"%.?$", "", name[: _LONGEST - _HASHED - 1])  # no half of an escape
    return f"{kept}~{hashlib.sha256(data).hexdigest()[:_HASHED]}"


def folder(owner: Owner) -> str:
    """The folder of an owner, below the root: the most specific id first, then whose it is.

    >>> folder(Owner(Layer.SESSION, ("ada", "monday"))), folder(Owner(Layer.PROJECT, ("api",)))
    ('sessions/monday@ada', 'projects/api')
    """
    return f"{FOLDERS[owner.layer]}/{'@'.join(map(safe, reversed(owner.ids))) or '@'}"
