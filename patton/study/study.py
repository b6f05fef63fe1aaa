"""Doing a study: from the names of experiments to figures in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from patton.errors import ConfigError, WorkloadError
from patton.study.experiments import EXPERIMENTS
from patton.study.results import Results, read_results
from patton.study.settings import Settings
from patton.study.work import Progress, Store, Workers, do

TASKS_FOLDER = "tasks"


def run_study(
    names: Sequence[str],
    settings: Settings,
    folder: Path,
    workers: Workers,
    progress: Progress | None = None,
) -> Results:
    """Do the experiments that are named, none for all; write and return all figures.

    folder: of `results.json`, in which figures of other experiments under the same
    settings stay, and of `tasks`, from which an interrupted study goes on. Raises
    ConfigError for an unknown name, and what tasks raise.
    """
    for name in names:
        if name not in EXPERIMENTS:
            accepted = "one of " + ", ".join(EXPERIMENTS)
            raise ConfigError("study", "name", name, accepted)
    chosen = [EXPERIMENTS[name] for name in names or EXPERIMENTS]
    store = Store.in_folder(folder / TASKS_FOLDER)
    tasks = [task for experiment in chosen for task in experiment.tasks(settings)]
    results = do(tasks, store, workers, progress)
    figures = [
        figure
        for experiment in chosen
        for figure in experiment.figures(settings, results)
    ]
    merged = _known(folder, settings).merged(settings.as_json(), figures)
    merged.write(folder)
    return merged


def _known(folder: Path, settings: Settings) -> Results:
    """Figures of the folder that belong to the same settings."""
    nothing = Results(settings.as_json(), ())
    try:
        known = read_results(folder)
    except WorkloadError:
        return nothing
    return known if known.settings == settings.as_json() else nothing
