"""Following changes: a live table on a terminal, a line of JSON for each change for programs."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from wellkept.cli.execution import answer_with
from wellkept.cli.screen import Screen
from wellkept.operations import Caller, request

_SHOWN = 1_000


def follow(
    verb: str, caller: Caller, payload: Mapping[str, Any], out: Screen, *, json: bool, interval_s: float
) -> bool:
    """Call a verb again and again, each time from where the last answer ended, until the process is stopped."""
    if out.terminal and not json:
        return _live(verb, caller, payload, out, interval_s)
    while True:
        call = request(verb, caller, payload)
        answer = call.run()
        answer_with(out, verb, answer, call.input, json=json)
        out.out.flush()
        payload = {**payload, "after": answer.next}
        if not answer.versions:
            time.sleep(interval_s)


def _live(verb: str, caller: Caller, payload: Mapping[str, Any], out: Screen, interval_s: float) -> bool:
    from rich.live import Live  # lazy: only for people

    from wellkept.cli.show_memories import live_table  # lazy: as above

    latest: deque[Any] = deque(maxlen=_SHOWN)
    total = 0
    with Live(console=out.console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            call = request(verb, caller, payload)
            answer = call.run()
            payload = {**payload, "after": answer.next}
            latest.extend(answer.versions)
            total += len(answer.versions)
            if answer.versions or not total:
                room = max(3, out.console.height - 3)
                live.update(live_table(out, list(latest)[-room:], total, answer.next), refresh=True)
            if len(answer.versions) < call.input.limit:
                time.sleep(interval_s)
