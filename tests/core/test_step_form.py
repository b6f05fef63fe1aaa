"""The part of a step that is not of its form is named, with the form it has."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from patton.errors import ArgumentError
from patton.step_form import check_form
from patton.steps import Step

FORMS = {
    "finishes": "a list of request",
    "releases": "a list of (request, block)",
    "evicts": "a list of block",
    "confirms": "a list of (request, tokens)",
    "grants": "a list of (request, blocks, blocks)",
    "writes": "a list of (request, position, tokens)",
    "reads": "a list of (request, position, position)",
    "readbacks": "a list of (request, position, position)",
}
WHOLE: dict[str, Any] = {
    "finishes": ["a", 1],
    "releases": [("a", 1)],
    "evicts": [2, 3],
    "confirms": [("a", 5)],
    "grants": [("a", [1], (2, 3)), (7, [], [])],
    "writes": [("a", 0, 5), (7, 0, 1)],
    "reads": [("a", 0, 5)],
    "readbacks": [[7, 0, 1]],
    "drafts": {"a": 1},
}


def refused(step: object) -> tuple[object, ...]:
    with pytest.raises(ArgumentError) as raised:
        check_form(step)
    return attrs.astuple(raised.value)


def test_a_step_of_its_form_is_passed_over() -> None:
    check_form(Step(**WHOLE))
    check_form(Step(**WHOLE | {"drafts": None}))
    check_form(Step(**WHOLE | {"evicts": range(3)}))
    check_form(Step())


@pytest.mark.parametrize("part", FORMS)
@pytest.mark.parametrize("found", [5, None, iter([])])
def test_what_is_no_list_is_named(part: str, found: Any) -> None:
    step = Step(**WHOLE | {part: found})

    assert ("apply_step", part, found, FORMS[part]) == refused(step)


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("finishes", None),
        ("finishes", 1.5),
        ("evicts", "a"),
        ("evicts", [1]),
        ("releases", 5),
        ("releases", ("a",)),
        ("releases", ("a", 1, 2)),
        ("releases", (None, 1)),
        ("releases", ("a", "b")),
        ("confirms", ("a", 1.5)),
        ("grants", ("a", [1])),
        ("grants", ("a", 1, [2])),
        ("grants", ("a", [], ["b"])),
        ("grants", ("a", [1], iter([2]))),
        ("grants", (1.5, [1], [2])),
        ("writes", ("a", 0, None)),
        ("writes", ("a", "b", 1)),
        ("reads", iter([1, 2, 3])),
        ("readbacks", ("a", 1)),
    ],
)
def test_a_row_of_another_form_is_named(part: str, row: Any) -> None:
    step = Step(**WHOLE | {part: [*WHOLE[part], row]})

    assert ("apply_step", part, row, FORMS[part]) == refused(step)


def test_what_is_no_step_and_drafts_of_another_form_are_named() -> None:
    drafts: Any = [("a", 1)]

    assert ("apply_step", "step", 5, "Step") == refused(5)
    assert ("apply_step", "drafts", drafts, "dict or None") == refused(
        Step(**WHOLE | {"drafts": drafts})
    )
