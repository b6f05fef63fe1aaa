"""Where Values go, what that costs, and who has the rest of a row (Paper 3.2.2)."""

from __future__ import annotations

import pytest

from patton.commands import Op
from patton.device.aim import parse_trace, simulate
from patton.device.aim.energy import PUBLISHED_COMPONENTS, load_energy_model
from patton.errors import SharedBlockError
from patton.layout import Layout
from patton.steps import Step
from tests.core.llama import place
from tests.paper.setting import (
    BANKS,
    BOTH,
    HEAD_DIM,
    LLAMA,
    OPT,
    TOKENS,
    acts,
    at,
    attend,
    bursts,
    commands,
    decode,
    grow,
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
def test_a_value_block_is_one_burst_of_each_output(layout: Layout) -> None:
    """The 16 tokens of an element fill one burst, lane by lane.

    Reference: section 3.2.2, sentence 1.2.
    """
    for element in (0, 77, 127):
        summed = lies(layout, "value", [2], elements=[element])

        assert 1 == len(bursts(summed))
        assert [*range(TOKENS)] == [address.lane for address in summed]


@both
def test_a_value_block_has_eight_parallel_parts(layout: Layout) -> None:
    """128 elements are eight groups of 16, each in the 16 banks of a channel's row.

    Reference: section 3.2.2, sentences 1.3, 2.2.
    """
    parts = [
        lies(layout, "value", [0], [0], range(first, first + BANKS))
        for first in range(0, HEAD_DIM, BANKS)
    ]

    assert all([*range(BANKS)] == [a.bank for a in part] for part in parts)
    rows = {(a.channel, a.row) for part in parts for a in part}
    assert 8 == len(rows)
    channels = min(8, layout.channels_per_head)
    assert channels == len({channel for channel, _ in rows})


@both
def test_the_next_value_block_lies_in_the_next_columns(layout: Layout) -> None:
    """In every channel, bank and row, so that one sum goes on over both blocks.

    Reference: section 3.2.2, sentences 2.1, 2.4, 6.2.
    """
    first, second = (lies(layout, "value", [g]) for g in (6, 7))

    beside = [a._replace(burst=a.burst + 1) for a in first]
    assert beside == second


def test_full_blocks_of_a_request_are_summed_in_one_run() -> None:
    """Each row of a whole pair is set up and read out once for a query head.

    Reference: section 3.2.2, sentences 2.4, 6.2.
    """
    runtime = served(OPT)
    prefill(runtime, "a", range(16), 16 * TOKENS)
    one_row = [("WRBIAS", 1), ("MACAB", 16), ("RDMAC", 1)]

    assert 8 * one_row == run_of(commands(attend(runtime, "a").sv))


@pytest.mark.parametrize(("layout", "rows"), [(OPT, 8), (LLAMA, 2)])
def test_writing_one_token_in_place_opens_every_row(layout: Layout, rows: int) -> None:
    """Eight rows, over all channels, and into each only one element of a bank.

    Reference: section 3.2.2, sentences 3.2, 3.3, 3.4.
    """
    runtime = served(layout, commit_zone=False)
    stream = streams(grow(runtime, "a", [0], 3)).value_write
    assert stream is not None
    plan = decode(runtime, ["a"])
    stream = streams(plan).value_write
    assert stream is not None

    assert HEAD_DIM // BANKS == stream.activations() == 8
    assert rows == acts(stream)
    written = only(commands(stream), Op.WR)
    assert rows == len({entry.row for entry in written}) == len(written)
    for entry in written:
        assert (BANKS, 1, 1 << 3) == (entry.banks, entry.count, entry.lanes)


def test_while_it_fills_a_block_lies_in_one_row() -> None:
    """All eight parts of a slot lie in one row; a token opens that and no other.

    Reference: section 3.2.2, sentences 4.1, 4.2.
    """
    for layout in BOTH:
        runtime = served(layout)
        grow(runtime, "a", [0], 3)
        slot = place(runtime, 0).slot
        assert slot is not None
        stream = streams(decode(runtime, ["a"])).value_write

        assert 1 == len(values(lies(layout, "slot", [slot]), "row"))
        assert 1 == acts(stream)
        assert stream is not None
        assert layout.channels_per_head == stream.activations()


def test_bursts_of_a_slot_are_different_outputs() -> None:
    """Side by side lie other elements, so each burst is set up and read by itself.

    Reference: section 3.2.2, sentences 4.3, 4.4.
    """
    runtime = served(OPT)
    grow(runtime, "a", [0], 3)
    slot = place(runtime, 0).slot
    assert slot is not None
    elements = [at(OPT, "slot", slot, 0, e) for e in range(0, HEAD_DIM, BANKS)]
    one = [("WRBIAS", 1), ("MACAB", 1), ("RDMAC", 1)]

    assert [*range(8)] == [a.burst - elements[0].burst for a in elements]
    assert 8 * one == run_of(commands(attend(runtime, "a").partial))


def test_neither_layout_is_best_for_both() -> None:
    """In place: one result for 16 products, eight rows a token; in a slot: 1 and 1.

    Reference: section 3.2.2, sentences 4.5, 5.1.
    """
    runtime, direct = served(OPT), served(OPT, commit_zone=False)
    for each in (runtime, direct):
        prefill(each, "a", range(16), 16 * TOKENS)
        prefill(each, "b", [20], 3)
    found = attend(runtime, "a", "b")
    assert found.sv is not None
    assert found.partial is not None
    sums, parts = found.sv.counts(), found.partial.counts()

    assert (16, 1) == (
        sums[Op.MACAB] // sums[Op.RDMAC],
        parts[Op.MACAB] // parts[Op.RDMAC],
    )
    assert (1, 8) == tuple(
        acts(streams(decode(each, ["b"])).value_write) for each in (runtime, direct)
    )


def test_a_full_block_is_not_written_any_more() -> None:
    """Tokens go to the block that is being filled; one that others see stays as it is.

    As long as it is its request's alone, rejected tokens of it can be written again.

    Ours: LIFE-SEALED, LIFE-REWRITE.
    Reference: section 3.2.2, sentence 5.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0, 1], TOKENS + 3)
    assert [1] == [segment.block for segment in decode(runtime, ["a"]).segments]

    again = runtime.write("a", TOKENS - 2, 2)
    assert [0] == [segment.block for segment in again.segments]
    runtime.apply_step(Step(grants=[("b", [0], [])]))
    with pytest.raises(SharedBlockError, match="block 0"):
        runtime.write("a", TOKENS - 2, 2)


def test_layout_changes_when_the_block_is_full() -> None:
    """One row while it fills, the layout of long sums from then on.

    Reference: section 3.2.2, sentences 2.3, 5.3, 7.4.
    """
    runtime = served(LLAMA)
    grow(runtime, "a", [0], TOKENS - 1)
    found = attend(runtime, "a")
    assert (None, True) == (found.sv, found.partial is not None)
    runtime.publish(decode(runtime, ["a"]))

    found = attend(runtime, "a")
    assert (True, None) == (found.sv is not None, found.partial)


def test_what_a_request_does_not_fill_is_left_to_others() -> None:
    """A request has its sums in one run, and yet does not hold the row to itself.

    Reference: section 3.2.2, sentences 6.4, 6.6.
    """
    runtime = served(LLAMA, choice="packed")
    prefill(runtime, "last row set", range(100, 132), 32 * TOKENS)
    prefill(runtime, "a", range(20), 20 * TOKENS)
    prefill(runtime, "b", [30], TOKENS)
    rows = [
        {at(LLAMA, "value", place(runtime, block).granule).row for block in blocks}
        for blocks in (range(20), [30])
    ]

    assert 1 == len(rows[0] | rows[1])
    one_row = [("WRBIAS", 1), ("MACAB", 20), ("RDMAC", 1)]
    assert 2 * 4 * one_row == run_of(commands(attend(runtime, "a").sv))


def test_cached_blocks_stay_until_memory_runs_out() -> None:
    """A prefix is hit again as long as no one needs its place.

    Reference: section 3.2.2, sentence 6.8.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(4), 4 * TOKENS)
    before = [place(runtime, block).granule for block in range(4)]
    runtime.finish("a")
    prefill(runtime, "other", range(10, 40), 30 * TOKENS)
    runtime.apply_step(Step(grants=[("b", [0, 1, 2, 3], [])]))

    assert before == [place(runtime, block).granule for block in range(4)]


