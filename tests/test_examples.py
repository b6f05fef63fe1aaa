"""Every example runs as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import patton

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LINES_BELOW = 80


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    """It ends in success, says something, and warns of nothing."""
    paths = [str(Path(patton.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    child = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (child.returncode, child.stderr)
    assert child.stdout


def test_embedding_takes_one_page() -> None:
    """An engine's whole side of the interface fits on one page."""
    source = (ROOT / "examples" / "embed.py").read_text(encoding="utf-8")

    assert len(source.splitlines()) < LINES_BELOW
