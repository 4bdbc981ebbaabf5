"""The kit for authors of stores and of what stands on them; needs the extra ``testing``.

``StoreConformance`` says whether a store keeps the contract of ``wellkept.ports``, ``IndexConformance`` whether an
index finds what it should, ``FaultyStore`` makes any store fail on demand, ``builders`` makes owners, writes and
queries in few words.
"""

import pkgutil

from wellkept import extras
from wellkept.errors import ConfigurationError

try:
    extras.require("testing")
except ConfigurationError as error:  # what walks through packages passes over an ImportError only
    raise ImportError(str(error), name=__name__) from None

import pytest  # see above

# Before the modules are imported: without it a failing test says "AssertionError" and nothing else.
pytest.register_assert_rewrite(*(module.name for module in pkgutil.iter_modules(__path__, f"{__name__}.")))

from wellkept.testing.conformance import StoreConformance  # noqa: E402  # see above
from wellkept.testing.faulty import FaultyStore  # noqa: E402  # see above
from wellkept.testing.index import IndexConformance  # noqa: E402  # see above

__all__ = ["FaultyStore", "IndexConformance", "StoreConformance"]
