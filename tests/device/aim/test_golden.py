"""Agreement with the public simulator, cycle for cycle and command for command."""

from __future__ import annotations

import pytest

from patton.device.aim import simulate
from tests.device.aim.golden import (
    FOLDER,
    VARIANTS,
    differences,
    golden_cases,
    needs_golden,
    random_cases,
)

pytestmark = needs_golden


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_cases(variant: str) -> None:
    """Cycles, commands of every channel, active and precharged cycles are equal."""
    cases = golden_cases()
    found = {
        name: differences(
            case[variant],
            simulate(FOLDER / "aim" / f"{name}.trace", variant=variant),
        )
        for name, case in cases.items()
    }

    assert 18 == len(cases)
    assert {} == {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize("variant", VARIANTS)
def test_random_traces(variant: str) -> None:
    """The same on random traces of all instructions."""
    found = [
        differences(case[variant], simulate(case["trace"], variant=variant))
        for case in random_cases()
    ]

    assert 119 <= len(found)
    assert [] == [lines for lines in found if lines]


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_cases_without_merging(variant: str) -> None:
    """Each channel simulated by itself gives the same."""
    found = [
        differences(
            case[variant],
            simulate(FOLDER / "aim" / f"{name}.trace", variant=variant, merging=False),
        )
        for name, case in golden_cases().items()
    ]

    assert [] == [lines for lines in found if lines]
