"""Which change of the code breaks each test of the paper.

A test that nothing breaks would show nothing. Tests are called here with each of their
arguments, in modules that are imported anew, so that constants follow the change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]

FILES = sorted(path.stem for path in Path(__file__).parent.glob("test_section_*.py"))
ANEW = [*(f"tests.paper.{stem}" for stem in FILES), "tests.paper.setting"]


def paper_tests() -> dict[str, Test]:
    """All tests of sections of the paper by name, imported anew."""
    before = {name: sys.modules.pop(name, None) for name in ANEW}
    try:
        found: dict[str, Test] = {}
        for stem in FILES:
            tests = vars(import_module(f"tests.paper.{stem}"))
            found |= {n: f for n, f in tests.items() if n.startswith("test_")}
        return found
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def cases(test: Test) -> Iterator[dict[str, Any]]:
    """The arguments with which pytest would call a test."""
    axes: list[list[dict[str, Any]]] = []
    for mark in getattr(test, "pytestmark", []):
        names, rows = mark.args
        names = names.split(", ") if isinstance(names, str) else names
        one = len(names) == 1
        axes.append(
            [dict(zip(names, [row] if one else row, strict=True)) for row in rows]
        )
    for parts in product(*axes):
        yield {name: value for part in parts for name, value in part.items()}


def fails(test: Test) -> bool:
    """Whether a test fails with any of its arguments."""
    for arguments in cases(test):
        try:
            test(**arguments)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 - any failure counts
            return True
    return False
