"""Commands of ordered products, written out: what is joined, and what comes first."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op
from patton.config import aim_gddr6, model_preset
from patton.generate import (
    Order,
    Schedule,
    batches,
    readback_streams,
    score_stream,
    value_stream,
    value_writes,
)
from patton.generate.assembly import frame_of
from patton.layout import Layout
from tests.core.generate.random_steps import ints
from tests.core.generate.test_paper_streams import LLAMA, Rows, body, placed

SMALL = attrs.evolve(model_preset("llama3-8b"), kv_heads=4, query_heads=4, head_dim=64)
STRIPED = Layout.of(aim_gddr6(), SMALL)  # granules 0 and 1 lie in channels 0 and 4
BANK_MAJOR = Schedule("test", write_order="bank-major")


def schedule(channels: Literal["in-turn", "together"] = "together") -> Schedule:
    order = Order("rows", "apart", channels)
    return Schedule("test", order, order)


def lines(stream: CommandStream | None, op: str) -> list[str]:
    """What comes after the name of a command."""
    return [line.partition(" ")[2] for line in body(stream) if line.split()[0] == op]


def full(*granules: int) -> Rows:
    """Full blocks in their O1V."""
    return [(granule, -1, 16) for granule in granules]


def test_values_take_all_channels_of_a_stripe() -> None:
    stream = value_stream(placed(reads=[(0, 0, 16)], blocks=full(0)), schedule())

    assert {"channel=0+4 row=255", "channel=0+4 row=256"} == {*lines(stream, "ACT")}
    assert ["channel=0+4 row=255 burst=0+1 register=0"] == lines(stream, "MACAB")[:1]


def test_the_next_keys_of_all_channels_are_joined_as_well() -> None:
    """Keys of a row in ascending order, each of them in four channels at once."""
    step = placed(reads=[(0, 0, 128)], blocks=full(*range(8)))
    stream = score_stream(step, schedule())

    assert [
        "channel=0+4 row=0 burst=0+8 register=0",
        "channel=0+4 row=0 burst=8+8 register=0",
    ] == lines(stream, "MACAB")[:2]
    # Both results of a head, then those of the next.
    assert [f"channel=0+4 register=0 reference={k}" for k in (0, 4, 1, 5)] == lines(
        stream, "RDMAC"
    )[:4]


def test_channels_with_one_between_are_apart() -> None:
    step = placed(reads=[(0, 0, 32)], blocks=full(0, 2))
    stream = score_stream(step, schedule())

    assert ["channel=0+1 register=0", "channel=2+1 register=0"] == lines(
        stream, "WRBIAS"
    )[:2]


def test_results_of_positions_apart_are_read_apart() -> None:
    """Channels 0 and 1 hold positions 0 and 32 of one query."""
    step = placed(reads=[(0, 0, 48)], blocks=full(0, 4, 1))

    assert [f"channel={k}+1 register=0 reference={8 * k}" for k in (0, 1)] == lines(
        score_stream(step, schedule()), "RDMAC"
    )[:2]


def test_results_of_one_query_beside_another_are_read_together() -> None:
    """Channel 0 is one query's, channels 1 and 2 are another's, in one step."""
    step = placed(reads=[(0, 0, 16), (1, 16, 48)], blocks=full(0, 5, 6))
    together = Schedule("test", Order("rows", "together", "together"))

    assert [
        "channel=0+1 register=0 reference=0",
        "channel=1+2 register=0 reference=4",
    ] == lines(score_stream(step, together), "RDMAC")[:2]


def test_channels_in_turn_ascend_head_by_head() -> None:
    step = placed(reads=[(0, 0, 32)], blocks=full(0, 1))

    assert [
        f"channel={channel}+1 register=0 reference={4 * channel + head}"
        for head in range(4)
        for channel in range(2)
    ] == lines(score_stream(step, schedule("in-turn")), "RDMAC")


@pytest.mark.parametrize("reload", [False, True])
def test_a_query_is_loaded_again_only_if_asked(reload: bool) -> None:
    """A pass for every row, all of which need the one query that there is."""
    layout = Layout.of(aim_gddr6(), attrs.evolve(SMALL, head_dim=128))
    order = Order("row", "apart", "together", reload=reload)
    step = placed(layout, reads=[(0, 0, 2048)], blocks=full(*range(128)))
    stream = score_stream(step, Schedule("test", order))

    assert 2 == len(lines(stream, "ACT"))
    load = "channel=0+8 burst=0+64 reference=0"
    assert [load] * (2 if reload else 1) == lines(stream, "WRGB")


def test_loads_of_a_pass_ascend() -> None:
    """Of Keys in four places of a row, for many passes."""
    reads = [(0, 0, 64)] * 12
    stream = score_stream(placed(reads=reads, blocks=full(0, 8, 16, 24)), schedule())

    assert stream is not None
    loads = stream.op == Op.WRGB
    assert [0, 16, 32, 48] * (4 * len(reads)) == stream.burst[loads].tolist()


def test_units_are_counted_in_their_row() -> None:
    """By group, row and channel, in the order in which they come."""
    rng = np.random.default_rng(0)
    frame = attrs.evolve(frame_of(LLAMA), rows_per_plane=3, channels_per_head=4)
    group, row, channel = (rng.integers(0, n, 500) for n in (9, 3, 4))
    seen: Counter[tuple[int, ...]] = Counter()
    for place, nth in zip(
        zip(group.tolist(), row.tolist(), channel.tolist(), strict=True),
        batches._nth(group, row, channel, frame).tolist(),
        strict=True,
    ):
        assert seen[place] == nth
        seen[place] += 1


def test_banks_are_gone_through_row_by_row() -> None:
    """A token's two rows: all banks of the first, then all of the second."""
    stream = value_writes(placed(writes=[(0, -1, 0, 1, 0, 0)]), BANK_MAJOR)

    assert stream is not None
    assert [*range(16), *range(16)] == stream.bank[stream.op == Op.WR].tolist()
    assert 2 == stream.counts()[Op.ACT]


def test_banks_are_gone_through_stripe_by_stripe() -> None:
    """One row in the channels of two stripes."""
    writes = [(0, -1, 0, 1, 0, 0), (1, -1, 0, 1, 0, 16)]
    stream = value_writes(placed(STRIPED, writes=writes), BANK_MAJOR)

    assert stream is not None
    assert [0, 4] == stream.channel[stream.op == Op.ACT].tolist()
    assert [*range(16), *range(16)] == stream.bank[stream.op == Op.WR].tolist()


def test_positions_read_back_ascend() -> None:
    """Ranges of two requests in turn, of many blocks, each in order."""
    step = placed(reads=[(0, 0, 1), (1, 0, 1)], blocks=full(*range(100)))
    ranges = [(1, 800, 1600), (0, 0, 1600), (1, 0, 800), (0, 160, 1440)]
    request, start, end = map(ints, zip(*ranges, strict=True))
    step = attrs.evolve(
        step, readback_request=request, readback_start=start, readback_end=end
    )
    expected = [position for _, low, high in ranges for position in range(low, high)]
    for stream in readback_streams(step):
        assert stream is not None
        assert stream.tokens is not None
        assert expected == stream.tokens.position.tolist()
