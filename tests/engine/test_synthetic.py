from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean, pstdev

import pytest

from patton.config import device_preset, model_preset
from patton.engine.conversations import Conversation
from patton.engine.serving import ServingLoop
from patton.engine.synthetic import (
    FIRST_ANSWER,
    FIRST_MESSAGE,
    LATER_ANSWER,
    LATER_MESSAGE,
    TURNS,
    LogNormal,
    SyntheticSettings,
    default_scenario,
    synthetic,
)
from patton.engine.workloads import open_workload
from patton.errors import ConfigError
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step


def drawn(settings: SyntheticSettings, count: int) -> list[Conversation]:
    return list(islice(synthetic(settings).conversations(), count))


def test_the_same_seed_gives_the_same_conversations() -> None:
    """And another seed others."""
    one, again, other = (drawn(SyntheticSettings(seed=s), 50) for s in (1, 1, 2))

    assert one == again
    assert one != other


def test_a_workload_can_be_read_again() -> None:
    """Every pass begins at the seed."""
    source = synthetic(SyntheticSettings(conversations=5))

    assert list(source.conversations()) == list(source.conversations())
    assert 5 == source.reading.records


def test_conversations_begin_with_system_prompts_by_share() -> None:
    """All, none, or about the asked part; of the asked length and number."""
    for share, least, most in ((0.0, 0, 0), (0.5, 400, 600), (1.0, 1000, 1000)):
        settings = SyntheticSettings(
            system_share=share, system_prompts=3, system_tokens=70
        )
        found = [c for c in drawn(settings, 1000) if c.prefix_tokens]

        assert least <= len(found) <= most
        assert {70} >= {conversation.prefix_tokens for conversation in found}
        assert {0, 1, 2} >= {conversation.prefix for conversation in found}
        assert all(c.turns[0].prompt_tokens > 70 for c in found)


def test_prompts_hold_the_history() -> None:
    """Each is longer than prompt and answer before it."""
    for conversation in drawn(SyntheticSettings(), 200):
        for before, after in zip(
            conversation.turns, conversation.turns[1:], strict=False
        ):
            assert after.prompt_tokens > before.tokens


def test_draws_have_the_fitted_moments() -> None:
    """Without the cut, mean and deviation of the logarithm come out."""
    random = Random(0)
    fit = LogNormal(5.0, 0.8, 10**9)
    logs = [math.log(fit.draw(random)) for _ in range(20_000)]

    assert 5.0 == pytest.approx(fmean(logs), abs=0.02)
    assert 0.8 == pytest.approx(pstdev(logs), abs=0.02)


def test_draws_are_cut_scaled_and_at_least_one() -> None:
    """At the 99th percentile, before they are scaled."""
    random = Random(0)
    counts = [LogNormal(3.0, 3.0, 100).draw(random, 0.5) for _ in range(1000)]

    assert (1, 50) == (min(counts), max(counts))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scale", 0.0),
        ("scale", math.nan),
        ("scale", math.inf),
        ("system_share", 1.1),
        ("system_share", -0.1),
        ("system_prompts", 0),
        ("system_tokens", 0),
        ("system_tokens", 1.5),
        ("conversations", 0),
    ],
)
def test_impossible_settings_are_refused(name: str, value: float) -> None:
    """With the name and what would be accepted."""
    with pytest.raises(ConfigError, match=name):
        synthetic(SyntheticSettings(**{name: value}))  # type: ignore[arg-type]


def test_the_fits_are_those_of_the_recorded_chats(data_dir: Path) -> None:
    """Mean and deviation of the logarithm, and the 99th percentile, counted again."""
    logs: dict[LogNormal, list[float]] = {
        fit: []
        for fit in (TURNS, FIRST_MESSAGE, LATER_MESSAGE, FIRST_ANSWER, LATER_ANSWER)
    }
    source = open_workload(data_dir / "sharegpt_turns.jsonl.gz")
    for conversation in source.conversations():
        logs[TURNS].append(math.log(len(conversation.turns)))
        history = 0
        for index, turn in enumerate(conversation.turns):
            message = turn.prompt_tokens - history
            logs[LATER_MESSAGE if index else FIRST_MESSAGE].append(math.log(message))
            answer = math.log(turn.output_tokens)
            logs[LATER_ANSWER if index else FIRST_ANSWER].append(answer)
            history = turn.tokens
    for fit, found in logs.items():
        assert fit.mean == pytest.approx(fmean(found), abs=0.001)
        assert fit.deviation == pytest.approx(pstdev(found), abs=0.001)
        percentile = sorted(found)[int(len(found) * 0.99)]
        assert fit.most == pytest.approx(math.exp(percentile), abs=1)


def test_everything_happens_in_the_default_scenario() -> None:
    """On the tiny device: adoption, eviction, preemption, chunks, commits, sharing."""
    scenario = default_scenario()
    layout = Layout.of(device_preset("tiny"), model_preset("tiny"))
    placed = Runtime.of(layout)
    loop = ServingLoop.of(
        scenario.workload,
        scenario.loop,
        layout.granules,
        placement=placed,
        pair_blocks=layout.pair_blocks,
    )
    commits = 0
    for _ in range(scenario.steps):
        record = loop.step()
        writes = [(r.id, start, count) for r, start, count, _ in record.scheduled]
        plan = placed.apply_step(Step(writes=writes))
        commits += len(plan.commits)
        placed.publish(plan)
        loop.completed(record)
    counted = loop.statistics

    assert min(counted.preemptions, counted.same_step_shares) >= 3
    assert min(counted.evictions, commits) >= 100
    assert min(counted.chunked_prefills, placed.adopted_pairs, counted.turns) >= 10
    assert 0.2 < counted.prefix_hit_rate < 0.95
