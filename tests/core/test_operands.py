"""Payloads carry, lane by lane, what the stream's tables say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import CommandStream, Loads, Op, Phase, Queries, Tokens
from patton.errors import PayloadError
from patton.executor import Payload
from patton.operands import no_payload, query_payload, weight_payload, write_payload
from tests.core.hand_made import (
    ALL_LANES,
    KEY_AXES,
    VALUE_AXES,
    entry,
    frame,
    stream,
)

Bits = NDArray[np.uint16]
HEADS, LANES, PER_KV = 3, 8, 2


def array(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


def random_bits(seed: int, *shape: int) -> Bits:
    return np.random.default_rng(seed).integers(1, 1 << 16, shape, np.uint16)


def sent(payload: Payload) -> Bits:
    """The bursts as they go over the bus [bursts, heads, lanes]."""
    assert payload.table.dtype == np.uint16
    assert payload.index.dtype == np.int32
    return payload.table[payload.index]


# --- writes ---------------------------------------------------------------------------


def written_data(made: CommandStream, data: Bits) -> Bits:
    """What WR entries carry, worked out datum by datum from the axes."""
    assert made.axes is not None
    token_by, element_by = made.axes.token, made.axes.element
    bursts = []
    for command in made.commands():
        if command.op != Op.WR:
            continue
        assert command.lanes is not None
        assert command.element is not None
        for offset in np.ndindex(command.channels, command.banks, command.count):
            burst = np.zeros((HEADS, LANES), np.uint16)
            for lane in range(LANES):
                at = (*offset, lane)
                token = command.reference + int(np.dot(token_by, at))
                element = command.element + int(np.dot(element_by, at))
                if command.lanes >> lane & 1 and element < made.frame.head_dim:
                    assert token >= 0
                    burst[:, lane] = data[token, :, element]
            bursts.append(burst)
    return np.array(bursts).reshape(-1, HEADS, LANES)


def key_stream() -> CommandStream:
    """Tokens 0 to 3, then 4 and 5, of 20 elements in three bursts of eight."""
    entries = [
        entry(Op.ACT),
        entry(Op.WR, count=3, lanes=ALL_LANES, fill=1, reference=0),
        entry(Op.ACT, row=2),
        entry(Op.WR, bank=1, banks=2, count=3, lanes=ALL_LANES, fill=1, reference=4),
    ]
    tokens = Tokens(request=np.zeros(6, np.int64), position=np.arange(6))
    return stream(Phase.KEY_WRITE, entries, axes=KEY_AXES, tokens=tokens)


def value_stream(seed: int) -> CommandStream:
    """Windows of tokens in any lanes; rows of 8 elements, the third half padding."""
    rng = np.random.default_rng(seed)
    entries = []
    for _ in range(20):
        count = int(rng.integers(1, 3))
        mask = int(rng.integers(1, 256)) if count == 1 else ALL_LANES
        first_lane = (mask & -mask).bit_length() - 1
        lane_0 = int(rng.integers(-first_lane, 30 - 8 * count))
        first = {"reference": lane_0, "element": 8 * int(rng.integers(3))}
        entries.append(entry(Op.WR, channels=2, count=count, lanes=mask, **first))
    tokens = Tokens(request=np.zeros(30, np.int64), position=np.arange(30))
    return stream(Phase.VALUE_WRITE, entries, axes=VALUE_AXES, tokens=tokens)


def test_keys_go_token_by_bank() -> None:
    """A burst holds consecutive elements; those beyond the head are zero."""
    made, data = key_stream(), random_bits(0, 6, HEADS, 20)

    assert np.array_equal(written_data(made, data), sent(write_payload(made, data)))


@pytest.mark.parametrize("seed", range(10))
def test_values_go_element_by_bank(seed: int) -> None:
    """A burst holds one element of consecutive tokens, in the lanes of the mask."""
    made, data = value_stream(seed), random_bits(seed, 30, HEADS, 20)

    assert np.array_equal(written_data(made, data), sent(write_payload(made, data)))


def test_bursts_match_the_stream() -> None:
    """There is one burst for each that the stream counts, in its order."""
    made = value_stream(1)
    payload = write_payload(made, random_bits(1, 30, HEADS, 20))

    assert made.payload_offsets()[-1] == len(payload.index)


def test_equal_windows_are_stored_once() -> None:
    """Writes of the same tokens to several rows share one part of the table."""
    entries = [
        entry(Op.WR, lanes=ALL_LANES, row=row, reference=0, element=4 * row)
        for row in range(5)
    ]
    tokens = Tokens(request=np.zeros(8, np.int64), position=np.arange(8))
    made = stream(Phase.VALUE_WRITE, entries, axes=VALUE_AXES, tokens=tokens)
    payload = write_payload(made, random_bits(2, 8, HEADS, 20))

    assert len(payload.table) == 20 + 1


@pytest.mark.parametrize(
    "data",
    [
        random_bits(3, 5, HEADS, 20),
        random_bits(3, 6, HEADS, 24),
        random_bits(3, 6, HEADS, 20).astype(np.float32),
    ],
    ids=["tokens", "elements", "type"],
)
def test_data_of_another_shape_are_refused(data: Bits) -> None:
    """The error says what was given and what is accepted."""
    with pytest.raises(PayloadError, match=r"uint16 \[6, 3, 20\]"):
        write_payload(key_stream(), data)


def test_a_stream_may_take_nothing() -> None:
    """The empty payload has the stream's heads and lanes."""
    payload = no_payload(key_stream())

    assert payload.table.shape == (0, HEADS, LANES)
    assert len(payload.index) == 0


