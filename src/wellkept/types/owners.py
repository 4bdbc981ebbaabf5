"""Ownership of memories: layers, owners and identities."""

from dataclasses import dataclass, fields
from enum import StrEnum

DEFAULT_USER = "default"
"""The user of an agent and of a command that are given without a user id. Reserved: no caller may name it."""


class Layer(StrEnum):
    """The seven layers of ownership in order of precedence, most specific first.

    >>> [layer.value for layer in Layer]
    ['agent', 'user', 'session', 'project', 'team', 'org', 'company']
    """

    AGENT = "agent"
    USER = "user"
    SESSION = "session"
    PROJECT = "project"
    TEAM = "team"
    ORG = "org"
    COMPANY = "company"


@dataclass(frozen=True, slots=True)
class Owner:
    """A layer with the ids it needs, compared exactly.

    ``ids`` are in the order of ``wellkept.layers.REQUIRED_IDS``, for a session ``(user, session)``. ``branch`` names a
    branch of these memories; it is empty for the main one, and stores alone know others: no call accepts one yet.

    >>> Owner(Layer.SESSION, ("ada", "monday")).ids
    ('ada', 'monday')
    """

    layer: Layer
    ids: tuple[str, ...]
    branch: str = ""

    def __hash__(self) -> int:
        # Owners are keys of many dictionaries, and hashing the enumeration as well would take three times as long.
        return hash(self.ids)


DATABASE = Owner(Layer.COMPANY, ("",))
"""Whose the records of the whole database are. No caller can name this owner, and no grant covers it: ids are not
empty.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The ids that a caller presents. They determine the owners it may read and write.

    >>> Identity(user="ada", project="api").project
    'api'
    >>> print(Identity(user="ada", project="api"))
    user=ada project=api
    """

    agent: str | None = None
    user: str | None = None
    session: str | None = None
    project: str | None = None
    team: str | None = None
    org: str | None = None
    company: str | None = None

    def __str__(self) -> str:
        given = ((one.name, getattr(self, one.name)) for one in fields(self))
        return " ".join(f"{name}={value}" for name, value in given if value is not None)
