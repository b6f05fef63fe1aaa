"""The placement systems of the paper's Table 1 behind one interface (Paper 3.3).

`system("attacc").on(device, model)` is an empty memory; what it answers is said in
`patton.systems.system`. `run_layer` executes what it makes of a step, `TermValidator`
proves it, `table1` works the table out.
"""

from __future__ import annotations

from patton.systems.attention import run_layer
from patton.systems.provenance import TermValidator
from patton.systems.registry import SYSTEMS, system
from patton.systems.system import (
    Claim,
    Counts,
    Declaration,
    Memory,
    PlacedStep,
    System,
    Usage,
)
from patton.systems.table import differences, table1

__all__ = [
    "SYSTEMS",
    "Claim",
    "Counts",
    "Declaration",
    "Memory",
    "PlacedStep",
    "System",
    "TermValidator",
    "Usage",
    "differences",
    "run_layer",
    "system",
    "table1",
]
