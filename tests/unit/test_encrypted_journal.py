"""A journal that encrypts answers as a plain one does, whether everything is encrypted or every other memory."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from wellkept.engine.journal import ADMINISTRATOR, EngineJournal, Shared
from wellkept.engine.memory_cipher import KEYRING, Call, MemoryCipher
from wellkept.errors import Conflict
from wellkept.keyrings.ram import RamKeyring
from wellkept.ports import Records
from wellkept.stores.ram import RamStore
from wellkept.testing import StoreConformance
from wellkept.testing.builders import Writer, owner
from wellkept.types import Guard, Operation, Position, Quota, Stored, Write


class EveryOther(MemoryCipher):
    """Encrypts about half of the memories, by their ids: a version of a memory is then as the others are."""

    def append(
        self, call: Call, records: Records, writes: Sequence[Write], quotas: Sequence[Quota], guards: Sequence[Guard]
    ) -> Position:
        return super().append(call, records, [_marked(write) for write in writes], quotas, guards)

    def opened(self, versions: Iterable[Stored]) -> list[Stored]:
        """As they were given, without the mark of this test."""
        return [
            one._replace(facets={name: value for name, value in one.facets.items() if name != "sensitive"})
            for one in super().opened(versions)
        ]


def _marked(write: Write) -> Write:
    if write.operation is Operation.ERASED or sum(write.id.encode()) % 2:
        return write
    return write._replace(facets={**write.facets, "sensitive": True})


class Encrypting(RamStore):
    """A store in RAM that never sees what is encrypted."""

    everything: bool = True

    def __init__(self) -> None:
        super().__init__()
        kind = MemoryCipher if self.everything else EveryOther
        keyring = RamKeyring()
        self.journal.set_settings({KEYRING: keyring.id})  # the first write does; here it must leave no other trace
        self.inner = self.journal
        cipher = kind(keyring, everything=self.everything)
        shared = Shared(journal=self.inner, records=self.records, cipher=cipher, clock=partial(datetime.now, UTC))
        self.journal = EngineJournal(shared, ADMINISTRATOR)


class Mixing(Encrypting):
    everything = False


@pytest.mark.req("L10")
class TestEverythingEncrypted(StoreConformance):
    def open_store(self, place: Path) -> RamStore:
        return Encrypting()


@pytest.mark.req("L10")
class TestSomeEncrypted(StoreConformance):
    def open_store(self, place: Path) -> RamStore:
        return Mixing()


@pytest.mark.req("L10")
def test_a_batch_that_begins_to_encrypt_holds_a_key_once() -> None:
    """The plain memory comes first, when its owner has no data key yet."""
    store, writes = Mixing(), Writer()
    plain = writes.add(owner("ada"), id="1", key="same")
    sensitive = writes.add(owner("ada"), id="2", key="same")
    with pytest.raises(Conflict):
        store.journal.append([plain, sensitive])


@pytest.mark.req("L10")
def test_a_sensitive_memory_does_not_take_the_key_of_a_plain_one_that_is_being_stored() -> None:
    store, writes = Mixing(), Writer()
    plain = writes.add(owner("ada"), id="1", key="same")
    sensitive = writes.add(owner("ada"), id="2", key="same")
    storing, rivals = store.inner.append, iter([sensitive])

    def overtaken(ready: Sequence[Write], *, quotas: Sequence[Quota] = (), guards: Sequence[Guard] = ()) -> Position:
        for rival in rivals:
            store.journal.append([rival])
        return storing(ready, quotas=quotas, guards=guards)

    store.inner.append = overtaken  # type: ignore[assignment, method-assign]
    with pytest.raises(Conflict):
        store.journal.append([plain])
    assert store.journal.keyed(owner("ada"), ["same"]) == {"same": "2"}
