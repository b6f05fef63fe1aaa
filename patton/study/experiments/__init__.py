"""The experiments of a study, by name."""

from __future__ import annotations

from collections.abc import Mapping

from patton.study.experiments import (
    capacity,
    commit_zone,
    comparison,
    fragmentation,
    scaling,
    schedules,
    shares,
)
from patton.study.experiments.experiment import Experiment

# In the order of the paper, then what goes beyond it.
EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        shares.WRITES,
        shares.PREFILLS,
        fragmentation.EXPERIMENT,
        commit_zone.EXPERIMENT,
        comparison.EXPERIMENT,
        capacity.EXPERIMENT,
        schedules.EXPERIMENT,
        scaling.EXPERIMENT,
    )
}
