"""Streams and their tables have the types that executors rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import COLUMNS, OPTIONAL_COLUMNS, CommandStream
from patton.generate import PAPER, Schedule, best_schedule, generate_step
from patton.generate.assembly import Entries, frame_of
from tests.core.generate.test_generate import WAYS, random_placed
from tests.core.generate.test_paper_streams import LLAMA

SCHEDULES = [PAPER, best_schedule("aim-gddr6", "head"), best_schedule("", "")]


def tables(stream: CommandStream) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name in ("tokens", "loads", "results", "queries"):
        table = getattr(stream, name)
        for field in attrs.fields(type(table)) if table is not None else ():
            value = getattr(table, field.name)
            if isinstance(value, np.ndarray):
                yield f"{name}.{field.name}", value


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["paper", "best", "other best"])
@pytest.mark.parametrize("way", WAYS)
def test_columns_and_tables_have_their_types(way: Any, schedule: Schedule) -> None:
    kinds = {**COLUMNS, **OPTIONAL_COLUMNS}
    for seed in range(6):
        placed = random_placed(seed, way)
        for stream in generate_step(placed, schedule=schedule).present():
            for name, column in stream.columns().items():
                assert np.dtype(kinds[name]) == column.dtype, name
            for name, column in tables(stream):
                assert np.dtype(np.int64) == column.dtype, name
            for counts in (
                stream.command_offsets(),
                stream.payload_bursts(),
                stream.payload_offsets(),
                stream.mac_offsets(),
                stream.read_offsets(),
            ):
                assert np.dtype(np.int64) == counts.dtype


@pytest.mark.parametrize("size", range(10))
def test_columns_are_aligned(size: int) -> None:
    """As compiled code wants them, and as NumPy is fastest with."""
    entries = Entries.of(size, frame_of(LLAMA), tuple(OPTIONAL_COLUMNS))

    assert all(column.flags.aligned for column in entries.columns.values())
