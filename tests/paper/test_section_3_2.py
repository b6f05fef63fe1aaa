"""How products lie in a bank, and where Keys go (Paper 3.2 and 3.2.1)."""

from __future__ import annotations

import pytest

from patton.commands import Op
from patton.layout import Layout
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
    columns,
    commands,
    layout_of,
    lies,
    prefill,
    run_of,
    served,
    values,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


@both
def test_reductions_run_along_columns_and_outputs_over_banks(layout: Layout) -> None:
    """A Key's elements lie along a row, its tokens in banks; a Value is turned over.

    Reference: section 3.2, sentences 1.1, 1.2, 1.3, 1.4.
    """
    one_key = lies(layout, "key", [0], tokens=[5])
    one_output = lies(layout, "value", [0], elements=[5])

    for summed in (one_key, one_output):
        assert 1 == len({address[:3] for address in summed})
    assert [*range(HEAD_DIM)] == columns(one_key)
    assert [*range(TOKENS)] == columns(one_output)
    assert [*range(BANKS)] == [at(layout, "key", 0, t).bank for t in range(TOKENS)]
    assert [*range(BANKS)] == [at(layout, "value", 0, 0, e).bank for e in range(BANKS)]


def test_scores_reduce_over_elements_and_outputs_over_tokens() -> None:
    """With the context grow the results of QK, but in SV only what each adds up.

    Reference: section 3.2, sentences 1.3, 1.4.
    """
    for blocks in (1, 8, 16):
        runtime = served(OPT)
        prefill(runtime, "a", range(blocks), TOKENS * blocks)
        found = attend(runtime, "a")
        assert found.qk is not None
        assert found.sv is not None
        qk, sv = found.qk.counts(), found.sv.counts()

        assert (blocks, HEAD_DIM // LANES) == (qk[Op.RDMAC], qk[Op.MACAB] // blocks)
        assert (HEAD_DIM // BANKS, blocks) == (sv[Op.RDMAC], sv[Op.MACAB] // 8)


# --- Keys -----------------------------------------------------------------------------


@both
def test_a_key_block_fills_the_banks(layout: Layout) -> None:
    """Each of 16 tokens has a bank of its own, and there the columns side by side.

    Reference: section 3.2.1, sentence 1.1.
    """
    for token in range(TOKENS):
        vector = lies(layout, "key", [3], tokens=[token])
        first = columns(vector)[0]

        assert [token] == values(vector, "bank")
        assert [*range(first, first + HEAD_DIM)] == columns(vector)


def test_a_key_block_is_a_reduction_of_its_own() -> None:
    """Its scores are read before the next block's products begin.

    Reference: section 3.2.1, sentences 1.2, 4.3.
    """
    runtime = served(OPT)
    prefill(runtime, "a", range(8), 8 * TOKENS)
    one = [("WRBIAS", 1), ("MACAB", 8), ("RDMAC", 1)]

    assert 8 * one == run_of(commands(attend(runtime, "a").qk))


@pytest.mark.parametrize(("head_dim", "blocks"), [(64, 16), (128, 8), (1024, 1)])
def test_the_head_dimension_decides_how_much_of_a_row_a_key_takes(
    head_dim: int, blocks: int
) -> None:
    """A block of 1,024 elements a token would fill the row, one of 128 an eighth.

    Reference: section 3.2.1, sentences 1.3, 2.4.
    """
    layout = layout_of(kv_heads=32, query_heads=32, head_dim=head_dim)
    in_first_row = [g for g in range(64) if at(layout, "key", g).row == 0]

    assert [*range(blocks)] == in_first_row


@both
def test_a_key_vector_is_an_eighth_of_a_row(layout: Layout) -> None:
    """128 elements of two bytes are eight bursts, 256 bytes of the row's 2,048.

    Reference: section 3.2.1, sentences 2.3, 2.4.
    """
    taken = 32 * len(bursts(lies(layout, "key", [0], tokens=[0])))

    assert 256 == taken
    assert 8 * taken == layout.device.row_bytes == 2048


def test_keys_take_channels_first_then_columns_then_rows() -> None:
    """Four blocks lie side by side in four channels, the next beside them in the row.

    A further row is begun only when the row is full in all channels, so no column is
    left empty as one row for each block would.

    Reference: section 3.2.1, sentences 3.2, 3.3, 3.4, 3.5, 4.1, 4.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(33), 33 * TOKENS)
    found = [at(LLAMA, "key", place(runtime, block).granule) for block in range(33)]

    assert [0, 1, 2, 3] * 8 == [a.channel for a in found[:32]]
    assert [8 * (k // 4) for k in range(32)] == [a.burst for a in found[:32]]
    assert {0} == {a.row for a in found[:32]}
    assert (0, 1, 0) == (found[32].channel, found[32].row, found[32].burst)
    assert set(range(64)) == {
        burst for _, _, row, burst in bursts(lies(LLAMA, "key", range(32))) if row == 0
    }


def test_channels_per_head() -> None:
    """The device's channels are dealt out evenly: 8 heads get 4 of 32 each, no other.

    Reference: section 3.2.1, sentences 3.5, 3.6.
    """
    used = [
        values(lies(LLAMA, "key", range(8), [0], [0], head), "channel")
        for head in range(8)
    ]

    assert [[*range(4 * head, 4 * head + 4)] for head in range(8)] == used
