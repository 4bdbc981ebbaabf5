"""Encrypting what is there already: memories that were plain before, and those of a former key.

Versions are rewritten in the store, some at a time. Killed in between, another run goes on where it stopped, since it
looks at every memory and passes over what is done.
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from wellkept import sensitivity
from wellkept.engine import encrypted_records, sensitive
from wellkept.engine import encrypted_versions as versions_of
from wellkept.engine.core import Engine
from wellkept.engine.encrypted_versions import ENCRYPTED
from wellkept.engine.memory_cipher import KEYRING
from wellkept.engine.sealing import unseal
from wellkept.errors import Conflict, KeyUnavailable, StoreCorrupt, Tampered
from wellkept.filters import Where
from wellkept.ports import DamagedRecord, Keyring, OwnerKey, Record, sound
from wellkept.types import EncryptionReport, Operation, Owner, Stored

Progress = Callable[[int, int], None]
"""Told how many memories were looked at, of how many."""

_BATCH = 64
_PAGE = 500


def keyring_of(engine: Engine) -> Keyring:
    """The keyring of a database that has one."""
    if engine.keyring is None:
        raise KeyUnavailable(
            "the database was opened without a keyring",
            hint="make one with 'wellkept keys init', or open the database with keyring=",
        )
    return engine.keyring


def owners(engine: Engine) -> Iterator[Owner]:
    """Everybody who has memories."""
    last: Owner | None = None
    while some := engine.journal.owners(after=last, limit=_PAGE):
        yield from some
        last = some[-1]


def encrypt(engine: Engine, *, everything: bool, progress: Progress | None = None) -> EncryptionReport:
    """Encrypt the sensitive memories of a database that are plain, or all, with every former version."""
    keyring_of(engine)
    return _encrypted(
        engine, lambda versions: everything or _is_sensitive(engine, versions), progress, records=everything
    )


def renew(engine: Engine, progress: Progress | None = None) -> EncryptionReport:
    """Give every owner a new key, and encrypt what is encrypted anew with it. Former keys stay in the keyring."""
    keyring = keyring_of(engine)
    for owner in list(keyring.owners()):
        keyring.renew(owner)
    return _encrypted(engine, lambda _: False, progress)


def retire(engine: Engine) -> int:
    """Remove former keys, after everything is encrypted by the current ones; how many."""
    keyring = keyring_of(engine)
    while _encrypted(engine, lambda _: False, None).memories:
        pass  # somebody wrote with a former key meanwhile
    return sum(keyring.retire(owner) for owner in list(keyring.owners()))


def _encrypted(
    engine: Engine,
    wanted: Callable[[Sequence[Stored]], bool],
    progress: Progress | None,
    *,
    records: bool = False,
) -> EncryptionReport:
    whose = list(owners(engine))
    total = sum(usage.memories for usage in engine.journal.usage(frozenset(whose)).values())
    done = changed = versions = 0
    touched: list[Owner] = []
    for owner in whose:
        ids = iter(engine.journal.ids({owner}, Where(now=engine.clock(), states=None)))
        before = versions
        while batch := [id for _, id in islice(ids, _BATCH)]:
            written = _rewritten(engine, owner, batch, wanted)
            versions += len(written)
            changed += len({one.id for one in written})
            done += len(batch)
            if progress is not None:
                progress(done, max(total, done))
        reasons = _encrypt_reasons(engine, owner)
        if versions > before or reasons:
            touched.append(owner)
    beside = _encrypt_records(engine, plain=records)
    remains = _cleared(engine, [*touched, *beside])
    return EncryptionReport(owners=len(touched), memories=changed, versions=versions, remains=remains)


def _rewritten(
    engine: Engine, owner: Owner, ids: Sequence[str], wanted: Callable[[Sequence[Stored]], bool]
) -> list[Stored]:
    """Rewrite the versions of some memories, where that is wanted; those that were rewritten."""
    journal, keyring = engine.journal, keyring_of(engine)
    heads = {one.id: one for one in journal.get({owner}, ids, vectors=True, opened=False)}
    written: list[Stored] = []
    for id in ids:
        kept = journal.history(owner, id, opened=False)
        head = heads.get(id)
        if head is None or not kept or kept[-1].operation is Operation.ERASED:
            continue
        opened = journal.history(owner, id)
        if ENCRYPTED not in head.facets and not wanted(opened):
            continue
        key = keyring.create(owner)
        if all(_is_done(one, key) for one in kept) and _has_key(head, key):
            continue
        written += _concealed(engine, head, opened, key)
    if written:
        journal.set_settings({KEYRING: keyring.id})
        journal.rewrite(written)
        _encrypt_late_vectors(engine, owner, {one.id for one in written})
    return written


def _encrypt_late_vectors(engine: Engine, owner: Owner, ids: AbstractSet[str]) -> None:
    """Encrypt vectors that were stored for plain memories while these were encrypted."""
    journal, key = engine.journal, keyring_of(engine).create(owner)
    late = [
        one._replace(vector=versions_of.encrypted_vector(one.vector, key, owner, one.id))
        for one in journal.get({owner}, ids, vectors=True, opened=False)
        if one.vector is not None and not versions_of.is_encrypted_vector(one.vector)
    ]
    if late:
        journal.rewrite(late)


def _is_done(stored: Stored, key: OwnerKey) -> bool:
    return bool(stored.facets.get(ENCRYPTED, {}).get("key") == key.id)


def _has_key(head: Stored, key: OwnerKey) -> bool:
    """Whether a memory's vector is encrypted by a key, if it has one."""
    return head.vector is None or versions_of.key_of_vector(head.vector) == key.id


