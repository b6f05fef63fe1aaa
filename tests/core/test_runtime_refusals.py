"""Refusals change nothing (LIFE-ATOMIC); states survive snapshots and random runs."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.config import device_preset, model_preset
from patton.errors import (
    BlockRangeError,
    BlockStateError,
    ConfigError,
    PattonError,
    RequestError,
    SnapshotError,
)
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.driver import RandomEngine
from tests.core.llama import llama, start
from tests.core.strategies import random_layout


@pytest.mark.parametrize(
    ("event", "arguments", "error"),
    [
        ("bind", (1, 10**6), BlockRangeError),
        ("bind", (1, -1), BlockRangeError),
        ("bind", (1, 0), BlockStateError),
        ("share", (2, 9), BlockStateError),
        ("share", (1, 1), RequestError),
        ("release", (1, 9), RequestError),
        ("release", (8, 0), RequestError),
        ("evict", (0,), BlockStateError),
        ("evict", (9,), BlockStateError),
        ("finish", (8,), RequestError),
        ("confirm", (1, 99), RequestError),
        ("confirm", (1, 3), RequestError),
        ("commit", (0,), BlockStateError),
        ("write", (8, 0, 1), RequestError),
        ("write", (1, 30, 1), RequestError),
        ("write", (1, 20, 99), RequestError),
        ("write", (1, 20, 0), RequestError),
        ("bind", (None, 9), RequestError),
        ("bind", (False, 9), RequestError),
        ("bind", (1.5, 9), RequestError),
        ("bind", (np.int64(7), 9), RequestError),
        ("bind", (b"seven", 9), RequestError),
        ("share", (float("nan"), 0), RequestError),
        ("confirm", (1, 20.0), RequestError),
        ("write", (1, 20, np.int64(1)), RequestError),
    ],
)
def test_a_refused_event_changes_nothing(
    event: str, arguments: tuple[Any, ...], error: type[PattonError]
) -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    before = runtime.snapshot()
    with pytest.raises(error):
        getattr(runtime, event)(*arguments)

    assert runtime.snapshot() == before
    runtime.check()


@pytest.mark.parametrize(
    "step",
    [
        Step(writes=[(1, 20, 2)], drafts={1: 1.5}),  # type: ignore[dict-item]
        Step(writes=[(1, 20, 2)], drafts={1: np.int64(1)}),  # type: ignore[dict-item]
    ],
)
def test_drafts_are_integers(step: Step) -> None:
    """Else they would go on into the state."""
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    before = runtime.snapshot()
    with pytest.raises(RequestError, match="0 to 2"):
        runtime.apply_step(step)

    assert runtime.snapshot() == before


def test_no_drafts_may_be_none() -> None:
    """A step across a block's end, where drafts count."""
    runtime = llama()
    start(runtime, 1, [0, 1], 10)
    writes = [(1, 10, 10)]
    runtime.apply_step(Step(writes=writes, drafts=None))  # type: ignore[arg-type]
    runtime.check()


@pytest.mark.parametrize("option", ["adoption", "commit_zone"])
def test_an_option_is_on_or_off(option: str) -> None:
    with pytest.raises(ConfigError, match=option):
        llama(**{option: "no"})


def test_granules_beyond_the_tables_integers_are_refused() -> None:
    device = attrs.evolve(device_preset("tiny"), rows=2**31)
    layout = Layout.of(device, model_preset("tiny"))
    with pytest.raises(ConfigError, match="granules"):
        Runtime.of(layout, blocks=5)


@pytest.mark.parametrize("blocks", [0, -1, 1.5, True, 2**31])
def test_a_runtime_needs_blocks(blocks: Any) -> None:
    with pytest.raises(ConfigError):
        llama(blocks=blocks)


def test_a_snapshot_of_another_layout_is_refused() -> None:
    small, large = llama(gib=2), llama(gib=4)
    with pytest.raises(SnapshotError):
        large.restore(small.snapshot())


def test_a_damaged_snapshot_is_refused() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    good = runtime.snapshot()
    for name in ("requests", "bound", "due", "epochs"):
        damaged = good | {name: good["bound"] if name == "due" else {"0": [1]}}
        with pytest.raises(SnapshotError):
            runtime.restore(damaged)
    assert runtime.snapshot() == good


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("step", value) for value in ("x", None, 1.0, True, -1, 2**70, float("nan"))),
        *(("releases", value) for value in ([1], -1, 0)),
        ("adopted", -1),
        ("due", [[1, {}, 16]]),
        ("due", [[1, 1, "x"]]),
        ("due", [[1, 1, 15]]),
        ("due", [[1, 1, 2**70]]),
        ("last_release", {"0": None}),
        ("last_release", 5),
        ("epochs", {"0": 2**70, "x": 1}),
        ("owed", [[1, 10**6]]),
        ("bound", {"0": [0, -1, 16, 16, 0, [3], None]}),
        ("bound", {"0": [2**40, -1, 16, 16, 0, 3, None]}),
        ("further", 1),
    ],
)
def test_a_snapshot_with_one_wrong_fact_is_refused(name: str, value: Any) -> None:
    """Block 0 cached, 1 due for its commit, 2 partial; one fact of theirs is wrong."""
    runtime = llama()
    start(runtime, 0, [0], 16)
    runtime.finish(0)
    runtime.apply_step(Step(grants=[(1, [], [3, 1, 2])], writes=[(1, 0, 30)]))
    runtime.apply_step(Step(writes=[(1, 30, 7)]))
    good = runtime.snapshot()
    assert good["due"] == [[1, 1, 16]]
    for damaged in (good | {name: value}, None, [good]):
        with pytest.raises(SnapshotError):
            runtime.restore(damaged)  # type: ignore[arg-type]

    assert runtime.snapshot() == good
    runtime.restore(good)


def test_a_slot_beyond_the_zone_is_refused() -> None:
    """It would be given back to the free slots later."""
    runtime = llama()
    start(runtime, 1, [0], 5)
    snapshot = runtime.snapshot()
    snapshot["bound"]["0"][1] = 1000
    with pytest.raises(SnapshotError, match="slot"):
        runtime.restore(snapshot)


@pytest.mark.parametrize("seed", range(12))
def test_random_runs_stay_consistent_and_refusals_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    options: dict[str, Any] = {
        "choice": ("spread", "packed")[seed % 2],
        "adoption": seed % 3 > 0,
        "commit_zone": seed % 4 > 0,
    }
    engine = RandomEngine(Runtime.of(layout, **options), rng)
    for number in range(60):
        engine.step()
        engine.runtime.check()
        if number % 10 == 0:
            engine.try_refusals()
    twin = Runtime.of(layout, **options)
    twin.restore(engine.runtime.snapshot())

    assert twin.snapshot() == engine.runtime.snapshot()
    assert engine.accepted > 20
