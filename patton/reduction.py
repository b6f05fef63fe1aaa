"""What a device returned -> scores, weights, outputs, and blocks that were read back.

The reduction of a stream is its own `ResultTable` or `Axes`; these functions carry it
out on the host, in FP32 and in an order that is defined to the last bit (layout 5):

- sums over positions go by halving: the upper half of the terms is added to the lower
  until one is left, and of an odd number the lower half is the larger;
- partial outputs are added to zero in the order of the stream, PARTIAL after SV.

Every value that is used must come from lanes that were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op, Queries
from patton.config import ElementType
from patton.elements import decode, encode
from patton.errors import UnwrittenResultError
from patton.executor import Results
from patton.operands import bursts_of, lane_flags, spread

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def query_offsets(queries: Queries) -> Ints:
    """First score of each query and their total [Q + 1]: a CSR over visible ranges."""
    offsets = np.zeros(len(queries.start) + 1, np.int64)
    np.cumsum(queries.end - queries.start, out=offsets[1:])
    return offsets


def scores(stream: CommandStream, results: Results, element: ElementType) -> Floats:
    """Scores of a QK stream: float32 [sum of visible lengths, heads, G].

    Query after query, each from the start of its visible range (`query_offsets`).
    Raises UnwrittenResultError.
    """
    assert stream.queries is not None
    queries, frame = stream.queries, stream.frame
    offsets = query_offsets(queries)
    query, query_head, position = _results_of(stream)
    seen = position >= queries.start[query][:, None]
    seen &= position < queries.end[query][:, None]
    place = (offsets[:-1] - queries.start)[query][:, None] + position
    place = (place * frame.heads_per_kv + query_head[:, None])[seen]
    shape = (int(offsets[-1]) * frame.heads_per_kv, frame.heads)
    bits, written = np.zeros(shape, np.uint16), np.zeros(shape, np.bool_)
    bits[place] = results.mac.swapaxes(1, 2)[seen]
    written[place] = results.mac_written.swapaxes(1, 2)[seen]
    if not written.all():
        place, head = np.argwhere(~written)[0].tolist()
        raise _unwritten_score(stream, place // frame.heads_per_kv, head)
    by_position = bits.reshape(-1, frame.heads_per_kv, frame.heads).swapaxes(1, 2)
    return decode(np.ascontiguousarray(by_position), element)


def softmax_weights(
    scores: Floats, offsets: Ints, head_dim: int, element: ElementType
) -> Bits:
    """Attention weights of scores [sum of lengths, heads, G], rounded to elements.

    offsets [Q + 1]: CSR of the queries. In FP32: times 1 / sqrt(head_dim), minus the
    maximum, exponential, divided by their sum.
    """
    weights = scores * np.float32(1 / np.sqrt(head_dim))
    bounds = offsets.tolist()
    for start, end in pairwise(bounds):
        part = weights[start:end]
        part -= part.max(axis=0)
        np.exp(part, out=part)
        part /= _halving_sum(part)
    return encode(weights, element)


def outputs(
    streams: Sequence[tuple[CommandStream, Results]], element: ElementType
) -> Floats:
    """Attention outputs float32 [Q, heads, G, D] from the SV and PARTIAL streams.

    streams: in the order in which their partial outputs are added; at least one.
    Raises UnwrittenResultError.
    """
    first, _ = streams[0]
    assert first.queries is not None
    frame, count = first.frame, len(first.queries.start)
    sums = np.zeros(
        (count * frame.heads_per_kv, frame.head_dim, frame.heads), np.float32
    )
    for stream, results in streams:
        _add_partials(sums, stream, results, element)
    by_query = sums.reshape(count, frame.heads_per_kv, frame.head_dim, frame.heads)
    return np.ascontiguousarray(by_query.transpose(0, 3, 1, 2))


def read_back(stream: CommandStream, results: Results) -> Bits:
    """Elements that a READ stream returned: uint16 [tokens, heads, D].

    Tokens as in the stream's `tokens`. Raises UnwrittenResultError.
    """
    assert stream.tokens is not None
    assert stream.axes is not None
    frame = stream.frame
    bursts = bursts_of(stream, Op.RD)
    lane = np.arange(frame.lanes)
    token = bursts.token[:, None] + lane * stream.axes.token.lane
    element = bursts.element[:, None] + lane * stream.axes.element.lane
    carries = lane_flags(bursts.lanes, frame.lanes) & (element < frame.head_dim)
    place = (token * frame.head_dim + element)[carries]
    tokens = len(stream.tokens.position)
    shape = (tokens * frame.head_dim, frame.heads)
    bits, written = np.zeros(shape, np.uint16), np.zeros(shape, np.bool_)
    bits[place] = results.read.swapaxes(1, 2)[carries]
    written[place] = results.read_written.swapaxes(1, 2)[carries]
    if not written.all():
        place, head = np.argwhere(~written)[0].tolist()
        raise _unwritten_token(stream, place // frame.head_dim, head)
    return np.ascontiguousarray(
        bits.reshape(tokens, frame.head_dim, frame.heads).swapaxes(1, 2)
    )


def _results_of(stream: CommandStream) -> tuple[Ints, Ints, Ints]:
    """Of every result row: query, query head [rows], components of its banks [rows, B].

    A row is one channel of one RDMAC, in stream order.
    """
    assert stream.results is not None
    table, frame = stream.results, stream.frame
    reading = stream.op == Op.RDMAC
    entry, channel = spread(stream.channels[reading].astype(np.int64))
    reference = stream.reference[reading].astype(np.int64)[entry]
    group, query_head = np.divmod(reference, frame.heads_per_kv)
    group = group + channel * table.group_stride
    origin = table.origin[group] + channel * table.channel_stride
    component = origin[:, None] + np.arange(frame.banks) * table.bank_stride
    return table.query[group], query_head, component


def _add_partials(
    sums: Floats, stream: CommandStream, results: Results, element: ElementType
) -> None:
    """Add a stream's partial outputs to sums [Q * G, D, heads], in stream order."""
    query, query_head, component = _results_of(stream)
    used = component < stream.frame.head_dim
    _check_partials(stream, results, query, used)
    vector = query * stream.frame.heads_per_kv + query_head
    place = vector[:, None] * stream.frame.head_dim + component
    partials = decode(np.ascontiguousarray(results.mac.swapaxes(1, 2)), element)
    flat = sums.reshape(-1, sums.shape[-1])
    for rows in _in_turns(place[:, 0]):
        part = used[rows]
        # No place twice in a turn, so that nothing is lost.
        flat[place[rows][part]] += partials[rows][part]


