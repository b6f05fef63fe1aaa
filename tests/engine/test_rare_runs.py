"""What seldom happens in a run: costs are asked for, caches are too small."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from patton.config import device_preset, model_preset
from patton.device.aim.costs import Target, stream_cost
from patton.engine import formats
from patton.engine.block_pool import BlockPool
from patton.engine.costs import RunCosts, phase_name
from patton.engine.formats import Reading
from patton.engine.placement_gate import PlacementGate
from patton.engine.session import Session
from patton.errors import ConfigError, DeviceConfigError
from patton.generate import generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step
from tests.engine.test_placement_gate import Pairs
from tests.engine.test_session import default, served


def test_a_run_costs_what_its_streams_do_in_every_layer() -> None:
    """Cycles are those of the streams one by one, times the layers of the model."""
    layout = Layout.of(device_preset("tiny"), model_preset("tiny"))
    runtime = Runtime.of(layout)
    step = Step(grants=[(0, [], [0, 1])], writes=[(0, 0, 20)], reads=[(0, 0, 20)])
    streams = generate_step(runtime.apply_step(step).place())
    costs = RunCosts.of(layout, Target())
    costs.add(streams)
    costs.add(streams)
    found, times = costs.report(), 2 * layout.model.layers

    assert {phase_name(stream) for stream in streams.present()} == found[
        "cycles"
    ].keys()
    for stream in streams.present():
        phase, alone = phase_name(stream), stream_cost(stream, costs.target)
        assert times * alone.cycles == found["cycles"][phase]
        energy = {name: times * pj for name, pj in alone.energy_pj.items()}
        assert energy == pytest.approx(found["energy_pj"][phase])
    for phase, part in found["mac_bound"].items():
        assert 0 < part < 1
        assert found["cycles"][phase] == sum(found["cycles_spent"][phase].values())


def test_the_last_steps_are_drawn(tmp_path: Path) -> None:
    settings = default(steps=4, check="placement", costs=Target(), timeline_steps=1)
    session = Session.of(settings)
    session.run()
    assert session.costs is not None
    path = tmp_path / "steps.json"

    assert session.costs.write_timeline(path) > 10
    assert "step 3 qk" in path.read_text(encoding="utf-8")
    assert "step 2 qk" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [{"costs": Target()}, {"validate": True}])
def test_without_streams_there_is_nothing_to_time_or_prove(
    options: dict[str, object],
) -> None:
    with pytest.raises(ConfigError, match="where there are streams"):
        Session.of(default(check="lifecycle", **options))


def test_the_cache_is_always_on() -> None:
    loop = attrs.evolve(default().loop, caching=False)
    with pytest.raises(ConfigError, match="PATTON keeps full blocks"):
        Session.of(default(loop=loop))


def test_no_timing_is_invented() -> None:
    layout = Layout.of(
        device_preset("ddr4"), model_preset("llama3-8b"), block_tokens=32
    )
    with pytest.raises(DeviceConfigError, match="no timing of the others"):
        Session.of(default(layout=layout, check="placement", costs=Target()))


def test_the_timing_of_another_device_may_be_given() -> None:
    """A preset of its own says what the device's name does not."""
    layout = Layout.of(
        attrs.evolve(device_preset("aim-gddr6"), name="ddr4"), model_preset("llama3-8b")
    )
    preset = attrs.evolve(Target().preset, name="measured here")
    with pytest.raises(DeviceConfigError):
        RunCosts.of(layout, Target())

    assert {} == RunCosts.of(layout, Target(preset=preset)).cycles


def test_a_proof_counts_what_it_has_proved() -> None:
    found = served(default(steps=10, check="placement", validate=True)).report()

    assert found["streams_validated"] > 10
    assert found["commands_validated"] > found["streams_validated"]


def test_effective_capacity_is_found_by_halves() -> None:
    """A run without pressure in a cache as large is worth it all, in one question.

    One that hit nothing is worth the most blocks that hit nothing either, down to so
    few that no request can be served.
    """
    session = served(default(steps=120, check="lifecycle"))
    asked: list[int] = []
    session.loop.statistics.hit_tokens = session.loop.statistics.prompt_tokens
    assert 1.0 == session.effective_capacity(lambda: asked.append(1))
    assert [] == asked
    session.loop.statistics.hit_tokens = 0
    worth = session.effective_capacity(lambda: asked.append(1))

    assert 0 < worth < 1
    assert 10 == len(asked)  # a thousandth is ten halves away
    assert worth == session.effective_capacity()
    assert session._hits_no_more(1, 0.0)


# --- the engine's parts ---------------------------------------------------------------


def test_an_empty_file_of_sessions_has_none(tmp_path: Path) -> None:
    path = tmp_path / "agents.jsonl"
    path.write_text("", encoding="utf-8")
    reading = Reading()

    assert [] == [*formats.read_agents(path, reading)]
    assert 0 == reading.records


def test_forgetting_a_key_that_is_not_there_changes_nothing() -> None:
    """A block without content stays as it is, beside one that had some."""
    pool = BlockPool.of(4)
    blocks = pool.take(2)
    pool.register(blocks[0], "content")
    pool.evict_blocks(blocks)

    assert [] == pool.lookup(["content"])
    assert 2 == pool.free_count
    pool.release(blocks)
    assert 4 == pool.free_count


def test_without_a_queue_the_oldest_candidates_go() -> None:
    """Asked to look ahead where nobody waits, it takes the placement's own order."""
    pairs, pool = Pairs.of(2, 2), BlockPool.of(8)
    for name, blocks in ((1, (0, 1)), (2, (2, 3))):
        for block in blocks:
            pairs.bind(name, block)
        pairs.finish(name)
    gone: list[int] = []

    class Cache:
        references = pool.references

        def surrender(self, blocks: object) -> None:
            for block in blocks:  # type: ignore[attr-defined]
                gone.append(block)
                pairs.evict(block)

        def placed_by_age(self) -> object:
            raise AssertionError("not asked for")

    gate = PlacementGate.of(pairs, Cache(), 2, "queue")  # type: ignore[arg-type]

    assert gate.make_room(3, 1, 1)
    assert [1, 0] == gone
