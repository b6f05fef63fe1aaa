"""Full Value blocks in their granules, and SV on them (Paper 4.4)."""

from __future__ import annotations

import numpy as np
import pytest

from patton.commands import Op
from patton.layout import Layout
from patton.operands import weight_payload
from patton.steps import Step
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
    grow,
    lies,
    only,
    prefill,
    run_of,
    served,
    streams,
    values,
    written_bursts,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


@both
def test_a_full_block_goes_over_channels_then_along_columns(layout: Layout) -> None:
    """Written in one go it lies at once where its sums are long.

    Reference: section 4.4, sentence 1.1.
    """
    runtime = served(layout)
    written = [
        streams(grow(runtime, "a", [block], TOKENS)).value_write for block in (0, 1)
    ]
    first, second = (written_bursts(stream) for stream in written)

    assert layout.channels_per_head == len({channel for channel, *_ in first})
    assert {(c, bank, row, burst + 1) for c, bank, row, burst in first} == second


@pytest.mark.parametrize(("layout", "channels", "rows"), [(OPT, 1, 8), (LLAMA, 4, 2)])
def test_a_value_row_set(layout: Layout, channels: int, rows: int) -> None:
    """All channels of the head, and as many rows as its eight parts need there.

    Reference: section 4.4, sentence 1.2.
    """
    row_set = lies(layout, "value", range(64), [0])

    assert channels == len(values(row_set, "channel"))
    assert rows == len(values(row_set, "row"))
    after = lies(layout, "value", [64], [0])
    assert set() == {*values(row_set, "row")} & {*values(after, "row")}


@both
def test_widths_of_value_granules(layout: Layout) -> None:
    """A block is one burst wide, a pair of 16 is 16, in every row and bank.

    Reference: section 4.4, sentence 1.3.
    """
    for granules, width in (([21], 1), (range(16, 32), 16)):
        found = bursts(lies(layout, "value", granules))
        rows = {(channel, bank, row) for channel, bank, row, _ in found}

        assert 8 * BANKS == len(rows)
        assert width * len(rows) == len(found)


@both
def test_a_row_gives_16_outputs_and_a_burst_adds_16_tokens(layout: Layout) -> None:
    """RDMAC returns 16 elements of the head; a MACAB adds the tokens of one block.

    Reference: section 4.4, sentence 1.4.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0, 1], 2 * TOKENS)
    stream = attend(runtime, "a").sv
    assert stream is not None
    assert stream.results is not None

    assert 1 == stream.results.bank_stride
    per_channel = layout.model.query_heads_per_kv * HEAD_DIM // BANKS
    assert per_channel == int(stream.mac_offsets()[-1])
    for entry in only(commands(stream), Op.MACAB):
        assert 2 == entry.count
    for burst in range(2):
        tokens = [at(layout, "value", burst, t, 40) for t in range(TOKENS)]
        assert [*range(burst * 16, burst * 16 + 16)] == columns(tokens)


def test_a_block_keeps_its_place_and_its_commands() -> None:
    """Whoever reads it: its binder, and after its end another request.

    Reference: section 4.4, sentence 2.1.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [8, 9], 2 * TOKENS)
    before = commands(attend(runtime, "a").sv)
    runtime.finish("a")
    runtime.apply_step(Step(grants=[("b", [8, 9], [])]))

    assert before
    assert before == commands(attend(runtime, "b").sv)


def test_pairs_of_a_row_set_are_allocated_each_by_itself() -> None:
    """Four requests have one each; one is given to another, the rest stay.

    Reference: section 4.4, sentence 2.2.
    """
    runtime = served(LLAMA, choice="packed")
    prefill(runtime, "last row set", range(100, 132), 32 * TOKENS)
    for request in range(4):
        prefill(runtime, request, [request], TOKENS)
    placed = [place(runtime, block) for block in range(4)]
    assert 1 == len({at(LLAMA, "value", p.granule).row for p in placed})
    runtime.finish(2)
    runtime.evict(2)
    prefill(runtime, "new", [50], TOKENS)

    assert placed[2].granule // 16 == place(runtime, 50).granule // 16
    assert [placed[k] for k in (0, 1, 3)] == [place(runtime, k) for k in (0, 1, 3)]


@both
def test_neighbours_extend_the_reduction_row_by_row(layout: Layout) -> None:
    """Each row of a pair: set up, as many products as resident blocks, 16 outputs.

    Reference: section 4.4, sentences 2.3, 3.2, 3.3.
    """
    heads, rows = layout.model.query_heads_per_kv, layout.rows_per_value
    for count in (1, 5, 16):
        runtime = served(layout)
        prefill(runtime, "a", range(count), count * TOKENS)
        one = [("WRBIAS", 1), ("MACAB", count), ("RDMAC", 1)]

        assert rows * heads * one == run_of(commands(attend(runtime, "a").sv))


def test_a_pair_keeps_a_request_together_and_leaves_the_rest() -> None:
    """Neither the whole row set is one request's, nor do single blocks interleave.

    Reference: section 4.4, sentence 2.4.
    """
    runtime = served(LLAMA, choice="packed")
    prefill(runtime, "last row set", range(100, 132), 32 * TOKENS)
    for k in range(16):
        for request in range(4):
            prefill(runtime, request, [4 * k + request], TOKENS)
    bursts_of = [
        [at(LLAMA, "value", place(runtime, 4 * k + r).granule).burst for k in range(16)]
        for r in range(4)
    ]

    assert [[*range(16 * r, 16 * r + 16)] for r in range(4)] == bursts_of


def test_scores_are_loaded_at_the_columns_of_their_blocks() -> None:
    """Buffer burst g carries the weights of the tokens whose Values lie in burst g.

    Reference: section 4.4, sentence 3.1.
    """
    runtime = served(OPT)
    prefill(runtime, "a", range(6), 6 * TOKENS)
    for block in (1, 2):  # the window slides; two places stay empty
        runtime.release("a", block)
        runtime.evict(block)
    plan = runtime.apply_step(Step(reads=[("a", 3 * TOKENS, 6 * TOKENS)]))
    stream = streams(plan).sv
    assert stream is not None
    (load,) = only(commands(stream), Op.WRGB)[:1]
    weights = np.arange(3 * TOKENS * 32, dtype=np.uint16).reshape(3 * TOKENS, 32, 1)
    payload = weight_payload(stream, weights)
    sent = payload.table[payload.index[:3]]

    assert (3, 3) == (load.burst, load.count)
    assert np.array_equal(
        weights[:, 7, 0].reshape(3, LANES),
        sent[:, 7],
    )


def test_a_run_goes_on_over_pairs_of_one_request_only() -> None:
    """Two neighbouring pairs of 'a' are one run of 32; that of 'b' begins another.

    Reference: section 4.4, sentence 3.4.
    """
    runtime = served(OPT, choice="packed")
    prefill(runtime, "last row set", range(200, 200 + 48), 48 * TOKENS)
    prefill(runtime, "a", range(32), 32 * TOKENS)
    prefill(runtime, "b", range(40, 56), 16 * TOKENS)
    both_read = attend(runtime, "a", "b").sv
    one = [[("WRBIAS", 1), ("MACAB", n), ("RDMAC", 1)] for n in (32, 16)]

    assert 8 * one[0] + 8 * one[1] == run_of(commands(both_read))
    rows = {entry.row for entry in only(commands(both_read), Op.MACAB)}
    assert 8 == len(rows)
