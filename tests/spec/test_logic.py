from __future__ import annotations

from random import Random
from typing import Any

import pytest

from spec.logic import ANY, Edited, Finite, Table


def logic() -> Finite:
    """Two requests and three blocks."""
    universe: dict[str, Any] = {"r": range(2), "b": range(3), "n": range(4)}
    return Finite(tokens=3, aligned=lambda *_: True, universe=universe)


def test_a_change_leaves_the_map_that_it_came_from() -> None:
    levels = Table(0, {(1,): 5})
    changed = levels.set((2,), 7).set((1,), 0)

    assert [5, 0] == [levels(1), levels(2)]
    assert [0, 7] == [changed(1), changed(2)]
    assert [(2,)] == [*changed.support()]
    assert {(2,): 7} == changed.flat().cells


def test_taking_changes_makes_them_the_tables_own() -> None:
    levels = Table(0, {(1,): 5})
    levels.take({(1,): 0, (2,): 7})

    assert {(2,): 7} == levels.cells


def test_relations_gain_lose_and_join_tuples() -> None:
    owns = Table(False, {(0, 1): True, (0, 2): True})

    assert {(0, 1), (0, 2), (1, 1)} == {*owns.add(1, 1).support()}
    assert {(0, 2)} == {*owns.remove(0, 1).support()}
    assert {(0, 2)} == {*owns.where(lambda _, b: b == 2).support()}
    assert {(0, 2), (1, 1)} == {
        *owns.remove(0, 1).union(Table(0, {(1, 1): 1})).support()
    }


def test_a_claim_about_a_relation_is_about_its_tuples_only() -> None:
    owns = Table(False, {(0, 1): True})

    assert owns.all(lambda _, b: b == 1)
    assert not owns.add(0, 2).all(lambda _, b: b == 1)
    assert owns.remove(0, 1).all(lambda *_: False)


@pytest.mark.parametrize("seed", range(20))
def test_patterns_agree_with_a_search(seed: int) -> None:
    """Counts kept by position never differ from what a scan of the tuples finds."""
    random = Random(seed)
    table = Table(False)
    map_: Table | Edited = table
    for _ in range(60):
        key = random.randrange(3), random.randrange(3)
        map_ = map_.set(key, random.random() < 0.5)
        if random.random() < 0.3 and isinstance(map_, Edited):
            table.take(map_.changes)
            map_ = table
        held = {*map_.support()}
        for value in range(3):
            assert map_.any(value, ANY) == any(r == value for r, _ in held)
            assert map_.any(ANY, value) == any(b == value for _, b in held)


def test_quantifiers_walk_the_whole_universe() -> None:
    lg = logic()

    assert 6 == len([*lg.keys("rb")])
    assert lg.forall("rb", lambda r, b: r + b < 4)
    assert not lg.forall("rb", lambda r, b: r + b < 3)
    assert lg.exists("b", lambda b: b == 2)
    assert not lg.exists("b", lambda b: b == 3)


def test_connectives_are_those_of_logic() -> None:
    lg = logic()
    for left in (False, True):
        for right in (False, True):
            assert lg.and_(left, right) == (left and right)
            assert lg.or_(left, right) == (left or right)
            assert lg.implies(left, right) == (not left or right)
            assert lg.eq(left, right) == (left == right)
            assert lg.if_(left, right, not right) == (right if left else not right)
        assert lg.not_(left) == (not left)
    assert lg.and_()
    assert not lg.or_()


def test_distinct_and_at_most_one_compare_keys() -> None:
    lg = logic()
    owns = Table(False, {(0, 1): True, (1, 2): True})

    assert lg.distinct(owns, lambda r, _: (r,))
    assert not lg.distinct(owns.add(1, 1), lambda r, _: (r,))
    assert lg.at_most_one("b", lambda b: b == 1)
    assert not lg.at_most_one("b", lambda b: b > 0)