def test_a_stream_without_entries_takes_nothing() -> None:
    """No entries, no bursts, and no error."""
    none = np.empty(0, np.int64)
    queries = Queries(none, none, none)
    loads = Loads(none, array(0), none, none, none)
    for axes in (KEY_AXES, VALUE_AXES):
        made = stream(Phase.KEY_WRITE, [], axes=axes, tokens=Tokens(none, none))
        payload = write_payload(made, random_bits(0, 0, HEADS, 20))
        assert len(payload.index) == 0
    made = stream(Phase.QK, [], queries=queries, loads=loads)

    assert len(query_payload(made, random_bits(0, 0, HEADS, PER_KV, 20)).index) == 0
    assert len(weight_payload(made, random_bits(0, 0, HEADS, PER_KV)).index) == 0


# --- loads ----------------------------------------------------------------------------


def loaded_components(made: CommandStream) -> Iterator[tuple[int, int, list[int]]]:
    """Query, query head and components of every burst that WRGBs load."""
    loads = made.loads
    assert loads is not None
    for command in made.commands():
        if command.op != Op.WRGB:
            continue
        pattern, head = divmod(command.reference, PER_KV)
        runs = range(loads.ptr[pattern], loads.ptr[pattern + 1])
        for burst in range(command.burst, command.burst + command.count):
            (run,) = (k for k in runs if 0 <= burst - loads.burst[k] < loads.count[k])
            first = int(loads.origin[run] + LANES * (burst - loads.burst[run]))
            yield int(loads.query[pattern]), head, list(range(first, first + LANES))


def load_stream(phase: Phase) -> CommandStream:
    """Three patterns over two queries; whole runs, parts of them, and several."""
    loads = Loads(
        query=array(1, 0, 1),
        ptr=array(0, 2, 3, 6),
        burst=array(0, 3, 8, 10, 0, 4),
        count=array(3, 3, 3, 3, 3, 3),
        origin=array(0, 0, 0, 0, 0, 0)
        if phase == Phase.QK
        else array(0, 8, 24, 16, 40, 0),
    )
    entries = [
        entry(Op.WRGB, burst=0, count=6, reference=1),
        entry(Op.ACT),
        entry(Op.WRGB, burst=4, count=1, reference=0),
        entry(Op.WRGB, burst=8, count=3, reference=2, channels=2),
        entry(Op.WRBIAS),
        entry(Op.WRGB, burst=11, count=2, reference=5),
        entry(Op.WRGB, burst=0, count=3, reference=4),
        entry(Op.WRGB, burst=4, count=3, reference=5),
    ]
    queries = Queries(request=array(0, 0), start=array(27, 3), end=array(46, 21))
    return stream(phase, entries, loads=loads, queries=queries)


def test_queries_are_loaded_by_pattern() -> None:
    """Components of the query head, zero beyond the head dimension."""
    made, queries = load_stream(Phase.QK), random_bits(4, 2, HEADS, PER_KV, 20)
    expected = [
        [queries[q, :, g, c] if c < 20 else np.zeros(HEADS) for c in components]
        for q, g, components in loaded_components(made)
    ]

    found = sent(query_payload(made, queries))
    assert np.array_equal(np.swapaxes(expected, 1, 2), found)


def test_weights_are_loaded_by_position() -> None:
    """The weight of a position the query sees, zero of any other."""
    made, weights = load_stream(Phase.SV), random_bits(5, 19 + 18, HEADS, PER_KV)
    firsts, ranges = (0, 19), (range(27, 46), range(3, 21))
    expected = [
        [
            weights[firsts[q] + p - ranges[q].start, :, g]
            if p in ranges[q]
            else np.zeros(HEADS)
            for p in positions
        ]
        for q, g, positions in loaded_components(made)
    ]

    found = sent(weight_payload(made, weights))
    assert np.array_equal(np.swapaxes(expected, 1, 2), found)