def _concealed(engine: Engine, head: Stored, opened: Sequence[Stored], key: OwnerKey) -> Iterator[Stored]:
    everything = engine.settings.encryption.encrypt == "all"
    for one in opened:
        marked = one if everything else one._replace(facets={**one.facets, "sensitive": True})
        hidden = versions_of.concealed(marked, key)
        if one.stamp == head.stamp and head.vector is not None:
            named = engine.journal.get({one.owner}, [one.id], vectors=True)
            vector = named[0].vector if named else None
            hidden = hidden._replace(
                vector=None if vector is None else versions_of.encrypted_vector(vector, key, one.owner, one.id)
            )
        yield hidden


def _is_sensitive(engine: Engine, versions: Sequence[Stored]) -> bool:
    """Whether a version is marked, or says something that is recognised."""
    for one in versions:
        if one.facets.get("sensitive") is True:
            return True
        memory = unseal(one)
        if memory.metadata.get(sensitive.MARK) is True:
            return True
        if memory.sensitive is None and sensitivity.recognised(sensitive.text_of(memory), engine.detectors):
            return True
    return False


def _encrypt_reasons(engine: Engine, owner: Owner) -> bool:
    """Encrypt why memories were erased: such a reason may tell of them. Whether there were any."""
    journal = engine.journal
    key = keyring_of(engine).key(owner)
    if key is None:
        return False
    found, after, some = False, None, True
    while some:
        page = journal.versions({owner}, after=after, limit=_PAGE, opened=False)
        others = [
            one
            for one in page
            if one.operation is Operation.ERASED and one.reason and versions_of.key_of_reason(one.reason) != key.id
        ]
        for one in others:
            opened = journal.history(owner, one.id)[-1].reason
            if opened is not None:  # the key of the reason was destroyed: it tells nothing any more
                reason = versions_of.encrypted_reason(opened, key, owner, one.id)
                journal.rewrite([one._replace(reason=reason)])
                found = True
        after, some = page.next, page.more
    return found


def _encrypt_records(engine: Engine, *, plain: bool) -> list[Owner]:
    """Encrypt records anew that have a former key, and those that are in the clear if asked for; whose they were."""
    keyring, found = keyring_of(engine), []
    while waiting := [
        one for one in sound(engine.records.list(None, opened=False)) if _is_record_waiting(keyring, one, plain=plain)
    ]:
        engine.journal.set_settings({KEYRING: keyring.id})
        for record in waiting:
            opened = engine.records.get(record.owner, record.kind, record.name)
            if opened is None:
                continue  # it was dropped meanwhile
            hidden = encrypted_records.encrypted(opened, keyring.create(encrypted_records.subject_of(record)))
            with suppress(Conflict):  # somebody changed it: the next round has it
                engine.records.put(replace(hidden, version=opened.version + 1))
                found.append(record.owner)
    return found


def _is_record_waiting(keyring: Keyring, record: Record, *, plain: bool) -> bool:
    if not encrypted_records.is_encrypted(record):
        return plain and record.kind in encrypted_records.TELLING
    current = keyring.key(encrypted_records.subject_of(record))
    return current is None or encrypted_records.key_of(record) != current.id


def _cleared(engine: Engine, touched: Sequence[Owner]) -> tuple[str, ...]:
    """Remove what is derived from plain memories, and the bytes that the store freed."""
    if not touched:
        return ()
    if engine.base_index is not None:
        engine.base_index.drop(touched)
    return engine.store.scrub().remains


def check(engine: Engine, progress: Progress | None = None) -> tuple[int, int, list[str]]:
    """Open every version of every memory, and every record; how many memories are encrypted, how many plain, and what
    does not open.
    """
    whose = list(owners(engine))
    total = sum(usage.memories for usage in engine.journal.usage(frozenset(whose)).values())
    encrypted = plain = 0
    failed: list[str] = []
    for owner in whose:
        for _, id in engine.journal.ids({owner}, Where(now=engine.clock(), states=None)):
            try:
                history = engine.journal.history(owner, id, opened=False)
                if any(ENCRYPTED in one.facets for one in history):
                    encrypted += 1
                    engine.journal.history(owner, id)
                    engine.journal.get({owner}, [id], vectors=True)
                else:
                    plain += 1
            except (KeyUnavailable, Tampered, StoreCorrupt):
                failed.append(id)
            if progress is not None:
                progress(encrypted + plain, max(total, encrypted + plain))
    return encrypted, plain, [*failed, *_unreadable_records(engine)]


def _unreadable_records(engine: Engine) -> Iterator[str]:
    for record in engine.records.list(None, opened=False):
        try:
            readable = not isinstance(engine.records.get(record.owner, record.kind, record.name), DamagedRecord)
        except (KeyUnavailable, Tampered):
            readable = False
        if not readable:
            yield f"{record.kind} {record.name}"
