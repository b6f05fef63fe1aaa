"""Every schedule against the slow generator, and what schedules must not change."""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op
from patton.config import aim_gddr6, model_preset
from patton.device import protocol
from patton.generate import (
    PAPER,
    Order,
    Schedule,
    best_schedule,
    commit_stream,
    generate_step,
    key_writes,
    partial_stream,
    score_stream,
    value_stream,
    value_writes,
)
from patton.generate.schedule import BEST, PAPER_ORDER, Costs
from patton.layout import Layout
from patton.steps import PlacedStep
from tests.core.generate import plain_orders
from tests.core.generate.meaning import entries
from tests.core.generate.random_steps import random_step
from tests.core.generate.test_paper_streams import body, placed
from tests.core.strategies import ORDERS, random_layout

OWN = [order for order in ORDERS if order != PAPER_ORDER]
LLAMA = Layout.of(aim_gddr6(), model_preset("llama3-8b"))


def random_placed(seed: int) -> PlacedStep:
    rng = np.random.default_rng(seed)
    return random_step(rng, random_layout(rng, result_registers=1 + seed % 4))


@pytest.mark.parametrize("seed", range(8))
def test_streams_are_those_of_the_slow_generator(seed: int) -> None:
    """Entry for entry and datum for datum, in every order."""
    step = random_placed(seed)
    layout, rng = step.layout, np.random.default_rng(seed)
    for choices in OWN:
        # Costs at which small layouts have something to choose.
        costs = Costs(*(int(cost) for cost in rng.integers(1, 50, 3)))
        order = attrs.evolve(choices, costs=costs)
        schedule = Schedule("test", order, order)
        spans = plain_orders.qk_spans(step, order)
        width = layout.channels_per_head
        expected = plain_orders.ordered(step, spans, order, width)
        assert expected == entries(score_stream(step, schedule)), order

        width = layout.value_channels
        spans = plain_orders.sv_spans(step, order)
        expected = plain_orders.ordered(step, spans, order, width)
        assert expected == entries(value_stream(step, schedule)), order

        spans = plain_orders.partial_spans(step)
        expected = plain_orders.ordered(step, spans, order, width)
        assert expected == entries(partial_stream(step, schedule)), order


def results_of(stream: CommandStream | None) -> list[Any]:
    """What each result is and adds up, by vector in the order of its summands."""
    summed: dict[tuple[int, int], list[Any]] = {}
    found = []
    for entry in entries(stream):
        place = entry.channel, entry.register
        for k in range(entry.channels):
            place = entry.channel + k, entry.register
            if entry.op is Op.WRBIAS:
                summed[place] = []
            elif entry.op is Op.MACAB:
                summed[place].append((entry.row, entry.burst, entry.count))
            elif entry.op is Op.RDMAC:
                vector, components = entry.meaning
                found.append((vector, components[k], entry.channel + k, summed[place]))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_schedules_change_no_arithmetic(seed: int) -> None:
    """The same results from the same bursts, summands of a component in the same order.

    And the streams keep the rules of the device.
    """
    step = random_placed(seed)
    paper = generate_step(step)
    for order in OWN:
        streams = generate_step(step, schedule=Schedule("test", order, order))
        for name in ("qk", "sv", "partial"):
            stream = getattr(streams, name)
            mine, theirs = results_of(stream), results_of(getattr(paper, name))
            # A stable sort by vector and component keeps the order of summands.
            key = [sorted(x, key=lambda item: item[:2]) for x in (mine, theirs)]
            assert key[0] == key[1], (name, order)
            if stream is not None:
                protocol.check(stream, step.layout.device)


def test_the_paper_is_the_default() -> None:
    """Its streams are those of no schedule at all."""
    for seed in range(20):
        step = random_placed(seed)
        texts = [
            [stream.to_text() for stream in streams.present()]
            for streams in (generate_step(step), generate_step(step, schedule=PAPER))
        ]
        assert texts[0] == texts[1]


def test_channels_of_a_head_work_together() -> None:
    """Four blocks side by side in four channels are one command of each kind."""
    step = placed(reads=[(0, 0, 64)], blocks=[(g, -1, 16) for g in range(4)])
    lines = body(score_stream(step, BEST))

    assert [
        "WRGB channel=0+4 burst=0+8 reference=0",
        "WRBIAS channel=0+4 register=0",
        "ACT channel=0+4 row=0",
        "MACAB channel=0+4 row=0 burst=0+8 register=0",
        "RDMAC channel=0+4 register=0 reference=0",
    ] == lines[:5]
    assert "WRGB channel=0+4 burst=0+8 reference=1" == lines[5]


def test_a_row_of_keys_meets_a_loaded_query() -> None:
    """Rows back and forth: the second query head begins in the row that is open."""
    layout = Layout.of(aim_gddr6(), attrs.evolve(model_preset("opt-6.7b"), kv_heads=16))
    # Two channels a head: granules 0 to 15 fill a Key row of both channels.
    step = placed(layout, reads=[(0, 0, 512)], blocks=[(g, -1, 16) for g in range(32)])
    stream = score_stream(
        step, Schedule("test", Order("rows", "apart", "together", True))
    )

    assert stream is not None
    assert layout.model.query_heads_per_kv == 2
    assert [64, 64] == stream.count[stream.op == Op.WRGB].tolist()
    assert [0, 1, 0] == stream.row[stream.op == Op.ACT].tolist()


