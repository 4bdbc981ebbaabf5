"""Verbs of erasure: erase, erase.receipts, erase.verify, erase.ledger, erase.replay."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wellkept import codec, fields, layers
from wellkept.errors import Held, InvalidInput
from wellkept.operations.conditions import IDS, MANY, MANY_IDS, Conditions
from wellkept.operations.maintenance import Nothing
from wellkept.operations.owners import PATH, person
from wellkept.operations.verb import Caller, Example, Verb, argument, group, option, result
from wellkept.text import plurals
from wellkept.types import (
    ErasureCounts,
    ErasureReceipt,
    ErasureScope,
    Layer,
    OwnerCount,
    Replayed,
    Verification,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """What to erase: a person, an owner, memories by their ids, or all that match conditions."""

    ids: tuple[str, ...] = option("Only the memories of these ids, whoever's they are.", (), bounds=IDS, flag="id")
    layer: Layer | None = option("Only the owner in this layer, by the ids of the caller; otherwise the whole person.")
    everywhere: bool = option("Look for the conditions or the source in the memories of everybody.", False)
    source: str | None = option("Only what came from this source, by its reference.", bounds=fields.LINE)
    filter: Conditions = group("Erase the memories for which these conditions hold.", Conditions)
    leave_bytes: bool = option("Leave the bytes in the tables of a server until it is scrubbed.", False)
    dry_run: bool = option("Only count what would be erased.", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was erased, or would be."""

    dry_run: bool = result("Whether nothing was changed.")
    scope: ErasureScope = result("What the erasure is about.")
    counts: ErasureCounts = result("How much of what was erased.")
    owners: tuple[OwnerCount, ...] = result("How much of whom would go; only of a dry run.", bounds=MANY)
    derived: tuple[str, ...] = result(
        "Ids of memories that were made from the others; only of a dry run.", bounds=MANY_IDS
    )
    receipt: ErasureReceipt | None = result("The receipt; null after a dry run.")


def _chosen(caller: Caller, given: Erase) -> dict[str, Any]:
    """The arguments of an erasure."""
    chosen: dict[str, Any] = {}
    if given.ids:
        chosen["ids"] = given.ids
    if given.source is not None:
        chosen["source"] = given.source
    if given.filter.given:
        chosen["filter"] = given.filter.to_filter()
    if given.layer is not None:
        owner = layers.owner_of(caller.view.identity, given.layer)
        chosen |= dict(zip(layers.REQUIRED_IDS[given.layer], owner.ids, strict=True))
    elif not given.ids and not given.everywhere:
        chosen["user"] = person(caller)
    elif given.everywhere and not (given.filter.given or given.source):
        raise InvalidInput(
            "everywhere was given without conditions",
            details={"field": "everywhere"},
            hint="give conditions such as a tag, or leave it out",
        )
    return chosen


def _erase(caller: Caller, given: Erase) -> Erased:
    chosen = _chosen(caller, given)
    if given.dry_run:
        plan = caller.memories.privacy.plan(**chosen)
        return Erased(
            dry_run=True,
            scope=plan.scope,
            counts=plan.counts,
            owners=plan.owners,
            derived=tuple(id for _, id in plan.derived),
            receipt=None,
        )
    receipt = caller.memories.privacy.erase(**chosen, scrub=not given.leave_bytes)
    return Erased(dry_run=False, scope=receipt.scope, counts=receipt.counts, owners=(), derived=(), receipt=receipt)


def _taken_away(caller: Caller, given: Erase) -> str:
    if given.dry_run:
        return ""
    counts = caller.memories.privacy.plan(**_chosen(caller, given)).counts
    whose = plurals.counted(counts.owners, "owner", "owners")
    return f"erase {plurals.memories(counts.memories)} of {whose}, with all records, for good" if counts.owners else ""


