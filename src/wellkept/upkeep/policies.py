"""Policies of upkeep: for each kind one record of each owner that has one, and one of the whole database."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from wellkept import codec, filters, layers, validation
from wellkept.engine.core import ATTEMPTS, Engine
from wellkept.errors import Conflict, InvalidInput, StoreCorrupt
from wellkept.ports import Record, says
from wellkept.types import ConsolidationPolicy, Layer, Owner, RetentionPolicy, SessionEndPolicy
from wellkept.types.owners import DATABASE
from wellkept.upkeep import cron

AUTOMATIC = "upkeep"
"""The setting that says that a policy is automatic, so that opening a database without one costs nothing."""

_AGES = ("working_age", "long_term_age", "forgotten_age", "snapshot_age", "delete_after")
_LAYERS = ("exempt_layers", "layers")

Policy = RetentionPolicy | ConsolidationPolicy | SessionEndPolicy
P = TypeVar("P", bound=Policy)


class Kept(NamedTuple, Generic[P]):
    """A policy, and when it was set."""

    policy: P
    set_at: datetime


class Policies(Generic[P]):
    """The policies of one kind."""

    def __init__(self, kind: str, made: type[P], check: Callable[[P], P]) -> None:
        self._kind = kind
        self._made = made
        self._check = check
        self._names = tuple(one.name for one in fields(made))

    def checked(self, policy: object) -> P:
        """A policy whose ages are spans of time; ``InvalidInput`` names the field that is wrong."""
        if not isinstance(policy, self._made):
            what = f"is a {type(policy).__name__}, which is no {self._made.__name__}"
            raise _wrong("policy", what, f"pass a {self._made.__name__}")
        validation.flag("automatic", policy.automatic)
        cron.check(policy.schedule)
        return self._check(policy)

    def every(self, engine: Engine) -> dict[Owner, Kept[P]]:
        """All policies by owner; the one of the whole database is that of ``DATABASE``."""
        return {one.owner: self._decoded(one) for one in engine.records.list(None, self._kind)}

    def get(self, engine: Engine, owner: Owner) -> P | None:
        """The policy that was set for an owner itself."""
        record = engine.records.get(owner, self._kind, self._kind)
        return None if record is None else self._decoded(record).policy

    def over(self, engine: Engine, owner: Owner) -> P | None:
        """The policy that holds for an owner."""
        return next((found for one in _candidates(owner) if (found := self.get(engine, one)) is not None), None)

    def put(self, engine: Engine, owner: Owner, policy: P, now: datetime) -> None:
        """Set the policy of an owner in the place of the one before."""
        body, kind = _encoded(policy), self._kind
        for _ in range(ATTEMPTS):
            before = engine.records.get(owner, kind, kind)
            version = before.version + 1 if before else 1
            record = Record(owner=owner, kind=kind, name=kind, body=body, version=version, updated_at=now)
            try:
                engine.records.put(record)
            except Conflict:
                continue
            _note(engine)
            return
        raise Conflict("the policy kept changing while it was written", hint="try again when there are fewer writers")

    def clear(self, engine: Engine, owner: Owner) -> bool:
        """Remove the policy of an owner; whether there was one."""
        dropped = engine.records.drop(owner, self._kind, self._kind)
        _note(engine)
        return dropped

    def _decoded(self, record: Record) -> Kept[P]:
        known: dict[str, Any] = codec.decode_json(record.body)
        plain = {name: value for name, value in known.items() if name in self._names}
        for name in _AGES:
            seconds = plain.get(name)
            if seconds is not None:
                plain[name] = timedelta(microseconds=math.floor(seconds * 1_000_000 + 0.5))
        for name, value in plain.items():
            if name in _LAYERS:
                plain[name] = tuple(map(Layer, value))
            elif isinstance(value, list):
                plain[name] = tuple(value)
        return Kept(self._made(**plain), record.updated_at)


def governing(policies: Mapping[Owner, Kept[P]], owner: Owner) -> Owner | None:
    """Whose policy holds for an owner: its own, its user's for a session or an agent, or that of the database."""
    return next((one for one in _candidates(owner) if one in policies), None)


