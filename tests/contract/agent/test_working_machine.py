"""Scopes against the simplest thing that could be right: a chain of dicts."""

from collections import ChainMap
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.stand_ins import HandClock
from tests.support.working_memory import counted
from wellkept.errors import LimitReached, ScopeDisposed
from wellkept.testing.builders import START
from wellkept.working import Limits, WorkingMemory, WorkingScope, WorkingSnapshot

KEYS = st.sampled_from(["a", "b"])
PLACES = st.integers(0, 11)
VALUES = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(0, 9), max_size=3))
ENTRIES, SCOPES = 6, 4
Levels = dict[str, tuple[str | None, dict[str, Any]]]


class ScopesAgainstDicts(RuleBasedStateMachine):
    """``levels`` is the model: for each scope its parent and a dict, and a dict for the agent's own level."""

    @initialize()
    def begin(self) -> None:
        """Three levels to start with; ``handles`` holds every level there ever was, ended ones too."""
        self.clock = HandClock(START)
        self.working = WorkingMemory("a", clock=self.clock, limits=Limits(entries=ENTRIES, scopes=SCOPES))
        self.own: dict[str, Any] = {}
        self.levels: Levels = {}
        self.handles: list[Any] = [self.working]
        self.create(0, "outer")
        self.create(1, "inner")

    # --- the model

    def at(self, place: int) -> Any:
        return self.handles[place % len(self.handles)]

    def dict_of(self, level: Any) -> dict[str, Any]:
        return self.levels[level.id][1] if isinstance(level, WorkingScope) else self.own

    def chain(self, level: Any) -> ChainMap[str, Any]:
        dicts, parent = [], getattr(level, "id", None)
        while parent is not None:
            parent, held = self.levels[parent]
            dicts.append(held)
        return ChainMap(*dicts, self.own)

    def count(self) -> int:
        return len(self.own) + sum(len(held) for _, held in self.levels.values())

    def ended(self, level: Any) -> bool:
        return isinstance(level, WorkingScope) and level.id not in self.levels

    def refused(self, level: Any) -> bool:
        """Whether the level has ended, in which case it must say so."""
        if self.ended(level):
            assert level.is_disposed
            with pytest.raises(ScopeDisposed):
                level.get("a")
        return self.ended(level)

    def with_children(self, scope_id: str) -> list[str]:
        found = [scope_id]
        found += [one for one, (parent, _) in self.levels.items() if parent == scope_id]
        for child in found[1:]:
            found += [one for one in self.with_children(child) if one not in found]
        return found

    # --- what can happen

    @rule(place=PLACES, name=st.sampled_from(["x", "y"]))
    def create(self, place: int, name: str) -> None:
        parent = self.at(place)
        if self.refused(parent):
            return
        if len(self.levels) == SCOPES:
            with pytest.raises(LimitReached):
                parent.create_scope(name)
            return
        scope = parent.create_scope(name)
        self.levels[scope.id] = (getattr(parent, "id", None), {})
        self.handles.append(scope)

    @rule(place=PLACES, key=KEYS, value=VALUES)
    def set(self, place: int, key: str, value: Any) -> None:
        level = self.at(place)
        if self.refused(level):
            return
        if key not in self.dict_of(level) and self.count() == ENTRIES:
            with pytest.raises(LimitReached):
                level.set(key, value)
            return
        level.set(key, value)
        self.dict_of(level)[key] = value

    @rule(place=PLACES, key=KEYS, value=VALUES)
    def set_what_expires_at_once(self, place: int, key: str, value: Any) -> None:
        level = self.at(place)
        if self.refused(level) or (key not in self.dict_of(level) and self.count() == ENTRIES):
            return
        level.set(key, value, ttl=timedelta(seconds=1))
        self.clock.forward(seconds=1)
        self.dict_of(level).pop(key, None)

    @rule(place=PLACES, key=KEYS)
    def remove(self, place: int, key: str) -> None:
        level = self.at(place)
        if not self.refused(level):
            assert level.remove(key) is (key in self.dict_of(level))
            self.dict_of(level).pop(key, None)

    @rule(place=PLACES, key=KEYS, value=VALUES)
    def get_or_set(self, place: int, key: str, value: Any) -> None:
        level = self.at(place)
        if self.refused(level) or self.count() == ENTRIES:
            return
        expected = self.chain(level).setdefault(key, value) if key not in self.chain(level) else self.chain(level)[key]
        assert level.get_or_set(key, lambda: value) == expected

    @rule(place=PLACES, overwrite=st.booleans(), key=KEYS, value=VALUES)
    def merge(self, place: int, overwrite: bool, key: str, value: Any) -> None:
        level = self.at(place)
        if self.refused(level) or not isinstance(level, WorkingScope):
            return
        self.set(place, key, value)
        self.set(self.handles.index(level.parent), key, [value])  # a clash, which is what merging is about
        own, below = self.dict_of(level), self.dict_of(level.parent)
        going = [key for key in own if overwrite or key not in below]
        assert level.merge_to_parent(overwrite=overwrite) == len(going)
        below.update({key: own.pop(key) for key in going})

    @rule(place=PLACES)
    def dispose(self, place: int) -> None:
        level = self.at(place)
        if isinstance(level, WorkingScope):
            gone = [] if self.ended(level) else self.with_children(level.id)
            assert level.dispose() == sum(len(self.levels.pop(one)[1]) for one in gone)
            assert level.dispose() == 0

    @rule()
    def clear(self) -> None:
        assert self.working.clear() == len(self.own)
        self.own.clear()

    @rule()
    def restore_elsewhere(self) -> None:
        """A snapshot through JSON, restored into a new working memory, is the same."""
        snapshot = self.working.snapshot()
        other = WorkingMemory("a", clock=self.clock)
        other.restore(WorkingSnapshot.from_json(snapshot.to_json()))
        assert other.snapshot() == snapshot

    @rule(key=KEYS, value=VALUES)
    def restore_here(self, key: str, value: Any) -> None:
        """What happened since a snapshot is undone by restoring it."""
        snapshot = self.working.snapshot()
        if self.count() < ENTRIES:
            self.working.set(key, value)
        new = [self.working.create_scope("soon gone")] if len(self.levels) < SCOPES else []
        self.working.restore(snapshot)
        assert self.working.snapshot() == snapshot
        assert all(scope.is_disposed for scope in new)

    # --- what must always hold

    @invariant()
    def every_level_shows_what_its_dicts_do(self) -> None:
        for level in (self.working, *self.working.active_scopes()):
            chain = self.chain(level)
            shown = {key: entry.value for key, entry in level.all().items()}
            assert shown == dict(chain)
            for key in "ab":
                assert level.get(key, default="-") == chain.get(key, "-")
                assert level.contains(key) is (key in chain)
            if isinstance(level, WorkingScope):
                own = self.dict_of(level)
                assert {key: entry.value for key, entry in level.local_entries().items()} == own
                assert level.local_count == len(own)
                assert [level.contains_local(key) for key in "ab"] == [key in own for key in "ab"]
                assert [level.get_local(key) for key in "ab"] == [own.get(key) for key in "ab"]

    @invariant()
    def the_counts_are_right(self) -> None:
        stats = self.working.stats()
        assert (stats.entries, stats.scopes) == (self.count(), len(self.levels))
        assert {scope.id for scope in self.working.active_scopes()} == set(self.levels)
        assert len(self.working) == len(self.own)
        assert counted(self.working) == self.count(), "the limit counts what is there"


TestScopesAgainstDicts = pytest.mark.req("W3", "W4", "W6")(ScopesAgainstDicts.TestCase)
