from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fuzz.preferences import Preferences
from fuzz.refinement import Refinement, RefinementError
from patton.commit_zone import NO_SLOT, CommitZone
from patton.pairs import PairPool
from tests.spec.test_refinement import random_engine


def run(kind: type[Refinement]) -> None:
    """Random runs, checked after every step."""
    for seed in range(12):
        engine = random_engine(seed)
        refinement = kind.attach(engine.runtime)
        for _ in range(60):
            engine.step()
            refinement.check()


def test_random_runs_make_the_stated_choices() -> None:
    run(Preferences)


# --- other choices, all of them allowed -----------------------------------------------


def highest_slot(zone: CommitZone, stripe: int) -> int:
    free = zone.free[stripe]
    if not free:
        return NO_SLOT
    index = free.bit_length() - 1
    zone.free[stripe] ^= 1 << index
    return index * zone.stripes + stripe


def last_free_pair(pool: PairPool, _after: int | None) -> int | None:
    free = [pair for pair in range(len(pool.owner)) if pool.is_free(pair)]
    return free[-1] if free else None


def highest_place(_pool: PairPool, free: int) -> int:
    return free.bit_length() - 1


def newest_first(pool: PairPool) -> Iterator[int]:
    pairs = [pair for pair in range(len(pool.owner)) if pool.is_evictable(pair)]
    yield from sorted(pairs, key=lambda pair: -pool.last_release[pair])


OTHERS: list[tuple[type, str, Callable[..., Any], str]] = [
    (CommitZone, "take", highest_slot, "LIFE-LOWEST"),
    (PairPool, "choose", last_free_pair, "LIFE-NEXT"),
    (PairPool, "_least_occupied", highest_place, "LIFE-PLACE"),
    (PairPool, "eviction_candidates", newest_first, "LIFE-OLDEST"),
]


@pytest.mark.parametrize(("owner", "name", "other", "clause"), OTHERS)
def test_another_choice_is_found_by_its_clause(
    owner: type,
    name: str,
    other: Callable[..., Any],
    clause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The machine allows the other choice; only the preferences object."""
    monkeypatch.setattr(owner, name, other)
    run(Refinement)
    with pytest.raises(RefinementError) as error:
        run(Preferences)

    assert clause == error.value.clause
