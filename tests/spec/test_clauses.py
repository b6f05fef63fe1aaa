from __future__ import annotations

import re
import subprocess
import sys

import pytest

from spec.claims import CHANGED_BY, conserved, steady
from spec.clauses import ROOT, SPEC, Clause, clauses
from spec.effects import effects
from spec.enabled import enabled
from spec.invariants import invariants
from spec.machine import TRANSITIONS, move_of
from tests.spec.test_machine import a_walk

KNOWN = {clause.id: clause for clause in clauses(SPEC.read_text(encoding="utf-8"))}


def test_a_clause_is_one_sentence_with_its_source() -> None:
    for clause in KNOWN.values():
        assert clause.sentence.endswith("."), clause.id
        assert not re.search(r"[.] [A-Z]", clause.sentence), clause.id
        sources = clause.paper.split(", ")
        assert all(re.fullmatch(r"\d(\.\d)?|ours", source) for source in sources)


def test_the_sections_are_the_kinds_of_ids() -> None:
    text = SPEC.read_text(encoding="utf-8")
    kinds = re.findall(r"^## ([A-Z]+): ", text, flags=re.MULTILINE)

    assert ["INV", "LIFE", "STEP", "MAP", "CMD", "DEV"] == kinds
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1 : len(kinds) + 1]
    for kind, section in zip(kinds, sections, strict=True):
        found = [clause.id for clause in clauses(section)]
        assert found
        assert all(name.startswith(f"{kind}-") for name in found)


def test_two_clauses_with_one_id_are_refused() -> None:
    row = "| INV-PAIR | A pair is a pair. | 4.2 |\n"
    assert [Clause("INV-PAIR", "A pair is a pair.", "4.2")] == clauses(row)
    with pytest.raises(ValueError, match="INV-PAIR"):
        clauses(row + row)


def test_every_clause_of_the_formal_side_is_defined() -> None:
    """Guards and claims name only clauses of SPEC.md."""
    walk = a_walk(1)
    lg, s = walk.lg, walk.s
    named = {clause for clause, *_ in CHANGED_BY.values()}
    for claims in (invariants(lg, s), conserved(lg, s, s), steady(lg, s, s)):
        named |= {*claims}
    named |= {*enabled(lg, s)}
    for name in TRANSITIONS:
        arguments = [0] * len(walk.arguments(name))
        named |= {*move_of(lg, s, name, *arguments).guard}
        named |= {*effects(lg, s, s, name, *arguments)}

    assert set() == named - KNOWN.keys()
    states = {name for name in KNOWN if name.startswith("INV-")}
    assert states <= named


def test_the_command_prints_every_clause() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "spec"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (run.returncode, run.stderr)
    for clause in KNOWN.values():
        assert clause.sentence in run.stdout
        assert re.search(rf"^{clause.id}\b", run.stdout, flags=re.MULTILINE)
