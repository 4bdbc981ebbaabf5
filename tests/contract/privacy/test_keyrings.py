"""Keyrings: every operation on the one in RAM and the one in a file, and what a file survives."""

import base64
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wellkept
from wellkept.errors import ConfigurationError, InvalidInput, KeyUnavailable, StoreCorrupt, Tampered
from wellkept.keyrings import escrow, private_files
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import NEXT_VARIABLE, VARIABLE, EnvironmentMasterKeys, FileMasterKeys, text_of
from wellkept.keyrings.ram import RamKeyring
from wellkept.ports import Keyring
from wellkept.types import Layer, Owner

ADA = Owner(Layer.USER, ("ada",))
BOB = Owner(Layer.USER, ("bob",))


def in_file(folder: Path) -> FileKeyring:
    masters = FileMasterKeys(folder / "master.key")
    masters.create()
    return FileKeyring.create_file(folder / "memory.db.keys", masters)


def again(ring: FileKeyring) -> FileKeyring:
    """The keyring as another process opens it."""
    return FileKeyring(ring.path, FileMasterKeys(ring.path.with_name("master.key")))


@pytest.fixture(params=["ram", "file"])
def ring(request: pytest.FixtureRequest, tmp_path: Path) -> Keyring:
    return RamKeyring() if request.param == "ram" else in_file(tmp_path)


@pytest.mark.req("L10")
def test_an_owner_has_one_current_key_and_nobody_elses(ring: Keyring) -> None:
    assert ring.key(ADA) is None
    ada = ring.create(ADA)
    assert ring.create(ADA) == ada == ring.key(ADA) == ring.key(ADA, ada.id)
    bob = ring.create(BOB)
    assert len({ada.secret, ada.blind, bob.secret, bob.blind}) == 4
    assert ring.key(BOB, ada.id) is None
    assert set(ring.owners()) == {ADA, BOB}
    assert ada.secret.hex() not in repr(ada)


@pytest.mark.req("L10", "N7")
def test_destroyed_keys_are_gone(ring: Keyring) -> None:
    ring.create(ADA)
    ring.renew(ADA)
    bob = ring.create(BOB)
    assert ring.destroy(ADA) == 2
    assert ring.destroy(ADA) == 0
    assert ring.key(ADA) is None
    assert ring.key(BOB) == bob
    assert ring.check() == 1


def test_a_new_key_replaces_the_former_ones_that_stay_until_they_are_retired(ring: Keyring) -> None:
    first = ring.create(ADA)
    second = ring.renew(ADA)
    assert second.blind == first.blind
    assert second.secret != first.secret
    assert ring.key(ADA) == ring.create(ADA) == second
    assert ring.key(ADA, first.id) == first
    assert ring.retire(ADA) == 1
    assert ring.retire(ADA) == 0
    assert ring.key(ADA, first.id) is None
    assert ring.key(ADA) == second


@pytest.mark.req("L10")
def test_rotation_of_the_master_key_keeps_every_data_key(ring: Keyring) -> None:
    owners = [Owner(Layer.USER, (f"user-{number}",)) for number in range(20)]
    keys = [ring.create(owner) for owner in owners]
    seed = ring.signing_seed()
    assert ring.rotate() == 20
    assert [ring.key(owner) for owner in owners] == keys
    assert ring.signing_seed() == seed
    assert len(seed) == 32
    assert ring.check() == 20


