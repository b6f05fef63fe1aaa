"""Every theorem about the address map, checked in full.

Not here: the theorems that follow code along every path, which takes half a minute;
`python -m proofs` has them. Those about acceptance are tried on plain integers below.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from patton import addresses
from proofs import finite
from proofs.check import Effort, check, is_proved
from proofs.layouts import many_layouts, odd, small_layouts
from proofs.solver import RLIMIT, Answer, ask
from proofs.spaces import DrawnCase
from proofs.swaps import swapped
from proofs.theorem import Case, Claim, Swap, Theorem
from proofs.theorems import (
    THEOREMS,
    acceptance,
    comes_back,
    commit_stays,
    copies_in_turn,
    rounding_up,
)

MAP_THEOREMS = [
    *(t for t in THEOREMS if t.is_about_layouts and not t.branches),
    *(*copies_in_turn.THEOREMS, *rounding_up.THEOREMS),
]
KEY_COMES_BACK = comes_back.THEOREMS[0]


@pytest.mark.parametrize("theorem", MAP_THEOREMS, ids=lambda theorem: theorem.name)
def test_theorem(theorem: Theorem) -> None:
    """Proved for all geometries; its witness is one, and its bugs are noticed."""
    result = check(theorem)

    assert ("proved", ()) == (result.status, result.details)
    assert len(theorem.planted) == result.bugs_refuted
    assert 1 <= result.bugs_refuted


def test_accepted_layouts_keep_the_premises() -> None:
    """Thousands of questions, answered by the real code: what is accepted is valid."""
    accepted = acceptance.THEOREMS[0]
    assert accepted.examples is not None
    for case in accepted.examples():
        assert finite.keeps_premises(accepted, case)
        assert finite.replay(accepted, case) is None


def test_geometries_are_accepted() -> None:
    """What fits is accepted by the real code."""
    theorem, random, kept = acceptance.THEOREMS[1], Random(8), 0
    for layout in small_layouts():
        for _ in range(20):
            space = DrawnCase(layout, random)
            theorem.given(space)
            kept += not space.broken
            case = Case(lambda one=layout: one, space.values)  # type: ignore[misc]
            assert finite.replay(theorem, case) is None

    assert kept > 100


def test_names_are_distinct() -> None:
    """Theorems are called by name."""
    assert len(THEOREMS) == len({theorem.name for theorem in THEOREMS})


def test_clauses_exist() -> None:
    """Every theorem proves a clause of the specification, and all of MAP are proved."""
    text = (Path(__file__).parents[2] / "spec/SPEC.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^\| ([A-Z]+-[A-Z]+) \|", text, re.MULTILINE))
    proved = {theorem.clause for theorem in THEOREMS}

    assert proved <= defined
    assert {name for name in defined if name.startswith("MAP-")} <= proved


def test_layouts_of_all_kinds_are_geometries() -> None:
    """The premises hold of published shapes and of odd ones, on plain integers."""
    for layout in many_layouts():
        assert finite.keeps_premises(
            KEY_COMES_BACK,
            Case(
                lambda one=layout: one,  # type: ignore[misc]
                dict.fromkeys(("layer", "head", "granule", "token", "element"), 0),
            ),
        )


# The shipped functions are the subject.


@pytest.mark.parametrize(
    ("kind", "function", "old", "new"),
    [
        ("key", "key_address", "granule // m.channels_per_head", "granule"),
        ("key", "key_element", "_layer(m, row)", "_layer(m, row) * 1 + 0 * row + 1"),
        ("value", "value_address", "m.key_rows + set_row", "set_row + m.value_rows"),
        ("value", "_stripe_channel", "part % m.value_channels", "0"),
        ("slot", "slot_address", "token // m.lanes", "token // m.banks"),
        ("slot", "_head", "channel // m.channels_per_head", "channel"),
        ("slot", "_stripe", "channel // m.value_channels", "channel // m.stripes"),
    ],
)
def test_a_wrong_address_function_is_noticed(
    kind: str, function: str, old: str, new: str
) -> None:
    """A mutant at run time makes the proof fail, with a case that does happen."""
    (theorem,) = (t for t in comes_back.THEOREMS if t.name == f"{kind}_comes_back")
    assert is_proved(theorem)
    small_layouts()

    with swapped(f"addresses.{function}", old, new):
        assert not is_proved(theorem)
        counterexample = finite.search(theorem)
        assert counterexample is not None
        again = finite.replay(theorem, counterexample.case)
        assert again is not None
    assert finite.replay(theorem, counterexample.case) is None


def test_a_replaced_function_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not its text but the function itself is what theorems call."""
    shipped = addresses.key_address

    def elsewhere(m: object, *place: object) -> addresses.Address:
        at = shipped(m, *place)  # type: ignore[arg-type]
        return at._replace(lane=at.bank)

    monkeypatch.setattr(addresses, "key_address", elsewhere)

    assert "refuted" == check(KEY_COMES_BACK).status


