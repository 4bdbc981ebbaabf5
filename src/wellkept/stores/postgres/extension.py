"""The extension pgvector, which the index on the server needs."""

from __future__ import annotations

from wellkept.errors import ConfigurationError
from wellkept.stores.postgres.server import Session

LEAST = (0, 7)
"""The first pgvector with half-precision vectors."""

_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"


def require(session: Session) -> None:
    """Make the extension if the database has none, and refuse one that is too old."""
    found = session.rows(_VERSION)
    if not found:
        session.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        found = session.rows(_VERSION)
    [(version,)] = found
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST:
        raise ConfigurationError(
            f"the database has pgvector {version}, which is too old",
            details={"version": version, "least": ".".join(map(str, LEAST))},
            hint="install pgvector 0.7 or later on the server, then run there: ALTER EXTENSION vector UPDATE",
        )