@pytest.mark.req("J12")
def test_the_files_are_private_and_hold_no_key_in_the_clear(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    keys = [ring.create(ADA), ring.renew(ADA), ring.create(BOB)]
    ring.rotate()
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    written = (tmp_path / "memory.db.keys").read_bytes()
    for secret in [ring.signing_seed(), *(one for key in keys for one in (key.secret, key.blind))]:
        assert secret not in written
        assert base64.b64encode(secret) not in written


def test_other_processes_see_keys_that_are_made_and_destroyed(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    other = again(ring)
    made = ring.create(ADA)
    assert other.key(ADA) == made
    assert other.renew(ADA).blind == made.blind
    assert ring.key(ADA) == other.key(ADA) != made
    ring.rotate()
    assert other.key(ADA) == ring.key(ADA)
    other.destroy(ADA)
    assert ring.key(ADA) is None
    assert ring.key(ADA, made.id) is None


def test_many_threads_and_handles_make_one_key(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    rings = [again(ring) for _ in range(4)]
    made: list[bytes] = []
    threads = [threading.Thread(target=lambda one=one: made.append(one.create(ADA).secret)) for one in rings * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len(set(made)) == 1
    assert ring.check() == 1


@pytest.mark.req("L10")
def test_a_wrong_or_lost_master_key_is_told(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    ring.create(ADA)
    (tmp_path / "master.key").rename(tmp_path / "elsewhere")
    with pytest.raises(KeyUnavailable, match="master key"):
        again(ring).key(ADA)
    FileMasterKeys(tmp_path / "master.key").create()
    with pytest.raises(KeyUnavailable, match="master key"):
        again(ring).key(ADA)
    (tmp_path / "elsewhere").replace(tmp_path / "master.key")
    ring.path.unlink()
    with pytest.raises(KeyUnavailable, match="not there"):
        ring.key(ADA)


@pytest.mark.req("L10")
def test_a_flipped_bit_anywhere_in_the_keyring_is_found(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    made = ring.create(ADA)
    whole = ring.path.read_bytes()
    for place in range(len(whole)):
        for bit in (0, 5):
            altered = bytearray(whole)
            altered[place] ^= 1 << bit
            ring.path.write_bytes(altered)
            try:
                found = again(ring)
                found.check()
                key = found.key(ADA)
            except (KeyUnavailable, Tampered, StoreCorrupt, ConfigurationError):
                continue
            assert key is None or key == made  # no end of its line: not there; never another one


def test_a_key_moved_to_another_owner_does_not_open(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    ring.create(ADA)
    ring.path.write_bytes(ring.path.read_bytes().replace(b'ada\\"', b'eve\\"'))  # keys are random, and have no quotes
    with pytest.raises(Tampered):
        again(ring).key(Owner(Layer.USER, ("eve",)))


def test_a_torn_line_is_passed_over_and_mended(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    made = ring.create(ADA)
    with ring.path.open("ab") as file:
        file.write(b'{"owner":"[\\"us')
    other = again(ring)
    assert other.key(ADA) == made
    bob = other.create(BOB)
    assert again(ring).key(BOB) == bob
    assert again(ring).check() == 2


@pytest.mark.req("J12")
def test_a_master_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    (tmp_path / "master.key").chmod(0o644)
    with pytest.raises(ConfigurationError, match="other users"):
        again(ring).key(ADA)


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    masters = FileMasterKeys(tmp_path / "master.key")
    with pytest.raises(ConfigurationError, match="already"):
        masters.create()
    with pytest.raises(ConfigurationError, match="already"):
        FileKeyring.create_file(ring.path, masters)


def test_the_environment_brings_the_master_key_and_the_next_one(tmp_path: Path) -> None:
    environment = {VARIABLE: text_of(bytes(range(32)))}
    masters = EnvironmentMasterKeys(environment)
    ring = FileKeyring.create_file(tmp_path / "keys", masters)
    made = ring.create(ADA)
    with pytest.raises(KeyUnavailable, match=NEXT_VARIABLE):
        ring.rotate()
    environment[NEXT_VARIABLE] = text_of(bytes(32))
    ring.rotate()
    assert ring.key(ADA) == made
    environment[VARIABLE] = environment.pop(NEXT_VARIABLE)
    assert FileKeyring(tmp_path / "keys", masters).key(ADA) == made


# Rotates in a child of its own for each number that it reads, and says how that ended.
_ROTATIONS = """
import os, sys
from pathlib import Path
from wellkept.keyrings.file import FileKeyring
from wellkept.keyrings.master_key import FileMasterKeys

folder, die_at, step = Path(sys.argv[1]), 0, 0

def counted(function):
    def call(*args, **kwargs):
        global step
        step += 1
        if step == die_at:
            os.kill(os.getpid(), 9)
        return function(*args, **kwargs)
    return call

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        die_at = int(line)
        for name in ("fsync", "write"):
            setattr(os, name, counted(getattr(os, name)))
        Path.replace, Path.unlink = counted(Path.replace), counted(Path.unlink)
        try:
            FileKeyring(folder / "memory.db.keys", FileMasterKeys(folder / "master.key")).rotate()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@contextmanager
def rotations(folder: Path) -> Iterator[Callable[[int], int]]:
    """A call that rotates in another process, which is killed at a step; it answers with the code of its end."""
    command = [sys.executable, "-c", _ROTATIONS, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def rotate(step: int) -> int:
            questions.write(f"{step}\n")
            questions.flush()
            return int(answers.readline())

        yield rotate


@pytest.mark.slow
@pytest.mark.req("L10")
def test_a_rotation_killed_at_any_step_leaves_a_keyring_that_opens(tmp_path: Path) -> None:
    ring = in_file(tmp_path)
    made = ring.create(ADA)
    killed = 0
    with rotations(tmp_path) as rotate:
        for step in range(1, 60):
            code = rotate(step)
            assert again(ring).key(ADA) == ring.key(ADA) == made
            if code == 0:
                break
            assert code == -9, step
            killed += 1
        else:
            pytest.fail("it never got to its end")
    assert killed > 5
    assert ring.rotate() == 1
    assert again(ring).key(ADA) == made


@pytest.mark.req("L10")
def test_databases_that_share_a_master_key_are_rotated_one_by_one(tmp_path: Path) -> None:
    one = in_file(tmp_path)
    masters = FileMasterKeys(tmp_path / "master.key")
    other = FileKeyring.create_file(tmp_path / "other.db.keys", masters)
    made, kept = one.create(ADA), other.create(BOB)
    former = other.recovery_code()
    one.rotate()
    assert FileKeyring(other.path, FileMasterKeys(masters.path)).key(BOB) == other.key(BOB) == kept
    assert (one.recovery_code() == former, other.recovery_code() == former) == (False, True)
    other.rotate()
    assert (again(one).key(ADA), again(other).key(BOB)) == (made, kept)
    assert len({former, one.recovery_code(), other.recovery_code()}) == 3
    fresh = FileKeyring.create_file(tmp_path / "third.db.keys", masters)
    assert fresh.recovery_code() == other.recovery_code()  # the key in use is the last one


@pytest.mark.slow
@pytest.mark.req("L10")
def test_a_killed_rotation_of_one_database_outlives_the_rotation_of_another(tmp_path: Path) -> None:
    one = in_file(tmp_path)
    other = FileKeyring.create_file(tmp_path / "other.db.keys", FileMasterKeys(tmp_path / "master.key"))
    made, kept = one.create(ADA), other.create(BOB)
    with rotations(tmp_path) as rotate:
        for step in range(1, 60):
            code = rotate(step)
            other.rotate()
            assert (again(one).key(ADA), again(other).key(BOB)) == (made, kept)
            if code == 0:
                break
            assert code == -9, step
        else:
            pytest.fail("it never got to its end")


@pytest.mark.req("L10")
def test_a_wrong_recovery_code_writes_nothing_and_the_right_one_joins_other_keys(tmp_path: Path) -> None:
    where = {"encryption": {"master_key_file": str(tmp_path / "master.key")}}
    with wellkept.open(tmp_path / "a.db", embedder=None, settings=where) as memories:
        code = memories.encryption.init().recovery_code
        memories.view(user="ada").add("The door code is blue", sensitive=True)
    (tmp_path / "master.key").unlink()
    with wellkept.open(tmp_path / "a.db", embedder=None, settings=where) as memories:
        with pytest.raises(KeyUnavailable, match="not the one"):
            memories.encryption.init(recover=escrow.encode(bytes(32)))
        assert not (tmp_path / "master.key").exists()
    with wellkept.open(tmp_path / "b.db", embedder=None, settings=where) as memories:
        memories.encryption.init()
    with wellkept.open(tmp_path / "a.db", embedder=None, settings=where) as memories:
        memories.encryption.init(recover=code)
        assert memories.encryption.check(recovery_code=code).fits
    with wellkept.open(tmp_path / "b.db", embedder=None, settings=where) as memories:
        assert memories.encryption.check().fits
    assert not (tmp_path / "master.key.next").exists()


@pytest.mark.parametrize("spoil", [str.lower, lambda code: code.replace("-", " "), lambda code: f" {code}\n"])
def test_a_recovery_code_is_read_however_it_is_spaced(spoil: Callable[[str], str]) -> None:
    master = os.urandom(32)
    assert escrow.decode(spoil(escrow.encode(master))) == master


def test_a_mistyped_recovery_code_is_refused() -> None:
    code = escrow.encode(bytes(range(32)))
    for wrong in ("", code[:-1], "B" + code[1:], code + "A", code.replace("A", "1")):
        with pytest.raises(InvalidInput, match="recovery code"):
            escrow.decode(wrong)


def test_a_failed_replacement_leaves_the_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    private_files.replace(path, b"one")

    def fails(number: int) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(KeyUnavailable, match="full"):
        private_files.replace(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.req("L10", "P3")
@pytest.mark.parametrize("place", ["no/such/folder/k.keys", "folder.keys"])
def test_a_file_that_cannot_be_used_is_told_with_its_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder.keys").mkdir()
    masters = FileMasterKeys(tmp_path / "master.key")
    masters.create()
    with pytest.raises((KeyUnavailable, ConfigurationError)) as caught:
        FileKeyring.create_file(tmp_path / place, masters)
    assert caught.value.details["path"].startswith(str(tmp_path / place))
    with pytest.raises(KeyUnavailable):
        FileKeyring(tmp_path / place, masters)


@pytest.mark.req("L10")
def test_a_key_that_a_full_disk_took_in_part_is_not_given_out(tmp_path: Path) -> None:
    """Whatever were encrypted by it could not be read again."""
    ring = in_file(tmp_path)
    ring.create(BOB)
    size = ring.path.stat().st_size
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from wellkept.keyrings.file import FileKeyring; from wellkept.keyrings.master_key import FileMasterKeys\n"
        "from wellkept.errors import KeyUnavailable; from wellkept.types import Layer, Owner\n"
        "folder = Path(sys.argv[1])\n"
        "ring = FileKeyring(folder / 'memory.db.keys', FileMasterKeys(folder / 'master.key'))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
        "try:\n    ring.create(Owner(Layer.USER, ('ada',)))\n"
        "except KeyUnavailable as error:\n    print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(size + 10)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "KEY_UNAVAILABLE"
    ada = again(ring).create(ADA)  # half of the line is there, and does not disturb
    assert again(ring).key(ADA) == ada
