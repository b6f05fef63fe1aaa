"""Counterexamples on plain integers: what is found, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from proofs import finite
from proofs.check import check
from proofs.layouts import llama3, odd, small_layouts
from proofs.numbers import every
from proofs.spaces import OneCase
from proofs.theorem import Case, Claim, Theorem, Without
from proofs.theorems import comes_back

KEY_COMES_BACK = comes_back.THEOREMS[0]
PLACE = {"layer": 1, "head": 2, "granule": 3, "token": 4, "element": 5}


def about(claim: Any, **fields: Any) -> Theorem:
    """A theorem about two numbers of which the first is smaller."""

    def given(space: Any) -> tuple[Any, Any]:
        low, high = space.number("low", 100), space.number("high", 100)
        space.assume("in order", low < high)
        return low, high

    values: dict[str, Any] = {
        "name": "numbers",
        "clause": "MAP-ACCEPT",
        "given": given,
        "claim": claim,
        "witness": Case(None, {"low": 3, "high": 8}),
        "planted": (Without("in order"),),
    }
    return Theorem(**values | fields)


def stays_below(low: Any, high: Any) -> Iterator[Claim]:
    yield Claim("low stays below", low < high, {"low then": low})


def is_close(low: Any, high: Any) -> Iterator[Claim]:
    yield Claim("high is not far", high < low + 99, {"gap": high - low})


def test_a_true_theorem_has_no_counterexample() -> None:
    assert finite.search(about(stays_below)) is None
    assert "proved" == check(about(stays_below)).status


def test_a_rare_counterexample_is_found_by_a_solver() -> None:
    """One case in thousands: draws miss it, the solver does not."""
    found = finite.search(about(is_close))

    assert found is not None
    assert {"low": 0, "high": 99} == dict(found.case.values)
    told = list(found.lines())
    assert "not true: high is not far" == told[0]
    assert "  at low 0, high 99" in told
    assert "  gap: 99" in told


def test_a_case_that_breaks_a_premise_is_no_counterexample() -> None:
    """Unless the bug is that the premise is forgotten."""
    case = Case(None, {"low": 8, "high": 8})
    theorem = about(stays_below)

    assert not finite.keeps_premises(theorem, case)
    assert finite.replay(theorem, case) is None
    assert finite.replay(theorem, case, Without("in order")) is not None


def test_a_value_out_of_bounds_is_no_case() -> None:
    for value in (-1, 100):
        case = Case(None, {"low": 3, "high": value})
        assert not finite.keeps_premises(about(stays_below), case)


def test_code_that_fails_is_a_counterexample() -> None:
    """A division by zero is told as such."""

    def divides(low: Any, high: Any) -> Iterator[Claim]:
        yield Claim("a part", low // (high - 8) >= -1)

    found = finite.replay(about(divides), Case(None, {"low": 3, "high": 8}))

    assert found is not None
    told = "\n".join(found.lines())
    assert "not true: the code runs" in told
    assert "ZeroDivisionError" in told


def test_a_witness_that_breaks_a_claim_is_told() -> None:
    """Also if the proof itself were right."""
    wrong = about(is_close, witness=Case(None, {"low": 0, "high": 99}), planted=())

    assert "the witness does not keep the claims" in check(wrong).details


def test_layouts_are_told_by_their_sizes() -> None:
    words = finite.layout_in_words(odd())

    assert words == (
        "2 channels of 4 banks, 90 rows of 8 bursts of 6 lanes, "
        "2 layers of 3 heads of 7 elements, blocks of 12 tokens, 3 to a pair"
    )


def test_small_layouts_are_small_and_the_same_in_every_run() -> None:
    layouts = small_layouts()

    sizes = [layout.device.capacity_bytes for layout in layouts]
    assert sizes == sorted(sizes)
    assert layouts == small_layouts.__wrapped__()
    assert {True, False} == {layout.stripes > 1 for layout in layouts}
    assert {True, False} == {layout.folds > 1 for layout in layouts}


@pytest.mark.parametrize("layout", [odd, llama3], ids=["odd", "llama3"])
def test_a_case_reads_a_theorem_on_plain_integers(layout: Any) -> None:
    """What is given to its claim are the shipped objects with integers in them."""
    space = OneCase(layout(), PLACE)
    kind, g, place = KEY_COMES_BACK.given(space)

    assert [] == space.broken
    assert (layout().map, tuple(PLACE.values())) == (g.map, tuple(place))
    assert every(c.holds for c in KEY_COMES_BACK.claim(kind, g, place)) is True


def test_a_theorem_without_any_place_to_look_has_no_counterexample() -> None:
    """Pure logic is looked at in few things instead."""
    nowhere = attrs.evolve(about(is_close), witness=None)

    assert finite.search(nowhere) is None
