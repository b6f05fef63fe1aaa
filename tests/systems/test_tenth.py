"""The worked example of docs/adding-a-system.md does what all systems must do."""

from __future__ import annotations

import runpy
from pathlib import Path

from patton.commands import Phase
from patton.steps import Step
from patton.systems import System
from patton.systems.counts import counts_of
from patton.systems.table import Row, row
from tests.systems.scene import MODELS, Scene, served

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "tenth_system.py"
LINES_BELOW = 150


def tenth() -> System:
    """The system of the example."""
    found = runpy.run_path(str(EXAMPLE))["STAYING"]
    assert isinstance(found, System)
    return found


def test_it_is_short() -> None:
    """As the guide says."""
    lines = len(EXAMPLE.read_text(encoding="utf-8").splitlines())

    assert lines < LINES_BELOW
    guide = (ROOT / "docs" / "adding-a-system.md").read_text(encoding="utf-8")
    assert f"in {lines} lines" in guide


def test_attention_is_right() -> None:
    """On the device, proved, for both shapes of models."""
    for model in MODELS:
        scene = Scene.of(tenth(), model)
        for step, result in served(scene, 60):
            assert scene.error(step, result) < 0.02


def test_it_has_a_row_and_counts() -> None:
    """One row for each token and head; counts without streams."""
    scene = Scene.of(tenth())
    step = Step()
    scene.write(step, "a", 1)
    scene.read(step, "a")
    placed = scene.memory.apply(step)

    assert Row(True, "no", True, "efficient", False) == row(tenth())
    assert counts_of(placed.streams().present(), 32) == placed.counts()
    assert 8 == placed.counts()[Phase.VALUE_WRITE].activations
