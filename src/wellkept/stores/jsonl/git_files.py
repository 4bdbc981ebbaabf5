"""What git must know of a folder: lines of both sides are kept in a merge, and what is derived is not tracked."""

from pathlib import Path

from wellkept.stores.jsonl.disk import Disk

FILES = {
    ".gitattributes": ("*.jsonl text eol=lf merge=union",),
    ".gitignore": ("/derived/", "/lock", "/lock.turn", "*.tmp"),
}


def write(root: Path) -> list[str]:
    """Add the lines that are missing to ``.gitattributes`` and ``.gitignore``; the names of the files that changed."""
    disk, changed = Disk(root), []
    for name, wanted in FILES.items():
        data, _ = disk.read(name)
        missing = [line for line in wanted if line not in data.decode("utf-8", "replace").splitlines()]
        if missing:
            start = data if not data or data.endswith(b"\n") else data + b"\n"
            disk.replace(name, start + "".join(f"{line}\n" for line in missing).encode())
            changed.append(name)
    return changed
