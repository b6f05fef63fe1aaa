"""Reading the result of a `ServeTask`: time and energy per generated token, by part.

Runs of the same steps serve different numbers of tokens, so everything is per token
that a decode generates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Final, Literal

import attrs
import numpy as np

from patton.device.aim.presets import DEFAULT_PRESET, load_preset
from patton.errors import ConfigError
from patton.study.estimates import Estimate
from patton.study.prefill import A100_PCIE
from patton.study.tasks import Result

Cost = Literal["latency", "energy"]
COSTS: Final[tuple[Cost, ...]] = ("latency", "energy")
UNITS: Final[Mapping[Cost, str]] = {"latency": "us/token", "energy": "uJ/token"}

# Parts of the paper's Fig. 7, and the phases of a step that they are made of. Reading
# cached Keys and Values back for the prefill of what follows them is not in the figure.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Key write": ("key_write",),
    "Value write": ("value_write", "commit"),
    "QK": ("qk",),
    "SV": ("sv", "partial"),
    "read-back": ("read_key", "read_value"),
}
ATTENTION: Final = ("Key write", "Value write", "QK", "SV")
PREFILL: Final = "prefill"

_KINDS: Final[Mapping[Cost, str]] = {"latency": "cycles", "energy": "energy_pj"}


@attrs.frozen(eq=False)
class Measured:
    """A run's result. latency is in us per token, energy in uJ per token."""

    result: Result

    def __attrs_post_init__(self) -> None:
        known = {phase for phases in PARTS.values() for phase in phases}
        unknown = self.result["cycles"].keys() - known
        if unknown:
            accepted = "a phase that a part of PARTS has"
            raise ConfigError("study", "phases", sorted(unknown), accepted)

    @property
    def tokens(self) -> int:
        """Tokens that decodes generated."""
        return int(self.result["drivers"]["decode tokens"])

    def part(self, cost: Cost, *parts: str) -> float:
        """Of parts of PARTS or PREFILL, added up."""
        pim = [part for part in parts if part != PREFILL]
        found = self._estimate(cost, pim).total * _scale(cost) / self.tokens
        return found + (self.prefill(cost) if PREFILL in parts else 0.0)

    def standard_error(self, cost: Cost, *parts: str) -> float:
        """Of `part`, for what the sample of timed steps leaves open."""
        pim = [part for part in parts if part != PREFILL]
        return self._estimate(cost, pim).standard_error * _scale(cost) / self.tokens

    def total(self, cost: Cost, gpu: str = "seconds") -> float:
        """All parts and runtime-induced prefill."""
        return self.part(cost, *PARTS) + self.prefill(cost, gpu)

    def usage(self) -> tuple[float, float]:
        """Part of the memory that is taken, and part of that which holds tokens."""
        taken, full = zip(*self.result["usage"], strict=True)
        return mean(taken), mean(full)

    def prefill(self, cost: Cost, gpu: str = "seconds") -> float:
        """What the runtime's misses cost: the difference of two totals.

        gpu: "seconds", or "seconds_slow" for the lower efficiency.
        """
        prefill = self.result["prefill"]
        seconds = prefill[gpu] - prefill["required_" + gpu]
        if cost == "energy":
            seconds = A100_PCIE.watts * seconds
        return float(seconds) * 1e6 / self.tokens

    def decode_only(self, cost: Cost, phases: Iterable[str]) -> float:
        """Sum over the timed steps in which nothing was prefilled (us, or uJ).

        Raises ConfigError if there was none.
        """
        chosen = [prefill == 0 for _, prefill, *_ in self.result["timed"]]
        if not any(chosen):
            accepted = "at least 1; time more steps"
            raise ConfigError("study", "timed steps without prefill", 0, accepted)
        costs = self.result[_KINDS[cost]]
        sampled = [costs[phase]["sampled"] for phase in phases if phase in costs]
        rows = (sum(step) for step in zip(*sampled, strict=True))
        kept = (row for row, wanted in zip(rows, chosen, strict=False) if wanted)
        return float(sum(kept)) * _scale(cost)

    def _estimate(self, cost: Cost, parts: Iterable[str]) -> Estimate:
        costs = self.result[_KINDS[cost]]
        samples = len(self.result["timed"])
        steps = self.result["statistics"]["steps"]
        total = Estimate(0.0, np.zeros(samples), 0, steps)
        for part in parts:
            for phase in PARTS[part]:
                if phase in costs:
                    found = costs[phase]
                    residuals = np.array(found["residuals"])
                    fitted = found["fitted"]
                    total += Estimate(found["total"], residuals, fitted, steps)
        return total


def _scale(cost: Cost) -> float:
    """Microseconds of a cycle, or microjoules of a picojoule."""
    if cost == "energy":
        return 1e-6
    return load_preset(DEFAULT_PRESET).cycle_ns * 1e-3
