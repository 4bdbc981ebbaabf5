"""Indexes that are derived from any journal."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.indexes import ram as ram
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "ram"})
