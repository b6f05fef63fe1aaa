"""Results that come in any order, and many of them for one place."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import Op, Phase, Queries, ResultTable, Tokens
from patton.config import ElementType
from patton.elements import encode
from patton.executor import Results
from patton.reduction import _in_turns, outputs, read_back, scores
from tests.core.hand_made import ALL_LANES, KEY_AXES, entry, frame, stream

HEADS, BANKS, LANES, PER_KV, HEAD_DIM = 3, 4, 8, 2, 20
BOTH = pytest.mark.parametrize("element", [ElementType.BF16, ElementType.FP16])


def array(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def macs(values: NDArray[np.float32], element: ElementType) -> Results:
    mac = encode(values, element)
    none = np.zeros((0, HEADS, LANES), np.uint16)
    return Results(mac, np.ones(mac.shape, np.bool_), none, none.astype(np.bool_))


@BOTH
def test_scores_before_the_visible_range_go_nowhere(element: ElementType) -> None:
    """Even where they come last; positions 0 to 7, of which 2 to 6 are visible."""
    queries = Queries(array(7), array(2), array(7))
    table = ResultTable(array(0, 0), array(4, 0), channel_stride=4, bank_stride=1)
    entries = [
        entry(Op.RDMAC, reference=PER_KV * group + head)
        for group in range(2)
        for head in range(PER_KV)
    ]
    made = stream(Phase.QK, entries, results=table, queries=queries)
    values = np.empty((4, HEADS, BANKS), np.float32)
    for row, (origin, query_head) in enumerate([(4, 0), (4, 1), (0, 0), (0, 1)]):
        for head, bank in np.ndindex(HEADS, BANKS):
            values[row, head, bank] = 8 * (origin + bank) + 2 * head + query_head
    found = scores(made, macs(values, element), element)
    expected = [
        [[8 * position + 2 * head + g for g in range(PER_KV)] for head in range(HEADS)]
        for position in range(2, 7)
    ]

    assert expected == found.tolist()


@BOTH
def test_many_partial_outputs_of_one_place_are_added_one_by_one(
    element: ElementType,
) -> None:
    rng = np.random.default_rng(0)
    parts = 60
    queries = Queries(array(7), array(0), array(8))
    table = ResultTable(
        np.zeros(parts, np.int64), np.zeros(parts, np.int64), BANKS, bank_stride=1
    )
    entries = [entry(Op.RDMAC, reference=PER_KV * part) for part in range(parts)]
    made = stream(Phase.SV, entries, results=table, queries=queries)
    sizes = 2.0 ** rng.integers(-14, 15, (parts, HEADS, BANKS))
    values = (sizes * rng.choice([-1, 1], sizes.shape)).astype(np.float32)
    expected, reverse = np.zeros((2, HEADS, BANKS), np.float32)
    for part in range(parts):
        expected += values[part]
        reverse += values[-1 - part]
    found = outputs([(made, macs(values, element))], element)

    assert np.array_equal(expected, found[0, :, 0, :BANKS])
    assert not np.array_equal(reverse, expected)


@pytest.mark.parametrize("seed", range(8))
def test_a_turn_has_each_place_once_and_turns_keep_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = rng.integers(1, 1 + rng.integers(1, 30), 80)
    turns = _in_turns(places)
    of_place: dict[int, list[int]] = {}
    for row, place in enumerate(places.tolist()):
        of_place.setdefault(place, []).append(row)
    expected = [
        sorted(rows[turn] for rows in of_place.values() if turn < len(rows))
        for turn in range(max(map(len, of_place.values())))
    ]

    assert expected == [turn.tolist() for turn in turns]


def test_what_was_read_back_is_elements() -> None:
    entries = [entry(Op.RD, bank=0, banks=1, count=3, lanes=ALL_LANES, reference=0)]
    tokens = Tokens(array(3), array(0))
    made = stream(Phase.READ_KEY, entries, axes=KEY_AXES, tokens=tokens)
    read = np.full((3, HEADS, LANES), 0xFFFF, np.uint16)
    none = np.zeros((0, HEADS, BANKS), np.uint16)
    results = Results(none, none.astype(np.bool_), read, np.ones(read.shape, np.bool_))

    assert np.uint16 == read_back(made, results).dtype


def test_channels_of_one_read_may_be_of_different_groups() -> None:
    """Channel 0 holds group 0, channel 1 group 1, which is of the other query."""
    queries = Queries(array(7, 8), array(0, 0), array(8, 8))
    table = ResultTable(
        array(0, 1, 0), array(0, 4, 8), channel_stride=0, bank_stride=1, group_stride=1
    )
    made = stream(
        Phase.SV, [entry(Op.RDMAC, channels=2)], results=table, queries=queries
    )
    values = np.ones((2, HEADS, BANKS), np.float32)
    values[1] = 2
    found = outputs([(made, macs(values, ElementType.BF16))], ElementType.BF16)

    assert [1, 0, 0, 2] == [found[q, 0, 0, e] for q in (0, 1) for e in (0, 4)]


def test_one_bank_gives_one_element() -> None:
    queries = Queries(array(7), array(0), array(8))
    table = ResultTable(array(0), array(3), channel_stride=1, bank_stride=1)
    one = attrs.evolve(frame(), banks=1)
    entries = [entry(Op.RDMAC, channels=2)]
    made = stream(Phase.SV, entries, results=table, queries=queries, frame=one)
    values = np.array([2, 5], np.float32).reshape(2, 1, 1).repeat(HEADS, 1)
    found = outputs([(made, macs(values, ElementType.BF16))], ElementType.BF16)

    assert [0, 2, 5, 0] == found[0, 0, 0, 2:6].tolist()
