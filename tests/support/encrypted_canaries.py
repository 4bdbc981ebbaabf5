"""A marker in every field of sensitive memories, every operation, and a look at every byte that is kept."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import wellkept
from wellkept import NewMemory
from wellkept.types import Fact, KnowledgePointer, PointerType, Source, SourceType


def marker() -> str:
    """Letters that stand nowhere else; no digits, so that no detector minds them."""
    return "".join(chr(97 + one % 26) for one in os.urandom(20))


def forms(mark: str) -> dict[str, bytes]:
    """How a marker may look in a file."""
    plain = mark.encode()
    found = {
        "utf-8": plain,
        "upper": mark.upper().encode(),
        "utf-16": mark.encode("utf-16-le"),
        "utf-32": mark.encode("utf-32-le"),
        "hex": plain.hex().encode(),
        "reversed": plain[::-1],
    }
    for lead in range(3):  # wherever the marker begins in a text, its middle is one of these
        found[f"base64 {lead}"] = base64.b64encode(b"x" * lead + plain)[4:-4]
    return found


def leaks(mark: str, *folders: Path) -> list[str]:
    """Where any form of a marker stands, in any file below some folders."""
    return [
        f"{path.name}: {name}" for path, data in _files(folders) for name, form in forms(mark).items() if form in data
    ]


def _files(folders: tuple[Path, ...]) -> Iterator[tuple[Path, bytes]]:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                yield path, path.read_bytes()


def every_operation(memories: wellkept.Memories, mark: str) -> None:
    """Whatever can be done with sensitive memories, with the marker in whatever they hold."""
    view = memories.view(user="ada", agent="bot")
    one = view.add(
        f"The {mark} of the house",
        sensitive=True,
        title=f"{mark} title",
        description=f"about {mark}",
        tags=[f"{mark}.deep", "ui"],
        metadata={"word": mark, mark: 1},
        author=f"{mark} author",
        role="user",
        session=f"{mark}-session",
        key=f"{mark}-key",
        source=Source(type=SourceType.MANUAL, reference=f"{mark} source"),
        pointer=KnowledgePointer(
            source_type=PointerType.ADR, source_id=mark, content_hash=f"sha256:{mark}", synced_at=datetime.now(UTC)
        ),
    )
    two = view.add_many([NewMemory(content=f"Another {mark}", metadata={"sensitive": True}), "Likes tea"])[0]
    assert view.search(mark, limit=5).hits[0].memory.id in (one.id, two.id)
    assert view.list(filter={"tags": [mark]}).total == 1
    assert view.list(filter={"tags": [f"{mark}.deep"], "content_contains": mark}).total == 1
    assert view.count(filter={"metadata": {"word": mark}}) == 1
    assert view.count(filter={"text": mark}) == 2
    assert view.count(filter={"authors": [f"{mark} author"]}) == 1
    view.update(one.id, content=f"A new {mark}", add_tags=[f"more.{mark}"])
    view.put(f"{mark}-key", f"Put {mark}")
    view.forget(two.id, reason=f"{mark} reason")
    view.restore(two.id)
    view.forget(two.id, permanent=True, reason=f"{mark} erased")
    view.add(f"{mark} lives there", fact=Fact(subject=mark, predicate="lives in", object=mark), sensitive=True)
    assert len(view.facts.find(subject=mark)) == 1
    assert view.get(one.id, as_of=one.created_at) is not None
    assert len(view.history(one.id)) == 3
    assert any(version.reason == f"{mark} erased" for version in view.changes())
    assert view.get(key=f"{mark}-key") is not None
    assert view.stats().active >= 2
    view.search(f'"{mark}"')
    view.search(f"{mark[:6]}*")
    memories.rebuild()
    memories.doctor(repair=True)
    memories.encryption.rotate()
    memories.encryption.rotate(data=True)
    assert view.search(mark).hits
    assert memories.encryption.check().fits