@pytest.mark.parametrize(
    ("loads", "rows", "heads"),
    [
        ("rows", [0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0], [0, 1, 2, 3]),
        ("row", [0, 1, 2, 3], [0, 1, 2, 3, 3, 2, 1, 0] * 2),
    ],
)
def test_every_other_pass_is_turned_round(
    loads: Any, rows: list[int], heads: list[int]
) -> None:
    """Of four query heads: rows under a loaded query, or queries in an open row."""
    step = placed(reads=[(0, 0, 2048)], blocks=[(g, -1, 16) for g in range(128)])
    order = Order(loads, "apart", "together", turning=True)
    stream = score_stream(step, Schedule("test", order))

    assert stream is not None
    assert rows == stream.row[stream.op == Op.ACT].tolist()
    assert heads == stream.reference[stream.op == Op.WRGB].tolist()


def test_requests_share_a_row_of_the_commit_zone() -> None:
    """With registers to spare, slots of two requests need one change of mode."""
    device = attrs.evolve(aim_gddr6(), result_registers=4)
    layout = Layout.of(device, model_preset("llama3-8b"))
    step = placed(layout, reads=[(0, 0, 4), (1, 0, 4)], blocks=[(0, 0, 4)])
    slots = np.array([0, 1])
    tables = attrs.evolve(step.tables, slot=slots, granule=slots)
    stream = partial_stream(attrs.evolve(step, tables=tables), BEST)

    assert stream is not None
    kinds = "".join(Op(op).name[0:3] + " " for op in stream.op.tolist()[:14])
    assert "WRG WRG WRB WRB WRB WRB ACT MAC MAC MAC MAC RDM RDM RDM " == kinds


def test_results_of_different_queries_are_read_apart() -> None:
    """Side by side and a block apart, but not of one query: a read each."""
    step = placed(reads=[(0, 0, 16), (1, 16, 32)], blocks=[(0, -1, 16), (5, -1, 16)])
    order = Order("rows", "together", "together")
    stream = score_stream(step, Schedule("test", order))

    assert stream is not None
    assert [
        "WRGB channel=0+4 burst=0+8 reference=0",
        "WRGB channel=0+4 burst=8+8 reference=4",
        "WRBIAS channel=0+2 register=0",
        "ACT channel=0+2 row=0",
        "MACAB channel=0+1 row=0 burst=0+8 register=0",
        "MACAB channel=1+1 row=0 burst=8+8 register=0",
        "RDMAC channel=0+1 register=0 reference=0",
        "RDMAC channel=1+1 register=0 reference=4",
    ] == body(stream)[:8]


def test_writes_bank_by_bank_write_the_same() -> None:
    """The same bursts and tokens, a bank after another, no row opened more often."""
    for seed in range(20):
        step = random_placed(seed)
        by_bank = Schedule("test", write_order="bank-major")
        for make in (value_writes, commit_of):
            streams = [make(step, schedule) for schedule in (PAPER, by_bank)]
            data = [sorted(written(stream)) for stream in streams]
            assert data[0] == data[1]
            if streams[0] is not None and streams[1] is not None:
                assert streams[0].activations() == streams[1].activations()
                protocol.check(streams[1], step.layout.device)


def commit_of(step: PlacedStep, schedule: Schedule = PAPER) -> CommandStream | None:
    return commit_stream(step, "host", schedule)


def written(stream: CommandStream | None) -> list[tuple[Any, ...]]:
    """Channel, bank, row, burst, lanes, fill and data of every burst written."""
    found = []
    for entry in entries(stream):
        if entry.op is Op.WR:
            for k, b, i in product(
                range(entry.channels), range(entry.banks), range(entry.count)
            ):
                place = entry.channel + k, entry.bank + b, entry.row, entry.burst + i
                lanes = (entry.lanes, entry.fill, str(entry.meaning[k][b][i]))
                found.append((*place, *lanes))
    return found


def test_rows_as_written_follow_the_segments() -> None:
    """Ungrouped, two tokens of one row with another between open it twice."""
    step = placed(
        writes=[(0, -1, 0, 1, 0, 0), (600, -1, 0, 1, 0, 0), (1, -1, 0, 1, 0, 16)]
    )
    counts = []
    for rows in ("grouped", "as-written"):
        streams = generate_step(step, schedule=Schedule("test", write_rows=rows))
        assert streams.value_write is not None
        counts.append(streams.value_write.counts()[Op.ACT])

    assert [4, 6] == counts


def test_best_schedules_are_chosen_by_device_and_variant() -> None:
    """Measured for both variants of the AiM device; elsewhere the common choice."""
    assert "bank-major" == best_schedule("aim-gddr6", "head").write_order
    assert "burst-major" == best_schedule("aim-gddr6", "pin").write_order
    assert BEST == best_schedule("ddr5", "head")


def test_registers_can_be_left_unused() -> None:
    """A schedule for fewer registers than the device has, never for more."""
    assert [1, 2, 8] == [
        Schedule("test", registers=n).registers_of(8) for n in (1, 2, None)
    ]
    assert 2 == Schedule("test", registers=4).registers_of(2)


def test_a_step_hands_its_schedule_on() -> None:
    """Every stream with a choice is that of its own function, and not the paper's."""
    own = attrs.evolve(BEST, write_order="bank-major", write_rows="as-written")
    made = {
        "key_write": key_writes,
        "value_write": value_writes,
        "qk": score_stream,
        "sv": value_stream,
        "partial": partial_stream,
        "commit": commit_of,
    }
    step = placed(
        writes=[(g, -1, 0, 1, 0, 16 * g) for g in (0, 600, 1)],
        commits=[(3, 0, 0, 0)],
        reads=[(0, 0, 64)],
        blocks=[(g, -1, 16) for g in (0, 1, 2)] + [(3, 0, 16)],
    )
    streams = generate_step(step, commit_way="host", schedule=own)
    for name, make in made.items():
        found, expected, plain = getattr(streams, name), make(step, own), make(step)
        assert expected is not None
        assert plain is not None
        assert expected.to_text() == found.to_text() != plain.to_text(), name
