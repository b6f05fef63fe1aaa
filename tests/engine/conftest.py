"""Every engine test steps the specification beside the runtimes that it makes."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _specified(specification: object) -> None:
    """See `tests.specified`."""
