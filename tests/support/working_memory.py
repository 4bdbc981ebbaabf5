"""What tests of working memory look at from outside: how much room is left, and who waits for whom."""

import gc
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

from wellkept.errors import LimitReached
from wellkept.working import WorkingMemory

CODE = (type, FunctionType, BuiltinFunctionType, ModuleType)


def counted(working: WorkingMemory) -> int:
    """How many entries the limit counts: as many as it allows, less those that can still be added."""
    added = 0
    try:
        while True:
            working.set(f"filling {added}", 0)
            added += 1
    except LimitReached:
        for number in range(added):
            working.remove(f"filling {number}")
    return working.limits.entries - added


def waiting_threads() -> int:
    """How many threads wait in the package for another thread: they are neither at work nor in the code of a test."""
    waiting = 0
    for innermost in sys._current_frames().values():
        frame = innermost
        while frame.f_globals["__name__"] == "threading" and frame.f_back is not None:
            frame = frame.f_back
        waiting += frame is not innermost and frame.f_globals["__name__"].startswith("wellkept.")
    return waiting


def reachable(root: object) -> int:
    """How many objects something holds, directly or through others; code and classes are not followed."""
    seen, pending = {id(root)}, [root]
    while pending:
        for held in gc.get_referents(pending.pop()):
            if id(held) not in seen and not isinstance(held, CODE):
                seen.add(id(held))
                pending.append(held)
    return len(seen)