def test_operands_of_another_shape_are_refused() -> None:
    """Queries and weights must be those of the stream's query tokens."""
    with pytest.raises(PayloadError, match=r"\[2, 3, 2, 20\]"):
        query_payload(load_stream(Phase.QK), random_bits(0, 2, HEADS, PER_KV, 24))
    with pytest.raises(PayloadError, match=r"\[37, 3, 2\]"):
        weight_payload(load_stream(Phase.SV), random_bits(0, 36, HEADS, PER_KV))


def test_a_load_beyond_its_pattern_is_a_defect() -> None:
    """Bursts that the pattern does not describe are never filled by chance."""
    loads = Loads(array(0), array(0, 1), array(2), array(2), array(0))
    queries = Queries(array(0), array(0), array(16))
    made = stream(
        Phase.QK,
        [entry(Op.WRGB, burst=2, count=3)],
        loads=loads,
        queries=queries,
        frame=frame(),
    )
    with pytest.raises(AssertionError, match=r"^loads beyond patterns"):
        query_payload(made, random_bits(0, 1, HEADS, PER_KV, 20))


def test_key_bursts_beyond_the_head_are_zero() -> None:
    """Of 20 elements in bursts of eight the fourth has none."""
    entries = [entry(Op.WR, count=2, lanes=ALL_LANES, element=16, reference=1)]
    tokens = Tokens(np.zeros(6, np.int64), np.arange(6))
    made = stream(Phase.KEY_WRITE, entries, axes=KEY_AXES, tokens=tokens)
    data = random_bits(6, 6, HEADS, 20)

    assert np.array_equal(written_data(made, data), sent(write_payload(made, data)))


def test_weights_just_after_the_visible_range_are_zero() -> None:
    """Query 0 sees 3 to 20; what comes after its last burst is not query 1's first."""
    loads = Loads(array(0), array(0, 1), array(0), array(4), array(0))
    queries = Queries(request=array(0, 0), start=array(3, 0), end=array(21, 8))
    entries = [entry(Op.WRGB, burst=0, count=4, reference=g) for g in range(PER_KV)]
    made = stream(Phase.SV, entries, loads=loads, queries=queries)
    weights = random_bits(7, 18 + 8, HEADS, PER_KV)
    payload = weight_payload(made, weights)
    found = sent(payload).reshape(PER_KV, 4, HEADS, LANES)

    assert not found[:, 3].any()
    assert found[:, 2, :, :5].all()
    assert PER_KV * (3 + 1) + 1 == len(payload.table)


def test_nothing_sent_is_elements_too() -> None:
    payload = no_payload(key_stream())

    assert np.uint16 == payload.table.dtype
    assert np.int32 == payload.index.dtype


def test_a_load_after_a_pattern_of_one_burst_is_a_defect() -> None:
    loads = Loads(array(0), array(0, 1), array(2), array(1), array(0))
    queries = Queries(array(0), array(0), array(8))
    entries = [entry(Op.WRGB, burst=2, count=2)]
    made = stream(Phase.QK, entries, loads=loads, queries=queries)
    with pytest.raises(AssertionError, match=r"^loads beyond patterns"):
        query_payload(made, random_bits(0, 1, HEADS, PER_KV, 20))


def test_a_burst_in_the_middle_of_two_is_a_defect() -> None:
    loads = Loads(array(0), array(0, 1), array(0), array(1), array(4))
    queries = Queries(array(0), array(0), array(8))
    made = stream(Phase.QK, [entry(Op.WRGB)], loads=loads, queries=queries)
    with pytest.raises(AssertionError, match=r"^a burst begins in the middle of two"):
        query_payload(made, random_bits(0, 1, HEADS, PER_KV, 20))


def test_a_refusal_of_data_says_what_was_given() -> None:
    for given, value in (
        (random_bits(0, 5, HEADS, 20), "uint16 [5, 3, 20]"),
        (np.zeros((6, HEADS, 20)), "float64 [6, 3, 20]"),
        ([[1]], "list [1, 1]"),
    ):
        with pytest.raises(PayloadError) as raised:
            write_payload(key_stream(), given)  # type: ignore[arg-type]
        found = raised.value.value, raised.value.accepted
        assert (value, "uint16 [6, 3, 20]") == found


def test_weights_are_stored_for_the_bursts_that_are_seen() -> None:
    made = load_stream(Phase.SV)
    payload = weight_payload(made, random_bits(5, 19 + 18, HEADS, PER_KV))

    assert PER_KV * (3 + 3) + 1 == len(payload.table)
