from __future__ import annotations

from collections.abc import Callable

import pytest

from proofs import paths
from proofs.allparams import AllParameters
from proofs.numbers import Number
from proofs.paths import all_paths
from proofs.solver import Goal, ask


def explored(
    code: Callable[[Number], str], *, low: int
) -> dict[tuple[str, ...], list[str]]:
    """Which results a function with branches has, and what each path owes as closed."""
    results: list[str] = []

    def run(work: AllParameters) -> None:
        x = work.variable("x")
        work.assume("from", x >= low)
        results.append(code(x))

    found = {}
    for work, closed in all_paths(AllParameters, run):
        conditions = tuple(str(p.term) for p in work.premises if p.name == "this way")
        known = [p.term for p in work.premises if p.name == "from"]
        assert all(
            ask(Goal("", known, c.term).question).status == "proved" for c in closed
        )
        found[results[-1], *conditions] = [str(c.term) for c in closed]
    return found


def branching(x: Number) -> str:
    if x < 0:
        return "negative"
    if x == 0:
        return "zero"
    return "small" if x < 10 else "large"


def sifting(x: Number) -> str:
    if x < 10:
        return "small"
    return "never" if x < 5 else "large"


def test_every_path_is_gone_once() -> None:
    """Four results, four paths."""
    names = [path[0] for path in explored(branching, low=-5)]

    assert ["large", "negative", "small", "zero"] == sorted(names)


def test_impossible_ways_are_not_gone_but_owed() -> None:
    """What premises exclude has no path, and is an obligation of the first one."""
    found = explored(branching, low=1)

    assert {"small", "large"} == {path[0] for path in found}
    assert [2, 0] == [len(closed) for closed in found.values()]


def test_what_only_another_path_excludes_is_owed_there() -> None:
    """After a turn of its own a path owes what is closed from there on."""
    found = explored(sifting, low=1)

    assert ["small", "large"] == [path[0] for path in found]
    assert [0, 1] == [len(closed) for closed in found.values()]
    (condition,) = found[next(path for path in found if path[0] == "large")]
    assert "Implies" in condition


def test_a_way_that_seems_open_is_only_a_path_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A solver that is stopped before it finds a way closed makes nothing true."""
    monkeypatch.setattr(paths, "_FEW_STEPS", 1)
    found = explored(sifting, low=1)

    assert {"small", "large", "never"} == {path[0] for path in found}


def test_paths_share_instances_of_lemmas() -> None:
    """What several paths cite is made once; each knows only what it cited itself."""
    works: list[AllParameters] = []

    def run(work: AllParameters) -> None:
        works.append(work)
        x, y = work.variable("x"), work.variable("y")
        work.assume("positive", y >= 1)
        if x * y < 10:
            (x + y) * y

    list(all_paths(AllParameters, run))

    first, second = works
    assert first.instances is second.instances
    assert len(second.facts) < len(first.facts) == len(first.instances)
    shared = {id(fact) for fact in first.facts} & {id(fact) for fact in second.facts}
    assert len(second.facts) == len(shared)
