"""Every system's streams give the right attention, and are what their steps ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton.commands import Tokens
from patton.config import ModelConfig, model_preset
from patton.steps import Step
from patton.systems import system
from tests.systems.scene import MODELS, VARIANTS, Scene, served, variant_id

# BF16 scores and weights, as of PATTON's own streams.
MOST_ERROR = 0.02
# Tokens of the longest request: beyond a block of 128, where 32 heads do not take long.
LONG = {"llama3-8b": 150, "opt-6.7b": 50}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_attention_is_right(variant: tuple[str, dict[str, Any]], model: str) -> None:
    """Of all heads and queries over three steps, against float64; each stream proved.

    What is read back is what was written.
    """
    scene = Scene.named(*variant, model)
    long = LONG[model]
    steps = list(served(scene, long))

    assert all(scene.error(step, result) < MOST_ERROR for step, result in steps)
    step, result = steps[-1]
    positions = [p for _, start, end in step.readbacks for p in range(start, end)]
    requests = [0] * (long - 4) + [1] * 18
    tokens = Tokens(np.array(requests), np.array(positions))
    for kind, found in enumerate((result.keys, result.values)):
        assert found is not None
        assert np.array_equal(found, scene.data(kind, ("b", "c"), tokens))
    assert 3 * 4 + 2 <= scene.validator.streams
    assert scene.validator.commands > 3000


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_long_contexts(variant: tuple[str, dict[str, Any]]) -> None:
    """Beyond a row of Values, 1,024 tokens, sums of several runs are put together."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    scene.write(step, "long", 1100)
    scene.read(step, "long")
    scene.read(step, "long", start=1030)

    assert scene.error(step, scene.run(step)) < MOST_ERROR


# Windows of one request that begin and end in different channels of a head, so that a
# row is opened in some of them before others, and a step may have the last ones only.
WINDOWS = (
    (16, 32),
    (0, 64),
    (0, 80),
    (16, 64),
    (33, 47),
    (0, 70),
    (64, 80),
    (48, 50),
    (16, 32),
)


# Two channels a head, and heads with a single query head, whose vectors stay loaded.
ALONE = ModelConfig("16 heads", 32, 16, 16, 128, 4096)


@pytest.mark.parametrize(
    "model", [model_preset("llama3-8b"), ALONE], ids=lambda model: model.name
)
@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_windows(variant: tuple[str, dict[str, Any]], model: ModelConfig) -> None:
    """Queries that see different parts of a request, in any order."""
    scene = Scene.of(system(variant[0], **variant[1]), model)
    step = Step()
    for request in ("a", "b"):
        scene.write(step, request, 80)
    step.reads = [(r, start, end) for start, end in WINDOWS for r in ("a", "b")]

    assert scene.error(step, scene.run(step)) < MOST_ERROR


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_layers_do_not_touch(variant: tuple[str, dict[str, Any]]) -> None:
    """What is written to one layer stays while the next one is used."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    scene.write(step, "a", 50)
    scene.read(step, "a")
    scene.run(step, layer=30)
    again = Step()
    scene.write(again, "a", 1)
    scene.read(again, "a")
    other = Scene.named(*variant, "llama3-8b")
    other.device = scene.device
    noise = Step()
    other.write(noise, "b", 60)
    other.next_token = 1000
    other.write(noise, "c", 60)
    other.run(noise, layer=29)
    more = Step()
    other.write(more, "d", 60)
    other.run(more, layer=31)

    assert scene.error(again, scene.run(again, layer=30)) < MOST_ERROR
