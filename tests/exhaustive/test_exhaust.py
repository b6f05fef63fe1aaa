"""All sequences of four operations on two minimal geometries; and the search can fail.

Six operations by `python -m fuzz exhaust`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from fuzz.alphabet import Alphabet
from fuzz.bugs import catalogue
from fuzz.exhaust import GEOMETRIES, KNOWN, NAMES, Search, State, search, state_of
from fuzz.world import Event

each = pytest.mark.parametrize("name", GEOMETRIES)


@each
def test_no_sequence_of_four_operations_fails(name: str) -> None:
    """The numbers say that the search still tries what it used to try."""
    found = search(name, 4, forms=0)

    assert found.failure is None
    assert KNOWN[name].up_to(4) == found.numbers()
    assert all(found.kinds.values()), found.kinds
    assert found.refused > found.tried / 2


@each
def test_steps_that_bring_their_events_are_those_events(name: str) -> None:
    found = search(name, 3)

    assert found.failure is None
    assert KNOWN[name].up_to(3) == found.numbers()


@pytest.mark.parametrize(
    ("bug", "name", "depth", "forms"),
    [
        ("a place is lost when its block goes", "two stripes", 3, 0),
        ("a sharer writes a shared block", "two rows", 3, 0),
        ("readers are sent to the O1V before publication", "two rows", 4, 0),
        ("a slot of another stripe", "two stripes", 3, 0),
        ("a refused step keeps its blocks", "two rows", 3, 3),
        ("a refused step counts its releases", "two rows", 3, 3),
    ],
)
def test_planted_bugs_are_found(bug: str, name: str, depth: int, forms: int) -> None:
    """By the clause that must catch them; what is recorded shows them again."""
    planted = catalogue()[bug]
    with planted.planted():
        found = search(name, depth, forms=forms)

    assert found.failure is not None
    assert planted.clause == found.failure.clause
    assert found.recorded is not None
    with planted.planted():
        again = found.recorded.replay()
    assert again is not None
    assert planted.clause == again.clause
    assert found.recorded.replay() is None


# --- states that are taken for one ----------------------------------------------------


def outcomes(found: Search, log: Sequence[Event]) -> tuple[int, Counter[State]]:
    """What is refused, and where the rest leads, after one way to a state."""
    refused, edges = 0, Counter[State]()
    world = found.world(log)
    before = state_of(world)
    for operation in [*Alphabet(world, NAMES).operations()]:
        done, after = found.attempt(world, operation.event)
        if done:
            edges[after] += operation.ways
        else:
            refused += operation.ways
        if after != before:
            world = found.world(log)
    return refused, edges


def other_ways(found: Search) -> Iterator[tuple[State, tuple[Event, ...]]]:
    """A second way to each state that has one, other than the one explored."""
    seen: set[State] = set()
    for state in found.edges:
        log = found.log[state]
        for operation in [*Alphabet(found.world(log), NAMES).operations()]:
            done, after = found.attempt(found.world(log), operation.event)
            way = (*log, operation.event)
            if done and after not in seen and way != found.log[after]:
                seen.add(after)
                yield after, way


@each
def test_what_is_taken_for_one_state_goes_on_alike(name: str) -> None:
    """From either of two ways to a state the same is refused, and the rest leads alike.

    Were a fact left out of `state_of`, sequences would not be covered.
    """
    found = Search(GEOMETRIES[name])
    found.run(3)
    pairs = [*other_ways(found)]

    assert len(pairs) > 20
    for state, way in pairs:
        assert outcomes(found, found.log[state]) == outcomes(found, way), way


def test_a_fact_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only the tables counted, a block written in one go or in two would be one."""
    monkeypatch.setattr("fuzz.exhaust.state_of", lambda world: state_of(world)[:1])
    found = Search(GEOMETRIES["two rows"])
    found.run(3)

    assert any(
        outcomes(found, found.log[state]) != outcomes(found, way)
        for state, way in other_ways(found)
    )
