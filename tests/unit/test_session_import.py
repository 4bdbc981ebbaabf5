"""The limit of what is read in."""

import pytest

from wellkept import Memories
from wellkept.errors import InvalidInput
from wellkept.memories import Sessions
from wellkept.sessions import imports

SEED = (
    '{"id":"mem_001","session_id":"sess_001","timestamp":"2026-01-10T10:00:00Z","type":"conversation",'
    '"content":{"role":"user","message":"Hello","metadata":{"n":1}},"importance":0.5,"decay_factor":1.0,"tags":["a.b"],'
    '"references":[]}\n'
    '{"id":"mem_002","session_id":"sess_001","timestamp":"2026-01-10T10:01:00Z","type":"decision",'
    '"content":{"decision":"Use PKCE"},"importance":0.9,"decay_factor":1.0,"tags":[],"references":["mem_001"]}\n'
)


@pytest.fixture
def sessions(memories: Memories) -> Sessions:
    return memories.view(user="ada").sessions


def test_a_text_that_is_too_large_is_refused(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "BYTES", 100)
    with pytest.raises(InvalidInput, match="the limit is 100"):
        sessions.import_session(SEED)
