"""Privacy: whose memories there are, what an erasure takes, the receipt of it, and the entries of the audit log."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from wellkept.types.owners import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerCount:
    """What one owner has: memories in every state but erased, their bytes, and records such as sessions.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="bob", session="monday").add("Likes tea")
    ...     [one.memories for one in memories.owners(user="bob")]
    [1]
    """

    owner: Owner
    memories: int
    bytes_used: int
    records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersPage:
    """Some owners, iterable. ``cursor=page.next_cursor`` gets the next page.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     len(memories.owners())
    0
    """

    owners: tuple[OwnerCount, ...]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[OwnerCount]:
        return iter(self.owners)

    def __len__(self) -> int:
        return len(self.owners)


class ErasureScope(StrEnum):
    """What an erasure is about: a person in all layers, one owner, memories by their ids, or all that match a filter.

    >>> ErasureScope("person").name
    'PERSON'
    """

    PERSON = "person"
    OWNER = "owner"
    MEMORIES = "memories"
    MATCHING = "matching"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCounts:
    """What an erasure takes or took.

    ``memories`` counts everything, ``derived`` those of them that were made from others and are not within the scope
    themselves, ``versions`` the versions they had, ``reasons`` earlier tombstones that lose the reason they kept.

    >>> ErasureCounts(memories=2).keys
    0
    """

    owners: int = 0
    memories: int = 0
    versions: int = 0
    derived: int = 0
    records: int = 0
    reasons: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlan:
    """What an erasure would take. Making it changes nothing.

    ``owners`` says how many memories of whom would go; ``whole`` are the owners that go entirely, with their records
    and keys. ``derived`` are the ids of memories that were made from what is erased, by owner.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="bob").add("Likes tea")
    ...     memories.privacy.plan(user="bob").counts.memories
    1
    """

    scope: ErasureScope
    counts: ErasureCounts
    owners: tuple[OwnerCount, ...] = ()
    whole: tuple[Owner, ...] = ()
    derived: tuple[tuple[Owner, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """An erasure in the ledger, without content: owners and memories are salted hashes.

    What an owner in ``owners`` recorded up to ``at`` is erased, and so are the single memories in ``memories``. Each
    entry has the ``hash`` of itself and that of the entry before.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.privacy.erase(user="bob")
    ...     [entry.seq for entry in memories.privacy.ledger()]
    [1]
    """

    seq: int
    previous: str
    id: str
    at: datetime
    scope: ErasureScope
    salt: str
    owners: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    counts: ErasureCounts = field(default_factory=ErasureCounts)
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReceipt:
    """What was erased, when, and the entry of the ledger that says so. It has no content: an auditor may keep it.

    ``remains`` says where bytes may still stand, such as in older backups. ``signature`` is by Ed25519 over everything
    else; without a keyring there is none, and ``signed_by`` says why.

    >>> import wellkept
    >>> with wellkept.open("ram:", embedder=None) as memories:
    ...     _ = memories.view(user="bob").add("Likes tea")
    ...     receipt = memories.privacy.erase(user="bob")
    ...     receipt.counts.memories, memories.privacy.verify(receipt).valid
    (1, True)
    """

    id: str
    scope: ErasureScope
    erased_at: datetime
    counts: ErasureCounts
    ledger_seq: int
    ledger_hash: str
    remains: tuple[str, ...] = ()
    signed_by: str = ""
    public_key: str | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether a receipt, a ledger or an audit log is what it says it is, and if not, why.

    ``checked`` counts entries; ``signed`` says whether a signature was there and fits. ``anchor`` names the last entry:
    kept elsewhere, it shows later whether the end was cut off. ``missing`` counts entries that could not be written, as
    on a full disk: the log itself tells of them, so it is valid.

    >>> Verification(valid=True, checked=0, anchor="").problems
    ()
    """

    valid: bool
    checked: int
    anchor: str
    signed: bool = False
    missing: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay of a ledger did: how many of its entries were new here, and what had to be erased again.

    >>> Replayed(entries=0, counts=ErasureCounts()).counts.memories
    0
    """

    entries: int
    counts: ErasureCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectExport:
    """What an export of a person holds, and where it is.

    >>> SubjectExport(path="bob.zip", memories=1, versions=2, records=0, owners=1).versions
    2
    """

    path: str
    owners: int
    memories: int
    versions: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One operation in the audit log: who did what, to which ids, when, and how it ended. It has no content.

    ``unfinished``: it was announced, and the log does not say how it ended; ``announced`` is the number of the entry
    that announced it. The verb ``audit.missing`` tells of entries that could not be written: their ``count``, and from
    ``since`` to ``until``.

    >>> from datetime import UTC
    >>> entry = AuditEntry(seq=1, at=datetime(2030, 1, 7, tzinfo=UTC), verb="add", user="ada", ids=("m1",))
    >>> entry.verb, entry.error
    ('add', None)
    """

    seq: int
    at: datetime
    verb: str
    ids: tuple[str, ...] = ()
    count: int | None = None
    owner: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    grant: str | None = None
    error: str | None = None
    announced: int | None = None
    unfinished: bool = False
    since: datetime | None = None
    until: datetime | None = None
    previous: str = ""
    hash: str = ""
