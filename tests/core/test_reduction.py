"""Results become scores, weights and outputs as the stream's tables say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import CommandStream, Op, Phase, Queries, ResultTable, Tokens
from patton.config import ElementType
from patton.elements import decode, encode
from patton.errors import UnwrittenResultError
from patton.executor import Results
from patton.operands import write_payload
from patton.reduction import (
    outputs,
    query_offsets,
    read_back,
    scores,
    softmax_weights,
)
from tests.core.hand_made import ALL_LANES, KEY_AXES, VALUE_AXES, entry, frame, stream

BF16, FP16 = ElementType.BF16, ElementType.FP16
HEADS, BANKS, LANES, PER_KV, HEAD_DIM = 3, 4, 8, 2, 20


def array(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def macs(values: NDArray[Any], element: ElementType = BF16) -> Results:
    """Results [rows, heads, banks] of RDMACs, all written."""
    mac = encode(np.asarray(values, np.float32), element)
    none = np.zeros((0, HEADS, LANES), np.uint16)
    return Results(mac, np.ones(mac.shape, np.bool_), none, none.astype(np.bool_))


# --- scores ---------------------------------------------------------------------------

# Query 0 sees positions 2 to 6 of request 7, query 1 positions 4 to 8 of request 5.
QUERIES = Queries(request=array(7, 5), start=array(2, 4), end=array(7, 9))


def score_stream() -> CommandStream:
    """Groups of four positions, two channels at a time eight; backwards for query 1."""
    results = ResultTable(
        query=array(0, 1, 1), origin=array(0, 8, 4), channel_stride=4, bank_stride=1
    )
    entries = [entry(Op.RDMAC, channels=2, reference=g) for g in range(PER_KV)]
    entries.insert(1, entry(Op.WRBIAS))
    entries += [entry(Op.RDMAC, reference=2 + g) for g in (1, 0)]
    entries += [entry(Op.RDMAC, reference=4 + g) for g in (1, 0)]
    return stream(Phase.QK, entries, results=results, queries=QUERIES)


def score_macs() -> NDArray[np.float32]:
    """Values that say where they belong, see `name_of`."""
    rows = [(0, 0, 0), (0, 0, 4), (0, 1, 0), (0, 1, 4)]  # query, query head, origin
    rows += [(1, 1, 8), (1, 0, 8), (1, 1, 4), (1, 0, 4)]
    values = np.empty((8, HEADS, BANKS), np.float32)
    for row, (query, query_head, origin) in enumerate(rows):
        for head, bank in np.ndindex(HEADS, BANKS):
            values[row, head, bank] = name_of(query, origin + bank, head, query_head)
    return values


def name_of(query: int, position: int, head: int, query_head: int) -> float:
    return 32 * query + position + head / 4 + 16 * query_head


def test_scores_go_to_their_positions() -> None:
    """Every visible position of every head has its own score; others are dropped."""
    found = scores(score_stream(), macs(score_macs()), BF16)
    seen = [(0, p) for p in range(2, 7)] + [(1, p) for p in range(4, 9)]

    assert query_offsets(QUERIES).tolist() == [0, 5, 10]
    assert found.shape == (10, HEADS, PER_KV)
    for place, (query, position) in enumerate(seen):
        for head, query_head in np.ndindex(HEADS, PER_KV):
            expected = name_of(query, position, head, query_head)
            assert expected == found[place, head, query_head]


def test_a_score_of_unwritten_keys_is_named() -> None:
    """Position, request and head of the first one; positions nobody sees are free."""
    results = macs(score_macs())
    results.mac_written[0, :, 1] = False  # position 1
    results.mac_written[4, :, 1:] = False  # positions 9 to 11
    scores(score_stream(), results, BF16)
    results.mac_written[6, 2, 3] = False
    with pytest.raises(UnwrittenResultError) as raised:
        scores(score_stream(), results, BF16)

    assert attrs.astuple(raised.value) == ("qk", 4, 5, 7, 8, 2)


def test_a_score_that_was_never_read_is_named() -> None:
    """A stream that leaves out a visible position gives no result at all."""
    whole = score_stream()
    columns: dict[str, Any] = {
        name: column[:-1] for name, column in whole.columns().items()
    }
    results = macs(score_macs()[:-1])
    with pytest.raises(UnwrittenResultError) as raised:
        scores(attrs.evolve(whole, **columns), results, BF16)

    assert attrs.astuple(raised.value) == ("qk", 4, 5, 4, 5, 0)


# --- weights --------------------------------------------------------------------------


def halved(terms: list[np.float32]) -> np.float32:
    """The sum by halving, on single numbers."""
    while len(terms) > 1:
        half = (len(terms) + 1) // 2
        for place, term in enumerate(terms[half:]):
            terms[place] += term
        terms = terms[:half]
    return terms[0]


@pytest.mark.parametrize("element", [BF16, FP16])
def test_weights_are_summed_by_halving(element: ElementType) -> None:
    """Any length, one position included; the bits are those of single additions."""
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 7, 16, 45, 1000]
    offsets = np.cumsum([0, *lengths])
    given = rng.normal(0, 6, (offsets[-1], 2, 3)).astype(np.float32)
    found = softmax_weights(given, offsets, 80, element)

    for start, end in pairwise(offsets.tolist()):
        for head, query_head in np.ndindex(2, 3):
            scaled = given[start:end, head, query_head] * np.float32(1 / np.sqrt(80))
            powers = np.exp(scaled - scaled.max())
            weights = powers / halved(list(powers))
            expected = encode(weights, element)
            assert np.array_equal(expected, found[start:end, head, query_head])


def test_weights_add_up_to_one() -> None:
    """Up to the rounding of the elements, whatever the size of the scores."""
    given = np.array([3e38, 3e38, -3e38, 0], np.float32).reshape(4, 1, 1)
    weights = decode(softmax_weights(given, array(0, 4), 128, BF16), BF16)

    assert weights.ravel().tolist() == [0.5, 0.5, 0, 0]


def test_no_queries_have_no_weights() -> None:
    """A step without reads is no special case."""
    given = np.zeros((0, HEADS, PER_KV), np.float32)

    assert softmax_weights(given, array(0), 128, BF16).shape == given.shape


# --- outputs --------------------------------------------------------------------------


def value_results(phase: Phase, parts: list[tuple[int, int, int]]) -> CommandStream:
    """RDMACs of two channels of four banks: eight elements from `origin` on.

    parts: (query, query head, origin) in stream order.
    """
    results = ResultTable(
        query=array(*(query for query, _, _ in parts)),
        origin=array(*(origin for _, _, origin in parts)),
        channel_stride=BANKS,
        bank_stride=1,
    )
    entries = [
        entry(Op.RDMAC, channels=2, reference=group * PER_KV + query_head)
        for group, (_, query_head, _) in enumerate(parts)
    ]
    return stream(phase, entries, results=results, queries=QUERIES)


def all_parts() -> list[tuple[int, int, int]]:
    return [(q, g, 8 * part) for q in (0, 1) for g in (0, 1) for part in range(3)]


def test_outputs_add_up_in_stream_order() -> None:
    """Large, small, minus large: what is left tells the order."""
    parts = all_parts()
    for order, expected in (((2**24, 1, -(2**24)), 0), ((2**24, -(2**24), 1), 1)):
        made = value_results(Phase.SV, parts * 2)
        values = np.repeat(np.array(order[:2]), 2 * len(parts))
        values = np.broadcast_to(values[:, None, None], (len(values), HEADS, BANKS))
        last = value_results(Phase.PARTIAL, parts)
        rest = np.full((2 * len(parts), HEADS, BANKS), order[2])
        found = outputs([(made, macs(values)), (last, macs(rest))], BF16)

        assert found.shape == (2, HEADS, PER_KV, HEAD_DIM)
        assert (found == expected).all()


def test_outputs_go_to_their_elements() -> None:
    """Query, head, query head and element are kept apart; padding is dropped."""
    parts = all_parts()
    values = np.arange(2 * len(parts) * HEADS * BANKS).reshape(-1, HEADS, BANKS) % 256
    found = outputs([(value_results(Phase.SV, parts), macs(values))], BF16)

    for part, (query, query_head, origin) in enumerate(parts):
        for channel, head, bank in np.ndindex(2, HEADS, BANKS):
            element = origin + channel * BANKS + bank
            if element < HEAD_DIM:
                expected = values[2 * part + channel, head, bank]
                assert expected == found[query, head, query_head, element]


def test_an_output_of_unwritten_values_is_named() -> None:
    """Request and visible range; what padding holds does not matter."""
    made = value_results(Phase.PARTIAL, all_parts())
    results = macs(np.ones((24, HEADS, BANKS)))
    results.mac_written[5] = False  # elements 20 to 23
    outputs([(made, results)], BF16)
    results.mac_written[18, 1, 2] = False
    with pytest.raises(UnwrittenResultError) as raised:
        outputs([(made, results)], BF16)

    assert attrs.astuple(raised.value) == ("partial", 4, 5, 4, 9, 1)


# --- read-back ------------------------------------------------------------------------


def read_streams(phase: Phase) -> tuple[CommandStream, CommandStream]:
    """Eleven tokens from position 5 of request 3, written and read alike."""
    if phase == Phase.READ_KEY:
        axes = KEY_AXES
        entries = [
            entry(Op.RD, bank=1, banks=3, count=3, lanes=ALL_LANES, reference=0),
            entry(Op.RD, count=3, lanes=ALL_LANES, reference=3),
            entry(Op.RD, count=3, lanes=ALL_LANES, reference=7),
        ]
    else:
        axes = VALUE_AXES
        entries = [
            entry(Op.RD, channels=2, lanes=mask, reference=first, element=8 * part)
            for mask, first in ((0xE0, -5), (0xFF, 3))
            for part in range(3)
        ]
    tokens = Tokens(request=np.full(11, 3), position=np.arange(5, 16))
    reading = stream(phase, entries, axes=axes, tokens=tokens)
    writing = attrs.evolve(reading, op=np.full_like(reading.op, Op.WR))
    return writing, reading


@pytest.mark.parametrize("phase", [Phase.READ_KEY, Phase.READ_VALUE])
def test_reading_back_is_the_inverse_of_writing(phase: Phase) -> None:
    """What a write sends, a read of the same rectangles puts together again."""
    writing, reading = read_streams(phase)
    data = np.random.default_rng(1).integers(
        0, 1 << 16, (11, HEADS, HEAD_DIM), np.uint16
    )
    payload = write_payload(writing, data)
    returned = payload.table[payload.index]
    none = np.zeros((0, HEADS, BANKS), np.uint16)
    written = np.ones(returned.shape, np.bool_)
    results = Results(none, none.astype(np.bool_), returned, written)
    if phase == Phase.READ_VALUE:
        returned[:24, :, :5] = 99  # lanes of other tokens

    assert np.array_equal(data, read_back(reading, results))


def test_reading_back_unwritten_cells_is_named() -> None:
    """Position, request and head of the first token that was not there."""
    _, reading = read_streams(Phase.READ_VALUE)
    returned = np.zeros((48, HEADS, LANES), np.uint16)
    written = np.ones(returned.shape, np.bool_)
    written[:24, :, :5] = False  # lanes of other tokens
    none = np.zeros((0, HEADS, BANKS), np.uint16)
    results = Results(none, none.astype(np.bool_), returned, written)
    read_back(reading, results)
    written[30, 1, 2] = False
    with pytest.raises(UnwrittenResultError) as raised:
        read_back(reading, results)

    assert attrs.astuple(raised.value) == ("read-value", 4, 3, 10, 11, 1)


def test_frames_of_the_tests_have_padding() -> None:
    """The claims about padding are not empty."""
    assert frame().head_dim == HEAD_DIM < 3 * 2 * BANKS
