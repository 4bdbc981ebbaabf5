"""Following what is written: a live view for people, a line for each change for programs."""

import time
from collections import deque
from dataclasses import replace
from typing import Any

from recollect.cli.execution import answer_with
from recollect.cli.screen import Screen
from recollect.operations import Caller, Verb
from recollect.operations.history import Versions

_SHOWN = 1_000


def follow(verb: Verb[Any, Any], caller: Caller, given: Any, out: Screen, *, json: bool, interval_s: float) -> bool:
    """Ask again and again, each time from where the last answer ended, until somebody stops it."""
    if out.terminal and not json:
        return _live(verb, caller, given, out, interval_s)
    while True:
        answer = verb.run(caller, given)
        answer_with(out, verb.name, answer, given, json=json)
        out.out.flush()
        given = _behind(given, answer)
        if not answer.versions:
            time.sleep(interval_s)


def _behind(given: Any, answer: Versions) -> Any:
    return replace(given, after=answer.last)


def _live(verb: Verb[Any, Any], caller: Caller, given: Any, out: Screen, interval_s: float) -> bool:
    from rich.live import Live  # lazy: only for people

    from recollect.cli.show_memories import live_table  # lazy: as above

    latest: deque[Any] = deque(maxlen=_SHOWN)
    total = 0
    with Live(console=out.console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            answer = verb.run(caller, given)
            given = _behind(given, answer)
            latest.extend(answer.versions)
            total += len(answer.versions)
            if answer.versions or not total:
                room = max(3, out.console.height - 3)
                live.update(live_table(out, list(latest)[-room:], total, answer.last), refresh=True)
            if len(answer.versions) < given.limit:
                time.sleep(interval_s)
