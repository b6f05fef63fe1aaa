"""Which blocks are reduced together, and what is left out of them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.commands import Op
from patton.config import aim_gddr6, model_preset
from patton.generate import Order, Schedule, score_stream, value_stream
from patton.generate.seen import Blocks, home_blocks, query_reads, slot_blocks
from patton.layout import Layout
from patton.steps import PlacedStep, Tables
from tests.core.generate.random_steps import ints
from tests.core.generate.test_batches import STRIPED, full
from tests.core.generate.test_paper_streams import LLAMA, Rows, placed

GONE = (-1, -1, 16)  # what stands beside the granule means nothing


def tabled(
    *tables: Rows, layout: Layout = LLAMA, readers: set[int] | None = None
) -> PlacedStep:
    """A step in which requests, by default all, read a token each, of these blocks."""
    request = ints(sorted(readers or range(len(tables))))
    rows = [row for table in tables for row in table]
    return attrs.evolve(
        placed(layout),
        requests=tuple(range(len(tables))),
        tables=Tables(
            ints(np.cumsum([0, *map(len, tables)])),
            *np.array(rows, np.int64).reshape(-1, 3).T,
        ),
        read_request=request,
        read_start=np.zeros_like(request),
        read_end=np.ones_like(request),
    )


def found(blocks: Blocks) -> list[tuple[int, ...]]:
    """Request, position, granule and tokens of each."""
    columns = blocks.request, blocks.position, blocks.granule, blocks.opened
    return [*zip(*(column.tolist() for column in columns), strict=True)]


def home(step: PlacedStep) -> list[tuple[int, ...]]:
    return found(home_blocks(step, query_reads(step)))


def test_full_neighbours_are_one_long_block() -> None:
    blocks = [*full(7, 8), (9, -1, 5), *full(11)]

    assert [(0, 0, 7, 37), (0, 48, 11, 16)] == home(tabled(blocks))


def test_a_block_that_is_not_full_ends_a_run() -> None:
    blocks = [*full(7), (8, -1, 5), (9, -1, 0)]

    assert [(0, 0, 7, 21), (0, 32, 9, 0)] == home(tabled(blocks))


def test_neighbours_in_other_rows_are_apart() -> None:
    """64 blocks of the paper's configuration fill a row."""
    assert [(0, 0, 62, 32), (0, 32, 64, 32)] == home(tabled(full(62, 63, 64, 65)))


def test_neighbours_in_other_channels_are_apart() -> None:
    step = tabled(full(0, 1), layout=STRIPED)

    assert [(0, 0, 0, 16), (0, 16, 1, 16)] == home(step)


def test_neighbours_of_other_requests_are_apart() -> None:
    step = tabled(full(0, 1), [], full(2), full(3, 4), [])

    assert [(0, 0, 0, 32), (2, 0, 2, 16), (3, 0, 3, 32)] == home(step)


def test_a_block_that_was_given_up_is_no_neighbour_of_granule_0() -> None:
    assert [(0, 32, 0, 16)] == home(tabled([GONE, GONE, *full(0)]))


def test_blocks_in_slots_are_apart_from_those_at_home() -> None:
    step = tabled([*full(0), (1, 5, 16), (2, 4, 16), *full(3)])

    assert [(0, 0, 0, 16), (0, 48, 3, 16)] == home(step)
    expected = [(0, 16, 1, 16), (0, 32, 2, 16)]
    assert expected == found(slot_blocks(step, query_reads(step)))


def test_only_what_readers_hold_is_looked_at() -> None:
    step = tabled(full(0), [GONE, *full(2)], full(4), readers={1})

    assert [(1, 16, 2, 16)] == home(step)


@pytest.mark.parametrize("written", [5, 16, 20])
def test_scores_end_with_what_is_written(written: int) -> None:
    """Whatever is asked for: of the two groups of a block one may have no token."""
    layout = Layout.of(aim_gddr6(), model_preset("llama3-8b"), block_tokens=32)
    stream = score_stream(placed(layout, reads=[(0, 0, 32)], blocks=[(0, -1, written)]))

    assert stream is not None
    assert stream.results is not None
    assert [0, 16][: -(-written // 16)] == stream.results.origin.tolist()


@pytest.mark.parametrize("requests", ["apart", "together"])
def test_requests_meet_in_a_row_only_if_asked(requests: str) -> None:
    """Four requests that see two row sets: each row opened once, or for each of them.

    In a row they take turns as they stand in the step.
    """
    order = Order("row", requests)  # type: ignore[arg-type]
    step = placed(reads=[(k, 0, 32) for k in range(4)], blocks=full(0, 64))
    stream = value_stream(step, Schedule("test", sv=attrs.evolve(order, reload=False)))

    assert stream is not None
    assert stream.loads is not None
    rows = stream.row[stream.op == Op.ACT].tolist()
    if requests == "together":
        assert [255, 256, 257, 258] == rows
        assert [0, 1, 2, 3, 0, 1, 2, 3] == stream.loads.query.tolist()
    else:
        assert [255, 256, 257, 258] * 4 == rows
        assert [0, 0, 1, 1, 2, 2, 3, 3] == stream.loads.query.tolist()
