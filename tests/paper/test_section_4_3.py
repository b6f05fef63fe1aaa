"""Keys in their granules, and QK on them (Paper 4.3)."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.commands import Op
from patton.layout import Layout
from patton.operands import query_payload
from tests.core.llama import place
from tests.paper.setting import (
    BANKS,
    BOTH,
    HEAD_DIM,
    LANES,
    LLAMA,
    OPT,
    TOKENS,
    at,
    attend,
    bursts,
    commands,
    decode,
    grow,
    layout_of,
    lies,
    only,
    prefill,
    run_of,
    served,
    streams,
    values,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


@both
def test_each_token_of_a_key_block_is_written_to_its_bank(layout: Layout) -> None:
    """The offset in the block is the bank; the granule's first column its first burst.

    Reference: section 4.3, sentences 1.1, 1.3, 1.4.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0, 1], 16)
    for offset in range(TOKENS):
        stream = streams(decode(runtime, ["a"])).key_write
        (write,) = only(commands(stream), Op.WR)
        first = at(layout, "key", place(runtime, 1).granule)

        assert (offset, 1) == (write.bank, write.banks)
        assert (first.channel, first.row) == (write.channel, write.row)
        assert (first.burst, HEAD_DIM // LANES) == (write.burst, write.count)


@pytest.mark.parametrize(
    ("layout", "channels", "width"), [(OPT, 1, 128), (LLAMA, 4, 32)]
)
def test_sizes_of_key_granules(layout: Layout, channels: int, width: int) -> None:
    """One block: 16 banks, 8 bursts. 16 blocks: all channels of the head, 128 bursts.

    In four channels these are 32 of each; in one they are two rows.

    Reference: section 4.3, sentence 1.2.
    """
    one, pair = lies(layout, "key", [16]), lies(layout, "key", range(16, 32))

    assert (1, 16, 8) == tuple(
        len(values(one, field)) for field in ("channel", "bank", "burst")
    )
    assert channels == len(values(pair, "channel"))
    in_one_bank = {(row, b) for c, k, row, b in bursts(pair) if (c, k) == (0, 3)}
    assert width == len(in_one_bank)


@both
def test_blocks_of_a_pair_are_dealt_to_channels_then_to_columns(layout: Layout) -> None:
    """A request fills its pair before it takes another, each block in its granule.

    Reference: section 4.3, sentences 2.1, 2.2.
    """
    runtime, count = served(layout), layout.channels_per_head
    prefill(runtime, "a", [5, 40, *range(50, 65)], 17 * TOKENS)
    granules = [place(runtime, block).granule for block in (5, 40, *range(50, 65))]
    keys = [at(layout, "key", granule) for granule in granules]

    assert 1 == len({granule // 16 for granule in granules[:16]})
    assert granules[16] // 16 == granules[0] // 16 + 1
    assert [k % count for k in range(16)] == [key.channel for key in keys[:16]]
    offsets = [key.row * 64 + key.burst for key in keys[:16]]
    assert [8 * (k // count) for k in range(16)] == offsets


def test_the_query_is_repeated_at_the_columns_of_the_keys() -> None:
    """Eight blocks of a row meet eight copies of one query, 64 bursts in all.

    Reference: section 4.3, sentence 3.1.
    """
    runtime = served(OPT)
    prefill(runtime, "a", range(8), 8 * TOKENS)
    stream = attend(runtime, "a").qk
    assert stream is not None
    (load,) = only(commands(stream), Op.WRGB)
    queries = np.arange(32 * HEAD_DIM, dtype=np.uint16).reshape(1, 32, 1, HEAD_DIM)
    payload = query_payload(stream, queries)
    sent = payload.table[payload.index]  # [bursts, heads, lanes]

    assert (0, OPT.device.bursts_per_row) == (load.burst, load.count)
    for head in (0, 31):
        loaded = sent[:, head].reshape(8, HEAD_DIM)
        assert np.array_equal(np.tile(queries[0, head, 0], (8, 1)), loaded)


def test_the_query_is_loaded_only_where_keys_are() -> None:
    """Three blocks of a row take three copies of it.

    Reference: section 4.3, sentence 3.1.
    """
    runtime = served(OPT)
    prefill(runtime, "a", range(3), 3 * TOKENS)
    (load,) = only(commands(attend(runtime, "a").qk), Op.WRGB)

    assert (0, 3 * 8) == (load.burst, load.count)


@both
def test_a_block_of_keys_is_set_up_multiplied_and_read(layout: Layout) -> None:
    """WRBIAS, a MACAB for each of its eight bursts, RDMAC: scores of its 16 tokens.

    Reference: section 4.3, sentence 3.2.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0], TOKENS)
    stream = attend(runtime, "a").qk
    heads = layout.model.query_heads_per_kv

    one = [("WRBIAS", 1), ("MACAB", 8), ("RDMAC", 1)]
    assert heads * one == run_of(commands(stream))
    assert stream is not None
    assert stream.results is not None
    positions = [
        stream.results.origin[0] + bank * stream.results.bank_stride
        for bank in range(BANKS)
    ]
    assert [*range(TOKENS)] == positions


@pytest.mark.parametrize("registers", [1, 4])
def test_every_block_keeps_its_own_boundary(registers: int) -> None:
    """Sixteen blocks are set up and read sixteen times, also with more registers.

    Reference: section 4.3, sentence 3.3.
    """
    device = attrs.evolve(OPT.device, result_registers=registers)
    layout = layout_of(device, kv_heads=32, query_heads=32)
    runtime = served(layout)
    grow(runtime, "a", range(16), 16 * TOKENS)
    stream = attend(runtime, "a").qk
    assert stream is not None
    counts = stream.counts()

    assert (16, 16) == (counts[Op.WRBIAS], counts[Op.RDMAC])
    assert {8} == {entry.count for entry in only(commands(stream), Op.MACAB)}
