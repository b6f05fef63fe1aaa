"""Arguments of a wrong kind are named, with what is accepted."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.arguments import expect, expect_call, expect_fields, is_count, is_one_of
from patton.errors import ArgumentError


@attrs.frozen
class Fields:
    count: Any
    name: Any


def refused(call: Any, *arguments: Any, **named: Any) -> tuple[object, ...]:
    with pytest.raises(ArgumentError) as raised:
        call(*arguments, **named)
    return attrs.astuple(raised.value)


@pytest.mark.parametrize(
    ("value", "kinds", "accepted"),
    [
        (True, (int,), "int"),
        (False, (int, float), "int or float"),
        (1.0, (int, str), "int or str"),
        ("x", (int, type(None)), "int or None"),
        (None, (int,), "int"),
        (np.int64(1), (int,), "int"),
    ],
)
def test_what_is_of_no_kind_is_refused(
    value: object, kinds: tuple[type, ...], accepted: str
) -> None:
    assert ("f", "x", value, accepted) == refused(expect, "f", "x", value, *kinds)


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        *((1, (int,)), (True, (bool,)), (True, (int, bool)), (True, (object,))),
        *(("", (str,)), (None, (int, type(None)))),
    ],
)
def test_what_is_of_a_kind_is_taken(value: object, kinds: tuple[type, ...]) -> None:
    expect("f", "x", value, *kinds)


def test_fields_are_looked_at_one_by_one() -> None:
    value = Fields(1, "x")
    expect_fields("f", value, count=int, name=(str, int))
    expect_fields("f", Fields(1, 2), count=int, name=(str, int))

    assert ("f", "name", "x", "int") == refused(
        expect_fields, "f", value, count=int, name=int
    )
    assert ("f", "name", None, "str or int") == refused(
        expect_fields, "f", Fields(1, None), count=int, name=(str, int)
    )


def test_what_can_be_called_is_taken() -> None:
    expect_call("f", "x", len)
    expect_call("f", "x", "text", "upper")

    assert ("f", "x", "text", "something to call") == refused(
        expect_call, "f", "x", "text"
    )
    assert ("f", "x", "text", "something with run()") == refused(
        expect_call, "f", "x", "text", "run"
    )
    assert ("f", "x", len, "something with run()") == refused(
        expect_call, "f", "x", len, "run"
    )


@pytest.mark.parametrize(
    ("value", "most", "counts"),
    [
        *((0, 9, False), (1, 9, True), (9, 9, True), (10, 9, False)),
        *((True, 9, False), (1.0, 9, False), ("1", 9, False), (None, 9, False)),
    ],
)
def test_counts_are_whole_numbers(value: object, most: float, counts: bool) -> None:
    assert counts is is_count(value, most)


def test_counts_have_no_end() -> None:
    assert is_count(10**30)


def test_names_are_texts() -> None:
    assert is_one_of("a", ["a", "b"])
    assert not is_one_of("c", ["a", "b"])
    assert not is_one_of(["a"], ["a"])
    assert not is_one_of(1, [1])  # type: ignore[list-item]
