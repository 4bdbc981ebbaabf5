"""Turns that leave an agent's context are kept as memories, each once."""

import hashlib
from collections.abc import Sequence

from wellkept import codec, layers
from wellkept.engine.core import Engine
from wellkept.memories.view import View
from wellkept.text.recall_markers import strip_recalled
from wellkept.types import Identity, Layer, MemoryType, NewMemory, Source, SourceType
from wellkept.types.owners import DEFAULT_USER
from wellkept.window import ContextItem, Role
from wellkept.window.offload import Kept, remembered


def keep(engine: Engine, view: View, items: Sequence[ContextItem]) -> Kept:
    """Store what is in no memory yet: in the session, if there is one, else as the agent's own.

    What came from a memory is in it, and what was recalled is no new evidence. A turn that was kept before is known by
    its key, also if its memory was changed or forgotten since.
    """
    layer = Layer.SESSION if Layer.SESSION in view.layers else Layer.AGENT
    known = remembered(items)
    waiting = {_key(item): item for item in items if item.id not in known}
    found = engine.journal.keyed(layers.owner_of(view.identity, layer), waiting)
    news = [
        _turn(item, key, layer, view.identity)
        for key, item in waiting.items()
        if key not in found and strip_recalled(item.content).strip()
    ]
    if news:
        found |= {new.key or "": memory.id for new, memory in zip(news, view.add_many(news), strict=True)}
    return Kept(known | {item.id: (found[key],) for key, item in waiting.items() if key in found})


def _key(item: ContextItem) -> str:
    """What makes a turn the same one, in a snapshot and in another process as well.

    Ids begin anew with each window, so time and text belong to it. The text is hashed with the rest, as a key may show
    up in errors.
    """
    parts = (item.id, item.role.value, str(codec.to_micros(item.created_at)), item.content)
    return "context:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _turn(item: ContextItem, key: str, layer: Layer, identity: Identity) -> NewMemory:
    came_by = SourceType.TOOL_RESULT if item.role is Role.TOOL else SourceType.CONVERSATION
    return NewMemory(
        content=item.content,
        layer=layer,
        type=MemoryType.CONVERSATION,
        importance=item.priority,
        occurred_at=item.created_at,
        role=item.role.value,
        author=_author(item, identity),
        source=Source(type=came_by, reference=item.id),
        key=key,
        sensitive=item.sensitive,
    )


def _author(item: ContextItem, identity: Identity) -> str | None:
    """Who said it, as far as that is known."""
    if item.role is Role.ASSISTANT:
        return identity.agent
    return identity.user if item.role is Role.USER and identity.user != DEFAULT_USER else None
