"""What the command line calls things, apart from all that it loads to use them."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from recollect.types import Identity

PROGRAM = "recollect"
COMPLETION_VARIABLE = "_RECOLLECT_COMPLETE"
DATABASE = "database"
DATABASE_VARIABLE = "RECOLLECT_DB"
OWN: Mapping[str, str] = MappingProxyType(
    {
        "where": "Show which database and identity are used here, and why.",
        "completion": "Print the script that lets your shell complete commands.",
        "version": "Show which release this is.",
    }
)
"""The commands that are the terminal's own, and what they do."""

IDS = tuple(one.name for one in fields(Identity))


def variable_of(id: str) -> str:
    """The environment variable of an id.

    >>> variable_of("user")
    'RECOLLECT_USER'
    """
    return f"RECOLLECT_{id.upper()}"
