"""Policies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from wellkept.errors import InvalidInput
from wellkept.types.memory import MemoryType
from wellkept.types.owners import Layer

MIDNIGHT = "0 0 * * *"
"""The cron expression for every day at midnight, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayPolicy:
    """How the relevance of memories decays over time.

    ``half_life_hours`` applies to all types that decay; if it is ``None``, each type has its own half-life: that of
    ``by_type_hours`` (``None`` there: the type does not decay), else the default. Preferences and corrections do not
    decay unless they are in ``by_type_hours``. ``min_decay_factor`` is the lower bound.

    >>> DecayPolicy(by_type_hours={MemoryType.EVENT: 24}).min_decay_factor
    0.1
    """

    enabled: bool = True
    half_life_hours: float | None = None
    min_decay_factor: float = 0.1
    by_type_hours: Mapping[MemoryType, float | None] = field(default_factory=dict)

    @classmethod
    def from_daily_rate(cls, rate: float) -> Self:
        """The policy of a daily rate between 0 and 1: each day takes that share. It is a half-life in other words.

        >>> DecayPolicy.from_daily_rate(0.5).half_life_hours
        24.0
        """
        given: object = rate  # callers without a type checker pass anything
        if not isinstance(given, int | float) or not 0 < given < 1:
            raise InvalidInput(
                "rate must be between 0 and 1", details={"field": "rate"}, hint="to let nothing fade, use enabled=False"
            )
        return cls(half_life_hours=24 * math.log(0.5) / math.log1p(-rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How long the memories of an owner are kept. An age that is ``None`` takes nothing.

    Ages are a ``timedelta`` or a text such as ``"90d"``. A memory that was not written for ``long_term_age`` is
    forgotten, and can be restored; one that was forgotten ``forgotten_age`` ago is erased. ``working_age`` holds for
    entries of working memory, ``max_snapshots`` and ``snapshot_age`` for stored snapshots. Memories of at least
    ``exempt_importance``, with one of ``exempt_tags`` or a tag below it, and pinned ones, which have
    ``metadata={"pinned": True}``, stay. What decayed below the relevance ``archive_below`` and was neither written nor
    read for 30 days is archived, unless its layer is one of ``exempt_layers``; an archived memory that was read since
    becomes active again. An ``automatic`` policy is applied by itself, when ``schedule``, a cron
    expression in UTC, says so.

    >>> RetentionPolicy.default().forgotten_age.days, RetentionPolicy().forgotten_age
    (90, None)
    """

    working_age: timedelta | str | None = None
    long_term_age: timedelta | str | None = None
    forgotten_age: timedelta | str | None = None
    max_snapshots: int | None = None
    snapshot_age: timedelta | str | None = None
    exempt_importance: float | None = None
    exempt_tags: tuple[str, ...] = ()
    archive_below: float | None = None
    exempt_layers: tuple[Layer, ...] = ()
    automatic: bool = True
    schedule: str = MIDNIGHT

    @classmethod
    def default(cls) -> Self:
        """365 days, forgotten memories 90 days, 10 snapshots of at most 30 days. It holds only where it is set."""
        return cls(
            long_term_age=timedelta(days=365),
            forgotten_age=timedelta(days=90),
            max_snapshots=10,
            snapshot_age=timedelta(days=30),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicy:
    """When memories of an owner that say the same become one.

    ``threshold`` is how near they must be in meaning: 0 is the nearness of unrelated texts, 1 that of equal ones, with
    every embedder. An owner with fewer than ``trigger`` memories is left alone, and so is one of another layer than
    ``layers``. An ``automatic`` policy is applied by itself, when ``schedule``, a cron expression in UTC, says so.

    >>> ConsolidationPolicy().threshold, Layer.SESSION in ConsolidationPolicy().layers
    (0.95, False)
    """

    threshold: float = 0.95
    trigger: int = 10
    layers: tuple[Layer, ...] = tuple(layer for layer in Layer if layer is not Layer.SESSION)
    automatic: bool = True
    schedule: str = MIDNIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEndPolicy:
    """What becomes of the memories of a session that was closed. Without a policy, and by default, all stay.

    Memories of at least ``promote_importance``, or that were read at least ``promote_uses`` times, are copied to the
    layer of the user. What is left is forgotten ``delete_after`` the end, a ``timedelta`` or a text such as ``"7d"``
    (``"0d"``: at once), and can be restored; with ``permanent`` it is erased. Pinned and held memories stay. What is
    due later is applied by itself if the policy is ``automatic``, when ``schedule``, a cron expression in UTC, says so.

    >>> SessionEndPolicy(promote_importance=0.8, delete_after="7d").permanent
    False
    """

    promote_importance: float | None = None
    promote_uses: int | None = None
    delete_after: timedelta | str | None = None
    permanent: bool = False
    automatic: bool = True
    schedule: str = MIDNIGHT
