"""Contracts in place of what a solver cannot run, while `Layout.of` is followed.

Four helpers of `patton.layout` loop, or ask whether a number is an `int`. During a
proof they are replaced by unknowns of which only a contract is known. `_ceil` keeps its
contract by the theorem `ceilings_are_least`; that of `_largest_divisor`, of `math.lcm`
and of `bisect_right` is tested in `tests/proofs/test_standins.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from patton import layout
from proofs.lemmas import MONOTONE
from proofs.numbers import Number, either, every, implies
from proofs.spaces import AllGeometries


class StandIns:
    """The contracts in one space; equal calls have equal results.

    ceilings, divisors: results that are known from the start.
    """

    def __init__(self, space: AllGeometries) -> None:
        self._space = space
        self._made: dict[tuple[object, ...], Any] = {}
        self._ceilings: list[tuple[Any, Any]] = []  # divisors and results
        self._kept: list[Any] = []  # keeps the terms of the keys alive
        self.multiple: tuple[Any, Any, Any] | None = None

    def know_ceil(self, dividend: Any, divisor: Any, result: Any) -> None:
        """A ceiling that the space already has a number for."""
        self._keep("ceil", dividend, divisor, result)
        self._assume_ceil(dividend, divisor, result)

    def know_divisor(self, number: Any, most: Any, result: Any) -> None:
        """A divisor that the space already has a number for."""
        self._keep("divisor", number, most, result)

    def ceil(self, dividend: Any, divisor: Any) -> Any:
        """The least number of parts of size `divisor` that hold `dividend`."""

        def make() -> Any:
            parts = self._fresh("ceil")
            self._assume_ceil(dividend, divisor, parts)
            return parts

        return self._once("ceil", dividend, divisor, make)

    def largest_divisor(self, number: Any, most: Any) -> Any:
        """Some divisor of `number` up to `most`: how large it is does not matter."""

        def make() -> Any:
            divisor, cofactor = self._fresh("divisor"), self._fresh("cofactor")
            for item in (divisor, cofactor):
                self._assume("a divisor is positive", item >= 1)
            self._assume("a divisor divides", cofactor * divisor == number)
            self._assume("a divisor is small", divisor <= most)
            return divisor

        return self._once("divisor", number, most, make)

    def lcm(self, a: Any, b: Any) -> Any:
        """The least common multiple, of which only `smallest_block` needs the least."""

        def make() -> Any:
            times_a, times_b = self._fresh("times_a"), self._fresh("times_b")
            for item in (times_a, times_b):
                self._assume("a multiple is positive", item >= 1)
            self._assume("a common multiple", times_a * a == times_b * b)
            self.multiple = times_a * a, times_a, times_b
            return times_a * a

        return self._once("lcm", a, b, make)

    def know_common_multiple(self, a: Any, b: Any, number: Any) -> None:
        """Every common multiple is a multiple of the least."""
        common = every((number % a == 0, number % b == 0))
        least = number % self.lcm(a, b) == 0
        self._assume("the least divides", implies(common, least))

    def bisect_right(
        self, numbers: tuple[Any, Any], limit: Any, *, key: Callable[[Any], Any]
    ) -> Any:
        """How many of the numbers come before the first whose key is above the limit.

        `numbers` is a range. What is sure for any key: it does not exceed the limit at
        the last one counted, and does at the next.
        """
        first, end = numbers
        count = self._fresh("count")
        self._assume("a count is not negative", count >= 0)
        self._assume(
            "a count is at most all", either((count <= end - first, count == 0))
        )
        below = key(first + count - 1) <= limit
        self._assume("the last one counted fits", implies(count >= 1, below))
        above = key(first + count) > limit
        more = first + count < end
        self._assume("the next one does not", implies(more, above))
        return count

    def ceilings(self, divisor: Any) -> list[Any]:
        """All that was divided by this divisor and rounded up."""
        return [q for d, q in self._ceilings if self._is_same(d, divisor)]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The time in which `patton.layout` calls the contracts."""
        names: dict[str, Any] = {
            "_ceil": self.ceil,
            "_largest_divisor": self.largest_divisor,
            "lcm": self.lcm,
            "bisect_right": self.bisect_right,
            "is_count": _is_count,
            "range": _range,
        }
        missing = object()
        kept = {name: vars(layout).get(name, missing) for name in names}
        vars(layout).update(names)
        try:
            yield
        finally:
            for name, value in kept.items():
                if value is missing:
                    delattr(layout, name)
                else:
                    setattr(layout, name, value)

    def _assume_ceil(self, dividend: Any, divisor: Any, parts: Any) -> None:
        self._assume("parts hold all", dividend <= parts * divisor)
        self._assume("one part less does not", (parts - 1) * divisor < dividend)
        self._assume("something needs a part", implies(dividend >= 1, parts >= 1))
        # Of two ceilings with one divisor the greater has the greater dividend.
        for other_divisor, other in self._ceilings:
            if self._is_same(other_divisor, divisor):
                for a, b in ((parts, other), (other, parts)):
                    self._space.remind(MONOTONE, a=a, b=b - 1, m=divisor)
        self._ceilings.append((divisor, parts))

    def _assume(self, name: str, condition: Any) -> None:
        self._space.assume(name, condition)

    def _fresh(self, name: str) -> Any:
        return self._space.variable(f"{name}_{len(self._made)}")

    def _once(self, name: str, a: Any, b: Any, make: Callable[[], Any]) -> Any:
        key = self._key(name, a, b)
        if key not in self._made:
            self._made[key] = None  # so that fresh names differ
            self._made[key] = make()
            self._kept += [a, b]
        return self._made[key]

    def _keep(self, name: str, a: Any, b: Any, result: Any) -> None:
        self._made[self._key(name, a, b)] = result
        self._kept += [a, b]

    def _is_same(self, a: Any, b: Any) -> bool:
        return bool(self._space.lift(a).term.eq(self._space.lift(b).term))

    def _key(self, name: str, a: Any, b: Any) -> tuple[object, ...]:
        return (name, *(self._space.lift(item).term.get_id() for item in (a, b)))


def _is_count(value: Any, most: float = float("inf")) -> Any:
    assert most == float("inf")
    return isinstance(value, Number) and value >= 1


def _range(first: Any, end: Any) -> tuple[Any, Any]:
    return first, end
