"""Every experiment on a few steps of the embedded workload, from tasks to pictures.

What the figures mean is checked where two ways to them exist; how large they are on
real conversations is for the study itself to say.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

pytest.importorskip("matplotlib", reason="the extra `study` is not installed")

from patton.study.experiments import EXPERIMENTS, capacity, commit_zone, comparison
from patton.study.experiments.experiment import Experiment
from patton.study.measured import PARTS, PREFILL, Measured
from patton.study.results import ALL_MODELS, Figure
from patton.study.settings import LONG, SHORT, Settings
from patton.study.study import run_study
from patton.study.tasks import Result, Source, Task
from patton.study.work import Store, Workers, do
from patton.systems import SYSTEMS

MODEL = "opt-6.7b"
SETTINGS = Settings(
    "quick",
    Source(seed=1),
    models=(MODEL,),
    steps=24,
    every=8,
    block_steps=24,
    pools=(4, 8),
    pressure=8,
    shares=(0.9,),
    contexts=(1024,),
    batches=(1, 2),
    pair_sizes=(4, 16),
)


# Quantities that agree with the paper's and need no words.
UNDISPUTED = {
    "latency ratio",
    "energy ratio",
    commit_zone.RATIO,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store.in_folder(tmp_path_factory.mktemp("study") / "tasks")


@pytest.fixture(scope="module")
def figures(store: Store) -> dict[tuple[str, str, str, str], Figure]:
    """All figures of all experiments, by what they are about."""
    found = run_study((), SETTINGS, store.folder.parent, Workers()).figures
    named = {(f.study, f.model, f.system, f.quantity): f for f in found}
    assert len(named) == len(found)
    return named


@pytest.fixture(scope="module")
def results(
    store: Store, figures: Mapping[tuple[str, str, str, str], Figure]
) -> Mapping[Task, Result]:
    """Results of all tasks, which `figures` has left in the store."""
    assert figures
    tasks = [task for item in EXPERIMENTS.values() for task in item.tasks(SETTINGS)]

    class Nobody(Workers):
        def results(self, tasks: object) -> object:  # type: ignore[override]
            assert tasks == []
            return iter(())

    return do(tasks, store, Nobody())


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda item: item.name)
def test_an_experiment_has_figures_pictures_and_words(
    experiment: Experiment, figures: Mapping[tuple[str, str, str, str], Figure]
) -> None:
    """Finite numbers with units; explanations of quantities that there are."""
    own = [figure for figure in figures.values() if figure.study == experiment.name]

    assert own
    assert all(abs(figure.value) < 1e15 and figure.unit for figure in own)
    assert all(plot.svg.startswith("<?xml") for plot in experiment.plots(own))
    assert experiment.about
    compared = {figure.quantity for figure in own if figure.paper is not None}
    explanations = experiment.explain(own)
    assert compared - explanations.keys() <= UNDISPUTED
    assert all("nan" not in text for text in explanations.values())


def test_words_on_capacity_name_the_policies_that_they_are_about() -> None:
    """Hit rates that differ from policy to policy come out each in its place."""
    rates = {name: n / 100 for n, name in enumerate(capacity.POLICIES, 10)}
    rates[capacity.REFERENCE] = 0.99
    found = [
        Figure(capacity.NAME, capacity.MODEL, name, capacity.AT_PRESSURE, rate, "", 1.0)
        for name, rate in rates.items()
    ]
    live = Figure(
        capacity.NAME, capacity.MODEL, capacity.REFERENCE, "live context", 8, ""
    )
    words = capacity.explain([*found, live])[capacity.AT_PRESSURE]

    assert f"hit {rates['16 packed, no adoption']:.1%} if none does" in words
    assert f"{rates['16 spread']:.1%} if some do" in words
    whole = "whole Value Row Sets"
    assert f"{rates[f'{whole}, no adoption']:.1%} and {rates[whole]:.1%}" in words


def test_every_system_is_compared_with_both_policies(
    figures: Mapping[tuple[str, str, str, str], Figure],
) -> None:
    """A ratio of latency and energy to each, by model and over all."""
    for name in SYSTEMS:
        if name.startswith("patton"):
            continue
        for ours in comparison.OURS:
            for ratio in comparison.RATIOS.values():
                for model in (MODEL, ALL_MODELS):
                    key = (comparison.NAME, model, ours, f"{ratio} over {name}")
                    assert figures[key].value > 0


def test_a_ratio_is_that_of_its_parts(
    figures: Mapping[tuple[str, str, str, str], Figure],
) -> None:
    """Latency of AttAcc, part by part, divided by PATTON's at the same context."""

    def total(system: str) -> float:
        name = f"{system}, context {SHORT}"
        return sum(
            figures[comparison.NAME, MODEL, name, f"latency of {part}"].value
            for part in (*PARTS, PREFILL)
        )

    ratio = figures[comparison.NAME, MODEL, "patton", "speed-up over attacc"].value
    assert total("attacc") / total("patton") == pytest.approx(ratio)


