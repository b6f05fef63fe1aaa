"""Doing a study: from the names of experiments to figures in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from patton.errors import ConfigError
from patton.study.experiments import EXPERIMENTS
from patton.study.results import FILE, Results, read_results
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
    ConfigError for an unknown name, a folder with results of other settings, and steps
    too few to say anything; WorkloadError for a file of that name that is no result;
    and what tasks raise.
    """
    for name in names:
        if name not in EXPERIMENTS:
            accepted = "one of " + ", ".join(EXPERIMENTS)
            raise ConfigError("study", "name", name, accepted)
    chosen = [EXPERIMENTS[name] for name in dict.fromkeys(names or EXPERIMENTS)]
    known = _known(folder, settings)
    store = Store.in_folder(folder / TASKS_FOLDER)
    tasks = [task for experiment in chosen for task in experiment.tasks(settings)]
    results = do(tasks, store, workers, progress)
    try:
        figures = [
            figure
            for experiment in chosen
            for figure in experiment.figures(settings, results)
        ]
    except ZeroDivisionError:
        accepted = "more steps: in these too little happens to be compared"
        raise ConfigError("study", "steps", settings.steps, accepted) from None
    merged = known.merged(settings.as_json(), figures)
    merged.write(folder)
    return merged


def _known(folder: Path, settings: Settings) -> Results:
    """Figures that the folder has already. Raises ConfigError, WorkloadError."""
    mine = settings.as_json()
    if not (folder / FILE).exists():
        return Results(mine, ())
    known = read_results(folder)
    if known.settings != mine:
        names = mine.keys() | known.settings.keys()
        other = [n for n in sorted(names) if known.settings.get(n) != mine.get(n)]
        found = f"{folder}, whose results have another {', '.join(other)}"
        raise ConfigError("study", "out", found, "another folder, or the same settings")
    return known
