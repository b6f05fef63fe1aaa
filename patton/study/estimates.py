"""Totals over all steps of a run from a sample of steps that were timed exactly.

What drives a step's cost is counted in every step, so the sample need only say how
costs depend on it: a regression estimator (Särndal, Swensson and Wretman, Model
Assisted Survey Sampling, chapter 6). Costs are fitted to the counts by least squares on
the sample; the total is that of the fit over all steps, plus what the sample's
residuals say of the rest. Its standard error follows from the residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from patton.errors import ConfigError

Floats = NDArray[np.float64]


@attrs.frozen(eq=False)
class Estimate:
    """A total, and what each sampled step contributes to its uncertainty.

    residuals [samples]: of the fit; fitted: numbers that the fit found; population:
    steps in all.
    """

    total: float
    residuals: Floats
    fitted: int
    population: int

    @property
    def standard_error(self) -> float:
        """Of the total, as if steps had been drawn at random; 0 if all were timed.

        Infinite where the sample is too small to have residuals.
        """
        samples = len(self.residuals)
        left_out = 1 - samples / self.population
        if left_out <= 0:
            return 0.0
        if samples <= self.fitted:
            return inf
        variance = float((self.residuals**2).sum()) / (samples - self.fitted)
        return self.population * sqrt(left_out * variance / samples)

    def __add__(self, other: Estimate) -> Estimate:
        """The sum of two totals over the same sample."""
        residuals = self.residuals + other.residuals
        fitted = max(self.fitted, other.fitted)
        total = self.total + other.total
        return Estimate(total, residuals, fitted, self.population)


@attrs.frozen(eq=False)
class Sample:
    """Which steps of a run were timed, and what was counted in all of them.

    counts [steps, drivers]: what a step's cost depends on; timed [samples]: the steps.
    """

    counts: Floats
    timed: NDArray[np.int64]

    @classmethod
    def of(cls, counts: ArrayLike, timed: Sequence[int]) -> Sample:
        """A sample. Raises ConfigError if it is empty."""
        if not timed:
            raise ConfigError("sample", "timed steps", 0, "at least 1")
        return cls(np.asarray(counts, np.float64), np.asarray(timed, np.int64))

    def estimate(self, costs: ArrayLike) -> Estimate:
        """The total of costs, given those of the timed steps [samples]."""
        known = np.asarray(costs, np.float64)
        drivers = np.column_stack([np.ones(len(self.counts)), self.counts])
        sampled = drivers[self.timed]
        # Columns of one size, so that the fit's rank does not hang on their units.
        scale = np.maximum(np.abs(drivers).max(axis=0), 1)
        fit = np.linalg.lstsq(sampled / scale, known, rcond=None)
        weights, rank = fit[0] / scale, int(fit[2])
        residuals = known - sampled @ weights
        population = len(drivers)
        total = float((drivers @ weights).sum() + population * residuals.mean())
        return Estimate(total, residuals, rank, population)
