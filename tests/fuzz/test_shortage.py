"""Memory is denied at each request for it: typed, without a trace, and it goes on."""

from __future__ import annotations

import pytest

from fuzz.bugs import catalogue
from fuzz.shortage import starved


@pytest.mark.parametrize("seed", range(8))
def test_every_denial_is_refused_and_undone(seed: int) -> None:
    denials, failure = starved(seed, 60)

    assert failure is None
    assert denials > 0


@pytest.mark.parametrize(
    "name", ["a refused step keeps its blocks", "a refused step counts its releases"]
)
def test_a_trace_is_found(name: str) -> None:
    with catalogue()[name].planted():
        found = [starved(seed, 60)[1] for seed in range(6)]

    assert "LIFE-ATOMIC" in {failure.clause for failure in found if failure}