def _candidates(owner: Owner) -> list[Owner]:
    return [one for one in (owner, layers.user_of(owner), DATABASE) if one is not None]


def _encoded(policy: Policy) -> bytes:
    plain = asdict(policy)
    seconds = {name: plain[name].total_seconds() for name in _AGES if plain.get(name) is not None}
    return codec.encode_json({**plain, **seconds})


def _note(engine: Engine) -> None:
    """Keep in the settings whether any policy is automatic."""
    try:
        kept = [one for kind in (RETENTION, CONSOLIDATION, SESSION_END) for one in kind.every(engine).values()]
        automatic = "yes" if any(one.policy.automatic for one in kept) else ""
    except StoreCorrupt:
        automatic = "yes"  # a damaged policy may be
    if not says(engine.journal.settings(), AUTOMATIC, automatic):
        engine.journal.set_settings({AUTOMATIC: automatic})


# -- checks -------------------------------------------------------------------------------------------------------


def _retention(policy: RetentionPolicy) -> RetentionPolicy:
    ages: dict[str, Any] = {
        name: _age(name, value) for name in _AGES if (value := getattr(policy, name, None)) is not None
    }
    if policy.max_snapshots is not None:
        validation.integer("max_snapshots", policy.max_snapshots, 0, 2**31)
    below = validation.optional_unit("archive_below", policy.archive_below)
    importance = validation.optional_unit("exempt_importance", policy.exempt_importance)
    if importance == 0 and (ages or below):
        raise _wrong("exempt_importance", "exempts every memory, so no age has any effect", "use more than 0")
    return replace(
        policy,
        **ages,
        exempt_importance=importance,
        exempt_tags=validation.tags(policy.exempt_tags, "exempt_tags"),
        archive_below=below,
        exempt_layers=_layers("exempt_layers", policy.exempt_layers),
    )


def _consolidation(policy: ConsolidationPolicy) -> ConsolidationPolicy:
    threshold = validation.unit("threshold", policy.threshold)
    if threshold < _LEAST:
        raise _wrong("threshold", f"is below {_LEAST}, where texts have little in common", "use 0.95, or a little less")
    validation.integer("trigger", policy.trigger, 0, 2**31)
    chosen = _layers("layers", policy.layers)
    if not chosen:
        raise _wrong("layers", "names no layer, so the policy has no effect", "name a layer, or clear the policy")
    return replace(policy, threshold=threshold, layers=chosen)


_LEAST = 0.5


def _session_end(policy: SessionEndPolicy) -> SessionEndPolicy:
    after = policy.delete_after
    if validation.flag("permanent", policy.permanent) and after is None:
        raise _wrong("permanent", "says erase, but nothing says when", "set delete_after, such as '7d'")
    if policy.promote_uses is not None:
        validation.integer("promote_uses", policy.promote_uses, 1, 2**31)
    return replace(
        policy,
        delete_after=None if after is None else _age("delete_after", after, least=timedelta()),
        promote_importance=validation.optional_unit("promote_importance", policy.promote_importance),
    )


def _layers(name: str, value: object) -> tuple[Layer, ...]:
    given = (value,) if isinstance(value, str) else validation.several(name, value)
    return tuple(dict.fromkeys(layers.parse_layer(one) for one in given))


def _age(name: str, value: object, least: timedelta = timedelta(microseconds=1)) -> timedelta:
    try:
        age = filters.relative(value)
    except InvalidInput:
        raise _wrong(name, "is not a span of time", "use a timedelta or a text such as '90d'") from None
    if age < least:
        raise _wrong(name, "must be longer than nothing", "leave it out to keep everything")
    return age


def _wrong(field: str, what: str, hint: str) -> InvalidInput:
    return InvalidInput(f"{field} {what}", details={"field": field}, hint=hint)


RETENTION = Policies("retention", RetentionPolicy, _retention)
CONSOLIDATION = Policies("consolidation", ConsolidationPolicy, _consolidation)
SESSION_END = Policies("session_end", SessionEndPolicy, _session_end)
