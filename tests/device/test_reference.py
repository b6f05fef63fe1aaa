"""The order-aware reference against arithmetic on single numbers, and against itself.

The scalar version below knows the order of additions from the addresses of elements,
which the reference does not use.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.addresses import slot_address, value_address
from patton.commit_zone import NO_SLOT
from patton.config import ElementType, device_preset, model_preset
from patton.device.reference import attention, attention_float64, max_rel_error
from patton.elements import decode, encode
from patton.layout import Layout
from patton.steps import PlacedStep, Tables
from tests.core.strategies import random_layout

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]
NONE = np.empty(0, np.int64)


def placed_step(
    layout: Layout,
    tables: list[list[tuple[int, int]]],
    reads: list[tuple[int, int, int]],
) -> PlacedStep:
    """A step that only reads.

    tables: per request (granule, slot) of its blocks; reads: (request, start, end).
    """
    ptr = np.cumsum([0, *(len(table) for table in tables)])
    granules, slots = np.array([*chain(*tables)], np.int64).reshape(-1, 2).T
    opened = np.full(len(granules), layout.block_tokens)
    request, start, end = np.array(reads, np.int64).reshape(-1, 3).T
    columns = {
        field.name: NONE
        for field in attrs.fields(PlacedStep)
        if field.name.startswith(("write_", "commit_", "readback_"))
    }
    return PlacedStep(
        layout=layout,
        step=0,
        requests=tuple(range(len(tables))),
        read_request=request,
        read_start=start,
        read_end=end,
        tables=Tables(ptr, granules, slots, opened),
        **columns,
    )


def random_elements(
    rng: np.random.Generator, shape: tuple[int, ...], element: ElementType
) -> Bits:
    return encode(rng.uniform(-1, 1, shape).astype(np.float32), element)


def wide_elements(
    rng: np.random.Generator, shape: tuple[int, ...], element: ElementType
) -> Bits:
    """Tokens of very different sizes, so that every order of additions shows."""
    exponent = rng.integers(-12, 13, (shape[0], 1, 1))
    numbers = np.ldexp(rng.uniform(-1, 1, shape), exponent)
    return encode(numbers.astype(np.float32), element)


@attrs.frozen(eq=False)
class Case:
    """A random step and its data."""

    placed: PlacedStep
    keys: list[Bits]
    values: list[Bits]
    queries: Bits


def random_case(
    seed: int, layout: Layout | None = None, blocks: int = 5, reads: int = 3
) -> Case:
    """Requests with blocks anywhere, some in slots, and any visible ranges."""
    rng = np.random.default_rng(seed)
    layout = layout or random_layout(rng)
    granules = rng.permutation(layout.granules).tolist()
    slots = rng.permutation(layout.slots * layout.stripes).tolist()
    tables: list[list[tuple[int, int]]] = []
    for _ in range(2):
        table = []
        for _ in range(min(blocks, len(granules))):
            granule, slot = granules.pop(), slots.pop() if slots else NO_SLOT
            staged = slot % layout.stripes == granule % layout.stripes
            wanted = staged and rng.random() < 0.3
            table.append((granule, slot if wanted else NO_SLOT))
        tables.append(table)
    tables = [table for table in tables if table]
    tokens = [len(table) * layout.block_tokens for table in tables]
    ranges = []
    for _ in range(reads):
        request = int(rng.integers(len(tables)))
        start, end = sorted(rng.choice(tokens[request] + 1, 2, replace=False).tolist())
        ranges.append((request, start, end))
    model, element = layout.model, layout.device.element
    shape = (model.kv_heads, model.head_dim)
    queries = (reads, model.kv_heads, model.query_heads_per_kv, model.head_dim)
    return Case(
        placed_step(layout, tables, ranges),
        [random_elements(rng, (n, *shape), element) for n in tokens],
        [wide_elements(rng, (n, *shape), element) for n in tokens],
        random_elements(rng, queries, element),
    )


# --- one number at a time -------------------------------------------------------------


def halved(terms: list[np.float32]) -> np.float32:
    while len(terms) > 1:
        half = (len(terms) + 1) // 2
        upper = [*terms[half:], *[None] * (2 * half - len(terms))]
        terms = [
            low if high is None else low + high
            for low, high in zip(terms[:half], upper, strict=True)
        ]
    return terms[0]


def rounded(value: np.float32, element: ElementType) -> np.float32:
    return np.float32(decode(encode(np.array([value]), element), element)[0])


def accumulated(left: Floats, right: Floats, lanes: int) -> np.float32:
    """Burst after burst, the last one filled up with zeros."""
    total = np.float32(0)
    for first in range(0, len(left), lanes):
        pairs = zip(left[first:][:lanes], right[first:][:lanes], strict=True)
        products = [a * b for a, b in pairs]
        products += [np.float32(0)] * (lanes - len(products))
        total += halved(products)
    return total


def scalar_weights(key: Floats, query: Floats, layout: Layout) -> Floats:
    element, lanes = layout.device.element, layout.device.lanes
    scores = [rounded(accumulated(query, k, lanes), element) for k in key]
    scale = np.float32(1 / np.sqrt(layout.model.head_dim))
    scaled = [score * scale for score in scores]
    powers = [np.exp(np.float32(score - max(scaled))) for score in scaled]
    total = halved(powers)
    return np.array([rounded(power / total, element) for power in powers])


def scalar_output(case: Case, read: int, head: int, query_head: int) -> Floats:
    placed, layout = case.placed, case.placed.layout
    element, tokens = layout.device.element, layout.block_tokens
    request = int(placed.read_request[read])
    start, end = int(placed.read_start[read]), int(placed.read_end[read])
    key = decode(case.keys[request][start:end, head], element)
    query = decode(case.queries[read, head, query_head], element)
    weights = np.zeros(len(case.keys[request]), np.float32)
    weights[start:end] = scalar_weights(key, query, layout)
    value = decode(np.ascontiguousarray(case.values[request][:, head]), element)
    base = placed.tables.ptr[request]
    runs = defaultdict(list)
    for block in range(start // tokens, -(-end // tokens)):
        granule = int(placed.tables.granule[base + block])
        slot = int(placed.tables.slot[base + block])
        if slot == NO_SLOT:
            place = value_address(layout.map, 0, 0, granule, 0, 0)
            runs[0, place.row, place.channel, 0].append((place.burst, block))
        else:
            place = slot_address(layout.map, 0, 0, slot, 0, 0)
            runs[1, place.row, place.channel, place.burst].append((0, block))
    outputs = np.zeros(value.shape[1], np.float32)
    for run in sorted(runs):
        blocks = [block for _, block in sorted(runs[run])]
        at = np.concatenate([np.arange(b * tokens, (b + 1) * tokens) for b in blocks])
        for component in range(len(outputs)):
            partial = accumulated(
                weights[at], value[at, component], layout.device.lanes
            )
            outputs[component] += rounded(partial, element)
    return outputs


@pytest.mark.parametrize("seed", range(60))
def test_reference_adds_in_the_order_of_addresses(seed: int) -> None:
    """Every bit is that of single additions in the order in which elements lie."""
    case = random_case(seed)
    found = attention(case.placed, case.keys, case.values, case.queries)
    read, heads, per_kv, _ = case.queries.shape

    for index in np.ndindex(read, heads, per_kv):
        expected = scalar_output(case, *index)
        assert expected.tobytes() == found[index].tobytes()


# --- claims about it ------------------------------------------------------------------


def llama(tokens_element: ElementType = ElementType.BF16) -> Layout:
    device = attrs.evolve(device_preset("aim-gddr6"), element=tokens_element)
    return Layout.of(device, model_preset("llama3-8b"))


def test_placement_decides_the_last_bits() -> None:
    """Blocks that share rows are rounded together, others apart."""
    layout = llama()
    case = random_case(1, layout, blocks=12)
    reads = [(0, 0, 12 * layout.block_tokens)]
    here, there = (
        attention(
            placed_step(layout, [[(step * k, NO_SLOT) for k in range(12)]], reads),
            case.keys[:1],
            case.values[:1],
            case.queries[:1],
        )
        for step in (1, layout.values_per_set)
    )

    assert not np.array_equal(here, there)
    assert max_rel_error(here, there.astype(np.float64)) < 0.02


@pytest.mark.parametrize("element", [ElementType.BF16, ElementType.FP16])
def test_rounding_stays_small(element: ElementType) -> None:
    """Elements uniform in [-1, 1] give outputs within 1e-2 of double precision."""
    case = random_case(2, llama(element), blocks=12, reads=4)
    arguments = (case.placed, case.keys, case.values, case.queries)
    error = max_rel_error(attention(*arguments), attention_float64(*arguments))

    assert 0 < error < 1e-2


def test_double_precision_is_plain_attention() -> None:
    """attention_float64 is softmax(q K / sqrt(D)) V over the visible range."""
    case = random_case(3, llama(), reads=2)
    found = attention_float64(case.placed, case.keys, case.values, case.queries)
    request, start, end = (
        int(column[1])
        for column in (
            case.placed.read_request,
            case.placed.read_start,
            case.placed.read_end,
        )
    )
    element = ElementType.BF16
    key = decode(case.keys[request][start:end, 5], element).astype(np.float64)
    value = decode(case.values[request][start:end, 5], element).astype(np.float64)
    query = decode(case.queries[1, 5, 2], element).astype(np.float64)
    weights = np.exp(key @ query / np.sqrt(128))
    expected = weights @ value / weights.sum()

    assert np.allclose(expected, found[1, 5, 2], rtol=1e-12, atol=1e-15)


def test_one_visible_token_gives_its_value() -> None:
    """A weight of 1 returns the stored element exactly, in a slot or not."""
    for slot in (NO_SLOT, 3):
        layout = llama()
        case = random_case(4, layout)
        placed = placed_step(layout, [[(7, slot)]], [(0, 9, 10)])
        found = attention(placed, case.keys[:1], case.values[:1], case.queries[:1])
        value = decode(case.values[0][9], ElementType.BF16)

        assert np.array_equal(np.broadcast_to(value[:, None], found[0].shape), found[0])


def test_blocks_outside_the_window_have_no_say() -> None:
    """Released blocks, and what is stored in blocks that nobody sees, do not matter."""
    layout = llama()
    tables = [[(granule, NO_SLOT) for granule in (-1, 4, 5, 6)]]
    placed = placed_step(layout, tables, [(0, 20, 40)])
    case = random_case(5, layout, blocks=4)
    expected = attention(placed, case.keys, case.values, case.queries[:1])
    for data in (case.keys[0], case.values[0]):
        data[:16] = data[48:] = 0x7FC0
    found = attention(placed, case.keys, case.values, case.queries[:1])

    assert np.array_equal(expected, found)
    assert np.isfinite(found).all()


def test_queries_of_a_long_prompt_do_not_touch_each_other() -> None:
    """Many query tokens of a request give what each of them gives alone."""
    case = random_case(6, blocks=3, reads=50)
    together = attention(case.placed, case.keys, case.values, case.queries)
    for read in (0, 17, 49):
        only = slice(read, read + 1)
        alone = attrs.evolve(
            case.placed,
            read_request=case.placed.read_request[only],
            read_start=case.placed.read_start[only],
            read_end=case.placed.read_end[only],
        )
        found = attention(alone, case.keys, case.values, case.queries[only])

        assert np.array_equal(together[only], found)


def test_no_reads_give_no_outputs() -> None:
    """A step without reads has outputs of zero length, and no error."""
    layout = llama()
    queries = np.zeros((0, 8, 4, 128), np.uint16)
    found = attention(placed_step(layout, [], []), [], [], queries)

    assert (0, 8, 4, 128) == found.shape
    assert max_rel_error(found, found.astype(np.float64)) == 0


def test_relative_error_is_of_a_head_vector() -> None:
    """Largest difference over largest component, the worst of all vectors."""
    exact = np.array([[4.0, -8.0], [1.0, 0.0], [0.0, 0.0]])
    found = np.array([[4.0, -7.0], [1.0, 0.25], [0.0, 0.0]], np.float32)

    assert max_rel_error(found, exact) == 0.25
    assert max_rel_error(found + np.float32(1), exact) == np.inf