def test_systems_without_a_cache_hit_nothing_and_prefill_more(
    results: Mapping[Task, Result],
) -> None:
    """What AttAcc computes and PATTON finds is due to the runtime."""
    owned, cached = (
        results[SETTINGS.serve(MODEL, name, SHORT)] for name in ("attacc", "patton")
    )

    assert 0 == owned["hit_rate"] <= cached["hit_rate"]
    assert cached["prefill"]["tokens"] == cached["prefill"]["required_tokens"]
    assert owned["prefill"]["tokens"] >= owned["prefill"]["required_tokens"]
    assert 0.0 == Measured(cached).prefill("latency")


def test_the_commit_zone_changes_writes_and_partial_blocks_only(
    results: Mapping[Task, Result],
) -> None:
    """The same steps are timed with and without it; Keys and QK cost the same."""
    staged, direct = (
        Measured(results[SETTINGS.serve(MODEL, name, LONG)])
        for name in (commit_zone.PATTON, commit_zone.WITHOUT)
    )

    assert staged.result["timed"] == direct.result["timed"]
    for part in ("Key write", "QK"):
        assert staged.part("latency", part) == pytest.approx(
            direct.part("latency", part)
        )
    assert "commit" not in direct.result["cycles"]


def test_parts_add_up(results: Mapping[Task, Result]) -> None:
    """The whole is the sum of the parts and of prefill, in time and energy."""
    run = Measured(results[SETTINGS.serve(MODEL, "attacc", SHORT)])
    for cost in ("latency", "energy"):
        parts = sum(run.part(cost, part) for part in (*PARTS, PREFILL))
        assert run.total(cost) == pytest.approx(parts)
        assert run.standard_error(cost, *PARTS) >= 0


def test_policies_share_the_reference(
    figures: Mapping[tuple[str, str, str, str], Figure],
) -> None:
    """A policy without pressure has an effective capacity of 100 %."""
    for name in capacity.POLICIES:
        key = (capacity.NAME, capacity.MODEL, name, capacity.EFFECTIVE)
        assert 1.0 == figures[key].value


def _capacity(
    figures: Mapping[tuple[str, str, str, str], Figure],
    changed: Mapping[tuple[str, str], float],
) -> list[Figure]:
    """The figures of the capacity study, some by (system, quantity) replaced."""
    own = [figure for figure in figures.values() if figure.study == capacity.NAME]
    assert changed.keys() <= {(figure.system, figure.quantity) for figure in own}
    return [
        attrs.evolve(f, value=changed.get((f.system, f.quantity), f.value)) for f in own
    ]


@pytest.mark.parametrize(
    ("reaching", "cost", "verdict"),
    [
        ("16 by queue", 1.0, "It is met by `16 by queue` (98.5% at 12.0 blocks"),
        ("16 by queue", 1e9, "It is not met by `16 by queue`"),
        ("none", 1.0, "None has both; nearest is `16 by queue` (98.5% at 11.9"),
    ],
)
def test_the_frontier_is_judged_by_its_figures(
    figures: Mapping[tuple[str, str, str, str], Figure],
    reaching: str,
    cost: float,
    verdict: str,
) -> None:
    """Capacity, runs and both costs must all be had at once."""
    values = {}
    for name in capacity.SERVED:
        values[name, capacity.EFFECTIVE] = 0.9
        for kind in ("latency", "energy"):
            values[name, f"{kind} of attention and prefill"] = 10.0
    values["16 by queue", capacity.EFFECTIVE] = capacity.ENOUGH
    values["16 by queue", capacity.RUN] = 12.0 if reaching == "16 by queue" else 11.9
    values["16 by queue", "latency of attention and prefill"] = 1.0
    values["16 by queue", "energy of attention and prefill"] = cost
    frontier, knowledge = capacity.conclude(_capacity(figures, values))

    assert verdict in frontier
    assert f"{values['16 by queue', capacity.EFFECTIVE]:.1%}" in frontier
    assert capacity.INFORMED in knowledge


def test_best_knows_the_queue_and_the_papers_policy_does_not() -> None:
    """Eviction is the engine's and not an option of the system."""
    ours = [comparison.run_of(SETTINGS, MODEL, n, SHORT) for n in comparison.OURS]

    assert ["pairs", "queue"] == [task.eviction for task in ours]
