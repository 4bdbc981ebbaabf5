"""Where a memory came from, as it is asked for."""

from recollect.errors import InvalidInput
from recollect.types import Source, SourceType


def source_of(type: SourceType | None, reference: str | None) -> Source | None:
    """Where a memory came from, of what was given of it."""
    if type is None:
        if reference is None:
            return None
        raise InvalidInput(
            "a source reference was given without a source type",
            details={"field": "source_type"},
            hint=f"say what it refers to: {', '.join(SourceType)}",
        )
    return Source(type=type, reference=reference)
