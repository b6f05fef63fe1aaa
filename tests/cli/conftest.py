"""The command as tests call it; without the extra `cli` there is nothing to test."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from click.testing import Result

EXTRA = ("click", "rich", "PIL")
collect_ignore_glob = [] if all(map(find_spec, EXTRA)) else ["test_*.py"]


@pytest.fixture
def patton() -> Callable[..., Result]:
    """Runs `patton` with these words, in this process."""
    from click.testing import CliRunner  # noqa: PLC0415  (may not be installed)

    from patton.cli.main import main  # noqa: PLC0415

    def run(*words: object) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        # Whatever is not an exit is a defect that a user would see as a traceback.
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
