"""Embedders: text to vectors. Any object with ``name``, ``dimension`` and ``embed`` is one."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.embedders import bge as bge
    from wellkept.embedders import callable as callable  # noqa: A004  # the module's name
    from wellkept.embedders import hashing as hashing
    from wellkept.embedders import http as http
    from wellkept.embedders import model2vec as model2vec
    from wellkept.embedders import word_table as word_table
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "bge callable hashing http model2vec word_table"})