ERASE = Verb(
    name="erase",
    input=Erase,
    output=Erased,
    run=_erase,
    method="Privacy.erase",
    errors=(Held,),
    asks=_taken_away,
    interrupted="what was begun is finished when the database is opened again",
    description="With a user alone, everything about that person goes, in the user layer and of every agent and"
    " session, and what was derived from it elsewhere. Nothing is erased if a hold covers any of it. The receipt names"
    " the entry in the ledger that keeps older backups from bringing it back.",
    examples=(
        Example(line="wellkept erase --user bob --dry-run", says="counts what would go"),
        Example(line="wellkept erase --user bob --yes", says="everything about one person, with a receipt"),
        Example(line="wellkept erase --everywhere --tag secret --dry-run", says="a topic, whoever's it is"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """The receipts that are kept."""

    receipts: tuple[ErasureReceipt, ...] = result("The receipts of all erasures, the oldest first.", bounds=MANY)


def _receipts(caller: Caller, _: Nothing) -> Receipts:
    return Receipts(receipts=caller.memories.privacy.receipts())


ERASE_RECEIPTS = Verb(
    name="erase.receipts",
    input=Nothing,
    output=Receipts,
    run=_receipts,
    method="Privacy.receipts",
    examples=(Example(line="wellkept erase receipts --json", says="all receipts, to be kept elsewhere"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """Which receipt."""

    receipt: str = argument(
        "The id of a receipt that the database keeps, or a file with it or the answer of erase as JSON.", bounds=PATH
    )


def _verify(caller: Caller, given: Verify) -> Verification:
    privacy = caller.memories.privacy
    kept = next((one for one in privacy.receipts() if one.id == given.receipt), None)
    if kept is not None:
        return privacy.verify(kept)
    try:
        return privacy.verify(_receipt(Path(given.receipt).read_bytes()))
    except OSError:
        raise InvalidInput(
            f"there is neither a receipt nor a file {given.receipt[:64]!r}",
            details={"field": "receipt"},
            hint="wellkept erase receipts lists them",
        ) from None


def _receipt(text: bytes) -> bytes:
    """The receipt in a file, also where the file has the whole answer of ``erase``."""
    try:
        answer = codec.decode_json(text)
        return codec.encode_json(answer["result"]["receipt"])
    except codec.UNREADABLE:
        return text


def _valid(answer: Verification) -> bool:
    return answer.valid


ERASE_VERIFY = Verb(
    name="erase.verify",
    input=Verify,
    output=Verification,
    run=_verify,
    method="Privacy.verify",
    agrees=_valid,
    examples=(Example(line="wellkept erase verify $RECEIPT", says="whether ledger and signature confirm it"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where to."""

    path: str = argument("The file to write; it must not exist.", bounds=PATH)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerWritten:
    """What was written."""

    entries: int = result("How many entries the ledger has.", bounds=fields.COUNT)


def _ledger(caller: Caller, given: Ledger) -> LedgerWritten:
    return LedgerWritten(entries=caller.memories.privacy.export_ledger(given.path))


ERASE_LEDGER = Verb(
    name="erase.ledger",
    input=Ledger,
    output=LedgerWritten,
    run=_ledger,
    method="Privacy.export_ledger",
    examples=(Example(line="wellkept erase ledger ledger.jsonl", says="for copies that are kept elsewhere"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Which ledger."""

    path: str = argument("The file of a ledger, as erase ledger writes it.", bounds=PATH)


def _replay(caller: Caller, given: Replay) -> Replayed:
    return caller.memories.privacy.replay(given.path)


ERASE_REPLAY = Verb(
    name="erase.replay",
    input=Replay,
    output=Replayed,
    run=_replay,
    method="Privacy.replay",
    errors=(Held,),
    creates=True,
    description="For a backup that was restored, or a new database that a backup will be converted into. A ledger that"
    " stands beside the database is replayed whenever it is opened.",
    examples=(Example(line="wellkept erase replay $LEDGER", says="what was erased elsewhere is erased here too"),),
)
