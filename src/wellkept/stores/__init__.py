"""The stores that come with Wellkept, one module or package each."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.stores import jsonl as jsonl
    from wellkept.stores import postgres as postgres
    from wellkept.stores import ram as ram
    from wellkept.stores import sqlite as sqlite
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "jsonl postgres ram sqlite"}, extra="postgres")
