"""Where tokens lie, as the sources of each system have it (Llama3-8B on AiM).

Attention would be right with any map that keeps tokens apart; these are the maps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton.commands import CommandStream, Op
from patton.operands import bursts_of, lane_flags, spread
from patton.steps import Step
from tests.systems.scene import Scene

# Of (part, position) of the first request: channel, row, bank and burst.
Places = dict[tuple[int, int], tuple[int, int, int, int]]

HEADS = 8


def written(
    name: str, options: dict[str, Any], tokens: int
) -> tuple[CommandStream, CommandStream, Scene]:
    """The streams that write the first tokens of a request, after another's."""
    scene = Scene.named(name, options, "llama3-8b")
    step = Step()
    scene.write(step, "before", 20)
    scene.memory.publish(scene.memory.apply(step))
    step = Step()
    scene.write(step, "a", tokens)
    streams = scene.memory.apply(step).streams()
    assert streams.key_write is not None
    assert streams.value_write is not None
    return streams.key_write, streams.value_write, scene


def firsts(stream: CommandStream, element: int = 0) -> Places:
    """Where the element of each token is, and of the head of each part."""
    assert stream.tokens is not None
    assert stream.axes is not None
    entries = np.flatnonzero(stream.op == Op.WR)
    banks, count = (x[entries].astype(int) for x in (stream.banks, stream.count))
    entry, offset = spread(stream.channels[entries] * banks * count)
    offset, burst = np.divmod(offset, count[entry])
    channel, bank = np.divmod(offset, banks[entry])
    bursts = bursts_of(stream, Op.WR)
    lane = np.arange(16)
    at = bursts.element[:, None] + lane * stream.axes.element.lane
    token = bursts.token[:, None] + lane * stream.axes.token.lane
    burst_of, lane_of = np.nonzero(lane_flags(bursts.lanes, 16) & (at == element))
    token = token[burst_of, lane_of]
    part = stream.tokens.request[token] % (HEADS // stream.frame.heads)
    position, own = stream.tokens.position[token], entries[entry[burst_of]]
    columns = (
        stream.channel[own] + channel[burst_of],
        stream.row[own],
        stream.bank[own] + bank[burst_of],
        stream.burst[own] + burst[burst_of],
    )
    places = zip(*(column.tolist() for column in columns), strict=True)
    tokens = zip(part.tolist(), position.tolist(), strict=True)
    return dict(zip(tokens, places, strict=True))


def test_cent_keys_are_over_all_banks_of_all_channels() -> None:
    """Token t in bank t mod 512, the heads of a token along the row."""
    keys, _, _ = written("cent", {}, 1040)
    places = firsts(keys)
    rows = sorted({row for _, row, _, _ in places.values()})
    for (head, t), (channel, row, bank, burst) in places.items():
        assert (t % 512) == channel * 16 + bank
        assert t // 512 == rows.index(row)
        assert 8 * head == burst


@pytest.mark.parametrize("name", ["attacc", "paise", "pimphony", "attenpim", "l3"])
def test_keys_go_over_channels_and_then_columns(name: str) -> None:
    """Case Ch to C: sixteen tokens a channel, then the next eight bursts of the row."""
    keys, _, _ = written(name, {}, 1040)
    places = firsts(keys)
    rows = sorted({row for _, row, _, _ in places.values()})
    for (_, t), (channel, row, bank, burst) in places.items():
        assert (t // 16 % 4, t % 16) == (channel, bank)
        assert t // 64 % 8 * 8 == burst
        assert t // 512 == rows.index(row)


@pytest.mark.parametrize("name", ["attacc", "paise", "pimphony", "cent"])
@pytest.mark.parametrize("element", [0, 37, 127])
def test_values_go_along_rows(name: str, element: int) -> None:
    """1,024 tokens; sixteen elements in the banks, pieces over channels, then rows."""
    _, values, _ = written(name, {}, 1040)
    places = firsts(values, element)
    rows = sorted({row for _, row, _, _ in places.values()})
    for (_, t), (channel, row, bank, burst) in places.items():
        assert (element // 16 % 4, element % 16) == (channel, bank)
        assert t // 16 % 64 == burst
        assert t // 1024 == rows.index(row)


def test_neupims_requests_lie_in_one_channel() -> None:
    """Not in that of the request before; heads along Key rows, Values by page."""
    keys, values, _ = written("neupims", {}, 1040)
    for element in (0, 37):
        places = firsts(values, element)
        rows: dict[int, set[int]] = {}
        for (head, t), (channel, row, bank, burst) in places.items():
            assert (1, element % 16) == (channel, bank)
            assert t // 16 % 64 == burst
            rows.setdefault(head * 2 + t // 1024, set()).add(row)
        assert all(len(found) == 1 for found in rows.values())
        assert 16 == len({row for found in rows.values() for row in found})
    places = firsts(keys)
    groups = {t // 16: row for (_, t), (_, row, _, _) in places.items()}
    assert 65 == len(set(groups.values()))
    for (head, t), (channel, row, bank, burst) in places.items():
        assert (1, groups[t // 16], t % 16, 8 * head) == (channel, row, bank, burst)


@pytest.mark.parametrize("scope", ["head", "device"])
@pytest.mark.parametrize("value_layout", ["rows8", "in_row"])
def test_blockpim_blocks_lie_in_one_channel(value_layout: str, scope: str) -> None:
    """128 tokens: a row of Keys, and of Values one row or eight columns of eight."""
    options = {"value_layout": value_layout, "scope": scope}
    keys, values, scene = written("blockpim", options, 300)
    parts = HEADS if scope == "device" else 1
    key_places, value_places = firsts(keys), firsts(values, 37)
    for part in range(parts):
        for block in range(3):
            tokens = range(128 * block, min(128 * block + 128, 300))
            of_keys = [key_places[part, t] for t in tokens]
            of_values = [value_places[part, t] for t in tokens]
            assert 1 == len({place[:2] for place in of_keys})
            assert 1 == len({place[:2] for place in of_values})
            assert of_keys[0][0] == of_values[0][0] == block + 1  # 0 is filled more
            assert [(t % 16, t % 128 // 16 * 8) for t in tokens] == [
                place[2:] for place in of_keys
            ]
            first = of_values[0][3]
            assert [(5, first + t % 128 // 16) for t in tokens] == [
                place[2:] for place in of_values
            ]
            assert 0 == (first - (16 if value_layout == "in_row" else 0)) % 8
    rows = {firsts(values, element)[0, 0][1] for element in range(0, 128, 16)}
    assert len(rows) == (1 if value_layout == "in_row" else 8)
    assert 128 == scene.memory.block_tokens


@pytest.mark.parametrize(
    ("name", "banks", "bursts"), [("attenpim", 8, 1), ("l3", 4, 2)]
)
def test_values_of_outer_products_lie_in_whole_bursts(
    name: str, banks: int, bursts: int
) -> None:
    """Over eight banks, or two bursts in four; heads beside each other."""
    _, values, _ = written(name, {}, 600)
    channels = 4 * 16 // banks
    for element in (0, 16, 32, 127):
        places = firsts(values, element)
        piece = element // 16
        for (head, t), (channel, _, bank, burst) in places.items():
            assert t // 16 % channels == channel
            assert head * banks + piece // bursts == bank
            column = t // 16 // channels * 16 + t % 16
            assert (column * bursts + piece % bursts) % 64 == burst


def test_a_chunk_of_pimphony_is_a_row_of_all_channels() -> None:
    """512 tokens of Keys of eight heads; in_row, as many tokens of Values."""
    for options in ({}, {"chunk": "in_row"}):
        keys, values, _ = written("pimphony", options, 600)
        rows = {t // 512: row for (_, t), (_, row, _, _) in firsts(keys).items()}
        assert 2 == len(set(rows.values()))
        used = {row for _, row, _, _ in firsts(values, 127).values()}
        assert len(used) == (2 if options else 1)
        assert not used & set(rows.values())
