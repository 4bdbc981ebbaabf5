"""A process that ends at any of its writes to plain files, or whose machine loses its power there: nothing acknowledged
is lost, half a batch is not served.

The child is a fork in which the n-th call that changes a file ends the process, for a write after half of its bytes.
For a loss of power it leaves an image of what a disk would hold then: what was forced, and nothing or a part of the
rest.
"""

from __future__ import annotations

import os
import shutil
import stat
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from wellkept.stores.jsonl import JsonlStore
from wellkept.testing.builders import START, Writer, owner, vector

ADA, BOB = owner("ada"), owner("bob")
CHANGING = ("write", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir")
KILLED, DONE = 9, 0
MOST = 2_000


class Crash:
    """Ends the process at its n-th change of a file."""

    def __init__(self, at: int, told: int) -> None:
        self.left = at
        self.told = told
        self.write = os.write

    def arm(self) -> None:
        for name in CHANGING:
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def tell(self, what: str) -> None:
        self.write(self.told, f"{what}\n".encode())

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                if name == "write":
                    number, data = arguments
                    call(number, data[: len(data) // 2])
                self.end(KILLED)
            done = call(*arguments, **options)
            self.noted(name, arguments)
            return done

        return counted

    def noted(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Something was done to a file or a folder."""

    def end(self, status: int) -> NoReturn:
        """End the process."""
        os._exit(status)


class PowerLoss(Crash):
    """Ends the process, and leaves an image of the disk after a loss of power beside the folder.

    ``entries``: names of files that were not forced yet are there all the same; ``tails``: and of what was appended to
    a file and not forced, half. Disks promise neither the one nor the other.
    """

    def __init__(self, at: int, told: int, root: Path, *, entries: bool, tails: bool) -> None:
        super().__init__(at, told)
        self.root, self.entries, self.tails = root, entries, tails
        self.contents: dict[int, bytes] = {}
        self.names: dict[int, dict[str, int]] = {}
        self.held: list[int] = []  # numbers of files that are open are not given to others
        for path in (root, *root.rglob("*")):
            self._force(os.open(path, os.O_RDONLY))

    def noted(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name in ("fsync", "fdatasync"):
            self._force(os.dup(arguments[0]))

    def _force(self, number: int) -> None:
        self.held.append(number)
        found = os.fstat(number)
        if stat.S_ISDIR(found.st_mode):
            self.names[found.st_ino] = {one.name: one.inode() for one in os.scandir(number)}
        else:
            self.contents[found.st_ino] = Path(f"/proc/self/fd/{number}").read_bytes()

    def end(self, status: int) -> NoReturn:
        self.left = 0  # nothing is counted any more
        self._leave(self.root, self.root.with_name(f"{self.root.name}.image"))
        os._exit(status)

    def _leave(self, folder: Path, image: Path) -> None:
        image.mkdir(mode=0o700)
        now = {one.name: one.inode() for one in os.scandir(folder)}
        forced = self.names.get(folder.stat().st_ino, {})
        by_number = {number: name for name, number in now.items()}
        for name, number in (now if self.entries else forced).items():
            path = folder / by_number.get(number, name)
            if path.is_dir():
                self._leave(path, image / name)
            else:
                (image / name).touch(mode=0o600)
                (image / name).write_bytes(self._content(number, path))

    def _content(self, number: int, path: Path) -> bytes:
        forced = self.contents.get(number, b"")
        written = path.read_bytes() if path.exists() and path.stat().st_ino == number else b""
        more = written[len(forced) :] if self.tails and written.startswith(forced) else b""
        return forced + more[: len(more) // 2]


def adds(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        for number in range(3):
            store.journal.append([writes.add(ADA, f"new {number}", write={"vector": vector(1, 0)})])
            crash.tell(f"added new {number}")


def batch(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        store.journal.append([writes.add(whose, f"batch {number}") for number in range(3) for whose in (ADA, BOB)])
        crash.tell("batched")


def erasing(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        gone = store.journal.get({ADA}, ["m1"])[0]
        store.journal.append([writes.erase(gone)])
        crash.tell("erased")


def compacting(root: Path, crash: Crash) -> None:
    with closing(JsonlStore(root)) as store:
        writes = Writer(START.replace(year=2027), store.journal.origin())
        [one] = store.journal.get({ADA}, ["m2"])
        store.journal.append([writes.archive(one)])
        store.compact({ADA, BOB})
        crash.tell("compacted")


What = Callable[[Path, Crash], None]
SCENARIOS: dict[str, What] = {
    "adds": adds,
    "batch": batch,
    "erasing": erasing,
    "compacting": compacting,
}


def base(root: Path) -> None:
    writes = Writer()
    with closing(JsonlStore(root)) as store:
        for number in range(4):
            store.journal.append([writes.add(ADA, f"old {number}", id=f"m{number}"), writes.add(BOB, f"old {number}")])


Kind = Callable[[int, int, Path], Crash]


def strike(root: Path, what: What, at: int, kind: Kind) -> tuple[bool, list[str]]:
    """Run a scenario in a child; whether it came to its end, and what it told until then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = DONE
        try:
            crash = kind(at, writing, root)
            crash.arm()
            what(root, crash)
            crash.end(DONE)
        except BaseException:  # noqa: BLE001  # reason: a forked test must never return into pytest
            traceback.print_exc()
            status = 1
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (KILLED, DONE)
    return code == DONE, told


def strikes(
    tmp_path: Path, what: What, kind: Kind, *, step: int = 1, prepare: Callable[[Path], None] = base
) -> Iterator[tuple[Path, list[str], int]]:
    prepare(tmp_path / "base")
    for at in range(1, MOST, step):
        root = tmp_path / f"struck{at}"
        shutil.copytree(tmp_path / "base", root)
        ended, told = strike(root, what, at, kind)
        image = root.with_name(f"{root.name}.image")
        if image.exists():
            shutil.rmtree(root)
            image.rename(root)
        yield root, told, at
        shutil.rmtree(root)
        if ended:
            assert at > 10
            return
    raise AssertionError("the scenario did not come to an end")


def texts(store: JsonlStore, whose: Any) -> list[str]:
    return [one.facets["text"] for one in store.journal.scan({whose})]


@pytest.fixture(autouse=True)
def unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process wrote outlives it without forcing, and the image tells what a loss of power takes: waiting for
    the disk would take minutes.
    """
    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, sync, lambda _: None)


@pytest.mark.req("J1", "J8", "J10", "J11")
@pytest.mark.parametrize("name", SCENARIOS)
def test_ended_at_any_write(name: str, tmp_path: Path) -> None:
    for root, told, at in strikes(tmp_path, SCENARIOS[name], lambda at, writing, _: Crash(at, writing)):
        _check_folder(root, name, told, f"{name}, write {at}")


LOSSES = {
    "all that was not forced": partial(PowerLoss, entries=False, tails=False),
    "contents that were not forced": partial(PowerLoss, entries=True, tails=False),
    "half of what was not forced": partial(PowerLoss, entries=True, tails=True),
}


@pytest.mark.req("J1", "J8", "J10", "J11", "N1")
@pytest.mark.parametrize("lost", LOSSES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_loss_of_power_at_any_write(name: str, lost: str, tmp_path: Path, long_run: bool) -> None:
    step = 1 if long_run else 5
    for root, told, at in strikes(tmp_path, SCENARIOS[name], LOSSES[lost], step=step):
        _check_folder(root, name, told, f"{name}, {lost}, write {at}")


def rewriting(root: Path, crash: Crash) -> None:
    """Other contents in the place of those that are there, as when they are encrypted."""
    with closing(JsonlStore(root)) as store:
        ids = [one.id for one in store.journal.scan({ADA})]
        every = [one for id in ids for one in store.journal.history(ADA, id)]
        found = [one for one in every if one.facets["text"] != "sealed"]
        store.journal.rewrite([one._replace(facets={**one.facets, "text": "sealed"}) for one in found])


def with_half_a_line(root: Path) -> None:
    """Something of a memory that stands beside its versions: it will be set aside."""
    base(root)
    with (root / "users/ada/memory.jsonl").open("ab") as file:
        file.write(b'{"id":"m0","content":{"message":"old half')
    with closing(JsonlStore(root)) as store:
        store.journal.append([Writer(START.replace(year=2027)).add(ADA, "sealed", id="m4")])
    assert b"old half" in (root / "users/ada/damaged.jsonl").read_bytes()


@pytest.mark.parametrize("what", [rewriting, compacting])
def test_contents_that_are_replaced_leave_nothing_after_a_crash(what: What, tmp_path: Path) -> None:
    """Whoever begins again, or begins after one who was killed, leaves nothing of the former contents anywhere."""
    for root, _, at in strikes(tmp_path, what, lambda at, told, _: Crash(at, told), prepare=with_half_a_line):
        rewriting(root, Crash(0, 0))
        assert b"old" not in kept_of_ada(root), at
        with closing(JsonlStore(root)) as store:
            assert texts(store, ADA) == ["sealed"] * 5, at
            assert texts(store, BOB) == [f"old {number}" for number in range(4)], at
            assert store.check(repair=True).healthy, at


def _check_folder(root: Path, name: str, told: list[str], note: str) -> None:
    """What was acknowledged is there, and the folder goes on as one that nothing happened to."""
    with closing(JsonlStore(root)) as store:
        ada, bob = texts(store, ADA), texts(store, BOB)
        if "old 1" not in ada:  # erased is erased, whenever the end came; to open the folder is enough
            assert b"old 1" not in kept_of_ada(root), note
        _check(name, told, ada, bob, note)
        store.journal.append([Writer(START.replace(year=2028)).add(ADA, "afterwards")])
        assert {one.check for one in store.check().findings} <= {"indexes"}, note  # those are made again
        assert store.check(repair=True).healthy, note
        after = (texts(store, ADA), texts(store, BOB))
    with closing(JsonlStore(root)) as store:
        assert (texts(store, ADA), texts(store, BOB)) == after == ([*ada, "afterwards"], bob), note
        store.journal.append([Writer(START.replace(year=2029)).erase(store.journal.get({ADA}, ["m2"])[0])])
        assert b"old 2" not in kept_of_ada(root), f"{note}: what the one who was killed was about to write is left"


def kept_of_ada(root: Path) -> bytes:
    folders = (root / "users/ada", root / "derived/users/ada")
    return b"".join(path.read_bytes() for folder in folders for path in folder.glob("*"))


def _check(name: str, told: list[str], ada: list[str], bob: list[str], note: str) -> None:
    old = [f"old {number}" for number in range(4)]
    assert bob[:4] == old, note
    assert [text for text in ada if text.startswith("old")] in (
        old,
        ["old 0", "old 2", "old 3"] if name == "erasing" else old,
    ), note
    acknowledged = [line.removeprefix("added ") for line in told if line.startswith("added")]
    assert set(acknowledged) <= set(ada), note
    batched = [text for text in (*ada, *bob) if text.startswith("batch")]
    assert len(batched) in ((6,) if "batched" in told else (0, 6)), note
    if "erased" in told:
        assert "old 1" not in ada, note
