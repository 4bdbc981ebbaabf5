"""Names that a package offers and imports when they are first used.

For the top package, which must not load numpy and the driver of SQLite, and for packages whose parts are needed one by
one: after ``import wellkept`` their public modules are attributes, as in ``wellkept.text.tokens``.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from wellkept import extras, open_files


def on_demand(
    package: str, places: Mapping[str, str], *, extra: str = ""
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package.

    ``places`` says which of its modules has which names; modules themselves are under ``""``. ``extra`` is the module
    that cannot be imported without the extra of the same name. Where that is missing, the module is not listed, because
    ``help`` and tab completion ask for everything that is, and asking for it raises ``ConfigurationError``.

    >>> wanted, listed = on_demand("wellkept", {"types.owners": "Layer Owner"})
    >>> wanted("Layer").__module__
    'wellkept.types.owners'
    >>> wanted("nothing_of_ours")
    Traceback (most recent call last):
    ...
    AttributeError: module 'wellkept' has no attribute 'nothing_of_ours'
    >>> "Owner" in listed()
    True
    """
    homes = {name: module for module, names in places.items() for name in names.split()}

    def wanted(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        if name == extra:
            extras.require(extra)
        home = homes[name]
        with open_files.told():
            value = getattr(import_module(f"{package}.{home}"), name) if home else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)  # from now on it is found without asking
        return value

    def listed() -> list[str]:
        there = [name for name in homes if name != extra or extras.installed(extra)]
        return sorted({*vars(sys.modules[package]), *there})

    return wanted, listed
