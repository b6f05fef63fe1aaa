"""Partial Value blocks in the Commit Zone, and their commits (Paper 4.4)."""

from __future__ import annotations

import pytest

from patton.commands import CommandStream, Op
from patton.errors import BlockStateError
from patton.generate import StepStreams
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Request, Step
from tests.core.llama import place
from tests.paper.setting import (
    BANKS,
    BOTH,
    LLAMA,
    OPT,
    TOKENS,
    acts,
    at,
    attend,
    bursts,
    columns,
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
    written_bursts,
)

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])

both = pytest.mark.parametrize("layout", BOTH, ids=["opt", "llama"])


def slot_of(runtime: Runtime, block: int) -> int:
    """The slot in which a block is visible."""
    slot = place(runtime, block).slot
    assert slot is not None
    return slot


@both
def test_in_place_every_token_opens_every_row(layout: Layout) -> None:
    """Of 16 writes to a block each opens eight rows, as one that fills it does.

    Reference: section 4.4, sentences 4.1, 4.2.
    """
    runtime = served(layout, commit_zone=False)
    prefill(runtime, "a", [0], 0 + 1)
    opened = [streams(decode(runtime, ["a"])).value_write for _ in range(15)]
    whole = streams(grow(runtime, "b", [1], TOKENS)).value_write

    for stream in (*opened, whole):
        assert stream is not None
        assert 8 == stream.activations()


def test_the_partial_block_of_each_request_waits_in_a_slot() -> None:
    """If there is none it is written in place: slower, and never refused.

    Ours: LIFE-STAGE, LIFE-DIRECT.
    Reference: section 4.4, sentence 4.3.
    """
    runtime = served(OPT)
    for request in range(9):
        prefill(runtime, request, [2 * request, 2 * request + 1], TOKENS + 1)
    full = [place(runtime, 2 * request).slot for request in range(9)]
    partial = [place(runtime, 2 * request + 1).slot for request in range(9)]

    assert 8 == OPT.slots
    assert 9 * [None] == full
    assert [*range(8), None] == partial
    assert 8 == acts(streams(decode(runtime, [8])).value_write)


@both
def test_a_partial_block_has_a_slot_beside_its_reserved_place(layout: Layout) -> None:
    """Both in the same channels, banks and lanes, so that a commit moves nothing else.

    Reference: section 4.4, sentence 5.1.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0, 1], TOKENS + 5)
    granule, slot = place(runtime, 1).granule, slot_of(runtime, 1)
    runtime.bind("a", 2)

    assert granule != place(runtime, 2).granule
    for token, element in ((0, 0), (3, 77), (15, 127)):
        home = at(layout, "value", granule, token, element)
        waits = at(layout, "slot", slot, token, element)
        assert home[:2] == waits[:2]
        assert home.lane == waits.lane


@pytest.mark.parametrize(("layout", "channels", "width"), [(OPT, 1, 8), (LLAMA, 4, 2)])
def test_size_of_a_slot(layout: Layout, channels: int, width: int) -> None:
    """All channels of the head, 16 banks, eight bursts divided by the channels.

    Reference: section 4.4, sentence 5.2.
    """
    slot = lies(layout, "slot", [3])

    assert (channels, 16, 1, width) == tuple(
        len(values(slot, field)) for field in ("channel", "bank", "row", "burst")
    )


def test_the_slot_is_read_until_its_commit_is_published() -> None:
    """Also in the step that copies it; then its reserved place is next in its run.

    Reference: section 4.4, sentence 5.3.
    """
    runtime = served(OPT)
    prefill(runtime, "a", [0, 1], 2 * TOKENS - 1)
    write = Step(writes=[("a", 2 * TOKENS - 1, 1)], reads=[("a", 0, 2 * TOKENS)])
    plan = runtime.apply_step(write)
    now = streams(plan)
    assert now.commit is not None
    assert now.partial is not None
    runs = [run_of(commands(now.sv)), run_of(commands(attend(runtime, "a").sv))]
    runtime.publish(plan)
    after = attend(runtime, "a")

    one, two = ([("WRBIAS", 1), ("MACAB", n), ("RDMAC", 1)] for n in (1, 2))
    assert [8 * one, 8 * one] == runs
    assert (8 * two, None) == (run_of(commands(after.sv)), after.partial)


def test_columns_of_a_slot() -> None:
    """Token t of part i of a slot lies 16 i + t elements from the slot's first.

    Reference: section 4.4, sentence 0.1.
    """
    for layout in BOTH:
        parts = 8 // layout.channels_per_head
        for slot in (0, 1, 5):
            first = columns([at(layout, "slot", slot)])[0]
            assert slot * parts * TOKENS == first
            for part in range(parts):
                element = part * layout.channels_per_head * BANKS
                tokens = [at(layout, "slot", slot, t, element) for t in range(TOKENS)]

                expected = [first + 16 * part + t for t in range(TOKENS)]
                assert expected == columns(tokens)


def test_a_row_of_the_commit_zone_holds_slots_of_many_requests() -> None:
    """Eight slots of OPT's row, or 32 of Llama's, a request each.

    Reference: section 4.4, sentence 6.1.
    """
    for layout, count in ((OPT, 8), (LLAMA, 32)):
        runtime = served(layout)
        for request in range(count):
            prefill(runtime, request, [request], 1)
        slots = [slot_of(runtime, block) for block in range(count)]

        assert count == len({*slots})
        assert 1 == len(values(lies(layout, "slot", slots, [0], [0]), "row"))


def test_rows_of_the_commit_zone_are_filled_one_by_one() -> None:
    """A slot that was given back in a row begun is taken before a row that is empty.

    All writes to a row are done while it is open.

    Reference: section 4.4, sentence 6.2.
    """
    layout = Layout.of(OPT.device, OPT.model, slots=16)
    runtime = served(layout)
    for request in range(9):
        prefill(runtime, request, [request], 1)
    rows = [at(layout, "slot", slot_of(runtime, b)).row for b in range(9)]
    assert 8 * [rows[0]] == rows[:8]
    assert rows[0] + 1 == rows[8]
    runtime.finish(3)
    prefill(runtime, "new", [20], 1)

    assert 3 == slot_of(runtime, 20)
    runtime.finish(8)
    eight: list[Request] = [0, 1, 2, "new", 4, 5, 6, 7]
    stream = streams(decode(runtime, eight)).value_write
    assert stream is not None
    assert 1 == acts(stream)
    assert 8 * 8 * BANKS == stream.counts()[Op.WR]


@both
def test_partial_blocks_are_summed_from_their_slots(layout: Layout) -> None:
    """Each burst of a slot by itself: set up, one product, 16 outputs read.

    Reference: section 4.4, sentence 6.3.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0], 9)
    found = attend(runtime, "a")
    parts, heads = layout.rows_per_value, layout.model.query_heads_per_kv
    slot = slot_of(runtime, 0)

    assert found.sv is None
    one = [("WRBIAS", 1), ("MACAB", 1), ("RDMAC", 1)]
    assert parts * heads * one == run_of(commands(found.partial))
    read = {
        (entry.row, entry.burst) for entry in only(commands(found.partial), Op.MACAB)
    }
    assert {(a.row, a.burst) for a in lies(layout, "slot", [slot])} == read


