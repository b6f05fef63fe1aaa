"""What the attention of a step must come to, worked out without any command stream.

Two answers. `attention` repeats the device's arithmetic in the device's order, so that
every output of a run can be compared bit for bit; of the placement it needs only what
decides the order of additions: which blocks share a row. `attention_float64` is plain
attention in double precision, against which the device's rounding error is measured.

The order (layout 5, Paper 4.5), for one query head vector:

- a score is accumulated over the bursts of the head dimension, each burst being exact
  FP32 products added up by halving, and rounded once. Halving: the upper half of the
  terms is added to the lower until one is left; of an odd number the lower is larger;
- the host scales by 1 / sqrt(D) in FP32, subtracts the maximum, takes the exponential
  and divides by the sum over the visible range, which is added up by halving too;
  weights are rounded;
- for each Value row set, stripe by stripe, the resident blocks are accumulated over
  their bursts in ascending order and rounded once; each block in the Commit Zone on its
  own, by Commit Zone row, stripe and column. These partial outputs are added in FP32,
  row sets first, in ascending order.

No code is shared with what makes, executes or reduces streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.config import ElementType
from patton.elements import decode, encode
from patton.layout import Layout
from patton.steps import PlacedStep

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

_PRODUCTS_AT_A_TIME = 1 << 16  # stay in the cache while they are added up
_QUERIES_AT_A_TIME = 16  # bounds the memory of long prompts


def attention(
    placed: PlacedStep, keys: Sequence[Bits], values: Sequence[Bits], queries: Bits
) -> Floats:
    """Outputs of one layer as the device and the host make them, to the last bit.

    keys, values: per request of `placed.requests` the element bit patterns
    [tokens from position 0, heads, D] (may be empty where it reads nothing);
    queries [Q, heads, G, D]. Returns float32 [Q, heads, G, D].
    """
    outputs = np.zeros(queries.shape, np.float32)
    for reads in _reads_of(placed):
        exact_queries = decode(queries[reads.rows], placed.layout.device.element)
        outputs[reads.rows] = _outputs(
            placed.layout,
            reads,
            keys[reads.request][reads.first : reads.end],
            values[reads.request][reads.first : reads.end],
            exact_queries,
        )
    return outputs


def attention_float64(
    placed: PlacedStep, keys: Sequence[Bits], values: Sequence[Bits], queries: Bits
) -> Doubles:
    """Attention of the same elements in double precision; arguments as `attention`."""
    element = placed.layout.device.element
    outputs = np.zeros(queries.shape, np.float64)
    for reads in _reads_of(placed):
        window = slice(reads.first, reads.end)
        key = decode(keys[reads.request][window], element).astype(np.float64)
        value = decode(values[reads.request][window], element).astype(np.float64)
        for row, start, stop in reads.ranges():
            query = decode(queries[row], element).astype(np.float64)
            scores = query @ key[start:stop].transpose(1, 2, 0)  # [heads, G, tokens]
            scores /= np.sqrt(query.shape[-1])
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            outputs[row] = weights @ value[start:stop].transpose(1, 0, 2)
    return outputs


def max_rel_error(outputs: Floats, exact: Doubles) -> float:
    """Largest max |outputs - exact| / max |exact| of any head vector (last axis)."""
    if not outputs.size:
        return 0.0
    error = np.abs(outputs - exact).max(axis=-1)
    largest = np.abs(exact).max(axis=-1)
    # A vector of zeros that is met exactly has no error; else the error is infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(error == 0, 0.0, error / largest)
    return float(relative.max())


# --- which tokens, which order --------------------------------------------------------


@attrs.frozen(eq=False)
class _Reads:
    """Some query tokens of one request, and the window of tokens that they see.

    rows, starts, ends: per query token its index in the step and its visible range;
    first, end: the window, from the beginning of a block to the last visible token;
    granule, slot: of the window's blocks.
    """

    request: int
    rows: Ints
    starts: Ints
    ends: Ints
    first: int
    end: int
    granule: Ints
    slot: Ints

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """Per query token: row, and visible range inside the window."""
        starts, ends = self.starts - self.first, self.ends - self.first
        yield from zip(self.rows.tolist(), starts.tolist(), ends.tolist(), strict=True)


def _reads_of(placed: PlacedStep) -> Iterator[_Reads]:
    """The query tokens of the step, those of a request together."""
    for request in np.unique(placed.read_request).tolist():
        rows = np.flatnonzero(placed.read_request == request)
        for first in range(0, len(rows), _QUERIES_AT_A_TIME):
            some = rows[first : first + _QUERIES_AT_A_TIME]
            yield _window_of(placed, request, some)


def _window_of(placed: PlacedStep, request: int, rows: Ints) -> _Reads:
    block_tokens = placed.layout.block_tokens
    starts, ends = placed.read_start[rows], placed.read_end[rows]
    first_block, end = int(starts.min()) // block_tokens, int(ends.max())
    base = int(placed.tables.ptr[request])
    blocks = slice(base + first_block, base - (-end // block_tokens))
    return _Reads(
        request=request,
        rows=rows,
        starts=starts,
        ends=ends,
        first=first_block * block_tokens,
        end=end,
        granule=placed.tables.granule[blocks],
        slot=placed.tables.slot[blocks],
    )


def _runs(layout: Layout, reads: _Reads) -> list[list[int]]:
    """The window's blocks in the order of accumulation, one list per partial output."""
    stripes = layout.stripes
    resident: dict[tuple[int, int], list[tuple[int, int]]] = {}
    staged: list[tuple[int, int, int, int]] = []
    for block, (granule, slot) in enumerate(
        zip(reads.granule.tolist(), reads.slot.tolist(), strict=True)
    ):
        if slot >= 0:
            row, column = divmod(slot // stripes, layout.slots_per_row)
            staged.append((row, slot % stripes, column, block))
        elif granule >= 0:
            row_set, column = divmod(granule // stripes, layout.values_per_set)
            run = resident.setdefault((row_set, granule % stripes), [])
            run.append((column, block))
    runs = [[block for _, block in sorted(resident[key])] for key in sorted(resident)]
    return runs + [[block] for *_, block in sorted(staged)]


# --- the arithmetic -------------------------------------------------------------------


def _outputs(
    layout: Layout, reads: _Reads, keys: Bits, values: Bits, queries: Floats
) -> Floats:
    """Outputs [q, heads, G, D] of one request's queries over its window's tokens."""
    count, heads, per_kv, head_dim = queries.shape
    element, lanes = layout.device.element, layout.device.lanes
    runs = _runs(layout, reads)
    outputs = np.empty_like(queries)
    for head in range(heads):
        vectors = queries[:, head].reshape(count * per_kv, head_dim)
        key = decode(np.ascontiguousarray(keys[:, head].T), element)
        scores = _scores(vectors, key, lanes, element)
        weights = _weights(scores.reshape(count, per_kv, -1), reads, head_dim, element)
        value = decode(np.ascontiguousarray(values[:, head]), element)
        sums = _burst_sums(weights.reshape(count * per_kv, -1), value, lanes)
        output = _add_up(sums, runs, layout.value_width, element)
        outputs[:, head] = output.reshape(count, per_kv, head_dim)
    return outputs


def _scores(vectors: Floats, key: Floats, lanes: int, element: ElementType) -> Floats:
    """Rounded scores [v, tokens] of vectors [v, D] and keys [D, tokens]."""
    scores = np.zeros((len(vectors), key.shape[1]), np.float32)
    step = max(1, _PRODUCTS_AT_A_TIME // (lanes * key.shape[1]))
    for first in range(0, len(vectors), step):
        some = scores[first : first + step]
        query = vectors[first : first + step].T
        for burst in range(0, len(key), lanes):
            part = slice(burst, burst + lanes)
            some += _halving_sum(query[part, :, None] * key[part, None, :])
    return decode(encode(scores, element), element)


def _weights(
    scores: Floats, reads: _Reads, head_dim: int, element: ElementType
) -> Floats:
    """Rounded softmax [q, G, tokens], zero outside each query's visible range."""
    weights = np.zeros_like(scores)
    scale = np.float32(1 / np.sqrt(head_dim))
    for query, (_, start, stop) in enumerate(reads.ranges()):
        scaled = scores[query, :, start:stop] * scale
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        total = _halving_sum(powers.T.copy())
        weights[query, :, start:stop] = powers / total[:, None]
    return decode(encode(weights, element), element)


def _burst_sums(weights: Floats, value: Floats, lanes: int) -> Floats:
    """Lane sums [bursts, v, D] of weights [v, tokens] and values [tokens, D].

    Tokens that the last burst lacks count as zeros.
    """
    tokens, head_dim = value.shape
    bursts = -(-tokens // lanes)
    lane_values = np.zeros((bursts * lanes, head_dim), np.float32)
    lane_values[:tokens] = value
    lane_weights = np.zeros((len(weights), bursts * lanes), np.float32)
    lane_weights[:, :tokens] = weights
    lane_values = lane_values.reshape(bursts, lanes, head_dim).swapaxes(0, 1)
    lane_weights = lane_weights.reshape(-1, bursts, lanes).transpose(2, 1, 0)
    sums = np.empty((bursts, len(weights), head_dim), np.float32)
    step = max(1, _PRODUCTS_AT_A_TIME // (lanes * sums[:1].size))
    for first in range(0, bursts, step):
        part = slice(first, first + step)
        products = lane_weights[:, part, :, None] * lane_values[:, part, None, :]
        sums[part] = _halving_sum(products)
    return sums


def _add_up(
    sums: Floats, runs: list[list[int]], block_bursts: int, element: ElementType
) -> Floats:
    """Outputs [v, D]: each run accumulated and rounded, the runs added in FP32."""
    output: Floats = np.zeros_like(sums[0])
    for run in runs:
        accumulator = np.zeros_like(output)
        for block in run:
            first = block * block_bursts
            for burst_sum in sums[first : first + block_bursts]:
                accumulator += burst_sum
        output += decode(encode(accumulator, element), element)
    return output


def _halving_sum(terms: Floats) -> Floats:
    """Sum over the first axis by halving; destroys `terms`."""
    count = len(terms)
    while count > 1:
        half = (count + 1) // 2
        terms[: count - half] += terms[half:count]
        count = half
    total: Floats = terms[0]
    return total
