from __future__ import annotations

import pytest

from patton.layout import Layout
from proofs.layouts import many_layouts, small_layouts
from proofs.swaps import swapped
from proofs.sweep import main, prove_on, sample, swept
from proofs.theorems import THEOREMS

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


def test_what_is_swept_is_about_layouts() -> None:
    """All but that two places of a kind differ, which follows from coming back."""
    names = {theorem.name for theorem in swept()}
    about = {t.name for t in THEOREMS if t.is_about_layouts and not t.branches}

    assert {"CMD-RUNS", "DEV-ALONE"} < {theorem.clause for theorem in swept()}
    assert about - names == {
        f"{kind}_and_{kind}_share_no_address" for kind in ("key", "value", "slot")
    }


def test_a_number_that_does_not_fit_is_a_failure() -> None:
    """Arrays hold 64 bits; a larger number on the way wraps, also if it comes back."""
    layout, large = small_layouts()[-1], 2**62
    with swapped(
        "addresses.key_address", "token % m.banks", f"token % m.banks + 4 * {large}"
    ):
        failures = prove_on(layout).failures

    assert any("key_comes_back: operators refuted on" in text for text in failures)


def test_the_command_ends_with_status_1_on_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with swapped("addresses.key_address", "token % m.banks", "0"):
        assert 1 == main(["--count", "1", "--jobs", "1"])

    assert "key_comes_back" in capsys.readouterr().out
