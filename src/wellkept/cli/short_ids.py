"""Ids in short: the beginning of an id stands for the whole, if no other id begins so."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wellkept.cli.completers import Names
from wellkept.cli.parameters import names_of, slots_of
from wellkept.errors import InvalidInput
from wellkept.filters import Where
from wellkept.operations import Caller, Verb
from wellkept.types import State

SHORTEST = 8
_WHOLE = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SHOWN = 23  # an id begins with its time in milliseconds; so much of it also tells apart what was added together
_CANDIDATES = 3


def short(id: str) -> str:
    """An id as people are shown it.

    >>> short("01a1e6ab-5c79-766e-8deb-d869455f6394"), short("note")
    ('01a1e6ab-5c79-766e-8deb', 'note')
    """
    return id[:_SHOWN] if re.fullmatch(_WHOLE, id) else id


class _Place(NamedTuple):
    """Where a payload has ids."""

    holder: dict[str, Any]
    field: str

    @property
    def ids(self) -> list[str]:
        found = self.holder[self.field]
        return [found] if isinstance(found, str) else list(found)

    def put(self, ids: list[str]) -> None:
        self.holder[self.field] = ids[0] if isinstance(self.holder[self.field], str) else ids


def expand(verb: Verb[Any, Any], caller: Caller, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with whole ids instead of their beginnings; the ids of the database are read only if it has any."""
    expanded = {name: dict(value) if isinstance(value, Mapping) else value for name, value in payload.items()}
    places = [place for place in _places(verb, expanded) if any(map(_is_beginning, place.ids))]
    if places:
        known = known_ids(caller, None)
        for place in places:
            place.put([_whole(id, known, place.field) if _is_beginning(id) else id for id in place.ids])
    return expanded


def known_ids(caller: Caller, states: frozenset[State] | None) -> set[str]:
    """The ids of the memories that the caller sees, in these states or in any."""
    view = caller.view
    return {id for _, id in view._engine.journal.ids(view._owners, Where(now=caller.now, states=states))}


def _places(verb: Verb[Any, Any], payload: dict[str, Any]) -> Iterator[_Place]:
    for slot in slots_of(verb):
        holder = payload.get(slot.group, {}) if slot.group else payload
        if slot.name in holder and names_of(verb, slot) is Names.MEMORIES:
            yield _Place(holder, slot.name)


def _is_beginning(id: str) -> bool:
    return len(id) >= SHORTEST and not re.fullmatch(_WHOLE, id)


def _whole(beginning: str, known: set[str], field: str) -> str:
    """The id that begins so; an unknown one stays as it is, for the verb to refuse."""
    if beginning in known:
        return beginning
    found = sorted(id for id in known if id.startswith(beginning))
    if len(found) > 1:
        some = ", ".join(found[:_CANDIDATES]) + (", …" if len(found) > _CANDIDATES else "")
        raise InvalidInput(
            f"{len(found)} ids begin with {beginning[:64]!r}",
            details={"field": field, "matches": len(found)},
            hint=f"write more of the one that you mean: {some}",
        )
    return found[0] if found else beginning
