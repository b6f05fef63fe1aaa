from __future__ import annotations

import ast
from collections import Counter

import pytest

from patton import addresses
from proofs import mutants
from proofs.mutants import FUNCTIONS, Mutant, all_mutants, fate, main, sample
from proofs.swaps import shipped, tree_of
from proofs.theorems import comes_back

MUTANTS = tuple(all_mutants())


@pytest.mark.parametrize("mutant", sample(MUTANTS, 24), ids=lambda m: m.says)
def test_mutant_is_rejected(mutant: Mutant) -> None:
    """A theorem fails, and a case on plain integers shows why."""
    assert "rejected" == fate(mutant)


def test_no_change_is_accepted() -> None:
    """The fate is not the same for all."""
    tree = tree_of(shipped("addresses.key_address"))

    unchanged = Mutant("key_address", "no change", tree)
    assert "ACCEPTED" == fate(unchanged, comes_back.THEOREMS)


def test_there_are_many_mutants_of_every_function() -> None:
    """Each address function is changed in many ways, each way once."""
    counts = Counter(mutant.function for mutant in MUTANTS)

    assert set(FUNCTIONS) == set(counts)
    assert 1500 < len(MUTANTS)
    assert min(counts.values()) > 10
    texts = Counter((m.function, ast.unparse(m.tree)) for m in MUTANTS)
    assert 0.95 < len(texts) / len(MUTANTS)


def test_every_function_of_the_module_is_mutated() -> None:
    """A new address function is not forgotten."""
    names = {
        name
        for name, value in vars(addresses).items()
        if callable(value) and getattr(value, "__module__", "") == addresses.__name__
    }

    assert {*FUNCTIONS, "Address", "Element", "AddressMap"} == names


def test_the_command_counts_fates(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--count", "3", "--jobs", "1"])
    assert "3 mutants: 3 rejected" in capsys.readouterr().out


@pytest.mark.parametrize("result", ["ACCEPTED", "rejected, not confirmed"])
def test_a_mutant_that_lives_is_named(
    result: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one of which nobody has seen what goes wrong."""
    monkeypatch.setattr(mutants, "fate", lambda _: result)

    assert 1 == main(["--count", "2", "--jobs", "1"])
    assert f"{result}: key_address, line" in capsys.readouterr().out