def test_counterexamples_are_told_in_words() -> None:
    """Layout, place, address and what is found there, by name."""
    odd()
    with swapped("addresses.key_address", "element % m.lanes", "token % m.lanes"):
        result = check(KEY_COMES_BACK)

    told = "\n".join(result.details)
    assert "refuted" == result.status
    for words in (
        r"not true: the element comes back",
        r"on \d+ channels of \d+ banks, \d+ rows of \d+ bursts of \d+ lanes",
        r"at layer \d+, head \d+, granule \d+, token \d+, element \d+",
        r"address: channel \d+, bank \d+, row \d+, burst \d+, lane \d+",
        r"found there: layer \d+, head \d+, index \d+, token \d+, element \d+",
    ):
        assert re.search(words, told), words


# A check that cannot fail is a defect.


def changed(**fields: Any) -> Theorem:
    return attrs.evolve(KEY_COMES_BACK, **fields)


def test_a_theorem_that_claims_nothing_is_empty() -> None:
    """A witness of which nothing is claimed is none."""
    result = check(changed(claim=lambda *_: iter(()), planted=()))

    assert "empty" == result.status
    assert ("nothing is claimed of the witness",) == result.details


def test_every_witness_is_claimed_something_of() -> None:
    """Also where code branches: its way is one on which there are claims."""
    for theorem in THEOREMS:
        if theorem.witness is not None:
            assert finite.keeps_premises(theorem, theorem.witness), theorem.name
            assert 0 < finite.claims_about(theorem, theorem.witness), theorem.name


def test_a_bug_that_is_none_goes_unnoticed() -> None:
    """A theorem whose planted bug changes nothing is not called proved."""
    harmless = Swap("addresses.key_address", "token // m.banks", "0 + token // m.banks")
    result = check(changed(planted=(harmless,)))

    assert "deaf" == result.status
    assert 0 == result.bugs_refuted


def test_a_witness_that_is_none_is_noticed() -> None:
    """A theorem about nothing is not called proved."""
    assert KEY_COMES_BACK.witness is not None
    nowhere = dict(KEY_COMES_BACK.witness.values) | {"token": 999}
    result = check(changed(witness=Case(odd, nowhere)))

    assert "empty" == result.status


def test_a_claim_that_is_false_is_refuted() -> None:
    """Not every statement is proved."""

    def claim(*given: Any) -> Iterator[Claim]:
        yield from islice(comes_back.claim(*given), 1)
        yield Claim("there is one layer", given[2].layer == 0)

    result = check(changed(claim=claim))

    assert "refuted" == result.status
    assert "not true: there is one layer" in result.details


def test_unknown_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that gives up has proved nothing."""

    def hasty(text: str, seed: int = 0, rlimit: int = RLIMIT) -> Answer:
        return ask(text, seed, min(rlimit, 10))

    for module in (check.__module__, ask.__module__):
        monkeypatch.setattr(sys.modules[module], "ask", hasty)

    assert "unknown" == check(KEY_COMES_BACK).status


def test_other_seeds_find_the_same() -> None:
    """A proof does not hang on the solver's luck."""
    (theorem,) = commit_stays.THEOREMS
    result = check(theorem, Effort(seeds=3))

    assert "proved" == result.status
