"""Moving memories between stores: copies with their history, compared to the last byte."""

from typing import TYPE_CHECKING

from wellkept import exports

if TYPE_CHECKING:
    from wellkept.transfer import migration as migration
else:
    __getattr__, __dir__ = exports.on_demand(__name__, {"": "migration"})
