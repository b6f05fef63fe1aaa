"""The generators against the slow one, over random layouts and random steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.config import CommitWay
from patton.errors import ArgumentError, DeviceConfigError
from patton.generate import commit_stream, generate_step
from patton.steps import PlacedStep
from tests.core.generate import plain, plain_writes
from tests.core.generate.meaning import entries
from tests.core.generate.plain import Entry, Shape
from tests.core.generate.random_steps import random_step
from tests.core.strategies import random_layout

WAYS: dict[CommitWay, dict[str, Any]] = {
    "host": {"commit_way": "host", "write_masks": False},
    "read-back": {"commit_way": "read-back"},
    "global-buffer": {"commit_way": "global-buffer", "copy_column": "free"},
}
PHASES = {
    "key_write": Phase.KEY_WRITE,
    "value_write": Phase.VALUE_WRITE,
    "read_key": Phase.READ_KEY,
    "read_value": Phase.READ_VALUE,
    "qk": Phase.QK,
    "sv": Phase.SV,
    "partial": Phase.PARTIAL,
    "commit": Phase.COMMIT,
}


def random_placed(seed: int, way: CommitWay) -> PlacedStep:
    rng = np.random.default_rng(seed)
    return random_step(rng, random_layout(rng, **WAYS[way]))


def expected_streams(placed: PlacedStep) -> dict[str, list[Entry]]:
    """What the slow generator makes of the step, by name of the stream."""
    shape, written = Shape(placed.layout), plain_writes.written(placed)
    ranges = plain_writes.read_back(placed)
    whole = not placed.layout.device.write_masks
    values = plain_writes.values(shape, Op.WR, written, whole=whole)
    keys_read = [plain_writes.keys(shape, Op.RD, pieces) for pieces in ranges]
    values_read = [plain_writes.values(shape, Op.RD, pieces) for pieces in ranges]
    return {
        "key_write": by_row(shape, plain_writes.keys(shape, Op.WR, written)),
        "value_write": by_row(shape, values),
        "read_key": by_row(shape, *keys_read),
        "read_value": by_row(shape, *values_read),
        "qk": plain.qk(placed),
        "sv": plain.sv(placed),
        "partial": plain.partial(placed),
        "commit": expected_commits(placed),
    }


def by_row(shape: Shape, *batches: list[Entry]) -> list[Entry]:
    return [e for batch in batches for e in plain_writes.by_row(batch, shape.banks)]


def expected_commits(placed: PlacedStep) -> list[Entry]:
    shape, commits = Shape(placed.layout), plain_writes.committed(placed)
    device = placed.layout.device
    if device.commit_way == "global-buffer":
        return list(plain_writes.copies(shape, commits, device.bursts_per_row))
    home = [attrs.evolve(commit, slot=-1) for commit in commits]
    writes = by_row(shape, plain_writes.values(shape, Op.WR, home))
    if device.commit_way == "host":
        return writes
    return [*by_row(shape, plain_writes.values(shape, Op.RD, commits)), *writes]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(60))
def test_streams_are_those_of_the_slow_generator(seed: int, way: CommitWay) -> None:
    """Entry for entry, and datum for datum of what the entries carry."""
    placed = random_placed(seed, way)
    streams, expected = generate_step(placed), expected_streams(placed)

    for name, phase in PHASES.items():
        stream: CommandStream | None = getattr(streams, name)
        assert (stream is None) == (not expected[name]), name
        assert expected[name] == entries(stream), name
        if stream is not None:
            assert (placed.step, phase) == (stream.step, stream.phase)


def test_random_steps_reach_every_case() -> None:
    """The steps above hold what they are meant to hold, often enough."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        placed = random_placed(seed, "host")
        layout, tables = placed.layout, placed.tables
        queries = np.bincount(placed.read_request, minlength=1)
        streams = generate_step(placed)
        cases = {
            "several queries": queries.max(initial=0) > 1,
            "window": bool(np.any(placed.read_start % layout.block_tokens)),
            "stripes": layout.stripes > 1,
            "folds": layout.folds > 1,
            "token groups": layout.map.token_groups > 1,
            "bursts of a block": layout.value_width > 1,
            "registers": layout.device.result_registers > 1,
            "padding": layout.padding_bytes > 0,
            "released": bool(np.any(tables.granule < 0)),
            "slots": bool(np.any(tables.slot >= 0)),
            "partial in O1V": bool(
                np.any((tables.slot < 0) & (tables.opened % layout.block_tokens > 0))
            ),
            "unwritten block": bool(
                np.any((tables.opened == 0) & (tables.granule >= 0))
            ),
            "shared": len(set(tables.granule.tolist())) < len(tables.granule),
            **{f"no {name}": getattr(streams, name) is None for name in PHASES},
            **{name: getattr(streams, name) is not None for name in PHASES},
        }
        seen.update(name for name, holds in cases.items() if holds)

    assert [] == [name for name in cases if seen[name] < 3]


def test_copies_need_a_device_that_changes_columns() -> None:
    """On AiM a copy keeps its burst column, and a commit changes it."""
    steps = (random_placed(seed, "host") for seed in range(60))
    placed = next(placed for placed in steps if len(placed.commit_slot))

    with pytest.raises(DeviceConfigError, match="copy_column is 'same'"):
        commit_stream(placed, "global-buffer")


def test_a_way_to_commit_is_one_of_three() -> None:
    """Asked for, it comes before the device's own; a fourth is refused."""
    steps = (random_placed(seed, "global-buffer") for seed in range(60))
    placed = next(placed for placed in steps if len(placed.commit_slot))

    for way in WAYS:
        stream = generate_step(placed, commit_way=way).commit
        assert stream is not None
        assert ("copy" if way == "global-buffer" else way) == stream.source
    with pytest.raises(ArgumentError, match="commit_way"):
        generate_step(placed, commit_way="by hand")  # type: ignore[arg-type]
