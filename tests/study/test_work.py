"""Tasks are done once, anywhere, and an interrupted study goes on where it was."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

import patton.study.tasks
from patton.errors import ConfigError
from patton.study.experiments.fragmentation import FragmentTask
from patton.study.lifecycles import LifecycleTask
from patton.study.tasks import Result, Source, key_of
from patton.study.work import Store, Workers, do

FRAGMENTS = [FragmentTask(pieces, "pin") for pieces in (1, 2, 4)]
CYCLES = [414, 484, 624]


@attrs.frozen
class Counted:
    """A task that leaves a trace of every time it is done, and fails on demand."""

    folder: str
    name: str
    fails: bool = False

    def execute(self) -> Result:
        done = Path(self.folder) / self.name
        done.write_text(done.read_text() + "x" if done.exists() else "x")
        if self.fails:
            raise RuntimeError(self.name)
        return {"name": self.name, "pair": (1, 0.1)}


def times_done(folder: Path, name: str) -> int:
    done = folder / name
    return len(done.read_text()) if done.exists() else 0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.in_folder(tmp_path / "tasks")


def test_a_task_is_done_once_and_found_by_the_next_study(
    store: Store, tmp_path: Path
) -> None:
    """Named twice, asked for twice, done once; the result is the same as from disk."""
    task = Counted(str(tmp_path), "one")
    first = do([task, task], store, Workers())
    second = do([task], Store.in_folder(store.folder), Workers())

    assert 1 == times_done(tmp_path, "one")
    assert first == second == {task: {"name": "one", "pair": [1, 0.1]}}


def test_an_interrupted_study_keeps_what_it_has(store: Store, tmp_path: Path) -> None:
    """The second of three tasks fails; the first is not done again, the third is."""
    folder = str(tmp_path)
    broken = [Counted(folder, "a"), Counted(folder, "b", True), Counted(folder, "c")]
    with pytest.raises(RuntimeError, match="b"):
        do(broken, store, Workers())
    assert [1, 1, 0] == [times_done(tmp_path, name) for name in "abc"]

    whole = [attrs.evolve(task, fails=False) for task in broken]
    found = do(whole, store, Workers())
    assert [1, 2, 1] == [times_done(tmp_path, name) for name in "abc"]
    assert ["a", "b", "c"] == [found[task]["name"] for task in whole]


def test_progress_tells_what_is_done_of_how_many(store: Store, tmp_path: Path) -> None:
    """Stored results count from the beginning."""
    tasks = [Counted(str(tmp_path), name) for name in "abc"]
    do(tasks[:1], store, Workers())
    told: list[tuple[int, int]] = []
    do(tasks, store, Workers(), lambda done, total: told.append((done, total)))

    assert [(1, 3), (2, 3), (3, 3)] == told


def test_a_damaged_result_is_computed_again(store: Store, tmp_path: Path) -> None:
    """A file cut short, or not of a result, is as good as none."""
    task = Counted(str(tmp_path), "one")
    do([task], store, Workers())
    (file,) = store.folder.iterdir()
    whole = file.read_text()
    other = whole.replace('"result": {', '"result": {"more": 1, ')
    assert other != whole
    for damage in (whole[:-9], "[]", "{}", '{"task": {}, "result": {}}', other):
        file.write_text(damage)
        do([task], store, Workers())

    assert 6 == times_done(tmp_path, "one")
    assert json.loads(file.read_text())["task"]["name"] == "one"


def test_a_key_is_of_the_settings_the_workload_and_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a result depends on, and not where the workload lies."""

    def task(path: Path, **changes: Any) -> LifecycleTask:
        source = Source.of(path)
        plain = LifecycleTask("llama3-8b", source, 10, 2, 2, 600)
        return attrs.evolve(plain, **changes)

    one, copy, other = (tmp_path / name for name in ("one.gz", "dir/one.gz", "two.gz"))
    copy.parent.mkdir()
    for path in (one, copy):
        path.write_bytes(gzip.compress(b"first", mtime=0))
    other.write_bytes(gzip.compress(b"second", mtime=0))
    keys = [
        key_of(task(one)),
        key_of(task(one, steps=11)),
        key_of(task(one, pair_blocks=4)),
        key_of(task(other)),
        key_of(FragmentTask(1, "pin")),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key_of(task(copy))

    monkeypatch.setattr(patton.study.tasks, "__version__", "9")
    assert keys[0] != key_of(task(one))


def test_processes_give_what_one_process_gives(store: Store, tmp_path: Path) -> None:
    """The same results on two workers of their own."""
    alone = do(FRAGMENTS, store, Workers())
    together = do(FRAGMENTS, Store.in_folder(tmp_path / "other"), Workers(jobs=2))

    assert CYCLES == [alone[task]["cycles"] for task in FRAGMENTS]
    assert alone == together


@attrs.frozen
class Dying:
    """A task whose process dies, as one does for which there is no memory."""

    name: str = "dying"

    def execute(self) -> Result:
        os._exit(1)


def test_a_process_that_dies_is_told_of(store: Store) -> None:
    """In words, and with what might help."""
    with pytest.raises(ConfigError, match=r"jobs is '2, one died'; .* memory"):
        do([Dying(), Dying("too")], store, Workers(jobs=2))


def test_a_failing_process_is_told_of(store: Store) -> None:
    """The error of a task is that of the study; what was done is kept."""
    tasks = [*FRAGMENTS, FragmentTask(1, "none such")]
    with pytest.raises(ConfigError, match="none such"):
        do(tasks, store, Workers(jobs=2))


def test_a_cluster_gives_what_one_process_gives(store: Store, tmp_path: Path) -> None:
    """A Dask scheduler and a worker of its own on the loopback interface."""
    distributed = pytest.importorskip(
        "distributed", reason="the extra `cluster` is not installed"
    )
    alone = do(FRAGMENTS, store, Workers())
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    ) as cluster:
        workers = Workers(cluster=cluster.scheduler_address)
        other = Store.in_folder(tmp_path / "other")
        assert alone == do(FRAGMENTS, other, workers)
        with pytest.raises(ConfigError, match="none such"):
            do([FragmentTask(1, "none such")], other, workers)


def test_no_job_at_all_is_refused() -> None:
    """Somebody has to do the work."""
    with pytest.raises(ConfigError, match="jobs is 0"):
        Workers(jobs=0)
