"""A keyring may be a service far away: it is asked once for many memories, and again by every call."""

from __future__ import annotations

import pytest

import wellkept
from wellkept.errors import KeyUnavailable
from wellkept.keyrings.ram import RamKeyring
from wellkept.ports import OwnerKey
from wellkept.types import Layer, Owner

ADA = Owner(Layer.USER, ("ada",))
BOT = Owner(Layer.AGENT, ("ada", "bot"))
FEW = 4
"""How often a call may ask, however many memories it reads or writes."""


class CountingKeyring(RamKeyring):
    """Knows how often it was asked."""

    asked = 0

    def key(self, owner: Owner, key_id: str | None = None) -> OwnerKey | None:
        self.asked += 1
        return super().key(owner, key_id)

    def create(self, owner: Owner) -> OwnerKey:
        self.asked += 1
        return super().create(owner)

    def since(self) -> int:
        """How often since the last time."""
        asked, self.asked = self.asked, 0
        return asked


@pytest.mark.req("L10")
def test_a_call_asks_once_for_all_memories_and_the_next_sees_a_destroyed_key() -> None:
    ring = CountingKeyring()
    with wellkept.open("ram:", embedder="hashing-64", keyring=ring, encrypt="all") as memories:
        view = memories.view(user="ada")
        added = view.add_many([f"Memory {number}" for number in range(100)])
        assert 0 < ring.since() <= FEW
        assert len(view.list(limit=100).memories) == 100
        assert 0 < ring.since() <= FEW
        assert len(view.get_many([one.id for one in added], include_vector=True)) == 100
        assert 0 < ring.since() <= FEW
        ring.destroy(ADA)
        with pytest.raises(KeyUnavailable):
            view.get(added[0].id)
        with pytest.raises(KeyUnavailable):
            view.list()


@pytest.mark.req("L10")
def test_a_snapshot_asks_once_for_all_parts_and_the_next_sees_a_destroyed_key() -> None:
    ring = CountingKeyring()
    with wellkept.open("ram:", embedder=None, keyring=ring, encrypt="all") as memories:
        me = memories.agent("bot", user="ada")
        for number in range(50):
            me.working.set(f"step {number}", number)
            me.context.add("user", f"Step {number}")
        ring.since()
        taken = me.snapshot()
        assert 0 < ring.since() <= FEW
        me.restore(taken)
        assert 0 < ring.since() <= FEW
        assert me.working.get("step 7") == 7
        ring.destroy(BOT)
        with pytest.raises(KeyUnavailable):
            me.restore(taken)
        assert me.snapshot() != taken, "by a new key"


@pytest.mark.req("W5")
def test_what_does_not_open_is_logged_and_what_a_caller_lacks_is_not(caplog: pytest.LogCaptureFixture) -> None:
    ring = RamKeyring()
    with wellkept.open("ram:", embedder=None, keyring=ring, encrypt="all") as memories:
        memory = memories.view(user="ada").add("a secret")
        ring.destroy(ADA)
        with pytest.raises(KeyUnavailable):
            memories.view(user="ada").get(memory.id)
        assert [(one.levelname, one.message) for one in caplog.records] == [
            ("ERROR", "View.get failed: KEY_UNAVAILABLE")
        ]
    caplog.clear()
    with wellkept.open("ram:", embedder=None) as memories, pytest.raises(KeyUnavailable):
        memories.view(user="ada").add("a secret", sensitive=True)
    assert caplog.records == [], "a mistake of the caller"
