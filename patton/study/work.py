"""Doing tasks: on this machine's processes or on a Dask cluster, each only once.

Every result is written to the store as soon as it is there. A study that was stopped
goes on where it was, and one that asks for what another has done finds it.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import attrs

from patton.errors import ConfigError
from patton.study.extras import library
from patton.study.results import write_whole
from patton.study.tasks import Result, Task, described, execute, key_of

Progress = Callable[[int, int], None]


@attrs.frozen
class Store:
    """Results of tasks in a folder, a file each, named by the task's key."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Store:
        """The store of a folder, which is made if need be. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def get(self, task: Task) -> Result | None:
        """What is known of a task; a damaged file is as good as none."""
        try:
            content = json.loads(self._path(task).read_text("utf-8"))
            found: Result = content["result"]
            whole = content["digest"] == _digest(content["task"], found)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if whole else None

    def put(self, task: Task, result: Result) -> Result:
        """Keep a result, with the task beside it for people; as it is read next time.

        That is with floats as they are and keys of objects as text.
        """
        about, as_read = json.loads(json.dumps([described(task), result]))
        digest = _digest(about, as_read)
        content = {"task": about, "result": as_read, "digest": digest}
        write_whole(self._path(task), json.dumps(content) + "\n")
        return dict(as_read)

    def _path(self, task: Task) -> Path:
        return self.folder / f"{type(task).__name__}-{key_of(task)}.json"


def _digest(about: object, result: object) -> str:
    content = json.dumps([about, result], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@attrs.frozen
class Workers:
    """Who does the work: `jobs` processes, or the cluster of a Dask scheduler.

    A cluster's workers need this package, and a workload file at the same path.
    """

    jobs: int = 1
    cluster: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.jobs < 1:
            raise ConfigError("study", "jobs", self.jobs, "at least 1")

    def results(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Tasks and their results, in the order in which they end."""
        if self.cluster is not None:
            return _on_cluster(tasks, self.cluster)
        if self.jobs == 1 or len(tasks) < 2:
            return ((task, execute(task)) for task in tasks)
        return _on_processes(tasks, self.jobs)


def do(
    tasks: Iterable[Task],
    store: Store,
    workers: Workers,
    progress: Progress | None = None,
) -> Mapping[Task, Result]:
    """Results of all tasks, from the store where it has them.

    progress: told how many of how many are done. Raises what a task raises; results
    that came before are kept.
    """
    wanted = list(dict.fromkeys(tasks))
    stored = ((task, store.get(task)) for task in wanted)
    found = {task: result for task, result in stored if result is not None}
    missing = [task for task in wanted if task not in found]
    if progress is not None:
        progress(len(found), len(wanted))
    for task, result in workers.results(missing):
        found[task] = store.put(task, result)
        if progress is not None:
            progress(len(found), len(wanted))
    return found


def _on_processes(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Result]]:
    # A forked child would inherit the threads of a progress bar, half alive.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            futures = {pool.submit(execute, task): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            accepted = "as many as this machine has memory for; what is done is kept"
            raise ConfigError("study", "jobs", f"{jobs}, one died", accepted) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_cluster(tasks: Sequence[Task], address: str) -> Iterator[tuple[Task, Result]]:
    distributed = library("distributed", "cluster", "cluster")
    with _client(distributed, address) as client:
        futures = client.map(execute, tasks, pure=False)
        task_of = dict(zip(futures, tasks, strict=True))
        for future in distributed.as_completed(futures):
            yield task_of[future], future.result()


def _client(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address)
    except (OSError, ValueError) as error:
        accepted = f"the address of a Dask scheduler that answers ({error})"
        raise ConfigError("study", "cluster", address, accepted) from None
