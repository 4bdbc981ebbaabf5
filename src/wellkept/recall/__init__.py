"""The index behind a search: what a store keeps in RAM of its owners' memories, and how candidates come out of it.

Derived, never the truth: a store fills it from what it holds and may drop it at any time.
"""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.recall import calibration as calibration
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "calibration"})
