"""What a store keeps about itself, where single settings can be damaged."""

import itertools
import re
import string
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, Self, get_args

from wellkept import codec, ids
from wellkept.errors import StoreCorrupt
from wellkept.types import DurabilityName, Stamp

_MENDED_CHARACTERS = 1_000
_DISPENSABLE = ("embedder", "dimension", "calibration", "lexicon")
"""Settings that are made anew where they are missing."""

_NOTHING: Mapping[str, str | None] = MappingProxyType({})


class SettingRow(NamedTuple):
    """A setting as it is stored."""

    name: str
    value: str
    checksum: bytes

    @classmethod
    def sealed(cls, name: str, value: str) -> Self:
        """With the checksum that fits."""
        return cls(name, value, setting_checksum(name, value))

    def is_sound(self) -> bool:
        """Whether it is what was written."""
        return setting_checksum(self.name, self.value) == self.checksum

    def fits(self, name: str, value: str) -> bool:
        """Whether this is a setting: two of name, value and checksum still say so if the third is damaged."""
        return (name, value) == (self.name, self.value) or setting_checksum(name, value) == self.checksum


class StoreSettings(Mapping[str, str]):
    """The settings of a store. One that is damaged is an error where it is asked for, and stops nothing else.

    ``sound`` are those that are what was written, ``damaged_rows`` those whose checksum does not fit. ``derived`` has
    what is known of lost settings from elsewhere: a value, or ``None`` for one that the store can do without. A value
    whose name is damaged is known by its checksum.

    >>> rows = [SettingRow.sealed("durability", "full"), SettingRow("embedder", "no-wgrds", b"checksum")]
    >>> settings = StoreSettings.of_rows(rows)
    >>> settings["durability"], "origin" in settings, settings.damaged
    ('full', False, ('embedder',))
    >>> settings.get("embedder")
    Traceback (most recent call last):
    ...
    wellkept.errors.StoreCorrupt: the setting 'embedder' is damaged (run doctor with repair=True)
    >>> settings.derive({"embedder": "wellkept-words-1"}, stamp=None)["embedder"]
    'wellkept-words-1'
    """

    def __init__(
        self,
        values: Mapping[str, str],
        damaged_rows: Collection[SettingRow] = (),
        derived: Mapping[str, str | None] = _NOTHING,
    ) -> None:
        self.sound = values
        self.damaged_rows = [row for row in damaged_rows if row.name not in values]  # one that was set since is not
        self._derived = derived

    @classmethod
    def of_rows(cls, rows: Iterable[SettingRow]) -> Self:
        """The settings that some rows tell of."""
        found = list(rows)
        sound = {row.name: row.value for row in found if row.is_sound()}
        return cls(sound, [row for row in found if row.name not in sound])

    @property
    def damaged(self) -> tuple[str, ...]:
        """The names of the damaged settings, as they stand: a name may be what is damaged."""
        return tuple(sorted(row.name for row in self.damaged_rows))

    def derive(self, known: Mapping[str, str], stamp: Stamp | None) -> Self:
        """The same with values for damaged settings: what is known of them, such as from vectors, and from the newest
        stamp.
        """
        origin = "" if stamp is None else ids.stamp_origin(stamp)
        derived = {
            "origin": origin if re.fullmatch("[0-9a-f]{12}", origin) else self._stand_in("origin"),
            "epoch": self._stand_in("epoch"),  # followers are told that their positions are lost
            "durability": next((one for one in get_args(DurabilityName) if self.fits("durability", one)), "full"),
            **dict.fromkeys(_DISPENSABLE),
            **known,
        }
        return type(self)(self.sound, self.damaged_rows, derived)

    def _stand_in(self, name: str) -> str:
        """A new id in the place of a lost one: the same for every process, until a repair writes it."""
        return codec.checksum(f"{name} {self.damaged_rows}").hex()[:12]

    def mended(self) -> dict[str, tuple[str, str | None]]:
        """For damaged names as they stand, the name and the value that were written. A single wrong character is found
        by trying: the checksum says when it is right. Otherwise it is what was derived; ``None`` for a setting that is
        to be removed. Those that nothing is known of are not in it.
        """
        known = {name: (name, self._derived[name]) for name in self.damaged if name in self._derived}
        return known | {row.name: written for row in self.damaged_rows if (written := _written(row)) is not None}

    def fits(self, name: str, value: str) -> bool:
        """Whether a setting has a value, as far as that can be told."""
        if name in self.sound:
            return self.sound[name] == value
        return any(row.fits(name, value) for row in self.damaged_rows)

    def __getitem__(self, name: str) -> str:
        if name in self.sound:
            return self.sound[name]
        for row in self.damaged_rows:
            if setting_checksum(name, row.value) == row.checksum:
                return row.value
        if (derived := self._derived.get(name)) is not None:
            return derived
        if name in self._derived or all(row.name != name for row in self.damaged_rows):
            raise KeyError(name)
        raise StoreCorrupt(
            f"the setting {name[:64]!r} is damaged", details={"setting": name[:64]}, hint="run doctor with repair=True"
        )

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*self.sound, *self.damaged, *self._derived))
        return (name for name in names if name in self.sound or self._derived.get(name, "") is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"StoreSettings({dict(self.sound)}, damaged={self.damaged})"


def is_set(settings: Mapping[str, str], name: str) -> bool:
    """Whether a setting says anything. A damaged one does, for those who look then at what it announces."""
    try:
        return bool(settings.get(name))
    except StoreCorrupt:
        return True


def says(settings: Mapping[str, str], name: str, value: str) -> bool:
    """Whether a setting has a value, beyond doubt; one that was never made is empty."""
    try:
        return settings.get(name, "") == value
    except StoreCorrupt:
        return False


def setting_checksum(name: str, value: str) -> bytes:
    """What a store keeps beside a setting, to know whether it is what was written."""
    return codec.checksum(f"{len(name)}:{name},{value}")


def _written(row: SettingRow) -> tuple[str, str] | None:
    """What was written, if one character of it or one byte of its checksum is wrong."""
    name, value, checksum = row
    right = setting_checksum(name, value)
    if len(checksum) == len(right) and sum(one != other for one, other in zip(checksum, right, strict=True)) == 1:
        return name, value
    names = ((one, value) for one in _one_character_apart(name))
    values = ((name, one) for one in _one_character_apart(value))
    return next((pair for pair in itertools.chain(names, values) if setting_checksum(*pair) == checksum), None)


def _one_character_apart(text: str) -> Iterator[str]:
    for at in range(min(len(text), _MENDED_CHARACTERS)):
        for letter in string.printable:
            yield text[:at] + letter + text[at + 1 :]
