"""Streams of the paper's configuration, written out by hand (Paper 4.3 and 4.4).

Llama3-8B on the AiM device: 4 channels per head, 4 query heads per Key-Value head, two
Value rows per channel; Value rows begin at row 255 and the Commit Zone is row 511.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from patton.commands import CommandStream, Op
from patton.config import aim_gddr6, model_preset
from patton.generate import (
    commit_stream,
    generate_step,
    key_writes,
    partial_stream,
    score_stream,
    value_stream,
    value_writes,
)
from patton.layout import Layout
from patton.steps import PlacedStep, Tables
from tests.core.generate.random_steps import ints

Rows = Sequence[tuple[int, ...]]
LLAMA = Layout.of(aim_gddr6(), model_preset("llama3-8b"))
OPT = Layout.of(aim_gddr6(), model_preset("opt-6.7b"))


def placed(
    layout: Layout = LLAMA,
    *,
    writes: Rows | None = None,
    commits: Rows | None = None,
    reads: Rows | None = None,
    blocks: Rows | None = None,
) -> PlacedStep:
    """A step of one request per read (at least one), which share a table of blocks."""
    columns: list[Any] = [
        column
        for rows, width in ((writes, 6), (commits, 4), (reads, 3), (None, 3))
        for column in np.array(rows or [], np.int64).reshape(-1, width).T
    ]
    requests = tuple(range(max(1, len({row[0] for row in reads or []}))))
    one = ints(blocks or []).reshape(-1, 3)
    table = np.tile(one, (len(requests), 1)).T
    ptr = np.arange(len(requests) + 1) * len(one)
    return PlacedStep(layout, 5, requests, Tables(ptr, *table), *columns)


def body(stream: CommandStream | None) -> list[str]:
    """The lines of the stream's entries."""
    assert stream is not None
    lines = stream.to_text().splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("entries"))
    return lines[head + 1 :]


# Eighteen tokens: block 0 is full in its O1V, block 1 holds two tokens in slot 0.
DECODE = placed(
    writes=[(1, 0, 1, 1, 0, 17)], reads=[(0, 0, 18)], blocks=[(0, -1, 16), (1, 0, 2)]
)


def test_key_of_one_token() -> None:
    """Token 1 of granule 1: channel 1, bank 1, eight whole bursts; one bank opened."""
    opened, written = body(key_writes(DECODE))

    assert "ACT channel=1+1 bank=1+1 row=0" == opened
    assert (
        "WR channel=1+1 bank=1+1 row=0 burst=0+8 "
        "reference=0 element=0 lanes=0xffff fill=1"
    ) == written


def test_value_of_one_token_in_a_slot() -> None:
    """One lane of two bursts of one row, the second 64 elements further."""
    assert [
        "ACT channel=0+4 row=511",
        "WR channel=0+4 row=511 burst=0+1 reference=-1 element=0 lanes=0x2 fill=0",
        "WR channel=0+4 row=511 burst=1+1 reference=-1 element=64 lanes=0x2 fill=0",
    ] == body(value_writes(DECODE))


def test_scores() -> None:
    """Two Keys in one row: channels 0 and 1, the query loaded once per query head."""
    expected = ["ACT channel=0+2 row=0"]
    for head in range(4):
        expected += [
            f"WRGB channel=0+2 burst=0+8 reference={head}",
            "WRBIAS channel=0+1 register=0",
            "MACAB channel=0+1 row=0 burst=0+8 register=0",
            f"RDMAC channel=0+1 register=0 reference={head}",
            "WRBIAS channel=1+1 register=0",
            "MACAB channel=1+1 row=0 burst=0+8 register=0",
            f"RDMAC channel=1+1 register=0 reference={4 + head}",
        ]

    assert expected == body(score_stream(DECODE))


def test_values() -> None:
    """The full block: one burst in each of two rows, 64 outputs each."""
    expected = []
    for part, row in enumerate((255, 256)):
        expected.append(f"ACT channel=0+4 row={row}")
        for head in range(4):
            expected += [
                f"WRGB channel=0+4 burst=0+1 reference={head}",
                "WRBIAS channel=0+4 register=0",
                f"MACAB channel=0+4 row={row} burst=0+1 register=0",
                f"RDMAC channel=0+4 register=0 reference={4 * part + head}",
            ]

    assert expected == body(value_stream(DECODE))


def test_partial_block() -> None:
    """Weights loaded for both sub-blocks of the slot, each reduced on its own."""
    expected = ["ACT channel=0+4 row=511"]
    for head in range(4):
        expected.append(f"WRGB channel=0+4 burst=0+2 reference={head}")
        for part in range(2):
            expected += [
                "WRBIAS channel=0+4 register=0",
                f"MACAB channel=0+4 row=511 burst={part}+1 register=0",
                f"RDMAC channel=0+4 register=0 reference={4 * part + head}",
            ]

    assert expected == body(partial_stream(DECODE))


