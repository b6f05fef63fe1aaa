"""The same MACs in one piece and in several (Paper 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from patton.device.aim import simulate
from patton.device.aim.energy import PUBLISHED_COMPONENTS, load_energy_model
from patton.study.experiments.experiment import Experiment, Results
from patton.study.plots import Axes, Plot, bars
from patton.study.results import Figure
from patton.study.settings import Settings
from patton.study.tasks import Result

NAME = "fragmentation"
ROW_BURSTS = 64
PIECES = (1, 2, 4, 8, 16)
PAPER_PIECES = 8
CHANNEL = 31  # of the trace's mask 1


@attrs.frozen
class FragmentTask:
    """A row of 64 bursts on one channel, its MACs cut into `pieces` results."""

    pieces: int
    variant: str

    def execute(self) -> Result:
        """Cycles, and energy of the channel as the published comparison adds it up."""
        length = ROW_BURSTS // self.pieces
        piece = f"AiM WR_BIAS 0 1\nAiM MAC_ABK {length} 1 7\nAiM RD_MAC 0 1\n"
        trace = f"AiM WR_GB {ROW_BURSTS} 0 1\n{piece * self.pieces}AiM EOC\n"
        result = simulate(trace, variant=self.variant)
        energy = load_energy_model().of_channel(result, CHANNEL)
        picojoules = sum(energy[name] for name in PUBLISHED_COMPONENTS)
        return {"cycles": result.cycles, "energy_pj": picojoules}


def tasks(settings: Settings) -> list[FragmentTask]:
    """Every number of pieces."""
    return [FragmentTask(pieces, settings.variant) for pieces in PIECES]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Cycles and energy, and both relative to one piece."""
    found = []
    whole = results[FragmentTask(1, settings.variant)]
    for task in tasks(settings):
        result, system = results[task], f"{task.pieces} pieces"
        ratios = {name: result[name] / whole[name] for name in result}
        paper = task.pieces == PAPER_PIECES
        rows = (
            ("cycles", result["cycles"], "cycles", None),
            ("energy", result["energy_pj"], "pJ", None),
            ("latency ratio", ratios["cycles"], "x", 2.18 if paper else None),
            ("energy ratio", ratios["energy_pj"], "x", 1.34 if paper else None),
        )
        found += [Figure(NAME, "any", system, *row) for row in rows]
    return found


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Ratios over the number of pieces."""
    values: dict[str, dict[str, float]] = {"latency": {}, "energy": {}}
    for figure in found:
        name = figure.quantity.removesuffix(" ratio")
        if figure.unit == "x":
            values[name][figure.system.removesuffix(" pieces")] = figure.value
    return [
        bars(
            "2 KB of MACs, cut into pieces",
            "One row of 64 bursts on one channel. Each piece ends with a mode switch, "
            "a read-out and the next bias. The paper's 2.18 and 1.34 are at 8 pieces.",
            values,
            Axes("pieces of the row", "relative to one piece"),
        )
    ]


EXPERIMENT = Experiment(
    NAME,
    "Fragmented reductions",
    "A row of 64 bursts is multiplied in one run, and cut into equal pieces that are "
    "each initialised and read out. Energy is that of the channel in use, with the "
    "components that the published script adds up.",
    tasks,
    figures,
    plots,
)
