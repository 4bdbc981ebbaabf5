"""Which memories are sensitive: those that callers mark, and those whose text says so."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from wellkept import sensitivity
from wellkept.engine.core import Engine
from wellkept.errors import KeyUnavailable
from wellkept.types import Memory

MARK = "sensitive"
"""The custom field by which callers can mark a memory as well."""


def judged(engine: Engine, memory: Memory) -> Memory:
    """A memory with its mark, where it needs one. Nothing is recognised until there is a keyring: then whatever mark a
    memory has stands, and its text decides about one that has none.
    """
    marked = memory.sensitive
    if marked is None and isinstance(own := memory.metadata.get(MARK), bool):
        marked = own
    recognizes = engine.keyring is not None and engine.settings.encryption.encrypt != "all"
    if marked is None and recognizes and engine.detectors:
        marked = True if sensitivity.recognised(text_of(memory), engine.detectors) else None
    if marked:
        check_key(engine, "memory")
    return memory if marked is memory.sensitive else replace(memory, sensitive=marked)


def check_key(engine: Engine, what: str) -> None:
    """Raise ``KeyUnavailable`` if something marked could not be encrypted, unless the settings take it in the clear."""
    if engine.keyring is None and engine.settings.encryption.sensitive != "plain":
        raise KeyUnavailable(
            f"the {what} is marked as sensitive, and there is no key to encrypt it with",
            details={"field": MARK},
            hint="make one with 'wellkept keys init', then open the database with it; or set encryption.sensitive to"
            ' "plain" to keep such memories as any others',
        )


def text_of(memory: Memory) -> str:
    """What a person could read of a memory."""
    return "\n".join(_texts(memory))


def _texts(memory: Memory) -> Iterator[str]:
    yield memory.content
    for text in (memory.title, memory.description):
        if text is not None:
            yield text
    yield from texts_in(memory.metadata)
    yield from memory.tags
    if memory.fact is not None:
        yield f"{memory.fact.subject} {memory.fact.predicate} {memory.fact.object}"


def texts_in(value: object) -> Iterator[str]:
    """The texts of a JSON value, with the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if isinstance(one, str):
                yield f"{name}: {one}"
            else:
                yield from texts_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts_in(one)
