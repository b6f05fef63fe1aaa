"""Results of the public simulator, handed over beside the repository."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patton.device.aim import AimResult

FOLDER = Path(
    os.environ.get("PATTON_GOLDEN", "")
    or Path(__file__).resolve().parents[4] / "shared" / "golden"
)
VARIANTS = ("head", "pin")

needs_golden = pytest.mark.skipif(
    not (FOLDER / "aim" / "golden.json").is_file(),
    reason=f"no golden results in {FOLDER}; PATTON_GOLDEN names another folder",
)


def golden_cases() -> dict[str, Any]:
    """The hand-made cases by name, each with results by variant."""
    found: dict[str, Any] = json.loads((FOLDER / "aim" / "golden.json").read_text())
    return found


def random_cases() -> Iterator[dict[str, Any]]:
    """The random traces with results by variant."""
    with gzip.open(FOLDER / "aim_random.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def differences(expected: dict[str, Any], result: AimResult) -> list[str]:
    """Where a result is not what the simulator printed."""
    found = []
    if expected["cycles"] != result.cycles:
        found.append(f"cycles {expected['cycles']} != {result.cycles}")
    own = {str(channel): counts for channel, counts in result.commands.items()}
    if expected["commands"] != own:
        found.append(f"commands {expected['commands']} != {own}")
    for name in ("active_cycles", "precharged_cycles"):
        cycles = getattr(result, name)
        for channel, number in expected[name].items():
            if number != cycles[int(channel)]:
                found.append(f"{name} of {channel}: {number} != {cycles[int(channel)]}")
    return found
