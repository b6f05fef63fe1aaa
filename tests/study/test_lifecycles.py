"""Runs without streams, and runs with a timed sample of steps."""

from __future__ import annotations

import attrs
import pytest

from patton.config import aim_gddr6, model_preset
from patton.engine.serving import LoopSettings
from patton.engine.session import RunSettings, Session
from patton.errors import ConfigError
from patton.layout import Layout
from patton.study.lifecycles import WHOLE_SET, LifecycleTask
from patton.study.measured import PARTS, Measured
from patton.study.serving import ServeTask
from patton.study.tasks import Source

TASK = LifecycleTask("opt-6.7b", Source(seed=3), 300, 8, 16, 2048)
SERVED = ServeTask("opt-6.7b", "patton", Source(seed=3), 12, 1, 8, 16, 2048)


def test_a_run_reports_what_a_session_reports() -> None:
    """Hit rate, activations and runs of SV of the same settings."""
    model = model_preset("opt-6.7b")
    session = Session.of(
        RunSettings(
            TASK.source.open(model.tokenizer),
            Layout.of(aim_gddr6(), model),
            LoopSettings(concurrency=8, pool=16, max_context=2048),
            steps=300,
            check="lifecycle",
        )
    )
    session.run()
    found, known = TASK.execute(), session.report()

    assert known["prefix_hit_rate"] == found["hit_rate"]
    assert known["value_write_activations"]["direct"] == found["activations"]["direct"]
    assert known["sv_runs"] == found["sv_runs"]
    assert session.reference_hit_rate() == found["reference_hit_rate"]
    assert found["effective_capacity"] is None
    assert found["live_tokens"] > 0


def test_whole_sets_make_longer_runs() -> None:
    """Pairs of 64 blocks against pairs of 4."""

    def blocks_per_run(size: int) -> float:
        task = attrs.evolve(TASK, pair_blocks=size, choice="packed")
        found = task.execute()
        return float(found["sv_blocks"] / found["sv_runs"])

    assert blocks_per_run(WHOLE_SET) > blocks_per_run(4)


def test_effective_capacity_is_found_when_asked_for() -> None:
    """Without pressure a policy is worth the whole device."""
    assert (
        1.0
        == attrs.evolve(TASK, effective=True, steps=40).execute()["effective_capacity"]
    )


def test_a_sample_of_all_steps_is_the_run_itself() -> None:
    """Every step is timed: totals are sums, and nothing is uncertain."""
    result = SERVED.execute()
    run = Measured(result)

    assert 12 == len(result["timed"]) == result["statistics"]["steps"]
    for phase in result["cycles"].values():
        assert phase["total"] == pytest.approx(sum(phase["sampled"]))
    assert 0.0 == run.standard_error("latency", *PARTS)
    assert result["drivers"]["decode tokens"] == run.tokens


def test_a_sampled_run_serves_the_same_steps() -> None:
    """Timing changes nothing; a third of the steps tells the total of QK closely."""
    every, some = (attrs.evolve(SERVED, every=n, steps=60).execute() for n in (1, 3))

    assert every["statistics"] == some["statistics"]
    assert every["timed"][1::3] == some["timed"]
    assert every["cycles"]["qk"]["total"] == pytest.approx(
        some["cycles"]["qk"]["total"], rel=0.01
    )


def test_a_system_without_a_cache_is_served_without_one() -> None:
    """The memory says so, and how long a request may be."""
    found = attrs.evolve(SERVED, system="attacc", every=6, steps=200).execute()

    assert 0 == found["statistics"]["hit_tokens"]
    assert found["prefill"]["tokens"] > found["prefill"]["required_tokens"]


def test_options_reach_the_system() -> None:
    """Without a Commit Zone nothing is committed; unknown options are refused."""
    direct = attrs.evolve(SERVED, options=(("commit_zone", False),)).execute()
    staged = SERVED.execute()

    assert "partial" in staged["cycles"]
    assert "partial" not in direct["cycles"]
    with pytest.raises(ConfigError, match="colour"):
        attrs.evolve(SERVED, options=(("colour", "red"),)).execute()


def test_eviction_reaches_the_engine() -> None:
    """An order that the engine does not have is refused by it."""
    with pytest.raises(ConfigError, match="eviction is 'dice'"):
        attrs.evolve(SERVED, eviction="dice").execute()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["steps", "every"])
def test_numbers_below_one_are_refused(name: str) -> None:
    """By their name."""
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        ServeTask(**{**attrs.asdict(SERVED, recurse=False), name: 0})
