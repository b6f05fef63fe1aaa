"""The same work on many things, in several processes or in this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def in_order(work: Callable[[A], T], things: Iterable[A], jobs: int) -> Iterator[T]:
    """What comes of each thing, in their order. With one job it is done right here.

    Work and things travel between processes, so both have to be plain: what cannot
    travel goes by name or number.
    """
    if jobs == 1:
        yield from map(work, things)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, things)
