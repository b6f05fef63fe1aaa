"""Granules of every order, and their sizes (Paper 4.2)."""

from __future__ import annotations

import pytest

from patton.addresses import Element
from patton.commands import Op
from patton.errors import LayoutError, OutOfPairsError
from patton.generate import generate_step
from patton.layout import Kind, Layout
from patton.steps import Step
from tests.core.llama import llama, place
from tests.paper.setting import (
    AIM,
    BANKS,
    BOTH,
    HEAD_DIM,
    LLAMA,
    OPT,
    TOKENS,
    at,
    attend,
    bursts,
    commands,
    grow,
    layout_of,
    lies,
    only,
    prefill,
    served,
    streams,
    values,
    written_bursts,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


def pair_of(layout: Layout, pair: int) -> range:
    """The granule indices of a pair."""
    return range(pair * layout.pair_blocks, (pair + 1) * layout.pair_blocks)


def test_every_product_uses_all_banks_and_whole_bursts() -> None:
    """A MACAB takes a burst of each of the 16 banks, 256 elements; none takes less.

    Reference: section 4.2, sentences 4.1, 4.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(9), 8 * TOKENS + 3)
    found = attend(runtime, "a")
    products = [
        entry
        for stream in (found.qk, found.sv, found.partial)
        for entry in only(commands(stream), Op.MACAB)
    ]

    assert {(0, BANKS)} == {(entry.bank, entry.banks) for entry in products}
    assert 256 == BANKS * LLAMA.device.lanes
    whole = bursts(lies(LLAMA, "key", [0]))
    assert 8 * BANKS == len(whole)
    assert TOKENS * HEAD_DIM == len(whole) * LLAMA.device.lanes


def test_a_block_has_one_key_and_one_value_granule() -> None:
    """Of its own, and what lies there leads back to it.

    Reference: section 4.2, sentence 4.3.
    """
    runtime = served(LLAMA)
    for request in range(4):
        prefill(runtime, request, range(25 * request, 25 * request + 25), 25 * TOKENS)
    granules = [place(runtime, block).granule for block in range(100)]

    assert 100 == len({*granules})
    for block in (0, 31, 99):
        for kind in ("key", "value"):
            address = at(LLAMA, kind, granules[block], 3, 70)
            found = LLAMA.element_at(address)
            assert found is not None
            assert granules[block] == found[1].index
            assert block == runtime.placements.block_at[found[1].index]


@pytest.mark.parametrize(("layout", "channels", "rows"), [(OPT, 1, 8), (LLAMA, 4, 2)])
def test_shapes_of_granules(layout: Layout, channels: int, rows: int) -> None:
    """A Key in the columns of one row; a Value one burst wide in eight rows in all.

    Reference: section 4.2, sentence 4.4.
    """
    key, value = lies(layout, "key", [6]), lies(layout, "value", [6])

    assert 1 == len({(a.channel, a.row) for a in key})
    assert 8 == len(values(key, "burst"))
    assert 1 == len(values(value, "burst"))
    assert 8 == len({(a.channel, a.row) for a in value})
    assert (channels, rows) == (
        len(values(value, "channel")),
        len(values(value, "row")),
    )


@both
def test_the_granule_says_where_writes_go_and_what_is_multiplied(
    layout: Layout,
) -> None:
    """Write, QK and SV streams address exactly the block's own bursts.

    Reference: section 4.2, sentence 4.5.
    """
    runtime = served(layout)
    prefill(runtime, "other", [7], TOKENS)
    found = streams(prefill_later := grow(runtime, "a", [3], TOKENS))
    runtime.publish(prefill_later)
    granule = place(runtime, 3).granule
    key, value = (bursts(lies(layout, kind, [granule])) for kind in ("key", "value"))

    assert key == written_bursts(found.key_write)
    assert value == written_bursts(found.value_write)
    seen = attend(runtime, "a")
    for stream, own in ((seen.qk, key), (seen.sv, value)):
        read = {
            (channel, bank, entry.row, burst)
            for entry in only(commands(stream), Op.MACAB)
            for channel in range(entry.channel, entry.channel + entry.channels)
            for bank in range(BANKS)
            for burst in range(entry.burst, entry.burst + entry.count)
        }
        assert own == read


def test_row_sets_are_divided_into_order_2_granules() -> None:
    """With 16 blocks a pair, four of them fill a Value row set, two a row of Keys.

    A pair is a run of indices; of a size that does not divide the row set it may lie
    in two, and counts to the first.

    Ours: MAP-PAIR.
    Reference: section 4.2, sentence 4.6.
    """
    sets = [LLAMA.value_set_of_pair(pair) for pair in range(8)]
    assert [0, 0, 0, 0, 1, 1, 1, 1] == sets
    for pair, value_set in enumerate(sets):
        rows = values(lies(LLAMA, "value", pair_of(LLAMA, pair), [0]), "row")
        assert [255 + 2 * value_set, 256 + 2 * value_set] == rows
    odd = Layout.of(AIM, LLAMA.model, pair_blocks=24)

    rows = values(lies(odd, "value", pair_of(odd, 2), [0], [0]), "row")
    assert 2 == len(rows)
    assert 0 == odd.value_set_of_pair(2)


@both
def test_an_order_2_granule_is_a_group_of_neighbours(layout: Layout) -> None:
    """Of Keys in the rows of one Key row set, of Values in adjacent columns.

    Reference: section 4.2, sentence 4.7.
    """
    for pair in (0, 3, 9):
        blocks = pair_of(layout, pair)
        in_columns = [at(layout, "value", g).burst for g in blocks]
        assert [*range(in_columns[0], in_columns[0] + 16)] == in_columns
        keys = lies(layout, "key", blocks, [0])
        per_row = layout.channels_per_head * layout.keys_per_row
        assert max(1, 16 // per_row) == len(values(keys, "row"))


def test_requests_share_row_sets_and_packed_allocation_fills_the_fullest() -> None:
    """Packed is the paper's rule; by default requests spread, for neighbours later.

    Ours: LIFE-NEXT.
    Reference: section 4.2, sentence 4.8.
    """
    sets = {}
    for choice in ("packed", "spread"):
        runtime = served(LLAMA, choice=choice)
        prefill(runtime, "last row set", range(100, 132), 32 * TOKENS)
        for request in range(4):
            prefill(runtime, request, [request], TOKENS)
        granules = [place(runtime, block).granule for block in range(4)]
        sets[choice] = {LLAMA.value_set_of_pair(g // 16) for g in granules}

    assert {"packed": 1, "spread": 4} == {name: len(s) for name, s in sets.items()}


def test_an_order_2_granule_has_16_blocks() -> None:
    """Unless one head has more channels: then as many as give each channel a Key.

    Reference: section 4.2, sentence 4.9.
    """
    assert [16, 16] == [layout.pair_blocks for layout in BOTH]
    one_head = layout_of(kv_heads=1, query_heads=4)
    assert (32, 32) == (one_head.channels_per_head, one_head.pair_blocks)


@both
def test_keys_values_and_slots_are_equal_in_size(layout: Layout) -> None:
    """128 bursts each of 16 elements, counted where they lie; and so are the pairs.

    Reference: section 4.2, sentence 4.10.
    """
    kinds: tuple[Kind, ...] = ("key", "value", "slot")
    sizes = {len(bursts(lies(layout, kind, [3]))) for kind in kinds}
    pairs = {len(bursts(lies(layout, kind, pair_of(layout, 2)))) for kind in kinds[:2]}

    assert {TOKENS * HEAD_DIM // layout.device.lanes} == sizes == {128}
    assert {16 * 128} == pairs


def test_keys_and_values_run_out_together() -> None:
    """Equal sizes alone do not give this; that both have one index does.

    Ours: MAP-INDEX.
    Reference: section 4.2, sentence 4.11.
    """
    runtime = llama(gib=0.5)
    layout = runtime.layout
    for block in range(layout.granules - 1):
        runtime.bind("a", block)
    last = layout.granules - 1
    for kind in ("key", "value"):
        layout.address_of(kind, Element(0, 0, last, 0, 0))
        with pytest.raises(LayoutError):
            layout.address_of(kind, Element(0, 0, last + 1, 0, 0))
    runtime.bind("a", last)
    written = generate_step(
        runtime.apply_step(Step(writes=[("a", 0, layout.tokens)])).place()
    )

    assert {*range(layout.granules)} == {*runtime.placements.granule}
    for stream, kind in ((written.key_write, "key"), (written.value_write, "value")):
        assert stream is not None
        whole = 128 * layout.granules
        assert whole == len(written_bursts(stream)), kind
    other = served(layout, blocks=layout.granules + 1)
    for block in range(layout.granules):
        other.bind("a", block)
    with pytest.raises(OutOfPairsError):
        other.bind("a", layout.granules)
