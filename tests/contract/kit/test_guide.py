"""The store that the guide shows is complete: it passes the kit."""

from pathlib import Path
from typing import Any

from wellkept.ports import Store
from wellkept.testing import StoreConformance

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "writing-a-store.md"


def shown_store() -> Any:
    """The class as a reader would type it in."""
    code = next(part for part in GUIDE.read_text(encoding="utf-8").split("```python\n") if "class ShelfStore" in part)
    namespace: dict[str, Any] = {"__name__": "wellkept_shelf"}
    exec(compile(code.partition("```")[0], str(GUIDE), "exec"), namespace)
    return namespace["ShelfStore"]


ShelfStore = shown_store()


class TestShelfStore(StoreConformance):
    def open_store(self, place: Path) -> Store:
        store: Store = ShelfStore()
        return store
