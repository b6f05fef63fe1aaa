"""Realistic faults to plant, and the clause that must catch each of them.

A check that has never failed may be unable to. A bug here replaces one function of the
runtime, a generator or the device by a slightly wrong one; it must be caught by the
clause that it names, within a budget of steps. One changes nothing and must survive.
The catalogue is in `planted_blocks`, `planted_steps`
and `planted_streams`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any, Literal

import attrs
import numpy as np

from fuzz.driver import drive
from fuzz.world import FailureError
from patton.device import PlainDevice, ReferenceDevice
from patton.errors import UnwrittenResultError
from patton.executor import Executor
from patton.runtime import Runtime
from tests.core.strategies import random_layout
from tests.served import ServedEngine

# Who looks for it: the driver alone, the driver with a device of tags, or an engine
# with data on devices of numbers.
Finder = Literal["runtime", "streams", "data"]
Wrong = Callable[..., Any]

CASE_STEPS = {"runtime": 300, "streams": 200, "data": 12}
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
) -> Callable[[Callable[[Wrong], Wrong]], Callable[[Wrong], Wrong]]:
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
            taken, failure = _search(planted.finder, number, length)
            steps += max(taken, 1)
            if failure is not None:
                if failure.clause == planted.clause:
                    what = str(failure)
                    return Hunt(planted, True, steps, what, tuple(others))
                others.append(failure.clause)
    raise AssertionError("cases never end")


def _search(finder: Finder, number: int, steps: int) -> tuple[int, FailureError | None]:
    """One case: the steps it took, and its failure."""
    if finder == "data":
        return serve(number, steps)
    volume = drive(f"bugs {number}", steps, "everything", device=finder == "streams")
    return volume.steps, volume.failure


def serve(seed: int, steps: int) -> tuple[int, FailureError | None]:
    """Steps with data on two devices, each output compared in every bit."""
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    devices: list[Executor] = [
        ReferenceDevice(layout.device),
        PlainDevice(layout.device),
    ]
    engine = ServedEngine(Runtime.of(layout), devices, rng)
    for done in range(steps):
        try:
            engine.step()
        except UnwrittenResultError as error:
            return done, FailureError("DEV-WRITTEN", str(error))
        except AssertionError as error:
            return done, FailureError("DEV-BITS", f"other bits: {error}")
    return steps, None


def catalogue() -> dict[str, Bug]:
    """All bugs, by name."""
    for name in ("blocks", "steps", "streams"):
        import_module(f"fuzz.planted_{name}")  # registers its bugs
    return CATALOGUE
