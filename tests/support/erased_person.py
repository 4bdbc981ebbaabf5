"""A person whose memories are everywhere, each with a marker that no file may hold once the person is erased."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import wellkept
from wellkept.embedders.hashing import HashingEmbedder
from wellkept.types import Memory, RetentionPolicy, Source, SourceType

PLACES = """content former title description tag metadata key reference author forgotten buried session preference agent
archived""".split()
MARKS = {name: f"zq{name}canary" for name in PLACES}


def open_database(url: str | Path) -> wellkept.Memories:
    """With an embedder, so that there are vectors and images of indexes."""
    return wellkept.open(url, embedder=HashingEmbedder(32))


def fill(memories: wellkept.Memories) -> Memory:
    """Give bob memories in every layer of his, and ada one; hers."""
    bob = memories.view(user="bob")
    first = bob.add(
        f"the {MARKS['former']} house",
        title=MARKS["title"],
        description=MARKS["description"],
        tags=[MARKS["tag"]],
        metadata={"note": MARKS["metadata"]},
        key=MARKS["key"],
        author=MARKS["author"],
        source=Source(type=SourceType.MANUAL, reference=MARKS["reference"]),
    )
    bob.update(first.id, content=f"the {MARKS['content']} house")
    forgotten = bob.add("an old address")
    bob.forget(forgotten.id, reason=MARKS["forgotten"])
    buried = bob.add("a secret")
    bob.forget(buried.id, permanent=True, reason=MARKS["buried"])
    session = bob.sessions.create("monday", metadata={"about": MARKS["session"]})
    session.preferences.set("tone", MARKS["preference"])
    session.view.add(f"in a session: {MARKS['session']}")
    memories.view(user="bob", agent="helper").add(f"of an agent: {MARKS['agent']}")
    archived = bob.add(f"archived {MARKS['archived']}")
    memories.upkeep.set_retention(
        RetentionPolicy(long_term_age=timedelta(microseconds=1), automatic=False), owner=first.owner
    )
    memories.upkeep.run(owner=first.owner, max_share=1.0)
    bob.restore(archived.id)
    hers = memories.view(user="ada").add("Ada likes tea")
    bob.search("house")
    memories.view(user="ada").search("tea")
    return hers


def bytes_in(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below a folder."""
    return ((path, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file())


def found(folder: Path) -> list[tuple[str, str]]:
    """Which marks stand in which files."""
    return [
        (path.name, name) for path, data in bytes_in(folder) for name, mark in MARKS.items() if mark.encode() in data
    ]
