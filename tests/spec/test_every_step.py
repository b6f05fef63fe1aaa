"""The runtime's own tests once more, with the machine beside each of their runtimes."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fuzz.refinement import Refinement
from patton.runtime import Runtime

CORE = Path(__file__).resolve().parents[1] / "core"


def plain_tests() -> Iterator[Callable[[], None]]:
    """The tests of the runtime that ask for nothing."""
    for path in sorted(CORE.glob("test_runtime*.py")):
        module = importlib.import_module(f"tests.core.{path.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_") and not inspect.signature(test).parameters:
                yield test


@pytest.mark.parametrize("test", [*plain_tests()], ids=lambda test: test.__name__)
def test_every_event_of_a_test_is_allowed(
    test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    refinements: list[Refinement] = []
    shipped = Runtime.of

    def watched(*arguments: Any, **options: Any) -> Runtime:
        runtime = shipped(*arguments, **options)
        refinements.append(Refinement.attach(runtime))
        return runtime

    monkeypatch.setattr(Runtime, "of", watched)
    test()
    for refinement in refinements:
        refinement.check()


def test_there_are_such_tests() -> None:
    assert 30 < len([*plain_tests()])