def test_commit_by_the_host() -> None:
    """Two slots to adjacent granules: each of the two rows is opened once."""
    stream = commit_stream(placed(commits=[(0, 0, 0, 0), (1, 7, 1, 32)]))
    expected = []
    for part, row in enumerate((255, 256)):
        expected.append(f"ACT channel=0+4 row={row}")
        expected += [
            f"WR channel=0+4 row={row} burst={g}+1 reference={16 * g} "
            f"element={64 * part} lanes=0xffff fill=1"
            for g in range(2)
        ]

    assert expected == body(stream)


def test_commit_by_read_back() -> None:
    """The slot's row is read once; writes name the first burst that they write."""
    stream = commit_stream(placed(commits=[(0, 3, 0, 0)]), "read-back")

    assert [
        "ACT channel=0+4 row=511",
        "RD channel=0+4 row=511 burst=6+1 reference=0 element=0 lanes=0xffff",
        "RD channel=0+4 row=511 burst=7+1 reference=0 element=64 lanes=0xffff",
        "ACT channel=0+4 row=255",
        "WR channel=0+4 row=255 burst=0+1 reference=0 element=0 lanes=0xffff fill=1",
        "ACT channel=0+4 row=256",
        "WR channel=0+4 row=256 burst=0+1 reference=64 element=64 lanes=0xffff fill=1",
    ] == body(stream)


def test_commit_through_the_buffer() -> None:
    """All sixteen banks fit the buffer: one ACT for the slot, one per Value row."""
    device = attrs.evolve(aim_gddr6(), copy_column="free")
    layout = Layout.of(device, model_preset("llama3-8b"))
    expected = ["ACT channel=0+4 row=511"]
    expected += [
        f"RDCP channel=0+4 bank={bank}+1 row=511 burst=6+2 reference={2 * bank}"
        for bank in range(16)
    ]
    for part, row in enumerate((255, 256)):
        expected.append(f"ACT channel=0+4 row={row}")
        expected += [
            f"WRCP channel=0+4 bank={bank}+1 row={row} burst=0+1 "
            f"reference={2 * bank + part}"
            for bank in range(16)
        ]

    assert expected == body(
        commit_stream(placed(layout, commits=[(0, 3, 0, 0)]), "global-buffer")
    )


def test_nothing_to_do_makes_no_streams() -> None:
    """An empty step has no stream at all."""
    streams = generate_step(placed())

    assert {None} == set(attrs.astuple(streams))


def test_slots_of_a_row_share_its_activation() -> None:
    """A token each of all 32 slots of a row: one ACT; straight to the O1Vs: many."""
    slots = [(4 * k, k, 3, 1, 0, 3) for k in range(32)]
    direct = [(64 * k, -1, 3, 1, 0, 3) for k in range(32)]

    in_slots, in_place = (value_writes(placed(writes=w)) for w in (slots, direct))

    assert in_slots is not None
    assert in_place is not None
    assert {Op.ACT: 1, Op.WR: 32 * 2 * 16} == in_slots.counts()
    assert {Op.ACT: 64, Op.WR: 32 * 2 * 16} == in_place.counts()
    assert (4, 256) == (in_slots.activations(), in_place.activations())


def test_activations_of_single_token_writes() -> None:
    """Rows of an O1V: opened one by one, in a slot once, by a commit once each."""
    for layout, rows in ((LLAMA, 2), (OPT, 8)):
        one = placed(layout, writes=[(0, -1, 3, 1, 0, 3)])
        slot = placed(layout, writes=[(0, 0, 3, 1, 0, 3)])
        commit = placed(layout, commits=[(0, 0, 0, 0)])
        streams = value_writes(one), value_writes(slot), commit_stream(commit)
        acts = [stream.counts()[Op.ACT] for stream in streams if stream is not None]

        assert [rows, 1, rows] == acts


def test_keys_open_only_the_banks_they_write() -> None:
    """Two tokens side by side and one apart, in one row: 3/16 of an activation."""
    stream = key_writes(placed(writes=[(0, 0, 3, 2, 0, 3), (4, 1, 9, 1, 1, 9)]))

    assert stream is not None
    assert [
        "ACT channel=0+1 bank=3+2 row=0",
        "ACT channel=0+1 bank=9+1 row=0",
    ] == body(stream)[:2]
    assert 3 / 16 == stream.activations()


def test_registers_batch_the_keys_of_a_channel() -> None:
    """With two registers, two Keys of a channel run before their results are read."""
    layout = Layout.of(
        attrs.evolve(aim_gddr6(), result_registers=2), model_preset("opt-6.7b")
    )
    blocks = [(granule, -1, 16) for granule in range(3)]

    assert [
        "ACT channel=0+1 row=0",
        "WRGB channel=0+1 burst=0+24 reference=0",
        "WRBIAS channel=0+1 register=0",
        "WRBIAS channel=0+1 register=1",
        "MACAB channel=0+1 row=0 burst=0+8 register=0",
        "MACAB channel=0+1 row=0 burst=8+8 register=1",
        "RDMAC channel=0+1 register=0 reference=0",
        "RDMAC channel=0+1 register=1 reference=1",
        "WRBIAS channel=0+1 register=0",
        "MACAB channel=0+1 row=0 burst=16+8 register=0",
        "RDMAC channel=0+1 register=0 reference=2",
    ] == body(score_stream(placed(layout, reads=[(0, 0, 48)], blocks=blocks)))


