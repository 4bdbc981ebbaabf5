"""Which versions still count: one that takes another one back says so in its reason, and both are as if they had not
been.
"""

import re
from collections.abc import Iterable

from wellkept.types import Owner, Stored

_OF_RUN = re.compile(r"\(run ([^()]+)\)$")
_OF_VERSION = re.compile(r"undo of version (\d+)$")


def run_of(version: Stored) -> str | None:
    """The id of the run that made a version, or took it back."""
    found = _OF_RUN.search(version.reason or "")
    return found[1] if found else None


def undoing(version: Stored) -> str:
    """The reason of a version that takes back another one, and all that came after it."""
    return f"undo of version {version.version}"


def counting(versions: Iterable[Stored]) -> list[Stored]:
    """The versions that were not taken back; those that took others back do not count either."""
    kept: dict[tuple[Owner, str], list[Stored]] = {}
    for one in versions:
        mine = kept.setdefault((one.owner, one.id), [])
        taken, run = _OF_VERSION.search(one.reason or ""), run_of(one)
        if taken:
            mine[:] = [former for former in mine if former.version < int(taken[1])]
        elif run is not None and one.reason is not None and one.reason.startswith("undo ("):
            mine[:] = [former for former in mine if run_of(former) != run]
        else:
            mine.append(one)
    return sorted((one for some in kept.values() for one in some), key=lambda one: one.stamp)
