"""Keyrings: in a file beside the store, and in RAM for tests."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.keyrings import file as file
    from wellkept.keyrings import ram as ram
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "file ram"})
