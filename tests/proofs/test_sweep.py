from __future__ import annotations

import pytest

from patton.layout import Layout
from proofs.layouts import many_layouts, small_layouts
from proofs.swaps import swapped
from proofs.sweep import main, prove_on, sample, swept

LAYOUTS = many_layouts()


def test_there_are_a_thousand_geometries_of_every_kind() -> None:
    """Stripes, folds, padding, several bursts to a token group, and none of these."""
    kinds = {
        (layout.stripes > 1, layout.folds > 1, layout.padding_bytes > 0)
        for layout in LAYOUTS
    }

    assert 1000 <= len({layout.map for layout in LAYOUTS})
    assert 6 == len(kinds)  # stripes and folds exclude each other
    assert {16, 32, 64} <= {layout.block_tokens for layout in LAYOUTS}


@pytest.mark.parametrize("layout", sample(LAYOUTS, 3))
def test_theorems_hold_on_a_layout(layout: Layout) -> None:
    """Proved with the true operators, and nothing overflows."""
    outcome = prove_on(layout)

    assert () == outcome.failures
    assert len(swept()) == outcome.statements
    assert 10 * outcome.statements < outcome.obligations


def test_a_failure_names_theorem_and_layout() -> None:
    """The sweep can fail."""
    layout = small_layouts()[-1]
    with swapped("addresses.value_address", "element % m.banks", "element % m.lanes"):
        failures = prove_on(layout).failures

    assert any("value_comes_back: claims refuted on" in text for text in failures)


def test_the_command_reports_its_count(capsys: pytest.CaptureFixture[str]) -> None:
    """A line with what was proved, and the status."""
    assert 0 == main(["--count", "1", "--jobs", "1"])
    assert "1 layouts" in capsys.readouterr().out
