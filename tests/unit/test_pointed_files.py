"""Which documents are looked at: files, and nothing else that a pointer may name."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wellkept import pointed_files
from wellkept.types import KnowledgePointer, PointerType


def pointer_to(source_id: str) -> KnowledgePointer:
    return KnowledgePointer(
        source_type=PointerType.ADR, source_id=source_id, content_hash="sha256:00", synced_at=datetime.now(UTC)
    )


@pytest.mark.req("N9")
def test_other_documents_are_not_looked_at() -> None:
    others = ["adr-042", "https://example.com/a", "file://host/etc/passwd", "file:relative", "file:///a\0b", "file:"]
    answers = {source_id: pointed_files.is_stale(pointer_to(source_id)) for source_id in others}
    assert answers == dict.fromkeys(others)
    assert pointed_files.is_stale(None) is None


@pytest.mark.req("N9")
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert pointed_files.is_stale(pointer_to(pipe.as_uri())) is True
    assert pointed_files.read(pipe) is None
