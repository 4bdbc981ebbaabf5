"""Verbs of encryption: keys.init, keys.check, keys.rotate, encrypt."""

from dataclasses import dataclass
from pathlib import Path

from wellkept.errors import InvalidInput, KeyUnavailable, Tampered, Unsupported
from wellkept.operations.conditions import TEXT
from wellkept.operations.verb import Caller, Example, Verb, option
from wellkept.types import EncryptionReport, KeyCheck, KeyRotation, KeysMade

_ERRORS = (KeyUnavailable, Tampered, Unsupported)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysInit:
    """Where the keys go."""

    keyring: str | None = option("The file for the keyring; by default, the one beside the database.", bounds=TEXT)
    master_key_file: str | None = option(
        "The file for the master key; by default, master.key in the user's folder for data.", bounds=TEXT
    )
    recover: str | None = option(
        "A file with a recovery code: write the master key anew from it, for a keyring that is there.", bounds=TEXT
    )


def _init(caller: Caller, given: KeysInit) -> KeysMade:
    return caller.memories.encryption.init(
        keyring=given.keyring,
        master_key_file=given.master_key_file,
        recover=None if given.recover is None else _code("recover", given.recover),
    )


def _code(field: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the file {file[:200]!r} cannot be read", details={"field": field}, hint="name the file with the code"
        ) from error


KEYS_INIT = Verb(
    name="keys.init",
    input=KeysInit,
    output=KeysMade,
    run=_init,
    method="Encryption.init",
    errors=_ERRORS,
    creates=True,
    makes_keys=True,
    description="From then on, sensitive memories are encrypted. The answer has a recovery code: print it and keep it"
    " where neither the database nor the master key is. Without the keyring and the master key, or the code, nothing"
    " that is encrypted can be read again.",
    examples=(Example(line="wellkept keys init --master-key-file master.key", says="a keyring beside the database"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysCheck:
    """What else to check."""

    recovery: str | None = option("A file with the recovery code: whether it is the right one.", bounds=TEXT)


def _check(caller: Caller, given: KeysCheck) -> KeyCheck:
    code = None if given.recovery is None else _code("recovery", given.recovery)
    return caller.memories.encryption.check(recovery_code=code, progress=caller.progress)


def _fits(answer: KeyCheck) -> bool:
    return answer.fits


KEYS_CHECK = Verb(
    name="keys.check",
    input=KeysCheck,
    output=KeyCheck,
    run=_check,
    method="Encryption.check",
    errors=_ERRORS,
    agrees=_fits,
    description="Every key is unwrapped and every encrypted version opened. Run it now and then, and with a copy of the"
    " keyring and the recovery code before you need them.",
    examples=(Example(line="wellkept keys check", says="ends with 1 if something does not open"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysRotate:
    """Which keys to rotate."""

    data: bool = option("Give every owner a new data key, and encrypt its memories anew.", False)
    retire: bool = option("Remove the former data keys then: older backups can no longer be read.", False)


def _rotate(caller: Caller, given: KeysRotate) -> KeyRotation:
    return caller.memories.encryption.rotate(data=given.data, retire=given.retire, progress=caller.progress)


def _retired(_: Caller, given: KeysRotate) -> str:
    return "remove the former data keys: older backups can no longer be read" if given.retire else ""


KEYS_ROTATE = Verb(
    name="keys.rotate",
    input=KeysRotate,
    output=KeyRotation,
    run=_rotate,
    method="Encryption.rotate",
    errors=_ERRORS,
    asks=_retired,
    interrupted="nothing is lost; run it again to complete it",
    description="By default the master key: data keys are wrapped anew, and the recovery code changes. The database can"
    " be used meanwhile.",
    examples=(
        Example(line="wellkept keys rotate", says="a new master key"),
        Example(line="wellkept keys rotate --data", says="new data keys; memories are encrypted anew"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encrypt:
    """What to encrypt."""

    everything: bool = option("Encrypt all memories, not only the sensitive ones.", False)


def _encrypt(caller: Caller, given: Encrypt) -> EncryptionReport:
    return caller.memories.encryption.encrypt(everything=given.everything, progress=caller.progress)


ENCRYPT = Verb(
    name="encrypt",
    input=Encrypt,
    output=EncryptionReport,
    run=_encrypt,
    method="Encryption.encrypt",
    errors=_ERRORS,
    interrupted="what was encrypted stays so; run it again to continue",
    description="Memories that were stored before there were keys are encrypted in place, with all former versions, and"
    " nothing of them stays in the file. Copies and backups made before are not reached.",
    examples=(
        Example(line="wellkept encrypt", says="what is marked, and what is recognised"),
        Example(line="wellkept encrypt --everything", says="all memories"),
    ),
)
