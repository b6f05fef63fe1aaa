"""Host arrays -> what goes over the bus: the payload of a command stream.

Which token, element or weight a burst carries is written in the stream's own tables
(`Axes`, `Loads`), so nothing here knows where anything lies. Bursts that are sent
often, such as a query duplicated along a row (Paper 4.5), stand in the payload's table
once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op
from patton.errors import PayloadError
from patton.executor import Payload

Bits = NDArray[np.uint16]
Ints = NDArray[np.int64]


def no_payload(stream: CommandStream) -> Payload:
    """The payload of a stream that takes nothing from the host."""
    table = np.empty((0, stream.frame.heads, stream.frame.lanes), np.uint16)
    return Payload(table, np.empty(0, np.int32))


def write_payload(stream: CommandStream, data: Bits) -> Payload:
    """Data of a stream that writes from the host.

    data: element bit patterns [tokens, heads, D] of the stream's `tokens`, in their
    order. Raises PayloadError.
    """
    assert stream.source == "host"
    assert stream.axes is not None
    assert stream.tokens is not None
    frame = stream.frame
    _check_shape(data, (len(stream.tokens.position), frame.heads, frame.head_dim))
    bursts = bursts_of(stream, Op.WR)
    if stream.axes.element.lane:
        return _elements_in_lanes(stream, bursts, data)
    return _tokens_in_lanes(stream, bursts, data)


def query_payload(stream: CommandStream, queries: Bits) -> Payload:
    """Data of a QK stream: queries [Q, heads, G, D], element bit patterns.

    Raises PayloadError.
    """
    assert stream.queries is not None
    frame = stream.frame
    count, per_kv, lanes = len(stream.queries.start), frame.heads_per_kv, frame.lanes
    _check_shape(queries, (count, frame.heads, per_kv, frame.head_dim))
    bursts = -(-frame.head_dim // lanes)
    padded = np.zeros((count, frame.heads, per_kv, bursts * lanes), np.uint16)
    padded[..., : frame.head_dim] = queries
    vectors = padded.reshape(count, frame.heads, per_kv, bursts, lanes)
    table = vectors.transpose(0, 2, 3, 1, 4).reshape(-1, frame.heads, lanes)
    vector, component = _loaded_bursts(stream)
    index = vector * bursts + _aligned(component, lanes)
    return Payload(table, index.astype(np.int32))


def weight_payload(stream: CommandStream, weights: Bits) -> Payload:
    """Data of an SV or PARTIAL stream.

    weights: element bit patterns [sum of visible lengths, heads, G], query after query,
    each from the start of its visible range. Raises PayloadError.
    """
    assert stream.queries is not None
    frame, queries = stream.frame, stream.queries
    lanes, per_kv = frame.lanes, frame.heads_per_kv
    lengths = queries.end - queries.start
    _check_shape(weights, (int(lengths.sum()), frame.heads, per_kv))
    first_burst = queries.start // lanes
    bursts = -(-queries.end // lanes) - first_burst
    total = int(bursts.sum())
    base = np.cumsum(bursts) - bursts
    # Lanes outside the visible range are zero, and so is the burst after the last one,
    # which stands for all that no query sees: stored data there have no say.
    lane_weights = np.zeros((total * lanes, frame.heads, per_kv), np.uint16)
    query, offset = spread(lengths)
    lane_weights[(base * lanes + queries.start % lanes)[query] + offset] = weights
    table = np.zeros((per_kv * total + 1, frame.heads, lanes), np.uint16)
    by_burst = lane_weights.reshape(total, lanes, frame.heads, per_kv)
    table[:-1].reshape(per_kv, total, frame.heads, lanes)[:] = by_burst.transpose(
        3, 0, 2, 1
    )
    vector, component = _loaded_bursts(stream)
    query, head = vector // per_kv, vector % per_kv
    burst = _aligned(component, lanes) - first_burst[query]
    seen = (burst >= 0) & (burst < bursts[query])
    index = np.where(seen, head * total + base[query] + burst, per_kv * total)
    return Payload(table, index.astype(np.int32))


def spread(counts: Ints) -> tuple[Ints, Ints]:
    """Each item as often as its count: item number, and 0, 1, ... inside the item."""
    item = np.repeat(np.arange(len(counts)), counts)
    return item, np.arange(len(item)) - (np.cumsum(counts) - counts)[item]


def _loaded_bursts(stream: CommandStream) -> tuple[Ints, Ints]:
    """Of every burst that WRGBs load: its query head vector and first component."""
    assert stream.loads is not None
    frame, loads = stream.frame, stream.loads
    loading = stream.op == Op.WRGB
    pattern, query_head = np.divmod(
        stream.reference[loading].astype(np.int64), frame.heads_per_kv
    )
    # All bursts of all patterns in a row, so that one search per WRGB finds its first
    # burst and the others follow.
    run, offset = spread(loads.count)
    run_pattern = np.repeat(np.arange(len(loads.query)), np.diff(loads.ptr))
    place = (run_pattern * frame.bursts_per_row + loads.burst)[run] + offset
    component = loads.origin[run] + offset * frame.lanes
    order = np.argsort(place, kind="stable")  # runs of a pattern in any order
    sought = pattern * frame.bursts_per_row + stream.burst[loading]
    first = np.searchsorted(place[order], sought)
    entry, offset = spread(stream.count[loading].astype(np.int64))
    found = order[np.minimum(first[entry] + offset, max(len(order) - 1, 0))]
    assert np.array_equal(place[found], sought[entry] + offset), "loads beyond patterns"
    vector = loads.query[pattern] * frame.heads_per_kv + query_head
    return vector[entry], component[found]


class Bursts(NamedTuple):
    """The data of bursts on the bus: what lane 0 stands for, and which lanes count.

    token: index into the stream's tokens, possibly negative; element: of the head;
    lanes: mask of the lanes that carry a token.
    """

    token: Ints
    element: Ints
    lanes: NDArray[np.uint64]


def bursts_of(stream: CommandStream, op: Op) -> Bursts:
    """Every burst of all RDs or all WRs, in the order of a result or a payload."""
    assert stream.axes is not None
    assert stream.element is not None
    assert stream.lanes is not None
    entries = np.flatnonzero(stream.op == op)
    banks = stream.banks[entries].astype(np.int64)
    count = stream.count[entries].astype(np.int64)
    item, offset = spread(stream.channels[entries] * banks * count)
    offset, burst = np.divmod(offset, count[item])
    channel, bank = np.divmod(offset, banks[item])
    entry = entries[item]
    token, element = (
        channel * strides.channel + bank * strides.bank + burst * strides.burst
        for strides in (stream.axes.token, stream.axes.element)
    )
    return Bursts(
        token + stream.reference[entry],
        element + stream.element[entry],
        stream.lanes[entry],
    )


def lane_flags(masks: NDArray[np.uint64], lanes: int) -> NDArray[np.bool_]:
    """Masks of lanes [n] as booleans [n, lanes]."""
    lane = np.arange(lanes, dtype=np.uint64)
    return (masks[:, None] >> lane & np.uint64(1)).astype(np.bool_)


def _elements_in_lanes(stream: CommandStream, bursts: Bursts, data: Bits) -> Payload:
    """Payload where a burst holds consecutive elements of one token (Keys)."""
    frame = stream.frame
    tokens, lanes = len(data), frame.lanes
    width = -(-frame.head_dim // lanes)
    padded = np.zeros((tokens, frame.heads, width * lanes), np.uint16)
    padded[..., : frame.head_dim] = data
    table = np.zeros((tokens * width + 1, frame.heads, lanes), np.uint16)
    by_token = padded.reshape(tokens, frame.heads, width, lanes)
    table[:-1].reshape(tokens, width, frame.heads, lanes)[:] = by_token.swapaxes(1, 2)
    part = _aligned(bursts.element, lanes)
    index = np.where(part < width, bursts.token * width + part, tokens * width)
    return Payload(table, index.astype(np.int32))


def _tokens_in_lanes(stream: CommandStream, bursts: Bursts, data: Bits) -> Payload:
    """Payload where a burst holds one element of consecutive tokens (Values).

    Bursts with the same tokens in the same lanes differ in the element only; such a
    window of tokens is transposed once.
    """
    frame = stream.frame
    masks, mask = np.unique(bursts.lanes, return_inverse=True)
    windows, window = np.unique(bursts.token * len(masks) + mask, return_inverse=True)
    first, mask = np.divmod(windows, max(len(masks), 1))
    carries = lane_flags(masks[mask], frame.lanes)
    token = np.where(carries, first[:, None] + np.arange(frame.lanes), 0)
    columns = data[token]  # [windows, lanes, heads, D]
    columns[~carries] = 0
    shape = (len(windows), frame.head_dim, frame.heads, frame.lanes)
    table = np.zeros((len(windows) * frame.head_dim + 1, *shape[2:]), np.uint16)
    table[:-1].reshape(shape)[:] = columns.transpose(0, 3, 2, 1)
    row = window * frame.head_dim + bursts.element
    index = np.where(bursts.element < frame.head_dim, row, len(table) - 1)
    return Payload(table, index.astype(np.int32))


def _aligned(component: Ints, lanes: int) -> Ints:
    """The burst that begins with this component; blocks and heads begin with one."""
    burst, rest = np.divmod(component, lanes)
    assert not rest.any(), "a burst begins in the middle of two"
    return burst


def _check_shape(data: Bits, shape: tuple[int, ...]) -> None:
    fits = isinstance(data, np.ndarray) and data.shape == shape
    if not fits or data.dtype != np.uint16:
        kind = getattr(data, "dtype", type(data).__name__)
        value = f"{kind} {list(np.shape(data))}"
        raise PayloadError("host data", value, f"uint16 {list(shape)}")
