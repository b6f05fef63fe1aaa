"""Every seeded bug is caught by the clause that it names, but for the one that is none.

All of them by `python -m fuzz bugs`; here those that take little time.
"""

from __future__ import annotations

import pytest

from fuzz.bugs import NOTHING, Bug, catalogue, hunt
from fuzz.targets import CANARY, canary
from spec.clauses import SPEC, clauses, column

BUGS = [*catalogue().values()]
QUICK = [planted for planted in BUGS if not planted.slow]


@pytest.mark.parametrize("planted", QUICK, ids=lambda planted: planted.name)
def test_a_bug_is_caught_by_its_clause(planted: Bug) -> None:
    found = hunt(planted)

    assert found.caught == (planted.clause is not None), found.others


def test_the_catalogue_is_large_and_names_clauses() -> None:
    known = {clause.id for clause in clauses(SPEC.read_text(encoding="utf-8"))}

    assert len(BUGS) > 40
    assert {planted.clause for planted in BUGS} - {None} <= known
    assert {planted.clause for planted in BUGS} - {None} == {*column("planted")}
    assert [NOTHING] == [planted.name for planted in BUGS if planted.clause is None]


def test_what_is_planted_is_taken_out_again() -> None:
    for planted in BUGS:
        before = vars(planted.owner)[planted.attribute]
        with planted.planted():
            assert vars(planted.owner)[planted.attribute] is not before
        assert vars(planted.owner)[planted.attribute] is before


def test_the_canary_fails() -> None:
    failure = canary(1, 60.0).failure

    assert failure is not None
    assert catalogue()[CANARY].clause == failure.clause
