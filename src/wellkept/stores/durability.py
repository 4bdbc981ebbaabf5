"""How safe a write is when the call returns: on the disk, or soon."""

from wellkept.errors import ConfigurationError

DURABILITIES = ("full", "relaxed")


def check_durability(value: str | None) -> None:
    """Refuse a durability that does not exist.

    >>> check_durability("full")
    """
    if value not in (None, *DURABILITIES):
        raise ConfigurationError(
            f"no durability is named {str(value)[:40]!r}",
            details={"field": "durability"},
            hint="use 'full' or 'relaxed'",
        )
