"""Names of files for ids: readable where that is safe, and never two ids in one file. Whose files stand where: a folder
for each owner, below the one of its layer.

A plain id is its own name. All else is percent-encoded by its UTF-8 bytes: separators, of course, but capitals as well,
since many file systems take ``Ada`` for ``ada``, and letters beyond ASCII, which some write in another form than they
were given. Windows keeps a few names for devices, and drops dots at the end.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from wellkept import codec
from wellkept.types import Layer, Owner

NAME_BYTES = 200
_PLAIN = re.compile(r"[a-z0-9_-](?:[a-z0-9._-]*[a-z0-9_-])?")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-")
_ESCAPE = re.compile(r"%([0-9a-f]{2})")
_EMPTY = "%"
_HASHED = "%~"  # no encoded byte looks like that

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
_BRANCH = "+"  # before the name of a branch, which no id has either
HASHED = "@%~"  # neither an id nor the sign between two of them looks like that


def file_name(id: str) -> str:
    """The name of an id: at most 200 ASCII characters, different ones for different ids even where case is ignored.

    >>> file_name("sess_20260110_user123"), file_name("Ada/notes"), file_name("..")
    ('sess_20260110_user123', '%41da%2fnotes', '%2e%2e')
    """
    if len(id) <= NAME_BYTES and _PLAIN.fullmatch(id) and not _DEVICE.fullmatch(id):
        return id
    content = id.encode("utf-8", "surrogatepass")
    last = len(content) - 1
    is_device = _DEVICE.fullmatch(id) is not None
    name = "".join(
        chr(byte)
        if byte in _KEPT and not (byte == ord(".") and at in (0, last)) and not (is_device and at == 0)
        else f"%{byte:02x}"
        for at, byte in enumerate(content)
    )
    if len(name) <= NAME_BYTES:
        return name or _EMPTY
    ending = _HASHED + hashlib.sha256(content).hexdigest()
    return name[: NAME_BYTES - len(ending)] + ending


def id_of(name: str) -> str | None:
    """The id of a name; nothing if ``file_name`` never gives that name, or if the id was too long to be kept in it.

    >>> id_of("%41da%2fnotes"), id_of("Ada")
    ('Ada/notes', None)
    """
    if name == _EMPTY:
        return ""
    if not name.isascii():
        return None
    content = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), name).encode("latin-1")
    try:
        id = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return id if file_name(id) == name else None


def folder(owner: Owner) -> str:
    """The folder of an owner, below the root: the most specific id, then whose it is.

    >>> folder(Owner(Layer.SESSION, ("ada", "monday"))), folder(Owner(Layer.PROJECT, ("api",)))
    ('sessions/monday@ada', 'projects/api')
    """
    name = "@".join(file_name(id) for id in reversed(owner.ids)) or "@"
    if owner.branch:
        name += f"{_BRANCH}{file_name(owner.branch)}"
    if len(name) > NAME_BYTES:
        ending = HASHED + hashlib.sha256(codec.encode_owner(owner).encode()).hexdigest()
        name = name[: NAME_BYTES - len(ending)] + ending
    return f"{FOLDERS[owner.layer]}/{name}"


def owner_of(name: str) -> Owner | None:
    """The owner of a folder; nothing if its ids were too long to be kept in the name, or if the name is not ours.

    >>> owner_of("sessions/monday@ada")
    Owner(layer=<Layer.SESSION: 'session'>, ids=('ada', 'monday'), branch='')
    """
    layer, _, rest = name.partition("/")
    rest, _, branch = rest.partition(_BRANCH)
    ids = () if rest == "@" else tuple(id_of(part) for part in reversed(rest.split("@")))
    for one, folder_ in FOLDERS.items():
        if folder_ == layer and None not in ids:
            owner = Owner(one, tuple(id for id in ids if id is not None), id_of(branch) or "")
            return owner if folder(owner) == name else None
    return None
