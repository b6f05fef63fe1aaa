"""Every clause is stated or proved, tested and attacked, and no id is an orphan."""

from __future__ import annotations

import re

import attrs
import pytest

from spec import __main__ as command
from spec.clauses import COLUMNS, NEEDS, Clause, reasons
from spec.trace import Trace

FOUND = Trace.read()
# Written so that this file does not name a clause that is none.
ONE, OTHER = "INV-" + "SOMETHING", "INV-" + "NOTHING"


def traced(**columns: str) -> Trace:
    """One clause, which some columns name, all others being empty."""
    known = [Clause(ONE, "It is.", "4.2")]
    named: dict[str, dict[str, list[str]]] = {name: {} for name in COLUMNS} | {
        n: {i: ["a.py"]} for n, i in columns.items()
    }
    return Trace(known, named, {})


def test_every_clause_has_all_it_needs_or_a_reason_why_not() -> None:
    assert [] == [*FOUND.faults()]


def test_most_clauses_need_no_reason() -> None:
    assert len(FOUND.reasons) < len(FOUND.clauses) / 4
    assert all(len(reason.split()) > 8 for reason in FOUND.reasons.values())


def test_a_clause_that_has_everything_is_no_fault() -> None:
    for formal in NEEDS["statement"]:
        assert [] == [*traced(tested=ONE, planted=ONE, **{formal: ONE}).faults()]


@pytest.mark.parametrize("need", NEEDS)
def test_what_is_missing_is_told(need: str) -> None:
    """Unless there is a reason; a reason for what is there is told as well."""
    everything = {"stated": ONE, "tested": ONE, "planted": ONE}
    left = {n: i for n, i in everything.items() if n not in NEEDS[need]}
    without = traced(**left)
    excused = attrs.evolve(without, reasons={(ONE, need): "so it is"})

    (fault,) = without.faults()
    assert fault == f"{ONE} has no {need}, and SPEC.md does not say why"
    assert "WHY?" in without.table()
    assert [] == [*excused.faults()]
    assert f"No {need}: so it is" in excused.table()
    needless = attrs.evolve(traced(**everything), reasons=excused.reasons)
    assert [f"{ONE} has a {need}: no reason is needed why not"] == [*needless.faults()]


@pytest.mark.parametrize("name", COLUMNS)
def test_an_orphan_is_told(name: str) -> None:
    """An id that no clause has, in any folder."""
    told = [*traced(**{name: OTHER}).faults()]

    assert f"no such clause: {OTHER} ({name} in a.py)" in told


def test_a_reason_names_clauses_that_there_are() -> None:
    trace = attrs.evolve(traced(), reasons={(OTHER, "bug"): "so it is"})

    assert f"no such clause: {OTHER} (excused)" in [*trace.faults()]


def test_reasons_are_read() -> None:
    row = f"| bug | {ONE}, {OTHER} | There is none. |\n"

    assert reasons(row) == dict.fromkeys(
        [(ONE, "bug"), (OTHER, "bug")], "There is none."
    )


def test_the_command_tells_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Trace, "read", lambda: traced(cited=OTHER))

    assert command.main() == 1
    told = capsys.readouterr()
    assert f"no such clause: {OTHER}" in told.err
    assert re.search(rf"^{ONE} ", told.out, flags=re.MULTILINE)
