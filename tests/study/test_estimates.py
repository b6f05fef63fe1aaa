"""The regression estimator: exact where it can be, honest where it cannot."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from patton.errors import ConfigError
from patton.study.estimates import Estimate, Sample


def test_all_steps_timed_leave_nothing_open() -> None:
    """The total is the sum, whatever the costs have to do with the counts."""
    costs = [3.0, 1.0, 4.0, 1.0, 5.0]
    counts = [[1], [7], [2], [9], [0]]
    found = Sample.of(counts, range(5)).estimate(costs)

    assert 14.0 == pytest.approx(found.total)
    assert 0.0 == found.standard_error


def test_costs_that_follow_from_the_counts_are_found_from_a_few_steps() -> None:
    """2 + 3 a + 5 b, of which three steps tell all: no error is left."""
    counts = [[step % 7, step // 7] for step in range(100)]
    costs = [2 + 3 * a + 5 * b for a, b in counts]
    timed = [3, 30, 50, 71, 90]
    found = Sample.of(counts, timed).estimate([costs[step] for step in timed])

    assert sum(costs) == pytest.approx(found.total)
    assert 0.0 == pytest.approx(found.standard_error, abs=1e-6)
    assert 3 == found.fitted


def test_without_counts_the_sample_mean_is_expanded() -> None:
    """Sampled 1, 2 and 6 of 12 steps: 36, and the textbook's error of a mean."""
    found = Sample.of([[0]] * 12, [0, 4, 8]).estimate([1.0, 2.0, 6.0])
    variance = ((1 - 3) ** 2 + (2 - 3) ** 2 + (6 - 3) ** 2) / 2

    assert 36.0 == pytest.approx(found.total)
    assert 12 * (0.75 * variance / 3) ** 0.5 == pytest.approx(found.standard_error)


def test_errors_are_as_large_as_they_say() -> None:
    """Over 200 seeded runs: no bias, and two of three totals within one error."""
    random = np.random.default_rng(5)
    counts = random.integers(1, 40, (1000, 2)).astype(float)
    costs = 10 + counts @ [7.0, 2.0] + random.normal(0, 25, 1000)
    misses = []
    for _ in range(200):
        timed = np.sort(random.choice(1000, 50, replace=False))
        found = Sample.of(counts, timed.tolist()).estimate(costs[timed])
        misses.append((found.total - costs.sum()) / found.standard_error)

    assert 0.2 > abs(np.mean(misses))
    assert 0.68 == pytest.approx(np.mean(np.abs(misses) < 1), abs=0.1)


def test_estimates_of_one_sample_add_up_with_their_residuals() -> None:
    """Opposite residuals cancel: the sum of two parts may be known better than each."""
    one = Estimate(10.0, np.array([1.0, -1.0, 2.0]), 1, 9)
    two = Estimate(20.0, np.array([-1.0, 1.0, -2.0]), 1, 9)

    assert one.standard_error > 0
    assert (30.0, 0.0) == ((one + two).total, (one + two).standard_error)


def test_a_sample_too_small_for_its_fit_says_so() -> None:
    """Two steps, two numbers fitted: nothing is known of the error."""
    found = Sample.of([[step] for step in range(9)], [2, 6]).estimate([4.0, 8.0])

    assert 2 == found.fitted
    assert inf == found.standard_error


def test_an_empty_sample_is_refused() -> None:
    """A run shorter than the distance between timed steps."""
    with pytest.raises(ConfigError, match="timed steps is 0"):
        Sample.of([[1]], [])
