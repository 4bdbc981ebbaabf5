"""Smaller batches, so that a test can stop a process between two of them; for good, so only for processes that end."""

from wellkept.privacy import selection
from wellkept.transfer import comparison


def convert_in_batches_of(count: int) -> None:
    """How many versions a conversion copies at once."""
    comparison.BATCH = count


def erase_in_batches_of(count: int) -> None:
    """How many memories are erased at once."""
    selection.BATCH = count
