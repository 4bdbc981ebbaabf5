"""Names of the command line: the program, environment variables, built-in commands, ids."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from wellkept.types import Identity

PROGRAM = "wellkept"
COMPLETION_VARIABLE = "_WELLKEPT_COMPLETE"
DATABASE = "database"
DATABASE_VARIABLE = "WELLKEPT_DB"
BUILTINS: Mapping[str, str] = MappingProxyType(
    {
        "init": "Create a database, and prepare a folder of JSON Lines for git.",
        "where": "Show which database and identity are used here, and where each is set.",
        "trust": "Trust the wellkept.toml of a folder; list and revoke what is trusted.",
        "completion": "Print the completion script of a shell.",
        "version": "Show the version.",
    }
)
"""The commands of the command line itself, and what they do."""

IDS = tuple(one.name for one in fields(Identity))


def variable_of(id: str) -> str:
    """The environment variable of an id.

    >>> variable_of("user")
    'WELLKEPT_USER'
    """
    return f"WELLKEPT_{id.upper()}"
