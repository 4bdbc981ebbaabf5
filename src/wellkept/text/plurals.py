"""Numbers with the words that they count."""


def counted(count: int, one: str, many: str) -> str:
    """A number with what it counts, in the singular or the plural.

    >>> counted(1, "memory is", "memories are"), counted(0, "memory is", "memories are")
    ('1 memory is', '0 memories are')
    """
    return f"{count} {one if count == 1 else many}"


def memories(count: int) -> str:
    """So many memories.

    >>> memories(1), memories(2)
    ('1 memory', '2 memories')
    """
    return counted(count, "memory", "memories")
