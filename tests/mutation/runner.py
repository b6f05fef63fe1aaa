"""mutmut with the tests collected once: every mutant is a fork that runs its own tests.

mutmut starts pytest anew for each mutant, which costs more than the few tests that kill
it.  Here its fork server collects all tests once, unmutated, and each fork runs those
that reach the mutated function, up to a budget: first the tests that killed others of
its mutants or of its module's, then the fast ones.  Mutants, the map from functions to
tests and the results stay mutmut's own.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from _pytest.config import _prepareconfig
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import ForkServerRunner

BUDGET_SECONDS = 6.0  # of tests per mutant, as measured with the functions traced
PATIENCE = 8.0  # times what a test takes unmutated, and a second, is an endless loop
MEMORY_BYTES = 4 << 30  # an endless loop may also grow
TIMED_OUT = 24
KILLERS = Path("killers.txt")  # in the folder of mutants: function, test


class ProcessorTime:
    """Makes pytest report the processor time of a test: others may use the machine."""

    def __init__(self) -> None:
        self.start = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.start = process_time()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        call.duration = process_time() - self.start  # with what its fixtures take


class CollectedTests(PytestRunner):
    """A pytest session that is collected in the fork server and run in its forks."""

    def __init__(self, budget: float) -> None:
        super().__init__()
        self.budget = budget
        self.items: dict[str, pytest.Item] = {}

    def execute_pytest(self, params: list[str], **options: Any) -> int:
        """Run pytest as mutmut does, to list tests and to map functions to them."""
        plugins = [ProcessorTime(), *options.pop("plugins", [])]
        code: int = super().execute_pytest(params, plugins=plugins, **options)
        return code

    def warm_up(self) -> None:
        """Collect the selection of pyproject.toml."""
        with change_cwd("mutants"):
            config = _prepareconfig(
                [
                    "--rootdir=.",
                    "--tb=no",
                    "--assert=plain",
                    "--exitfirst",
                    "-p",
                    "no:unraisableexception",  # mutmut never closes its null device
                    *self._pytest_add_cli_args,
                    *self._pytest_add_cli_args_test_selection,
                ]
            )
            config._do_configure()
            session = pytest.Session.from_config(config)
            config.hook.pytest_sessionstart(session=session)
            session.perform_collect()
        self.items = {item.nodeid: item for item in session.items}

    def run_tests(self, *, mutant_name: str | None, tests: Iterable[str]) -> int:
        """Run tests until one fails; without a mutant, all of them, as for a mutant."""
        if mutant_name is None:
            self.warm_up()
            return 1 if self._killer([*tests] or [*self.items]) else 0
        function = mangled_name_from_mutant_name(mutant_name)
        with change_cwd("mutants"):
            seconds = {test: state().duration_by_test[test] for test in tests}
            killer = self._killer(ordered(seconds, killers(function), self.budget))
            if killer is None:
                return 0
            if [killer] != killers(function)[:1]:
                with KILLERS.open("a") as file:
                    file.write(f"{function} {killer}\n")
            return 1

    def _killer(self, tests: list[str]) -> str | None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        signal.signal(signal.SIGPROF, lambda *_: os._exit(TIMED_OUT))
        items = [self.items[test] for test in tests]
        for item, after in zip(items, [*items[1:], None], strict=True):
            limit = 1 + PATIENCE * state().duration_by_test.get(item.nodeid, 60)
            signal.setitimer(signal.ITIMER_PROF, limit)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            if item.session.testsfailed:
                signal.setitimer(signal.ITIMER_PROF, 0)
                return item.nodeid
        return None


def killers(function: str) -> list[str]:
    """Tests that killed mutants of a function, then of its module, latest first."""
    if not KILLERS.exists():
        return []
    pairs = [line.split(" ", 1) for line in KILLERS.read_text().splitlines()[::-1]]
    module = function.rpartition(".")[0]
    own = [test for name, test in pairs if name == function]
    return own + [test for name, test in pairs if name.rpartition(".")[0] == module]


def ordered(
    seconds: Mapping[str, float], first: Iterable[str], budget: float
) -> list[str]:
    """The tests to run: known killers, then the fast ones as far as the budget goes.

    seconds: what each test that reaches the function takes.
    """
    fast_first = sorted(seconds, key=lambda test: (seconds[test], test))
    known = [test for test in first if test in seconds]
    chosen: list[str] = []
    spent = 0.0
    for test in dict.fromkeys([*known, *fast_first]):
        if not chosen or spent + seconds[test] <= budget:
            spent += seconds[test]
            chosen.append(test)
    return chosen


def collected_runner(workers: int = 1) -> ForkServerRunner:
    """What mutmut asks for its runner by."""
    return ForkServerRunner(workers, CollectedTests, {"budget": BUDGET_SECONDS})
