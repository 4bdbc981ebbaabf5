"""Other facets, payloads and reasons in the place of those of stored versions: the files are written anew."""

from collections.abc import Mapping

from recollect.stores.jsonl import lines, writing
from recollect.stores.jsonl.disk import Disk
from recollect.stores.jsonl.lines import Flaw
from recollect.stores.jsonl.owner_folder import ARCHIVE, DELETED, MEMORY, TOMBSTONES, OwnerFolder
from recollect.types import Stamp, Stored, Vector


def rewrite(disk: Disk, folder: OwnerFolder, others: Mapping[tuple[str, Stamp], Stored]) -> None:
    """Write the files of a folder with these versions. The one that other processes look at comes last, and copies go
    first: whoever finds the former versions after a crash begins again.
    """
    vectors = {one.id: one.vector for one in others.values() if one.vector is not None}
    writing.remove_copies(disk, folder, {one.id for one in others.values()})
    for file in (ARCHIVE, TOMBSTONES, DELETED, MEMORY):
        data, look = disk.read(folder.file(file))
        after = b"".join(_line(one, others, vectors) for one in lines.split(data))
        if look.inode and after != data:
            disk.replace(folder.file(file), after)


def _line(data: bytes, others: Mapping[tuple[str, Stamp], Stored], vectors: Mapping[str, Vector]) -> bytes:
    one = lines.decode(data)
    if isinstance(one, Flaw) or (other := others.get((one.stored.id, one.stored.stamp))) is None:
        return data + b"\n"
    stored = one.stored._replace(facets=other.facets, payload=other.payload, reason=other.reason)
    vector = None if one.vector is None else vectors.get(stored.id)
    return lines.encode(one._replace(stored=stored, vector=vector))
