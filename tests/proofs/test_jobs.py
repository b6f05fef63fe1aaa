"""Work in several processes comes back as work in this one does."""

from __future__ import annotations

import pytest

from proofs.jobs import in_order


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_in_the_order_of_things(jobs: int) -> None:
    assert list(map(abs, range(-9, 9))) == list(in_order(abs, range(-9, 9), jobs))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_through(jobs: int) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(in_order(int, ["1", "one"], jobs))