def test_one_vector_is_loaded_once_for_all_rows_of_a_set() -> None:
    """One query head: its weights serve all eight rows of the row set (layout 5)."""
    blocks = [(granule, -1, 16) for granule in (0, 1, 5)]
    stream = value_stream(placed(OPT, reads=[(0, 0, 48)], blocks=blocks))

    assert stream is not None
    assert {
        Op.ACT: 8,
        Op.WRGB: 3,
        Op.WRBIAS: 8,
        Op.MACAB: 24,
        Op.RDMAC: 8,
    } == stream.counts()


def test_rows_shared_by_requests_are_opened_for_each() -> None:
    """Requests with the same blocks each visit their rows, with their own queries."""
    reads = [(0, 0, 16), (1, 0, 16)]
    stream = score_stream(placed(reads=reads, blocks=[(0, -1, 16)]))

    assert stream is not None
    assert 2 == stream.counts()[Op.ACT]
    assert stream.results is not None
    assert [0, 1] == stream.results.query.tolist()


def test_release_and_window_leave_out_what_is_not_seen() -> None:
    """Released blocks and blocks before the window cost nothing; a cut one is read."""
    blocks = [(-1, -1, 0), (1, -1, 16), (2, -1, 16), (3, -1, 4)]
    step = placed(reads=[(0, 40, 52)], blocks=blocks)
    scores, values = score_stream(step), value_stream(step)

    assert scores is not None
    assert values is not None
    assert scores.results is not None
    assert [32, 48] == scores.results.origin.tolist()
    assert values.loads is not None
    assert [[2], [2], [32]] == [
        column.tolist()
        for column in (values.loads.burst, values.loads.count, values.loads.origin)
    ]


def weight_runs(step: PlacedStep) -> list[tuple[int, ...]]:
    """Pattern, burst, count and first position of what the SV stream loads."""
    stream = value_stream(step)
    assert stream is not None
    assert stream.loads is not None
    loads = stream.loads
    pattern = np.repeat(np.arange(len(loads.query)), np.diff(loads.ptr))
    columns = (pattern, loads.burst, loads.count, loads.origin)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_weights_of_neighbours_are_one_run() -> None:
    """Runs join where bursts and positions both go on, and nowhere else."""
    whole = [(granule, -1, 16) for granule in range(3)]
    in_slot = [whole[0], (1, 0, 16), whole[2]]
    swapped = [whole[1], whole[0], whole[2]]
    results = [
        weight_runs(placed(reads=[(0, 0, 48)], blocks=blocks))
        for blocks in (whole, in_slot, swapped)
    ]

    assert [(0, 0, 3, 0)] == results[0]
    assert [(0, 0, 1, 0), (0, 2, 1, 32)] == results[1]
    assert [(0, 0, 1, 16), (0, 1, 1, 0), (0, 2, 1, 32)] == results[2]


def test_runs_end_with_their_row_set() -> None:
    """Sixty-four blocks fill a row set; the next granule begins another."""
    blocks = [(granule, -1, 16) for granule in range(62, 67)]
    step = placed(reads=[(0, 3, 78)], blocks=blocks)
    stream = value_stream(step)

    assert [(0, 62, 2, 0), (1, 0, 3, 32)] == weight_runs(step)
    assert stream is not None
    assert [255, 256, 257, 258] == stream.row[stream.op == Op.ACT].tolist()


def test_stripes_take_turns() -> None:
    """One Key-Value head: four stripes of eight channels, each with its own run."""
    model = attrs.evolve(model_preset("llama3-8b"), kv_heads=1, query_heads=1)
    layout = Layout.of(aim_gddr6(), model)
    blocks = [(granule, -1, 16) for granule in (0, 4, 8, 1)]
    step = placed(layout, reads=[(0, 0, 64)], blocks=blocks)
    stream = value_stream(step)

    assert [(0, 0, 3, 0), (1, 0, 1, 48)] == weight_runs(step)
    assert stream is not None
    assert [0, 8] == stream.channel[stream.op == Op.ACT].tolist()
    assert {8} == set(stream.channels.tolist())


def test_a_released_block_is_no_neighbour_of_granule_0() -> None:
    """What a table says beside a released granule means nothing."""
    step = placed(reads=[(0, 16, 32)], blocks=[(-1, -1, 16), (0, -1, 16)])

    assert [(0, 0, 1, 16)] == weight_runs(step)
