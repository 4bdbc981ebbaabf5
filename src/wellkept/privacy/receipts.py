"""Receipts of erasures: made, signed by the keyring, kept, and verified against the ledger."""

from dataclasses import replace
from typing import TYPE_CHECKING

from wellkept import codec, extras
from wellkept.engine import ledger
from wellkept.engine.core import Engine
from wellkept.engine.ledger import RECEIPTS
from wellkept.errors import KeyUnavailable
from wellkept.ports import Record, sound
from wellkept.types import ErasureReceipt, LedgerEntry, Verification
from wellkept.types.owners import DATABASE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_UNSIGNED = "nobody: the database was opened without a keyring"
_read = codec.reader(ErasureReceipt)


def made(engine: Engine, entry: LedgerEntry, remains: tuple[str, ...]) -> ErasureReceipt:
    """The receipt for an entry of the ledger, signed if there is a keyring."""
    receipt = ErasureReceipt(
        id=entry.id,
        scope=entry.scope,
        erased_at=entry.at,
        counts=entry.counts,
        ledger_seq=entry.seq,
        ledger_hash=entry.hash,
        remains=remains,
    )
    seed, why = _seed(engine)
    if seed is None:
        return replace(receipt, signed_by=why)
    key = _private_key(seed)
    public = key.public_key().public_bytes_raw().hex()
    named = replace(receipt, signed_by=why, public_key=public)
    return replace(named, signature=key.sign(_signed(named)).hex())


def _seed(engine: Engine) -> tuple[bytes | None, str]:
    """What signs, and by whom a receipt is signed."""
    keyring = engine.keyring
    if keyring is None:
        return None, _UNSIGNED
    try:
        return keyring.signing_seed(), f"the keyring {keyring.id}"
    except KeyUnavailable:
        return None, "nobody: the keyring could not be asked"


def _signed(receipt: ErasureReceipt) -> bytes:
    return codec.encode_sorted(replace(receipt, signature=None))


def keep(engine: Engine, receipt: ErasureReceipt) -> None:
    """Keep a receipt with the database; ``Conflict`` if it is kept already."""
    now = engine.clock()
    body = codec.encode_json(receipt)
    engine.records.put(Record(owner=DATABASE, kind=RECEIPTS, name=receipt.id, body=body, version=1, updated_at=now))


def every(engine: Engine) -> list[ErasureReceipt]:
    """The receipts of all erasures, the oldest first."""
    return [_read(record.body) for record in sound(engine.records.list({DATABASE}, RECEIPTS))]


def _kept(engine: Engine, id: str) -> ErasureReceipt | None:
    record = engine.records.get(DATABASE, RECEIPTS, id)
    return None if record is None else _read(record.body)


def parse(text: bytes | str) -> ErasureReceipt:
    """A receipt from its JSON; one of ``codec.UNREADABLE`` if it is none."""
    return _read(text.encode() if isinstance(text, str) else text)


def verify(engine: Engine, receipt: ErasureReceipt) -> Verification:
    """Whether a receipt says what the ledger and the kept receipt say, the ledger is whole, and the signature fits."""
    entries = ledger.read(engine.records).entries
    problems: list[str] = []
    broken = ledger.broken(entries)
    if broken is not None:
        problems.append(f"entry {broken.seq} of the ledger: {broken.why}")
    entry = next((one for one in entries if one.id == receipt.id), None)
    if entry is None:
        problems.append("the ledger of this database has no such erasure")
    elif (entry.seq, entry.hash) != (receipt.ledger_seq, receipt.ledger_hash):
        problems.append("the ledger has another entry in its place")
    elif (entry.scope, entry.at, entry.counts) != (receipt.scope, receipt.erased_at, receipt.counts):
        problems.append("the receipt says something else than the ledger")
    signed = False
    if receipt.signature is not None:
        signed = _fits(receipt)
        if not signed:
            problems.append("the signature does not fit")
        elif (own := _public_key(engine)) is not None and own != receipt.public_key:
            problems.append("the signature is by another keyring than this database's")
    if not problems and (kept := _kept(engine, receipt.id)) is not None and kept != receipt:
        problems.append("the database keeps another receipt of this erasure")
    return Verification(
        valid=not problems,
        checked=len(entries),
        anchor=f"{entries[-1].seq}:{entries[-1].hash}" if entries else "",
        signed=signed,
        problems=tuple(problems),
    )


def _public_key(engine: Engine) -> str | None:
    seed, _ = _seed(engine)
    return None if seed is None else _private_key(seed).public_key().public_bytes_raw().hex()


def _private_key(seed: bytes) -> "Ed25519PrivateKey":
    extras.require("encryption")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # lazy: an extra

    return Ed25519PrivateKey.from_private_bytes(seed)


def _fits(receipt: ErasureReceipt) -> bool:
    extras.require("encryption")
    from cryptography.exceptions import InvalidSignature  # lazy: an extra
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # lazy: as above

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt.public_key or ""))
        key.verify(bytes.fromhex(receipt.signature or ""), _signed(receipt))
    except (InvalidSignature, ValueError):
        return False
    return True
