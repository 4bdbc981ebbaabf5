"""Names of files for ids."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wellkept.stores.jsonl.names import NAME_BYTES, file_name, id_of

SAFE = re.compile(r"[a-z0-9_%~-](?:[a-z0-9._%~-]*[a-z0-9_%~-])?")
DEVICES = ["con", "CON", "Con", "prn", "aux", "nul", "com1", "lpt9", "con.txt", "nul.tar.gz", "COM0"]
ids = (
    st.text(max_size=30)
    | st.text(st.sampled_from("aAbB.%/~\\: é\u0301\x00-_2e"), max_size=12)
    | st.sampled_from([*DEVICES, ".", "..", "a.", "%", "%~", "%2e", "~", ""])
    | st.text(st.sampled_from("aA%é."), min_size=60, max_size=400)
)


@pytest.mark.req("J12")
@given(id=ids)
@example("\ud800")
@example("a" * 200)
@example("a" * 201)
@example("a" * 133 + "é" * 40)
def test_a_name_is_safe_everywhere_and_says_its_id(id: str) -> None:
    name = file_name(id)
    assert SAFE.fullmatch(name), "no separator, no dot at either end, nothing that a file system would change"
    assert len(name.encode()) <= NAME_BYTES
    assert name.partition(".")[0] not in {device.lower().partition(".")[0] for device in DEVICES}
    assert (Path("root") / name).resolve().parent == Path("root").resolve()
    assert id_of(name) == (None if "%~" in name else id)


@pytest.mark.req("J12")
@given(one=ids, other=ids)
@example("Ada", "ada")
@example("a" * 250, "a" * 250 + "b")
@example("é", "e\u0301")
@example("straße", "STRASSE")
@example("%2e", ".")
@example("", "\x00")
def test_different_ids_have_different_names_even_where_case_is_ignored(one: str, other: str) -> None:
    assert (file_name(one).casefold() == file_name(other).casefold()) is (one == other)


@pytest.mark.req("J12")
@pytest.mark.parametrize(
    "id", ["sess_20260110_user123", "a", "0192f0c1-7c4e-7000-8000-000000000000", "v1.2", "console"]
)
def test_plain_ids_stay_themselves(id: str) -> None:
    assert file_name(id) == id


@pytest.mark.req("J12")
@given(name=st.text(max_size=12) | st.text(st.sampled_from("aA%24e6~1."), max_size=8))
@example("a%~" + "0" * 64)
@example("%C3")
@example("%c3")
@example("é")
def test_names_that_nothing_gives_have_no_id(name: str) -> None:
    id = id_of(name)
    assert id is None or file_name(id) == name
