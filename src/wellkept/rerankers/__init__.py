"""Rerankers: rescore the best candidates of a search with a model that reads query and text together."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.rerankers import cross_encoder as cross_encoder
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "cross_encoder"})
