"""How messages name a database."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_SECRETS = re.compile(r"(?<=://)[^/?#]*(?=@)|(?<=password=)[^&\s]*", re.IGNORECASE)


def shown(url: object) -> str:
    """A database as messages may name it: without user and password.

    >>> shown("postgresql://ada:secret@host/db?password=secret&schema=a")
    'postgresql://***@host/db?password=***&schema=a'
    """
    return re.sub(_SECRETS, "***", str(url))[:200]


def with_options(url: str, given: Mapping[str, object]) -> str:
    """The URL with options that it does not have already.

    >>> with_options("postgresql://host/db?schema=a", {"schema": "b", "pool_size": 4})
    'postgresql://host/db?schema=a&pool_size=4'
    """
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    known = {name for name, _ in query}
    query += [(name, str(value)) for name, value in given.items() if value is not None and name not in known]
    return urlunsplit((*parts[:3], urlencode(query), parts.fragment))
