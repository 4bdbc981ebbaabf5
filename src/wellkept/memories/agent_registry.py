"""Which agents are in use in this process, and the working memory that the handles of one agent share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from wellkept.errors import Conflict

if TYPE_CHECKING:
    from wellkept.memories.agent import AgentMemory
    from wellkept.working import Limits, WorkingMemory

Subject = tuple[str, str]
"""The id of an agent, and that of the user for whom it works."""


class AgentRegistry:
    """The handles of one open database and their working memories. It keeps neither alive."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: a finaliser may close a handle at any allocation
        self._numbers = count()
        self._handles: WeakValueDictionary[int, AgentMemory] = WeakValueDictionary()
        self._working: WeakValueDictionary[Subject, WorkingMemory] = WeakValueDictionary()

    def join(self, handle: AgentMemory, limits: Limits | None, make: Callable[[], WorkingMemory]) -> None:
        """Register a handle, and give it the working memory that it shares with others of its agent and user."""
        subject = handle._subject
        with self._lock:
            working = self._working.get(subject)
            if working is None:
                working = self._working[subject] = make()
            elif limits is not None and limits != working.limits:
                raise Conflict(
                    f"the agent {subject[0]!r} is in use with other limits",
                    details={"field": "limits", "agent": subject[0]},
                    hint="leave limits out, or close the other handles first",
                )
            handle._working = working
            self._handles[next(self._numbers)] = handle

    def leave(self, handle: AgentMemory) -> None:
        """Remove a handle; the working memory ends with the last one of its agent and user."""
        subject = handle._subject
        with self._lock:
            others = dict(self._handles)
            for number, one in others.items():
                if one is handle:
                    del self._handles[number]
            if any(one is not handle and one._subject == subject for one in others.values()):
                return
            working = self._working.pop(subject, None)
        if working is not None:
            working._close()

    def handles(self) -> tuple[AgentMemory, ...]:
        """The handles that are in use, oldest first."""
        with self._lock:
            return tuple(dict(self._handles).values())

    def unattended(self) -> tuple[Subject, ...]:
        """The agents whose working memory or context is in use while nobody holds a handle."""
        with self._lock:
            held = {one._subject for one in dict(self._handles).values()}
            return tuple(subject for subject in dict(self._working) if subject not in held)