# --- commits --------------------------------------------------------------------------


def copied(layout: Layout, found: StepStreams, granule: int) -> CommandStream:
    """The commit of a step, which must fill exactly the block's own bursts."""
    assert found.commit is not None
    assert bursts(lies(layout, "value", [granule])) == written_bursts(found.commit)
    return found.commit


@pytest.mark.parametrize(("layout", "rows"), [(OPT, 8), (LLAMA, 2)])
def test_the_last_token_commits_the_block(layout: Layout, rows: int) -> None:
    """The step that writes offset 15 copies the slot to the eight rows of its place.

    If the last tokens are drafts, the step in which they are confirmed.

    Ours: LIFE-COMMIT.
    Reference: section 4.4, sentence 7.1.
    """
    runtime = served(layout)
    prefill(runtime, "a", [0], TOKENS - 2)
    assert streams(decode(runtime, ["a"])).commit is None
    stream = copied(layout, streams(decode(runtime, ["a"])), place(runtime, 0).granule)
    assert (rows, 8) == (acts(stream), stream.activations())

    prefill(runtime, "b", [1], TOKENS - 2)
    draft = Step(writes=[("b", TOKENS - 2, 2)], drafts={"b": 1})
    assert 1 not in {commit.block for commit in runtime.apply_step(draft).commits}
    confirmed = runtime.apply_step(Step(confirms=[("b", TOKENS)]))
    assert 1 in {commit.block for commit in confirmed.commits}


def test_publication_follows_the_copy_and_frees_the_slot() -> None:
    """Before the copy it is refused; after it the slot is the next one taken.

    Reference: section 4.4, sentence 7.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0], TOKENS - 1)
    with pytest.raises(BlockStateError, match="commit of block 0"):
        runtime.commit(0)
    plan = decode(runtime, ["a"])
    assert 0 == place(runtime, 0).slot
    runtime.publish(plan)
    prefill(runtime, "b", [1], 1)

    assert (None, 0) == (place(runtime, 0).slot, place(runtime, 1).slot)


def test_one_commit_in_16_decode_steps() -> None:
    """A token is written at every step, a block copied when it is full.

    Reference: section 4.4, sentence 8.1.
    """
    runtime = served(LLAMA)
    runtime.bind("a", 0)
    commits = []
    for position in range(64):
        if position % TOKENS == 0 and position:
            runtime.bind("a", position // TOKENS)
        plan = decode(runtime, ["a"])
        commits += [position] * len(plan.commits)
        runtime.publish(plan)

    assert [15, 31, 47, 63] == commits


def opened_rows(requests: int, *, commit_zone: bool) -> float:
    """Rows that the Values of a block of each request open, from token to token."""
    runtime = served(OPT, commit_zone=commit_zone)
    for request in range(requests):
        runtime.bind(request, request)
    total = 0.0
    for _ in range(TOKENS):
        plan = decode(runtime, range(requests))
        found = streams(plan)
        for stream in (found.value_write, found.commit):
            total += stream.activations() if stream is not None else 0
        runtime.publish(plan)
    assert requests * [None] == [place(runtime, k).slot for k in range(requests)]
    return total


@pytest.mark.parametrize(
    ("requests", "direct", "staged", "ratio"),
    [(1, 128, 16 + 8, 5.3), (8, 8 * 128, 16 + 8 * 8, 12.8)],
)
def test_the_commit_zone_saves_row_activations(
    requests: int, direct: int, staged: int, ratio: float
) -> None:
    """Commits included 5.3 times for one request alone, 12.8 for a full row of slots.

    The paper's 12.6 is a figure of its workload; it lies within these bounds.

    Reference: section 4.4, sentences 8.2, 8.3, 8.4.
    """
    found = [opened_rows(requests, commit_zone=zone) for zone in (False, True)]

    assert [direct, staged] == found
    assert ratio == pytest.approx(found[0] / found[1], abs=0.05)
