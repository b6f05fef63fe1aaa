"""Options, devices and models that systems take or refuse, and an engine's driving."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from patton.config import ModelConfig, aim_gddr6, hbm2, model_preset, tiny_device
from patton.engine.scheduler import Scheduler
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.errors import ConfigError, DeviceConfigError, LayoutError
from patton.steps import Step
from patton.systems import SYSTEMS, Memory, system
from patton.systems.memory import MappedMemory
from tests.systems.scene import VARIANTS, Scene, variant_id

LLAMA = model_preset("llama3-8b")


def test_options_are_checked() -> None:
    """Each names what is accepted."""
    for name, options, accepted in (
        ("nonesuch", {}, "one of neupims"),
        ("attacc", {"size": 1}, "one of max_context"),
        ("attacc", {"max_context": 0}, "a whole number from 1"),
        ("neupims", {"channels_per_request": 1.5}, "a whole number from 1"),
        ("blockpim", {"value_layout": "rows"}, "rows8 or in_row"),
        ("blockpim", {"scope": "bank"}, "head or device"),
        ("blockpim", {"order": "dice"}, "rows or requests"),
        ("pimphony", {"chunk": "page"}, "row or in_row or channel"),
        ("patton", {"pairs": "best"}, "packed or spread"),
        ("patton-best", {"schedule": "fast"}, "paper or head or pin"),
    ):
        with pytest.raises(ConfigError) as caught:
            system(name, **options)
        assert caught.value.accepted.startswith(accepted)


def test_devices_and_models_are_checked() -> None:
    """What a system has no form for, or no room."""
    odd = attrs.evolve(LLAMA, name="odd", kv_heads=5, query_heads=5)
    wide = attrs.evolve(LLAMA, name="wide", kv_heads=64, query_heads=64)
    for name, device, model, error in (
        ("attacc", attrs.evolve(aim_gddr6(), write_masks=False), LLAMA, None),
        ("attacc", attrs.evolve(aim_gddr6(), burst_bytes=64), LLAMA, None),
        ("cent", aim_gddr6(), wide, None),
        ("attenpim", aim_gddr6(), odd, None),
        ("l3", aim_gddr6(), wide, None),
        ("attacc", attrs.evolve(aim_gddr6(), rows=64), LLAMA, LayoutError),
        ("neupims", attrs.evolve(aim_gddr6(), rows=256), LLAMA, None),
        ("blockpim", attrs.evolve(aim_gddr6(), rows=256), LLAMA, None),
    ):
        with pytest.raises(error or DeviceConfigError):
            system(name).on(device, model)
    with pytest.raises(DeviceConfigError, match="one of 1, 2, 4, 8"):
        system("neupims", channels_per_request=3).on(aim_gddr6(), LLAMA)


SHAPES = {
    "more layers": model_preset("qwen3-8b"),
    "stripes": ModelConfig("two heads", 4, 2, 8, 128, 4096),
    "padding": ModelConfig("narrow", 4, 8, 8, 80, 4096),
    "folds": ModelConfig("64 heads", 4, 64, 64, 128, 4096),
    "one head": ModelConfig("one head", 4, 1, 2, 128, 4096),
}
# CENT's Keys and Values, and heads side by side, take whole numbers of heads.
WITHOUT = {
    "stripes": {"l3"},
    "padding": {"attenpim", "l3"},
    "folds": {"cent", "attenpim", "l3"},
    "one head": {"attenpim", "l3"},
}


@pytest.mark.parametrize(
    ("shape", "name"),
    [(s, n) for s in SHAPES for n in SYSTEMS if n not in WITHOUT.get(s, ())],
)
def test_other_shapes(shape: str, name: str) -> None:
    """Several Value granules side by side, padding, heads that share channels."""
    scene = Scene.of(system(name), SHAPES[shape])
    step = Step()
    for request, count in (("a", 40), ("b", 17)):
        scene.write(step, request, count)
        scene.read(step, request)

    assert scene.error(step, scene.run(step)) < 0.02


@pytest.mark.parametrize("name", ["attacc", "pimphony", "cent", "paise"])
def test_runs_take_stripes_in_turn(name: str) -> None:
    """Where a head has more channels than a Value: the second 1,024 tokens."""
    scene = Scene.of(system(name), SHAPES["stripes"])
    step = Step()
    scene.write(step, "a", 1100)
    scene.read(step, "a")
    placed = scene.memory.apply(step)
    stream = placed.streams().value_write
    assert stream is not None

    assert {0, 8} == set(stream.channel.tolist())
    again = Scene.of(system(name), SHAPES["stripes"])
    step = Step()
    again.write(step, "a", 1100)
    again.read(step, "a")
    assert again.error(step, again.run(step)) < 0.02


def test_another_device() -> None:
    """Rows of 1 KB and 64 channels."""
    scene = Scene.of(system("pimphony"), LLAMA, hbm2())
    step = Step()
    scene.write(step, "a", 700)
    scene.read(step, "a")

    assert scene.error(step, scene.run(step)) < 0.02


# --- the engine -----------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_an_engine_drives_it(variant: tuple[str, dict[str, Any]]) -> None:
    """Conversations are served, and the engine's tables fit what memories hold."""
    name, options = variant
    memory: Memory = system(name, **options).on(aim_gddr6(), LLAMA)
    settings = LoopSettings(
        concurrency=8,
        pool=12,
        max_context=min(1000, memory.longest),
        block_tokens=memory.block_tokens,
        caching=memory.caches,
    )
    loop = ServingLoop.of(
        synthetic(SyntheticSettings(scale=0.2)),
        settings,
        memory.blocks,
        placement=memory,
        pair_blocks=memory.pair_blocks,
    )
    assert isinstance(loop.scheduler, Scheduler)
    for _ in range(150):
        record = loop.step()
        step = Step(
            writes=[(r.id, start, count) for r, start, count, _ in record.scheduled],
            reads=[(r.id, 0, start + n) for r, start, n, _ in record.scheduled],
        )
        placed = memory.apply(step)
        memory.publish(placed)
        loop.completed(record)

    assert loop.statistics.turns > 5
    assert (loop.statistics.hit_tokens > 0) == memory.caches
    if isinstance(memory, MappedMemory):
        assert {r.id for r in loop.scheduler.running} == memory.requests.keys()


def test_a_tiny_device() -> None:
    """The smallest of the presets, with a model of one head."""
    scene = Scene.of(system("attacc", max_context=256), "tiny", tiny_device())
    step = Step()
    scene.write(step, "a", 33)
    scene.read(step, "a")

    assert scene.error(step, scene.run(step)) < 0.02