def _in_turns(places: Ints) -> list[Ints]:
    """Rows by how many rows before them have the same place: firsts, seconds, ..."""
    by_place = np.argsort(places, kind="stable")
    same = places[by_place]
    starts = np.flatnonzero(np.diff(same, prepend=-1))
    _, turn_by_place = spread(np.diff(starts, append=len(same)))
    turn = np.empty_like(places)
    turn[by_place] = turn_by_place
    by_turn = np.argsort(turn, kind="stable")
    return np.split(by_turn, np.flatnonzero(np.diff(turn[by_turn])) + 1)


def _halving_sum(terms: Floats) -> Floats:
    """Sum over the first axis in the order that this module defines."""
    sums = terms
    while len(sums) > 1:
        half = (len(sums) + 1) // 2
        lower = sums[:half].copy()
        lower[: len(sums) - half] += sums[half:]
        sums = lower
    total: Floats = sums[0]
    return total


# --- used, but never written ----------------------------------------------------------


def _check_partials(
    stream: CommandStream, results: Results, query: Ints, used: NDArray[np.bool_]
) -> None:
    missing = used[:, None] & ~results.mac_written
    if missing.any():
        row, head, _ = np.argwhere(missing)[0].tolist()
        assert stream.queries is not None
        start, end = stream.queries.start, stream.queries.end
        raise _unwritten(
            stream,
            int(stream.queries.request[query[row]]),
            int(start[query[row]]),
            int(end[query[row]]),
            head,
        )


def _unwritten_score(
    stream: CommandStream, place: int, head: int
) -> UnwrittenResultError:
    """place: of the score among those of all queries."""
    assert stream.queries is not None
    offsets = query_offsets(stream.queries)
    query = int(np.searchsorted(offsets, place, "right")) - 1
    position = int(stream.queries.start[query] + place - offsets[query])
    request = int(stream.queries.request[query])
    return _unwritten(stream, request, position, position + 1, head)


def _unwritten_token(
    stream: CommandStream, token: int, head: int
) -> UnwrittenResultError:
    assert stream.tokens is not None
    position = int(stream.tokens.position[token])
    request = int(stream.tokens.request[token])
    return _unwritten(stream, request, position, position + 1, head)


def _unwritten(
    stream: CommandStream, request: int, start: int, end: int, head: int
) -> UnwrittenResultError:
    return UnwrittenResultError(stream.phase, stream.step, request, start, end, head)
