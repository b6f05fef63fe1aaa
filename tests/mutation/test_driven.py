"""Short seeded runs of the runtime beside the specification, one test each."""

from __future__ import annotations

import pytest

from fuzz.driver import drive


@pytest.mark.parametrize("seed", range(24))
def test_a_driven_run_is_allowed(seed: int) -> None:
    done = drive(f"mutation {seed}", 200, "everything")

    assert done.failure is None
