"""The paper's Table 1 is worked out, and where it differs the reason is known."""

from __future__ import annotations

import pytest

from patton.config import aim_gddr6, model_preset
from patton.systems import SYSTEMS, system
from patton.systems.table import (
    NAMES,
    PAPER,
    REASONS,
    differences,
    measure,
    row,
    table1,
)

OPT, LLAMA = model_preset("opt-6.7b"), model_preset("llama3-8b")


def test_the_table_is_the_papers_but_for_known_reasons() -> None:
    """Five columns of nine systems; four entries differ."""
    rows = table1()
    found = differences(rows)

    assert list(PAPER) == list(rows)
    assert {
        ("NeuPIMs", "mapping", True),
        ("AttAcc", "mapping", True),
        ("CENT", "mapping", True),
        ("AttenPIM", "dynamic", True),
    } == {(d.title, d.column, d.here) for d in found}
    assert REASONS.keys() == {(d.title, d.column) for d in found}
    assert all(d.reason and d.here != d.paper for d in found)


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_the_model(name: str) -> None:
    """What a system allocates and shares is the same where heads have four channels."""
    here = row(SYSTEMS[name](), model=LLAMA)
    there = row(SYSTEMS[name](), model=OPT)

    assert there._replace(writes=here.writes) == here


def test_values_in_one_row_would_be_written_well() -> None:
    """The other readings of two systems, which the paper's table does not have."""
    for found in (
        system("blockpim", value_layout="in_row"),
        system("pimphony", chunk="in_row"),
    ):
        assert "efficient" == row(found).writes
        assert 1.0 == measure(found, aim_gddr6(), OPT).value_activations


def test_a_system_that_the_paper_does_not_have_differs_from_nothing() -> None:
    """A tenth has a row of its own."""
    (found,) = table1(["patton"]).values()
    assert not differences({"Twin": found._replace(dynamic=False)})


def test_a_difference_without_a_reason_is_seen() -> None:
    """A system that does not do what it did."""
    rows = table1(["patton"])
    (wrong,) = differences({"PATTON": rows["PATTON"]._replace(dynamic=False)})

    assert ("dynamic", False, True, "") == wrong[1:]


def test_all_systems_are_declared() -> None:
    """With their assumptions and where these come from."""
    titles = {name: make().declaration.title for name, make in SYSTEMS.items()}

    assert set(NAMES) <= titles.keys()
    assert set(PAPER) == set(titles.values())
    for make in SYSTEMS.values():
        found = make()
        assert found.declaration.claims
        assert found.name in SYSTEMS
        assert system(found.name, **found.options).options == found.options
