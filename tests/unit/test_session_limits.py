"""Limits of several sessions in one batch, and what is known of them in RAM."""

import pytest

from wellkept import Memories, codec
from wellkept.engine import quotas
from wellkept.errors import QuotaExceeded
from wellkept.sessions import limits
from wellkept.testing.builders import Writer
from wellkept.types import Layer, Owner

LIMIT = 2_000


@pytest.mark.req("J9", "L12")
@pytest.mark.parametrize("full", [0, 1])
def test_every_session_of_a_batch_is_held_to_its_own_limit(memories: Memories, full: int) -> None:
    sessions = memories.view(user="ada").sessions
    limits = {"monday": 3 * LIMIT, "tuesday": 2 * LIMIT, "sunday": None}
    owners = [Owner(Layer.SESSION, ("ada", name)) for name in limits]
    for name, limit in limits.items():
        sessions.create(name, config={"limit_bytes": limit, "auto_compact": False})
        sessions.load(name).view.add("a" * LIMIT)
    writes, engine = Writer(), memories._engine
    sizes = [100, 100, 5 * LIMIT]
    sizes[full] = 3 * LIMIT
    batch = [writes.add(one, "b" * size) for one, size in zip(owners, sizes, strict=True)]
    with pytest.raises(QuotaExceeded) as caught:
        quotas.append(engine, batch)
    assert caught.value.details["owner"] == codec.encode_owner(owners[full])
    assert [len(sessions.load(name).view.list()) for name in limits] == [1, 1, 1]
    fitting = [writes.add(one, "b" * 100) for one in owners]
    quotas.append(engine, fitting)
    assert len(engine.journal.get(frozenset(owners), [one.id for one in fitting])) == 3


@pytest.mark.req("J9")
def test_room_is_made_in_every_session_of_a_batch(memories: Memories) -> None:
    sessions, owners = memories.view(user="ada").sessions, []
    for name in ("monday", "tuesday"):
        session = sessions.create(name, config={"limit_bytes": LIMIT})
        session.view.add("a" * 1_200, importance=0)
        owners.append(Owner(Layer.SESSION, ("ada", name)))
    writes = Writer()
    quotas.append(memories._engine, [writes.add(one, "b" * 1_200) for one in owners])
    for name in ("monday", "tuesday"):
        assert [one.content[0] for one in sessions.load(name).view.list()] == ["b"]


def test_few_configurations_are_kept_in_ram(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_KNOWN", 3)
    for number in range(10):
        memories.view(user="ada", session=f"s{number}").add("a memory", layer="session")
    kept = memories._engine.session_limits
    assert isinstance(kept, limits.SessionLimits)
    assert len(kept._known) <= 3
