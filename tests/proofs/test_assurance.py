"""The text that says what is proved, what is tested and what is neither."""

from __future__ import annotations

from proofs.assurance import BEGIN, END, HEADING, placed, statements, text
from proofs.check import Result
from proofs.theorems import THEOREMS


def results() -> list[Result]:
    """As if everything had been proved with ease."""
    return [
        Result(t.name, "proved", 0.0, 0, 1, 10, len(t.planted), ()) for t in THEOREMS
    ]


def test_every_clause_is_in_one_of_the_three_parts() -> None:
    section = text(results())

    assert section.startswith(f"## {HEADING}")
    for row in statements(THEOREMS):
        assert 1 == section.count(f"| {row.clause.id} |"), row.clause.id
    assert f"{len(THEOREMS)} theorems ({10 * len(THEOREMS)} obligations" in section


def test_what_is_about_the_runtime_alone_is_not_called_proved() -> None:
    proved, _, rest = text(results()).partition("### Tested, not proved")

    assert "| INV-OWNER |" in proved
    assert "| LIFE-NEXT |" in rest
    assert "| DEV-BITS |" in rest


def test_the_section_replaces_the_one_before() -> None:
    once = placed("# Title\n\nText.\n", "old")
    again = placed(once + "\nMore.\n", "new")

    assert "old" in once
    assert "old" not in again
    assert again.startswith("# Title\n\nText.\n")
    assert again.endswith("\nMore.\n")
    assert again.count(BEGIN) == again.count(END) == 1


def test_without_a_file_there_is_a_new_one() -> None:
    assert placed("", "new").startswith("# Assurance")
