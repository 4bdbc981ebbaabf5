"""What the records of runs say of memories that are erased: they name them, for an undo that can no longer be."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from wellkept import codec, layers
from wellkept.engine.core import Engine
from wellkept.ports import sound
from wellkept.types import Owner, UpkeepAction
from wellkept.types.owners import DATABASE

_KIND = "steps"
_read = codec.reader(dict[str, list[list[Any]]])  # by owner; each step as in `run_log.Done`


def forget(engine: Engine, is_erased: Callable[[Owner, str], bool]) -> int:
    """Take erased memories out of the records of runs; how many records changed."""
    changed = 0
    for record in sound(engine.records.list({DATABASE}, _KIND)):
        steps = _read(record.body)
        kept = {
            name: left
            for name, some in steps.items()
            if (left := list(_left(codec.decode_owner(name), some, is_erased)))
        }
        if kept != steps:
            body, now = codec.encode_json(kept), engine.clock()
            engine.records.put(replace(record, body=body, version=record.version + 1, updated_at=now))
            changed += 1
    return changed


def _left(owner: Owner, steps: Iterable[list[Any]], is_erased: Callable[[Owner, str], bool]) -> Iterator[list[Any]]:
    """The steps on what is still there, each without the memory that it made, if that is erased."""
    made_for = {UpkeepAction.PROMOTE: layers.user_of(owner)}
    for id, version, action, state, *into in steps:
        if is_erased(owner, id):
            continue
        made = into[0] if into else None
        whose = made_for.get(action, owner)
        if made is not None and whose is not None and is_erased(whose, made):
            made = None
        yield [id, version, action, state, *([made] if into else [])]
