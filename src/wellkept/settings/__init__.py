"""Settings in one place: a declared, validated schema, read from arguments, the environment and ``wellkept.toml``.

>>> from wellkept import settings
>>> settings.load({"limits": {"entries": 500}}, environment={}).limits.entries
500
"""

from wellkept.settings.declarations import Problem, Section, Setting, built, declared, setting
from wellkept.settings.kinds import Flag, Kind, Number, Text, Word, Words
from wellkept.settings.schema import DEFAULT_ORIGIN, RetryPolicy, Settings
from wellkept.settings.sources import FILE, check, load, nearest_file
from wellkept.settings.stores import StoreClasses, schema_with
from wellkept.settings.urls import UrlForm, read_options, shown, with_options

__all__ = [
    "DEFAULT_ORIGIN",
    "FILE",
    "Flag",
    "Kind",
    "Number",
    "Problem",
    "RetryPolicy",
    "Section",
    "Setting",
    "Settings",
    "StoreClasses",
    "Text",
    "UrlForm",
    "Word",
    "Words",
    "built",
    "check",
    "declared",
    "load",
    "nearest_file",
    "read_options",
    "schema_with",
    "setting",
    "shown",
    "with_options",
]
