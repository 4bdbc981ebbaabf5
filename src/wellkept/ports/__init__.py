"""The seams: what a store, a keyring, an embedder and a clock must be.

A store is a bundle of a :class:`Journal` (the truth), :class:`Records` (documents) and, if it brings one, an
:class:`Index` (derived). A store author subclasses them, implements the abstract methods, calls :func:`plan` inside the
journal's lock, and runs the kit in ``wellkept.testing``.
"""

from wellkept.ports import positions as positions
from wellkept.ports.index import Corpus, Images, Index, Near, Nearest
from wellkept.ports.journal import Journal, Query
from wellkept.ports.keyring import Keyring, OwnerKey
from wellkept.ports.models import Clock, Embedder, Lexicon, Reranker
from wellkept.ports.plan import Counters, Head, Plan, Standing, Step, check_record, check_vector, plan
from wellkept.ports.records import DamagedRecord, Lease, Record, Records, guarded_version, sound
from wellkept.ports.store import Capabilities, Store
from wellkept.ports.store_settings import SettingRow, StoreSettings, is_set, says

__all__ = [  # noqa: RUF022  # the order of the reference
    "Store",
    "Capabilities",
    "Journal",
    "Query",
    "StoreSettings",
    "SettingRow",
    "is_set",
    "says",
    "Index",
    "Near",
    "Nearest",
    "Corpus",
    "Images",
    "Records",
    "Record",
    "DamagedRecord",
    "sound",
    "guarded_version",
    "Lease",
    "Keyring",
    "OwnerKey",
    "plan",
    "Standing",
    "Head",
    "Counters",
    "Plan",
    "Step",
    "check_vector",
    "check_record",
    "Clock",
    "Embedder",
    "Lexicon",
    "Reranker",
]
