"""The table of fields: what type checkers need to read in full is held to it here."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import NoneType, UnionType
from typing import Any

import pytest

import wellkept
from wellkept import fields
from wellkept.errors import InvalidInput
from wellkept.fields import MEMORY, MemoryField
from wellkept.operations import VERBS, parameter_of
from wellkept.operations.memory_fields import OptionalFields
from wellkept.types import ChangedFields, Memory, NewFields, NewMemory

SETTABLE = [MEMORY[name] for name in fields.SETTABLE]
# What `add` of a view names itself, so that it is not among the fields that it passes through.
NAMED_BY_ADD = {"content", "layer", "type", "importance", "tags", "metadata", "key"}
MERGED = {"add_tags", "remove_tags", "remove_metadata"}


def without_none(kind: Any) -> set[Any]:
    members = typing.get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return {one for one in members if one is not NoneType}


def test_a_memory_has_the_fields_of_the_table_with_their_types_and_defaults() -> None:
    hints = typing.get_type_hints(Memory)
    assert set(hints) == set(MEMORY)
    for one in dataclasses.fields(Memory):
        assert hints[one.name] == MEMORY[one.name].kind, one.name
        default = one.default if one.default_factory is dataclasses.MISSING else one.default_factory()
        assert (... if default is dataclasses.MISSING else default) == MEMORY[one.name].default, one.name


def test_a_new_memory_takes_the_fields_that_callers_may_set() -> None:
    assert {one.name for one in dataclasses.fields(NewMemory)} == {*fields.SETTABLE, "layer", "vector"}
    assert set(NewFields.__annotations__) | NAMED_BY_ADD == {*fields.SETTABLE, "layer", "vector"}


def test_an_update_takes_the_fields_that_may_change() -> None:
    assert set(ChangedFields.__annotations__) == {*fields.CHANGEABLE, *MERGED}
    for name, hint in typing.get_type_hints(ChangedFields).items():
        if name in fields.CLEARABLE:
            assert NoneType in typing.get_args(hint), f"{name} can be cleared"


@pytest.mark.parametrize("verb", ["add", "update"])
def test_verbs_declare_the_fields_of_a_memory_as_the_table_does(verb: str) -> None:
    hints = typing.get_type_hints(VERBS[verb].input)
    for one in VERBS[verb].fields:
        if one.name not in fields.SETTABLE or (verb, one.name) == ("add", "content"):  # several contents
            continue
        declared = MEMORY[one.name]
        more = {Mapping[str, Any]} if one.name == "content" else set()  # an object is stored as its text and as data
        assert without_none(hints[one.name]) == without_none(declared.kind) | more, one.name
        parameter = parameter_of(one)
        assert parameter.bounds == declared.bounds, one.name
        assert (parameter.flag, parameter.short) in ((declared.flag, declared.short), ("", "")), one.name
        assert parameter.description, one.name


def test_both_verbs_take_every_field_that_callers_may_set_and_the_identity_does_not() -> None:
    assert {one.name for one in VERBS["add"].fields} >= set(fields.SETTABLE) - {"session"}
    assert {one.name for one in VERBS["update"].fields} >= set(fields.CHANGEABLE) - {"session"}
    assert {one.name for one in dataclasses.fields(OptionalFields)} - {"dangling"} < set(fields.SETTABLE)


def test_every_field_is_explained_in_a_sentence() -> None:
    descriptions = {one.name: one.description for one in SETTABLE}
    assert {name: text for name, text in descriptions.items() if not (text[0].isupper() and text.endswith("."))} == {}


def out_of_bounds(one: MemoryField) -> Any:
    """A value that the field must refuse."""
    if one.bounds.maximum is not None:
        return one.bounds.maximum + 1
    if one.bounds.each is not None:
        return [str(number) for number in range((one.bounds.max_length or 0) + 1)]
    if one.name == "metadata":
        return ["no", "mapping"]
    if one.bounds.max_length is not None:
        return "x" * (one.bounds.max_length + 1)
    return datetime(2030, 1, 7) if datetime in without_none(one.kind) else "nothing of ours"  # noqa: DTZ001  # naive


def refused_field(call: Callable[[], object]) -> object:
    """The field that a refusal names; what a call answers, if it is not refused."""
    try:
        return call()
    except InvalidInput as error:
        return error.details["field"]


def test_a_check_refuses_what_is_out_of_bounds_and_names_the_field() -> None:
    refused = {one.name: one.check and refused_field(partial(one.check, out_of_bounds(one))) for one in SETTABLE}
    assert refused == {name: name for name in refused}


def test_the_engine_makes_the_checks_of_the_table() -> None:
    refused = {}
    with wellkept.open("ram:", embedder=None) as memories:
        view = memories.view(user="ada")
        memory = view.add("Likes tea")
        for one in SETTABLE:
            wrong: dict[str, Any] = {one.name: out_of_bounds(one)}
            refused[one.name] = (
                refused_field(partial(view.add, **{"content": "Likes coffee", **wrong})),
                refused_field(partial(view.update, memory.id, **wrong)),
            )
            assert view.list().memories == (memory,), one.name
    assert refused == {name: (name, name) for name in refused}


def test_what_can_be_cleared_may_be_none() -> None:
    for name in fields.CLEARABLE:
        check = MEMORY[name].check
        assert check is not None
        assert check(None) is None
        assert MEMORY[name].changeable
