from __future__ import annotations

from proofs.allparams import AllParameters
from proofs.numbers import Number
from proofs.paths import all_paths
from proofs.solver import Goal, ask


def explored(*, low: int) -> dict[tuple[str, ...], list[str]]:
    """Which results a function with branches has, and what is closed on each path."""
    results: list[str] = []

    def run(work: AllParameters) -> None:
        x = work.variable("x")
        work.assume("from", x >= low)
        results.append(branching(x))

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


def test_every_path_is_gone_once() -> None:
    """Four results, four paths."""
    names = [path[0] for path in explored(low=-5)]

    assert ["large", "negative", "small", "zero"] == sorted(names)


def test_impossible_ways_are_not_gone_but_owed() -> None:
    """What premises exclude has no path, and is an obligation."""
    found = explored(low=1)

    assert {"small", "large"} == {path[0] for path in found}
    assert all(2 == len(closed) for closed in found.values())
