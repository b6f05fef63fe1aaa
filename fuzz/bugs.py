"""Realistic faults to plant, and the clause that must catch each of them.

A check that has never failed may be unable to. A bug here replaces one function of the
runtime, a generator or the device by a slightly wrong one; it must be caught by the
clause that it names, within a budget of steps. One changes nothing and must survive.
The catalogue is in the modules `planted_*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any, Literal

import attrs

from fuzz.driver import Case, drive
from fuzz.maps import broken_by
from fuzz.serving import serve, serve_after_others
from fuzz.states import StateWatch
from fuzz.world import FailureError

# Who looks for it: the driver with the machine beside the runtime, also with a device
# of tags, or with nothing but claims about states; an engine with data on devices of
# numbers, also on one that others have used; the map of small layouts.
Finder = Literal["runtime", "streams", "states", "data", "alone", "maps"]
Wrong = Callable[..., Any]
Register = Callable[[Callable[[Wrong], Wrong]], Callable[[Wrong], Wrong]]

CASE_STEPS: dict[Finder, int] = {
    "runtime": 300,
    "streams": 200,
    "states": 300,
    "data": 12,
    "alone": 12,
    "maps": 1,
}
PLANTED = ("blocks", "steps", "states", "streams", "device", "maps")
NOTHING = "nothing at all"


@attrs.frozen
class Bug:
    """A function that is replaced: `wrong` makes the new one from the old.

    clause: that must catch it, None for one that changes nothing. budget: steps. slow:
    takes seconds to find, which is left to `python -m fuzz bugs`.
    """

    name: str
    clause: str | None
    owner: Any
    attribute: str
    wrong: Callable[[Wrong], Wrong]
    finder: Finder = "runtime"
    budget: int = 20_000
    slow: bool = False

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Within, the fault is there."""
        own = vars(self.owner)[self.attribute]
        old = own.__func__ if isinstance(own, staticmethod | classmethod) else own
        setattr(self.owner, self.attribute, self.wrong(old))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, own)


@attrs.frozen
class Hunt:
    """How the search for a bug went. others: clauses met before, in other cases."""

    bug: Bug
    caught: bool
    steps: int
    what: str = ""
    others: tuple[str, ...] = ()


CATALOGUE: dict[str, Bug] = {}


def bug(
    name: str, clause: str | None, owner: Any, attribute: str, **options: Any
) -> Register:
    """Register a fault; what is decorated makes the wrong function from the right."""

    def register(wrong: Callable[[Wrong], Wrong]) -> Callable[[Wrong], Wrong]:
        CATALOGUE[name] = Bug(name, clause, owner, attribute, wrong, **options)
        return wrong

    return register


def hunt(planted: Bug) -> Hunt:
    """Look for a bug, case by case, until its clause catches it or the budget ends."""
    steps, others = 0, list[str]()
    with planted.planted():
        for number in count():
            left = planted.budget - steps
            if left <= 0:
                return Hunt(planted, False, steps, others=tuple(others))
            length = min(left, CASE_STEPS[planted.finder])
            taken, failures = _search(planted.finder, number, length)
            steps += max(taken, 1)
            for failure in failures:
                if failure.clause == planted.clause:
                    what = str(failure)
                    return Hunt(planted, True, steps, what, tuple(others))
            others += [failure.clause for failure in failures]
    raise AssertionError("cases never end")


def _search(
    finder: Finder, number: int, steps: int
) -> tuple[int, Sequence[FailureError]]:
    """One case: the steps it took, and its failures."""
    if finder == "maps":
        return 1, broken_by(number)
    if finder in {"data", "alone"}:
        serving = serve if finder == "data" else serve_after_others
        taken, failure = serving(number, steps)
    elif finder == "states":
        taken, failure = _watched(number, steps)
    else:
        device = finder == "streams"
        volume = drive(f"bugs {number}", steps, "everything", device=device)
        taken, failure = volume.steps, volume.failure
    return taken, [failure] if failure else []


def _watched(number: int, steps: int) -> tuple[int, FailureError | None]:
    case = Case.of(f"states {number}", "everything")
    StateWatch.attach(case.world.runtime)
    try:
        case.run(steps)
    except FailureError as failure:
        return case.world.steps, failure
    return case.world.steps, None


def catalogue() -> dict[str, Bug]:
    """All bugs, by name."""
    for name in PLANTED:
        import_module(f"fuzz.planted_{name}")  # registers its bugs
    return CATALOGUE