def test_blocks_of_requests_do_not_interleave() -> None:
    """Requests that grow in turn keep their blocks side by side all the same.

    Reference: section 3.2.2, sentence 7.2.
    """
    runtime = served(LLAMA)
    for k in range(8):
        for name in (0, 1):
            prefill(runtime, name, [2 * k + name], TOKENS)

    for name in (0, 1):
        granules = [place(runtime, 2 * k + name).granule for k in range(8)]
        assert [*range(granules[0], granules[0] + 8)] == granules
        assert [("WRBIAS", 1), ("MACAB", 8), ("RDMAC", 1)] == run_of(
            commands(attend(runtime, name).sv)
        )[:3]


def test_a_row_in_eight_pieces_takes_twice_as_long() -> None:
    """414 and 904 cycles: 2.18 times the time, 1.34 times the channel's energy.

    Reference: section 3.2.2, sentence 7.3.
    """

    def pieces(count: int) -> str:
        each = f"AiM WR_BIAS 0 1\nAiM MAC_ABK {64 // count} 1 1\nAiM RD_MAC 0 1\n"
        return f"AiM WR_GB 64 0 1\n{each * count}AiM EOC\n"

    whole, cut = (simulate(parse_trace(pieces(count))) for count in (1, 8))
    model, channel = load_energy_model(), 31  # the mask is read from its left
    parts = [model.of_channel(result, channel) for result in (whole, cut)]
    energies = [sum(part[name] for name in PUBLISHED_COMPONENTS) for part in parts]

    assert (414, 904) == (whole.cycles, cut.cycles)
    assert 2.18 == pytest.approx(cut.cycles / whole.cycles, abs=0.005)
    assert 1.34 == pytest.approx(energies[1] / energies[0], abs=0.005)


def test_a_unit_for_each_block_and_a_unit_of_several() -> None:
    """A block has a place of its own, and 16 such places in a row are one request's.

    Reference: section 3.2.2, sentence 7.5.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [7], TOKENS)
    prefill(runtime, "b", [8], TOKENS)
    prefill(runtime, "a", range(20, 35), 15 * TOKENS)
    granules = [place(runtime, block).granule for block in (7, *range(20, 35))]

    assert [*range(granules[0], granules[0] + 16)] == granules
    assert granules[0] // 16 != place(runtime, 8).granule // 16
