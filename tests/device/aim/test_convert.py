"""Streams as traces and back: nothing is lost, and what contradicts itself is refused.

Round trips go through the text of a trace, over random layouts (folds, idle channels,
padding, several registers, all ways to commit) and both ways of sending operands.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.config import device_preset, model_preset
from patton.device.aim import (
    Instruction,
    Opcode,
    format_trace,
    parse_trace,
    simulate,
)
from patton.device.aim.convert import (
    OPERAND_WAYS,
    SETTLING,
    Operands,
    convert,
    layer_trace,
    stream_trace,
)
from patton.device.aim.recover import streams_of
from patton.errors import FrameError, TraceError
from patton.generate import generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step
from tests.device.aim.aim_layouts import random_placed, streams_of_step
from tests.device.aim.golden import FOLDER as GOLDEN
from tests.device.aim.golden import golden_cases, needs_golden

SEEDS = range(8)


def same(left: CommandStream, right: CommandStream) -> bool:
    """Equal in every column, with its type, and in all tables."""
    kinds = [{n: c.dtype for n, c in s.columns().items()} for s in (left, right)]
    return kinds[0] == kinds[1] and left.to_text() == right.to_text()


def llama_streams(tokens: int = 40, **fields: Any) -> list[CommandStream]:
    """A token after a prefill; fields: in which the model is not Llama3-8B."""
    model = attrs.evolve(model_preset("llama3-8b"), **fields)
    layout = Layout.of(device_preset("aim-gddr6"), model)
    runtime = Runtime.of(layout)
    blocks = list(range(-(-(tokens + 1) // 16)))
    step = Step(grants=[("a", [], blocks)], writes=[("a", 0, tokens)])
    runtime.publish(runtime.apply_step(step))
    step = Step(writes=[("a", tokens, 1)], reads=[("a", 0, tokens + 1)])
    return generate_step(runtime.apply_step(step).place()).present()


def of_phase(streams: list[CommandStream], phase: Phase) -> CommandStream:
    return next(stream for stream in streams if stream.phase is phase)


# --- round trips ------------------------------------------------------------------


@pytest.mark.parametrize("operands", OPERAND_WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_comes_back_from_its_trace(seed: int, operands: Operands) -> None:
    """Every column and table, layer and way of sending, through the text."""
    placed = random_placed(seed)
    layer = placed.layout.model.layers - 1
    streams = streams_of_step(placed)
    text = format_trace(layer_trace(streams, layer=layer, operands=operands))

    found = streams_of(parse_trace(text))

    assert len(streams) == len(found)
    for stream, back in zip(streams, found, strict=True):
        assert (layer, operands) == (back.layer, back.operands)
        assert same(stream, back.stream)


@pytest.mark.parametrize("seed", SEEDS)
def test_notes_cost_nothing(seed: int) -> None:
    """The simulator sees the same lines with and without them."""
    for stream in streams_of_step(random_placed(seed)):
        bare = stream_trace(stream, notes=False)
        noted = [line._replace(note=()) for line in stream_trace(stream)]

        assert bare == noted


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_without_notes_still_reads(seed: int) -> None:
    """The same lines come again, but masks with gaps are divided."""
    for stream in streams_of_step(random_placed(seed)):
        lines = convert(stream).instructions
        found = streams_of(parse_trace(format_trace(lines)))
        again = [line for b in found for line in convert(b.stream).instructions]
        wanted = [line for line in lines if line.opcode != Opcode.SYNC]
        gaps = any("01" in f"{line.mask:032b}".strip("0") for line in wanted)

        assert gaps or wanted == again
        bits = [sum(x.mask.bit_count() for x in part) for part in (wanted, again)]
        assert bits[0] == bits[1]


def test_rows_are_opened_where_a_plain_trace_needs_them() -> None:
    """Once for commands in the same row, again after another, for all its banks."""
    text = (
        "AiM MAC_ABK 8 0xc0000000 3\nAiM MAC_ABK 8 0x80000000 3\n"
        "AiM WR_SBK 0 0x80000000 2 4\nAiM MAC_ABK 8 0x80000000 3\nAiM EOC\n"
    )
    (found,) = streams_of(parse_trace(text))
    acts = [c for c in found.stream.commands() if c.op is Op.ACT]

    opened = [(c.channel, c.channels, c.bank, c.banks, c.row) for c in acts]
    assert [(0, 2, 0, 16, 3), (0, 1, 2, 1, 4), (0, 1, 0, 16, 3)] == opened


def test_foreign_notes_are_read() -> None:
    """Bursts, registers and lanes of a plain line, as any tool may write them."""
    text = (
        "# patton: burst=8 register=1\nAiM MAC_ABK 8 0x80000000 3\n"
        "# patton: burst=5 lanes=0x0100\nAiM WR_SBK 0 0x80000000 2 3\nAiM EOC\n"
    )
    (found,) = streams_of(parse_trace(text))
    macs, write = (c for c in found.stream.commands() if c.op is not Op.ACT)

    assert (8, 8, 1) == (macs.burst, macs.count, macs.register)
    assert (5, 1, 0x100) == (write.burst, write.count, write.lanes)


@needs_golden
@pytest.mark.parametrize("name", ["g05", "g08", "g09", "g12", "g13", "g14", "g19"])
def test_golden_traces_survive_the_way_through_a_stream(name: str) -> None:
    """Cycles of the way back are those of the trace."""
    (path,) = (GOLDEN / "aim").glob(f"{name}_*.trace")
    lines = parse_trace(path.read_text())
    again = [x for b in streams_of(lines) for x in convert(b.stream).instructions]

    assert golden_cases()
    assert simulate(lines).cycles == simulate(again).cycles


# --- what lines say ---------------------------------------------------------------


def test_lines_of_a_layer_by_hand() -> None:
    """Masks of eight heads of four channels, bit 31 being channel 0, and rows."""
    streams = llama_streams()
    key = stream_trace(of_phase(streams, Phase.KEY_WRITE), layer=2, notes=False)
    scores = stream_trace(of_phase(streams, Phase.QK), layer=2, notes=False)

    # Token 40 is the ninth of granule 2: channel 2 of each head, bank 8.
    write = Instruction(Opcode.WR_SBK, mask=0x22222222, bank=8, row=2 * 512)
    assert [write] * 8 == key
    load = Instruction(Opcode.WR_GB, 8, 0xEEEEEEEE)
    bias = Instruction(Opcode.WR_BIAS, mask=0x88888888)
    macs = Instruction(Opcode.MAC_ABK, 8, 0x88888888, row=2 * 512)
    read = Instruction(Opcode.RD_MAC, mask=0x88888888)
    assert [load, bias, macs, read] == scores[:4]


def test_split_sends_a_line_for_each_operand() -> None:
    """Loads once per head, writes once per head and channel; all else is shared."""
    for stream in llama_streams():
        ways = {way: convert(stream, operands=way).instructions for way in OPERAND_WAYS}
        counts = {
            way: {op: sum(x.opcode == op for x in lines) for op in Opcode}
            for way, lines in ways.items()
        }
        channels = int(stream.channels.max())
        for op in Opcode:
            factor = {Opcode.WR_GB: 8, Opcode.WR_SBK: 8 * channels}.get(op, 1)
            assert factor * counts["shared"][op] == counts["split"][op]
        bits = [sum(x.mask.bit_count() for x in ways[way]) for way in OPERAND_WAYS]
        assert bits[0] == bits[1]


def test_streams_with_writes_end_in_time_for_the_last() -> None:
    """The simulator would lose it; after others a SYNC will do."""
    streams = llama_streams(head_dim=16)
    write, scores = (of_phase(streams, p) for p in (Phase.KEY_WRITE, Phase.QK))
    lost = simulate(stream_trace(write, notes=False))
    kept = simulate(list(layer_trace([write])))

    assert (0, 8) == (lost.total("WR"), kept.total("WR"))
    assert list(SETTLING) == list(layer_trace([write]))[-len(SETTLING) :]
    assert Opcode.SYNC == list(layer_trace([scores]))[-1].opcode


# --- refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [  # more than 32 channels, other than 16 banks, rows beyond its numbers
        ({"channels_per_head": 5}, "channels"),
        ({"banks": 8}, "banks"),
        ({"rows_per_plane": 2**32}, "layer"),
    ],
)
def test_what_a_trace_cannot_address(fields: dict[str, int], parameter: str) -> None:
    stream = llama_streams()[0]
    wrong = attrs.evolve(stream, frame=attrs.evolve(stream.frame, **fields))

    with pytest.raises(FrameError) as refusal:
        convert(wrong)

    assert parameter == refusal.value.parameter


def test_another_way_of_sending() -> None:
    with pytest.raises(FrameError, match="shared or split"):
        convert(llama_streams()[0], operands="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(3))
def test_lines_that_contradict_their_notes(seed: int) -> None:
    """A line dropped or changed, and an end too early, are found."""
    rng = np.random.default_rng(seed)
    for stream in streams_of_step(random_placed(seed)):
        lines = stream_trace(stream)
        bare = [index for index, line in enumerate(lines) if not line.note]
        if not bare:
            continue
        at = bare[int(rng.integers(len(bare)))]
        changed = lines[at]._replace(mask=lines[at].mask ^ 1)
        for damaged in (
            [*lines[:at], *lines[at + 1 :]],
            [*lines[:at], changed, *lines[at + 1 :]],
            lines[:at],
        ):
            with pytest.raises(TraceError):
                streams_of([*damaged, Instruction(Opcode.EOC)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stream=qk", "stream=kq"),
        ("frame=8,", "frame=0,"),
        ("frame=8,", "frame=x,"),
        ("frame=8,4,8,4,1,512,", "frame=8,4,8,4,99999999999,0,"),
        (" count=8", " count=60000 banks=200"),
        ("burst=", "channels=9999999 burst="),
        ("step=1", "steps=1"),
        ("source=host", "source=nowhere"),
        ("operands=shared", "operands=none"),
        ("entries=", "entries=1"),
        ("act=0+3", "act=0"),
        ("queries.start=0", "queries.start=none"),
        ("burst=", "reference=9"),
    ],
)
def test_notes_that_cannot_be_read(old: str, new: str) -> None:
    """Each is refused with the line, whatever is wrong."""
    streams = llama_streams()
    chosen = [of_phase(streams, phase) for phase in (Phase.QK, Phase.KEY_WRITE)]
    text = format_trace(layer_trace(chosen))
    assert old in text

    with pytest.raises(TraceError):
        streams_of(parse_trace(text.replace(old, new, 1)))


@pytest.mark.parametrize("line", ["AiM AF 1", "AiM EWMUL 1 1 1", "AiM MAC_SBK 1 1 1 1"])
def test_what_no_stream_has(line: str) -> None:
    """Refused by name and place; lines that address nothing are passed over."""
    with pytest.raises(TraceError) as refusal:
        streams_of(parse_trace(f"W GPR 0\n{line}\nAiM EOC\n"))

    assert 2 == refusal.value.line
    assert [] == streams_of(parse_trace("W GPR 0\nAiM WR_GB 0 1 1\nAiM EOC\n"))
