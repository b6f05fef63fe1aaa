"""Hypothesis profiles and the folders of data that live outside the repository.

With CI set, Hypothesis loads a profile of its own that repeats the same cases in
every run, and profiles inherit from it what they leave out.  So each profile here
says what its randomness is, one is always loaded by name, and random runs print the
seed that repeats them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).resolve().parents[1]
RANDOM_PROFILES = ("ci", "deep")
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")

settings.register_profile(
    "dev",
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
)
settings.register_profile(
    "ci",
    max_examples=1_000,
    stateful_step_count=60,
    deadline=None,
    derandomize=False,
    database=None,
    print_blob=True,
)
settings.register_profile(
    "deep",
    max_examples=20_000,
    stateful_step_count=100,
    deadline=None,
    derandomize=False,
    database=None,
    print_blob=True,
)
# Shrinking and reporting cost most of the time of a mutation run and decide nothing.
settings.register_profile(
    "mutation",
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of a random run before Hypothesis reads its option."""
    if PROFILE in RANDOM_PROFILES and config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(secrets.randbelow(2**32))


def _replay(config: pytest.Config) -> str:
    seed = config.getoption("hypothesis_seed")
    if seed is None:
        return f"hypothesis cases: profile {PROFILE}, the same in every run"
    return (
        f"hypothesis cases: profile {PROFILE}, seed {seed}; repeat with "
        f"HYPOTHESIS_PROFILE={PROFILE} pytest --hypothesis-seed={seed}"
    )


def pytest_report_header(config: pytest.Config) -> str:
    """Say which cases this run draws, before any test can hang."""
    return _replay(config)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Say it again where a failure is read; quiet runs have no header."""
    if exitstatus != 0:
        terminalreporter.write_line(_replay(config))


def _outside_folder(variable: str, name: str) -> Path:
    default = ROOT.parent / "shared" / name
    folder = Path(os.environ.get(variable) or default).resolve()
    if not folder.is_dir():
        pytest.skip(f"no {name} folder: set {variable} to it")
    return folder


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of recorded workloads, from PATTON_DATA."""
    return _outside_folder("PATTON_DATA", "data")


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """The folder of results measured elsewhere, from PATTON_GOLDEN."""
    return _outside_folder("PATTON_GOLDEN", "golden")


@pytest.fixture
def specification() -> Iterator[object]:
    """The specification runs beside every runtime of the test (`tests.specified`)."""
    from tests.specified import specified  # noqa: PLC0415  (few tests need the folders)

    with specified() as found:
        yield found
