"""How far a memory is trusted: by where it came from, never by what it says.

What a memory is derived from may lower its trust further; the engine knows those memories.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from wellkept.settings.schema import TrustSettings
from wellkept.types import Memory, SourceType

USUAL = TrustSettings()
"""How far sources are trusted unless it is configured otherwise."""

_BY_SOURCE: Mapping[SourceType, str] = MappingProxyType(
    {
        SourceType.MANUAL: "user",
        SourceType.TOOL_RESULT: "tool",
        SourceType.KNOWLEDGE_SYNC: "document",
        SourceType.IMPORT: "document",
        SourceType.WEB: "web",
        SourceType.UNKNOWN: "unknown",
    }
)
"""The settings of sources that decide alone. What was said is trusted as its speaker, what was extracted as that from
which it was extracted.
"""

_BY_ROLE: Mapping[str, str] = MappingProxyType({"user": "user", "tool": "tool"})


def of(fields: Mapping[str, Any], trusts: TrustSettings = USUAL) -> float:
    """The trust of a new memory with these fields, apart from what it is derived from.

    A trust among the fields lowers it; it stands as it is only where nothing says where the memory came from.

    >>> of({}), of({"role": "user"}), of({"role": "user", "trust": 0.3}), of({"trust": 1.0})
    (0.8, 1.0, 0.3, 1.0)
    """
    given, known = fields.get("trust"), _known(fields, trusts)
    if known is not None:
        return known if given is None else min(known, given)
    if given is not None:
        return float(given)
    return 1.0 if fields.get("derived_from") else trusts.application


def _known(fields: Mapping[str, Any], trusts: TrustSettings) -> float | None:
    """The lowest trust that source, role and pointer stand for; ``None`` if there is none of them."""
    source, role = fields.get("source"), fields.get("role")
    named = []
    if source is not None and source.type in _BY_SOURCE:
        named.append(_BY_SOURCE[source.type])
    if role is not None:
        named.append(_BY_ROLE.get(role, "application"))
    elif source is not None and source.type is SourceType.CONVERSATION:
        named.append("application")
    if source is None and fields.get("pointer") is not None:
        named.append("document")
    return min((float(getattr(trusts, name)) for name in named), default=None)


def after_change(before: Memory, after: Memory, changed: Collection[str], trusts: TrustSettings = USUAL) -> float:
    """The trust of a memory's next version, apart from what it is derived from; ``after`` has the trust that was given.

    A change never raises it, unless it replaces the content and says where the new one came from.
    """
    given = after.trust if "trust" in changed else None
    fields = {name: getattr(after, name) for name in ("source", "role", "pointer")}
    if "content" in changed and ("source" in changed or "role" in changed):
        return of({**fields, "trust": given}, trusts)
    known = _known(fields, trusts) if any(name in changed for name in fields) else None
    return min(one for one in (before.trust, given, known) if one is not None)
