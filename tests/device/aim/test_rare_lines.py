"""Lines and streams that no engine makes, and traces may have all the same."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.device.aim import parse_trace
from patton.device.aim.convert import convert, stream_trace
from patton.device.aim.costs import NO_REQUEST, entry_requests
from patton.device.aim.recover import streams_of
from patton.device.aim.trace import Opcode
from patton.errors import TraceError
from tests.device.aim.test_convert import llama_streams, of_phase, same


def first_entries(stream: CommandStream, count: int) -> CommandStream:
    """The stream as if it ended there."""
    columns: dict[str, Any] = {n: c[:count] for n, c in stream.columns().items()}
    return attrs.evolve(stream, **columns)


def test_a_row_that_is_opened_for_nothing_comes_back() -> None:
    """No line opens a row by itself, so the note of the last one needs a line."""
    opened = first_entries(of_phase(llama_streams(), Phase.KEY_WRITE), 1)
    assert [Op.ACT] == [entry.op for entry in opened.commands()]
    lines = stream_trace(opened)
    (found,) = streams_of(lines)

    assert Opcode.SYNC == lines[-1].opcode
    assert same(opened, found.stream)


def test_a_write_to_all_banks_closes_their_rows() -> None:
    """One element to each bank, and the same row is opened anew for the next."""
    text = "AiM WR_ABK 0 0x80000000 5\n" * 2 + "AiM EOC\n"
    (found,) = streams_of(parse_trace(text))

    entries = [(e.op, e.row, e.banks) for e in found.stream.commands()]
    assert 2 * [(Op.ACT, 5, 16), (Op.WR, 5, 16)] == entries
    assert found.stream.lanes is not None
    assert {1} == {
        lanes
        for op, lanes in zip(found.stream.op, found.stream.lanes.tolist(), strict=True)
        if op == Op.WR
    }


def test_more_bursts_than_a_stream_can_say_are_refused() -> None:
    with pytest.raises(TraceError, match="70000 bursts") as refusal:
        streams_of(parse_trace("AiM MAC_ABK 70000 1 5\nAiM EOC\n"))

    assert 1 == refusal.value.line


def test_without_a_table_of_loads_only_results_have_a_request() -> None:
    """And with them the products that lead there; the loads are no one's."""
    stream = of_phase(llama_streams(), Phase.QK)
    loading = stream.op == Op.WRGB
    bare = entry_requests(attrs.evolve(stream, loads=None))

    assert {0} == {*entry_requests(stream)[loading].tolist()}
    assert {NO_REQUEST} == {*bare[loading].tolist()}
    assert np.array_equal(entry_requests(stream)[~loading], bare[~loading])
    assert len(convert(stream).instructions)
