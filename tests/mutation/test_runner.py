"""Which tests a mutant meets, and in which order; what a run came to."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mutmut", reason="the mutation extra is not installed")

from tests.mutation.results import Module, Results, function_of, report
from tests.mutation.runner import killers, ordered

SECONDS = {"slow": 5.0, "middle": 2.0, "fast": 0.5}


def test_killers_come_first_then_the_fast_ones() -> None:
    assert ["fast", "middle", "slow"] == ordered(SECONDS, [], 10)
    assert ["middle", "fast", "slow"] == ordered(SECONDS, ["middle", "other"], 10)


def test_the_budget_leaves_out_what_does_not_fit() -> None:
    assert ["fast", "middle"] == ordered(SECONDS, [], 3)
    assert ["slow"] == ordered(SECONDS, ["slow"], 5)


def test_killers_are_remembered_by_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [] == killers("m.x_f")
    Path("killers.txt").write_text("m.x_f a[1 2]\nm.x_g b\nn.x_f d\nm.x_f c\n")
    assert ["c", "a[1 2]", "c", "b", "a[1 2]"] == killers("m.x_f")


def test_a_mutant_belongs_to_a_function_or_method() -> None:
    assert "a.b.f" == function_of("a.b.x_f__mutmut_3")
    assert "a.b._f" == function_of("a.b.x__f__mutmut_3")
    assert "a.b.C.f" == function_of("a.b.xǁCǁf__mutmut_3")


def test_a_report_counts_what_is_noticed() -> None:
    modules = (
        Module("a", {"killed": 6, "timeout": 1, "survived": 1}),
        Module("b", {"killed": 1, "no tests": 1, "not checked": 2}),
    )
    results = Results(modules, ("x", "y"), ())
    lines = report(results).splitlines()

    assert "| a | 8 | 6 | 1 | 1 | 0 | 87.5 % |" in lines
    assert "| **core** | 12 | 7 | 1 | 2 | 2 | 80.0 % |" in lines
    assert 8 / 10 == results.core.score
