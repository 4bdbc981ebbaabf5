"""Whose files stand where: a folder for each owner, below the one of its layer."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from recollect import codec
from recollect.stores.jsonl.names import NAME_BYTES, file_name, id_of
from recollect.types import Layer, Owner

FOLDERS: Mapping[Layer, str] = MappingProxyType(
    {
        Layer.AGENT: "agents",
        Layer.USER: "users",
        Layer.SESSION: "sessions",
        Layer.PROJECT: "projects",
        Layer.TEAM: "teams",
        Layer.ORG: "orgs",
        Layer.COMPANY: "companies",
    }
)
HASHED = "@%~"  # neither an id nor the sign between two of them looks like that


def folder(owner: Owner) -> str:
    """The folder of an owner, below the root: the most specific id, then whose it is.

    >>> folder(Owner(Layer.SESSION, ("ada", "monday"))), folder(Owner(Layer.PROJECT, ("api",)))
    ('sessions/monday@ada', 'projects/api')
    """
    name = "@".join(file_name(id) for id in reversed(owner.ids)) or "@"
    if len(name) > NAME_BYTES:
        ending = HASHED + hashlib.sha256(codec.encode_owner(owner).encode()).hexdigest()
        name = name[: NAME_BYTES - len(ending)] + ending
    return f"{FOLDERS[owner.layer]}/{name}"


def owner_of(name: str) -> Owner | None:
    """The owner of a folder; nothing if its ids were too long to be kept in the name, or if the name is not ours.

    >>> owner_of("sessions/monday@ada")
    Owner(layer=<Layer.SESSION: 'session'>, ids=('ada', 'monday'))
    """
    layer, _, rest = name.partition("/")
    ids = () if rest == "@" else tuple(id_of(part) for part in reversed(rest.split("@")))
    for one, folder_ in FOLDERS.items():
        if folder_ == layer and None not in ids:
            owner = Owner(one, tuple(id for id in ids if id is not None))
            return owner if folder(owner) == name else None
    return None
