"""What the engine holds to about API keys, whoever calls it."""

import pytest

import wellkept
from tests.support.stand_ins import HandClock
from wellkept import Memories
from wellkept.engine import api_keys
from wellkept.errors import InvalidInput, LimitReached, Unauthorized


def test_a_use_never_undoes_a_revocation(memories: Memories, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is revoked between the look at it and the note that it was used."""
    made = memories.keys.create("ci", owners=None)
    check = api_keys._check_not_revoked

    def revoking(key: wellkept.types.ApiKey) -> None:
        check(key)
        api_keys.revoke(memories._engine, key.id)

    monkeypatch.setattr(api_keys, "_check_not_revoked", revoking)
    memories.keys.grant_of(made.token)
    monkeypatch.undo()
    assert memories.keys.list()[0].revoked_at == clock()
    with pytest.raises(Unauthorized):
        memories.keys.grant_of(made.token)


def test_a_database_keeps_so_many_keys_and_no_more(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "KEYS", 3)
    made = [memories.keys.create(name, owners=None) for name in "abc"]
    with pytest.raises(LimitReached):
        memories.keys.create("d", owners=None)
    memories.keys.revoke(made[1].key.id)
    memories.keys.create("d", owners=None)
    assert {one.name for one in memories.keys.list()} == {"a", "c", "d"}
    with pytest.raises(Unauthorized):
        memories.view(user="ada", grant=made[1].key.grant).count()


def test_a_grant_of_one_key_makes_no_other(memories: Memories) -> None:
    made = memories.keys.create("ci", owners=None)
    with pytest.raises(InvalidInput):
        api_keys.create(memories._engine, "copy", made.key.grant)
