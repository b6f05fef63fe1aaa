"""Checked runs: all that happens in the default one, and what pressure costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from patton.config import aim_gddr6, device_preset, model_preset
from patton.engine.placement_gate import Eviction
from patton.engine.serving import LoopSettings
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import default_scenario
from patton.engine.workloads import open_workload
from patton.errors import ConfigError
from patton.layout import Layout


def default(**options: Any) -> RunSettings:
    """The run that `patton run` makes, with some settings replaced."""
    scenario = default_scenario()
    layout = Layout.of(device_preset("tiny"), model_preset("tiny"))
    settings = RunSettings(scenario.workload, layout, scenario.loop, scenario.steps)
    return attrs.evolve(settings, **options)


def served(settings: RunSettings) -> Session:
    """A run to its end, the runtime consistent at every twentieth step."""
    session = Session.of(settings)
    session.run(lambda steps: session.runtime.check() if steps % 20 == 0 else None)
    session.runtime.check()
    return session


def test_everything_happens_in_the_default_run() -> None:
    found = served(default(check="placement")).report()

    for name in (
        "pairs_adopted",
        "evictions",
        "preemptions",
        "chunked_prefills",
        "blocks_committed",
        "same_step_shares",
    ):
        assert found[name] > 0, name


def test_outputs_are_exact_through_eviction_and_preemption() -> None:
    """A device of a quarter of the pairs is under pressure from the first steps on."""
    small = Layout.of(
        attrs.evolve(device_preset("tiny"), rows=24), model_preset("tiny")
    )
    loop = attrs.evolve(default().loop, max_context=300)
    session = served(default(layout=small, loop=loop, steps=150, layers=1))
    found = session.report()

    assert found["evictions"] > 0
    assert found["preemptions"] > 0
    assert found["outputs_checked"] > 1000
    assert found["tokens_read_back"] > 0


@pytest.mark.parametrize("eviction", ["pairs", "lru"])
@pytest.mark.parametrize("pair_blocks", [1, 3, 16])
def test_policies_keep_the_runtime_consistent(
    eviction: Eviction, pair_blocks: int
) -> None:
    layout = Layout.of(
        device_preset("tiny"), model_preset("tiny"), pair_blocks=pair_blocks
    )
    loop = attrs.evolve(default().loop, eviction=eviction)
    session = served(default(layout=layout, loop=loop, steps=500, check="lifecycle"))

    assert session.loop.statistics.evictions > 0
    if pair_blocks == 1:
        assert session.effective_capacity() >= 0.99


def test_settings_are_judged() -> None:
    for options in ({"steps": 0}, {"layers": 0}, {"layers": 3}, {"check": "hope"}):
        with pytest.raises(ConfigError):
            Session.of(default(**options))


def chats(data_dir: Path, pool: int, steps: int, **options: Any) -> Session:
    """ShareGPT on Llama3-8B, contexts up to 8,192 tokens, lifecycle only."""
    workload = open_workload(data_dir / "sharegpt_turns.jsonl.gz", tokenizer="llama3")
    layout = Layout.of(aim_gddr6(), model_preset("llama3-8b"))
    loop = LoopSettings(concurrency=32, pool=pool, max_context=8192)
    settings = RunSettings(workload, layout, loop, steps, check="lifecycle", **options)
    session = Session.of(settings)
    session.run()
    return session


def test_without_pressure_hits_equal_the_block_cache(data_dir: Path) -> None:
    session = chats(data_dir, pool=40, steps=2000)
    hit_rate = session.loop.statistics.prefix_hit_rate

    assert hit_rate > 0.8
    assert hit_rate == session.reference_hit_rate()


def test_under_pressure_adoption_keeps_most_of_the_capacity(data_dir: Path) -> None:
    session = chats(data_dir, pool=64, steps=10_000)

    assert session.effective_capacity() >= 0.93
    assert session.value_runs.blocks_per_run >= 15
    assert session.activations.ratio >= 12.5
